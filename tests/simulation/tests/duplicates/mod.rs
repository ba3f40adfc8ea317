//! Every message of our own queues may come twice: at once, to two processes that handle it request by request beside each other,
//! and much later. For each kind there is a scene in which it is sent, and what consumers see and what is recorded is as if each had
//! come once.

mod letters;
mod scenes;
mod stage;

use tidegate_engine::message::Message;

use stage::{Repeats, Seen, Stage};

/// Names the kinds of messages after the variants of [`Message`]. One that is missing here is missing in the `match`: this file
/// does not compile until it is named, and its scene in `scenes.rs` with it.
macro_rules! kinds {
    ($($kind:ident)*) => {
        /// A kind of message of our own queues.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind,)*
            /// A message of the release queue, which has only this kind.
            OfReleaseQueue,
        }

        impl Kind {
            const ALL: &[Self] = &[$(Self::$kind,)* Self::OfReleaseQueue];

            /// The kind of a message of the dispatch queue or the scan queue.
            pub(crate) fn of(message: &Message) -> Self {
                match message {
                    $(Message::$kind { .. } => Self::$kind,)*
                }
            }
        }
    };
}

kinds! { Chunk Arrival Sent Wake Retain Scan Drain Delete Event Callback Look Overdue Release }

/// Plays the scene of a kind. How often its messages came again, and what was seen of it in the end.
async fn played(kind: Kind, repeats: Repeats) -> (usize, Seen) {
    let mut stage = Stage::new(kind, repeats).await;
    scenes::play(&mut stage).await;
    let before = stage.seen().await;
    stage.repeat_all().await;
    let after = stage.seen().await;
    let changed = before.differences(&after);
    assert!(changed.is_empty(), "{kind:?} {repeats:?}: what came again in the end changed {changed:#?}");
    (stage.repeated, after)
}

async fn holds(kind: Kind) {
    let (_, once) = played(kind, Repeats::Never).await;
    // Days pass in the one scene, and hundreds of rows are planned in the other.
    let (at_once, later): (&[usize], &[i64]) = match kind {
        Kind::Retain | Kind::Scan => (&[1], &[600]),
        _ => (&[0, 1, 3], &[30, 600, 7_200]),
    };
    let at_once = at_once.iter().map(|ahead| Repeats::AtOnce { ahead: *ahead });
    let later = later.iter().map(|seconds| Repeats::After { seconds: *seconds });
    for repeats in at_once.chain(later) {
        let (repeated, again) = played(kind, repeats).await;
        assert!(repeated > 0, "{kind:?} {repeats:?}: none came again, so nothing is proved");
        let differs = once.differences(&again);
        assert!(differs.is_empty(), "{kind:?} {repeats:?}: {differs:#?}");
    }
}

/// One test for each kind.
macro_rules! come_twice {
    ($($name:ident of $kind:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                holds(Kind::$kind).await;
            }
        )*

        #[test]
        fn every_kind_has_its_test() {
            assert_eq!(Kind::ALL, [$(Kind::$kind),*]);
        }
    };
}

come_twice! {
    a_chunk_comes_twice of Chunk
    an_arrival_comes_twice of Arrival
    what_was_sent_comes_twice of Sent
    a_wake_up_comes_twice of Wake
    a_retention_comes_twice of Retain
    a_part_of_a_scan_comes_twice of Scan
    a_drain_comes_twice of Drain
    a_step_of_a_deletion_comes_twice of Delete
    a_granted_event_comes_twice of Event
    the_end_of_a_run_comes_twice of Callback
    a_look_comes_twice of Look
    an_overdue_launch_comes_twice of Overdue
    a_deferred_release_comes_twice of Release
    a_release_message_comes_twice of OfReleaseQueue
}
