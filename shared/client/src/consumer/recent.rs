//! Not working on an event twice at once, nor again when its outcome is known.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use tidegate_protocol::Release;
use tokio::sync::watch;
use tracing::info;

use super::limits;

/// How an event ended, and what is said about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventOutcome {
    Succeeded { result: Option<String> },
    Failed { error: String },
}

impl EventOutcome {
    pub(crate) fn release(&self, token: &str) -> Release {
        match self {
            Self::Succeeded { result: None } => Release::succeeded(token),
            Self::Succeeded { result: Some(text) } => Release::succeeded(token).result(fitted(text)),
            Self::Failed { error } => Release::failed(token).error(fitted(error)),
        }
    }

    fn is_final(&self) -> bool {
        matches!(self, Self::Succeeded { .. })
    }
}

/// As much of a text as the API keeps. Control characters would each be six bytes in JSON, and nobody can read them.
fn fitted(text: &str) -> String {
    let is_hidden = |c: char| matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f');
    let mut fitted = String::new();
    for c in text.chars().map(|c| if is_hidden(c) { ' ' } else { c }) {
        if fitted.len() + c.len_utf8() > limits::NOTE_BYTES {
            break;
        }
        fitted.push(c);
    }
    fitted
}

/// What came of an event that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Known(EventOutcome),
    /// Its lease has ended: its message is of no use, and another one comes if the event is to be delivered again.
    LeaseOver,
    /// It was not finished here: its message stays, and comes again.
    Left,
}

/// The events that are under way, and the outcomes of those that ended last, by event id. Bounded.
pub(crate) struct Recent {
    capacity: usize,
    events: Mutex<Events>,
}

struct Events {
    /// With the attempt that they are the outcomes of.
    ended: LruCache<String, (u32, EventOutcome)>,
    /// A receiver hears that its sender is gone when the work has ended.
    under_way: BTreeMap<String, watch::Receiver<()>>,
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// What is to be done with an event that was received.
enum Next<'r> {
    Work(UnderWay<'r>),
    Wait(watch::Receiver<()>),
    Nothing(EventOutcome),
}

/// No other delivery of the event is worked on as long as this is kept.
struct UnderWay<'r> {
    recent: &'r Recent,
    event_id: &'r str,
    _ended: watch::Sender<()>,
}

impl Recent {
    pub(crate) fn new(capacity: usize) -> Self {
        let events = Events { ended: LruCache::unbounded(), under_way: BTreeMap::new() };
        Self { capacity, events: Mutex::new(events) }
    }

    /// The outcome of an event: by `work`, unless it is known. Waits when the event is being worked on elsewhere.
    ///
    /// A later delivery of an event that failed is worked on: it was redriven.
    pub(crate) async fn outcome(
        &self,
        event_id: &str,
        attempt: u32,
        work: impl Future<Output = Ended>,
    ) -> Ended {
        let under_way = loop {
            match self.next(event_id, attempt) {
                Next::Work(under_way) => break under_way,
                Next::Wait(mut elsewhere) => drop(elsewhere.changed().await),
                Next::Nothing(outcome) => {
                    info!(event_id, ?outcome, "an event came again and is not worked on again");
                    return Ended::Known(outcome);
                }
            }
        };
        let ended = work.await;
        if let Ended::Known(outcome) = &ended {
            self.remember(event_id, attempt, outcome);
        }
        drop(under_way);
        ended
    }

    fn next<'r>(&'r self, event_id: &'r str, attempt: u32) -> Next<'r> {
        let mut events = self.lock();
        if let Some((known_attempt, outcome)) = events.ended.peek(event_id)
            && (outcome.is_final() || attempt <= *known_attempt)
        {
            return Next::Nothing(outcome.clone());
        }
        if let Some(elsewhere) = events.under_way.get(event_id) {
            return Next::Wait(elsewhere.clone());
        }
        let (ended, receiver) = watch::channel(());
        events.under_way.insert(event_id.to_owned(), receiver);
        Next::Work(UnderWay { recent: self, event_id, _ended: ended })
    }

