//! What came of the events, as their consumer saw it: a fold over the entries of the book.
//!
//! An event is *in flight* from its arrival until its work is finished and its release is asked for. Later would count
//! its successor beside it, which Tidegate may send before the answer to the release is read.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Something that happened. Version 1 of a stored form; fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The batch is about to be scheduled for this instant.
    Batch { launch_ms: i64 },
    /// A message arrived.
    Arrived(Arrival),
    /// The work on an event is done.
    Finished { at_ms: i64, event: String },
    /// The token of an event is free again; events without a token are released as they are finished.
    Released { at_ms: i64, event: String },
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Arrival {
    pub(super) at_ms: i64,
    pub(super) event: String,
    pub(super) job: String,
    pub(super) index: u32,
    pub(super) launch_ms: i64,
    /// SQS's id of the message: the same message may arrive again, when its consumer died.
    pub(super) message: String,
    pub(super) throttled: bool,
}

/// What is known of an event.
#[derive(Debug, Clone)]
pub(super) struct Fate {
    pub(super) job: String,
    pub(super) index: u32,
    pub(super) launch_ms: i64,
    pub(super) throttled: bool,
    /// From its launch to its first arrival.
    pub(super) late_ms: i64,
    pub(super) finished: bool,
    pub(super) released: bool,
    messages: BTreeSet<String>,
}

/// The score.
#[derive(Debug, Default)]
pub(super) struct Score {
    pub(super) batch_launch_ms: Option<i64>,
    pub(super) events: BTreeMap<String, Fate>,
    in_flight: BTreeSet<String>,
    pub(super) max_in_flight: usize,
}

impl Score {
    pub(super) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Batch { launch_ms } => self.batch_launch_ms = Some(*launch_ms),
            Entry::Arrived(arrival) => self.arrive(arrival),
            Entry::Finished { event, .. } => {
                self.in_flight.remove(event);
                self.change(event, |fate| fate.finished = true);
            }
            Entry::Released { event, .. } => self.change(event, |fate| fate.released = true),
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        let fate = self.events.entry(arrival.event.clone()).or_insert_with(|| Fate {
            job: arrival.job.clone(),
            index: arrival.index,
            launch_ms: arrival.launch_ms,
            throttled: arrival.throttled,
            late_ms: arrival.at_ms - arrival.launch_ms,
            finished: false,
            released: false,
            messages: BTreeSet::new(),
        });
        fate.messages.insert(arrival.message.clone());
        if arrival.throttled && !fate.finished {
            self.in_flight.insert(arrival.event.clone());
            self.max_in_flight = self.max_in_flight.max(self.in_flight.len());
        }
    }

    fn change(&mut self, event: &str, change: impl FnOnce(&mut Fate)) {
        if let Some(fate) = self.events.get_mut(event) {
            change(fate);
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Messages beyond the first of an event. One that SQS gave again, because its consumer died, is still one.
    pub(super) fn duplicates(&self) -> usize {
        self.events.values().map(|fate| fate.messages.len().saturating_sub(1)).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn arrived(event: &str, message: &str, throttled: bool, launch_ms: i64, at_ms: i64) -> Entry {
        let (job, index) = (event.split('.').next().unwrap(), event.rsplit('.').next().unwrap());
        Entry::Arrived(Arrival {
            at_ms,
            event: event.to_owned(),
            job: job.to_owned(),
            index: index.parse().unwrap(),
            launch_ms,
            message: message.to_owned(),
            throttled,
        })
    }

    fn score(entries: &[Entry]) -> Score {
        let mut score = Score::default();
        entries.iter().for_each(|entry| score.apply(entry));
        score
    }

    #[test]
    fn an_event_is_in_flight_until_its_work_is_finished() {
        let finished = |event: &str| Entry::Finished { at_ms: 5, event: event.to_owned() };
        let released = |event: &str| Entry::Released { at_ms: 6, event: event.to_owned() };
        let score = score(&[
            arrived("b.1.0.0", "m0", true, 0, 1),
            arrived("b.1.0.1", "m1", true, 0, 2),
            arrived("c.1.0.0", "m2", false, 0, 3),
            finished("b.1.0.0"),
            arrived("b.1.0.2", "m3", true, 0, 4),
            released("b.1.0.0"),
        ]);
        assert_eq!((score.in_flight(), score.max_in_flight, score.duplicates()), (2, 2, 0));
        assert!(score.events["b.1.0.0"].released && !score.events["b.1.0.1"].finished);
    }

    #[test]
    fn the_same_message_again_is_no_duplicate_and_another_one_is() {
        let again = arrived("b.1.0.0", "m0", true, 0, 9_000);
        let once = score(&[arrived("b.1.0.0", "m0", true, 0, 7), again]);
        assert_eq!((once.duplicates(), once.in_flight(), once.events["b.1.0.0"].late_ms), (0, 1, 7));
        let twice = score(&[arrived("b.1.0.0", "m0", true, 0, 7), arrived("b.1.0.0", "m1", true, 0, 8)]);
        assert_eq!((twice.duplicates(), twice.in_flight()), (1, 1));
    }

    #[test]
    fn an_event_whose_work_is_done_is_not_in_flight_again() {
        let score = score(&[
            arrived("b.1.0.0", "m0", true, 0, 7),
            Entry::Finished { at_ms: 8, event: "b.1.0.0".to_owned() },
            arrived("b.1.0.0", "m0", true, 0, 9),
        ]);
        assert_eq!((score.in_flight(), score.max_in_flight), (0, 1));
    }
}
