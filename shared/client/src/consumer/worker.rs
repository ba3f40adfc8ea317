//! Running the user's function on an event, and saying what came of it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tidegate_protocol::Event;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::calls::Boxed;
use super::heartbeats::Heartbeats;
use super::lease::Lease;
use super::recent::{Ended, EventOutcome, Recent};

/// What a function may give back when it has done its work: the `result` that is shown with the event, or nothing.
pub trait EventResult {
    /// The text, of which 2,048 bytes are kept.
    fn into_text(self) -> Option<String>;
}

impl EventResult for () {
    fn into_text(self) -> Option<String> {
        None
    }
}

impl EventResult for String {
    fn into_text(self) -> Option<String> {
        Some(self)
    }
}

impl EventResult for &'static str {
    fn into_text(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl EventResult for Option<String> {
    fn into_text(self) -> Option<String> {
        self
    }
}

/// A user's function: the text of its result, or that of its error.
#[derive(Clone)]
pub(crate) struct Work(Arc<dyn Fn(Event, Lease) -> Worked + Send + Sync>);

type Worked = Boxed<'static, Result<Option<String>, String>>;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Work {
    pub(crate) fn new<W, F, R, E>(work: W) -> Self
    where
        W: Fn(Event, Lease) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: EventResult,
        E: fmt::Display,
    {
        Self(Arc::new(move |event, lease| {
            let working = work(event, lease);
            Box::pin(async move {
                match working.await {
                    Ok(result) => Ok(result.into_text()),
                    Err(error) => Err(format!("{error:#}")),
                }
            })
        }))
    }

    /// Runs it in a task of its own, so that a panic is an error like others. Dropping this drops the work.
    async fn run(&self, event: Event, lease: Lease) -> Result<Option<String>, String> {
        let work = Arc::clone(&self.0);
        let mut task = JoinSet::new();
        task.spawn(async move { work(event, lease).await });
        match task.join_next().await {
            Some(Ok(worked)) => worked,
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => Err(format!("the work panicked: {}", text_of(&*panic))),
                Err(error) => Err(error.to_string()),
            },
            None => Err("the work was not run".to_owned()),
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// Runs the user's function on events.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) work: Work,
    pub(crate) recent: Arc<Recent>,
    pub(crate) heartbeats: Arc<Heartbeats>,
}

impl Worker {
    /// `came_before`: the message was received before, so whoever had it may have released its token.
    pub(crate) async fn work_on(&self, event: Event, lease: &Lease, came_before: bool) -> Ended {
        let attempt = event.attempt;
        self.recent.outcome(lease.event_id(), attempt, self.run(event, lease, came_before)).await
    }

    async fn run(&self, event: Event, lease: &Lease, came_before: bool) -> Ended {
        let event_id = lease.event_id();
        if !lease.is_lost()
            && (came_before || self.heartbeats.is_short(lease))
            && let Err(error) = self.heartbeats.confirm(lease).await
        {
            warn!(event_id, %error, "an event is left in the queue: its lease could not be extended");
            return Ended::Left;
        }
        if lease.is_lost() {
            info!(event_id, "an event is not begun: its lease is lost");
            return without_outcome(lease);
        }
        match self.work.run(event, lease.clone()).await {
            Ok(result) => Ended::Known(EventOutcome::Succeeded { result }),
            Err(error) if lease.is_lost() => {
                info!(event_id, error, "an event was given up: its lease is lost");
                without_outcome(lease)
            }
            Err(error) => {
                warn!(event_id, error, "an event failed");
                match lease.token() {
                    Some(_) => Ended::Known(EventOutcome::Failed { error }),
                    None => Ended::Left, // Nobody else would hear of the failure.
                }
            }
        }
    }
}

fn without_outcome(lease: &Lease) -> Ended {
    if lease.is_over() { Ended::LeaseOver } else { Ended::Left }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::fakes::{FakeApi, at, body, body_with, event, seconds};
    use serde_json::{Value, json};
    use tidegate_protocol::{ExtendStatus, Extended};
    use tokio::time::sleep;

    async fn work_on<F, R>(
        api: &Arc<FakeApi>,
        body: &Value,
        work: impl Fn(Event, Lease) -> F + Send + Sync + 'static,
    ) -> Ended
    where
        F: Future<Output = Result<R, String>> + Send + 'static,
        R: EventResult,
    {
        let heartbeats = Heartbeats::new(&api.calls(), None);
        let worker = Worker {
            work: Work::new(work),
            recent: Arc::new(Recent::new(2)),
            heartbeats: Arc::clone(&heartbeats),
        };
        let event = event(body);
        let held = heartbeats.start(&event);
        worker.work_on(event, &held.lease, false).await
    }

    fn lose(lease: &Lease) {
        let (token, status) = ("tok.0".to_owned(), ExtendStatus::Expired);
        lease.answered(&Extended { token, status, lease_expires_at: None });
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_function_may_give_back() {
        let api = FakeApi::new();
        let succeeded =
            |text: Option<&str>| Ended::Known(EventOutcome::Succeeded { result: text.map(str::to_owned) });
        assert_eq!(work_on(&api, &body(0), |_, _| async { Ok(()) }).await, succeeded(None));
        assert_eq!(work_on(&api, &body(0), |_, _| async { Ok("done") }).await, succeeded(Some("done")));
        let text = |_, _| async { Ok(Some("9 rows".to_owned())) };
        assert_eq!(work_on(&api, &body(0), text).await, succeeded(Some("9 rows")));
        let failed = Ended::Known(EventOutcome::Failed { error: "no such shop".to_owned() });
        assert_eq!(
            work_on(&api, &body(0), |_, _| async { Err::<(), _>("no such shop".to_owned()) }).await,
            failed
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_after_its_lease_was_lost() {
        let api = FakeApi::new();
        let fails = |_, lease: Lease| async move {
            lose(&lease);
            Err::<(), _>("stopped".to_owned())
        };
        assert_eq!(work_on(&api, &body(0), fails).await, Ended::LeaseOver);
        let gives_up = |_, lease: Lease| async move {
            lease.give_up();
            Err::<(), _>("stopped".to_owned())
        };
        assert_eq!(work_on(&api, &body(0), gives_up).await, Ended::Left);
        let finishes = |_, lease: Lease| async move {
            lose(&lease);
            Ok("done".to_owned())
        };
        let done = EventOutcome::Succeeded { result: Some("done".to_owned()) };
        assert_eq!(work_on(&api, &body(0), finishes).await, Ended::Known(done));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_may_be_over_is_extended_before_the_work() {
        for (left_s, extensions) in [(-100, 1), (2, 1), (4, 0)] {
            let api = FakeApi::new();
            let late = body_with(0, json!({"lease_expires_at": at(left_s)}));
            work_on(&api, &late, |_, _| async {
                sleep(seconds(1)).await;
                Ok(())
            })
            .await;
            assert_eq!(api.extended().len(), extensions, "{left_s}");
        }
    }
}