    fn remember(&self, event_id: &str, attempt: u32, outcome: &EventOutcome) {
        let mut events = self.lock();
        events.ended.put(event_id.to_owned(), (attempt, outcome.clone()));
        while events.ended.len() > self.capacity {
            events.ended.pop_lru();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.recent.lock().under_way.remove(self.event_id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::sleep;

    use super::*;
    use crate::consumer::fakes::seconds;

    fn succeeded(text: &str) -> Ended {
        Ended::Known(EventOutcome::Succeeded { result: Some(text.to_owned()) })
    }

    async fn never() -> Ended {
        panic!("it was worked on")
    }

    #[tokio::test]
    async fn memory_is_bounded_and_the_oldest_is_forgotten() {
        let recent = Recent::new(2);
        for event in ["a", "b", "c"] {
            recent.outcome(event, 1, async { succeeded("first") }).await;
        }
        assert_eq!(recent.outcome("c", 1, never()).await, succeeded("first"));
        assert_eq!(recent.outcome("a", 1, async { succeeded("again") }).await, succeeded("again"));
        let nothing = Recent::new(0);
        nothing.outcome("a", 1, async { succeeded("first") }).await;
        assert_eq!(nothing.outcome("a", 1, async { succeeded("again") }).await, succeeded("again"));
    }

    #[tokio::test]
    async fn only_a_later_delivery_of_a_failed_event_is_worked_on_again() {
        let recent = Recent::new(2);
        let failed = Ended::Known(EventOutcome::Failed { error: "no such shop".to_owned() });
        assert_eq!(recent.outcome("a", 1, async { failed.clone() }).await, failed);
        assert_eq!(recent.outcome("a", 1, never()).await, failed);
        assert_eq!(recent.outcome("a", 2, async { succeeded("redriven") }).await, succeeded("redriven"));
        assert_eq!(recent.outcome("a", 3, never()).await, succeeded("redriven"));
    }

    #[tokio::test]
    async fn what_was_not_finished_is_worked_on_again() {
        let recent = Recent::new(2);
        for ended in [Ended::Left, Ended::LeaseOver] {
            assert_eq!(recent.outcome("a", 1, async { ended.clone() }).await, ended);
        }
        assert_eq!(recent.outcome("a", 1, async { succeeded("done") }).await, succeeded("done"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_under_way_is_waited_for() {
        let recent = Arc::new(Recent::new(2));
        let first = Arc::clone(&recent);
        let slow = tokio::spawn(async move {
            let work = async {
                sleep(seconds(10)).await;
                succeeded("once")
            };
            first.outcome("a", 1, work).await
        });
        sleep(seconds(1)).await;
        assert_eq!(recent.outcome("a", 1, never()).await, succeeded("once"));
        assert_eq!(slow.await.unwrap(), succeeded("once"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_whose_work_was_dropped_is_worked_on() {
        let recent = Arc::new(Recent::new(2));
        let first = Arc::clone(&recent);
        let slow = tokio::spawn(async move { first.outcome("a", 1, std::future::pending()).await });
        sleep(seconds(1)).await;
        slow.abort();
        assert_eq!(recent.outcome("a", 1, async { succeeded("done") }).await, succeeded("done"));
    }

    #[test]
    fn as_much_of_a_text_goes_as_the_api_keeps() {
        let long = "é".repeat(2_000);
        let release = EventOutcome::Failed { error: format!("a{long}") }.release("tok.0");
        assert_eq!(release.error.as_deref().map(str::len), Some(2_047));
        let release = EventOutcome::Succeeded { result: Some("a\0b\n\x1bc".to_owned()) }.release("tok.0");
        assert_eq!(release.result.as_deref(), Some("a b\n c"));
    }
}
