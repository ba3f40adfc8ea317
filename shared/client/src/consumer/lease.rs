//! The lease of an event that is worked on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tidegate_protocol::{Event, ExtendStatus, Extended};
use tokio::sync::watch;

use super::limits;

/// The lease of an event that is worked on: whether the event is still this consumer's. Cheap to clone.
///
/// An event without token has one too, which only the end of a shutdown or of an invocation ends.
///
/// ```no_run
/// use tidegate_client::{Event, Lease};
///
/// # async fn copy(_: &Event) -> Result<u64, std::io::Error> { Ok(1) }
/// async fn work(event: Event, lease: Lease) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
///     let rows = lease.while_held(copy(&event)).await??; // stops the copy when the lease is lost
///     Ok(format!("{rows} rows"))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Lease(Arc<State>);

#[derive(Debug)]
struct State {
    event_id: String,
    token: Option<String>,
    lost: watch::Sender<bool>,
    is_over: AtomicBool,
    end: Mutex<End>,
}

/// When a lease ends, as far as that is known.
#[derive(Debug, Clone, Copy)]
struct End {
    at: Option<DateTime<Utc>>,
    was_asked: bool,
    is_extended: bool,
}

/// The event is not this consumer's any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease is lost")]
pub struct LeaseLost;

impl Lease {
    pub(crate) fn of(event: &Event) -> Self {
        let expires_at = event.lease_expires_at.as_deref().and_then(instant);
        Self::new(event.event_id.clone(), event.token.clone(), expires_at)
    }

    /// The lease of a token, whatever it belongs to.
    pub(crate) fn of_token(token: &str) -> Self {
        Self::new(String::new(), Some(token.to_owned()), None)
    }

    fn new(event_id: String, token: Option<String>, at: Option<DateTime<Utc>>) -> Self {
        let end = Mutex::new(End { at, was_asked: false, is_extended: false });
        let lost = watch::Sender::new(false);
        Self(Arc::new(State { event_id, token, lost, is_over: AtomicBool::new(false), end }))
    }

    /// The event that it is the lease of.
    pub fn event_id(&self) -> &str {
        &self.0.event_id
    }

    /// The token of the event; `None` when its job has no policy.
    pub fn token(&self) -> Option<&str> {
        self.0.token.as_deref()
    }

    /// Whether the event is not this consumer's any more: the API says that the lease has ended, or the time of a shutdown
    /// or an invocation is over. Stop working then: another consumer may have the event. An error that is returned
    /// afterwards is not released.
    pub fn is_lost(&self) -> bool {
        *self.0.lost.borrow()
    }

    /// Waits until the lease is lost; for as long as it is held, that is forever.
    pub async fn lost(&self) {
        // The sender is a part of this lease, so that it cannot go first.
        let _ = self.0.lost.subscribe().wait_for(|lost| *lost).await;
    }

    /// Does the work while the lease is held, and drops it when the lease is lost.
    ///
    /// # Errors
    /// [`LeaseLost`] when the lease was lost before the work was done.
    pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        tokio::select! {
            biased;
            () = self.lost() => Err(LeaseLost),
            done = work => Ok(done),
        }
    }

    /// Whether the API said that the lease has ended, so that Tidegate delivers the event again if it is to be. The other
    /// answers, such as `unknown`, may come from a wrong address or key: then the message is kept.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }

    /// What is left of it; nothing when nobody said when it ends.
    pub(crate) fn remaining(&self, server_now: DateTime<Utc>) -> Duration {
        let left = self.end().at.map(|at| at.signed_duration_since(server_now));
        left.and_then(|left| left.to_std().ok()).unwrap_or_default()
    }

    /// How long until its next heartbeat: a third of what is left. At once when nobody said when it ends, nor was asked.
    pub(crate) fn beat(&self, server_now: DateTime<Utc>) -> Duration {
        let end = *self.end();
        let remaining = self.remaining(server_now);
        if end.at.is_none() && !end.was_asked {
            return Duration::ZERO;
        }
        if remaining.is_zero() {
            return limits::OVERDUE_BEAT;
        }
        let third = (remaining / 3).max(limits::SHORTEST_BEAT);
        if end.is_extended { third } else { third.min(limits::LONGEST_FIRST_BEAT) }
    }

    /// The API is asked to extend it.
    pub(crate) fn asked(&self) {
        self.end().was_asked = true;
    }

    /// Takes the API's answer to an extension.
    pub(crate) fn answered(&self, answer: &Extended) {
        if answer.status == ExtendStatus::Extended {
            let at = answer.lease_expires_at.as_deref().and_then(instant);
            *self.end() = End { at, was_asked: true, is_extended: true };
            return;
        }
        self.0.is_over.store(answer.status == ExtendStatus::Expired, Ordering::SeqCst);
        self.give_up();
    }

    /// Tells the work that the event is not its own any more.
    pub(crate) fn give_up(&self) {
        self.0.lost.send_replace(true);
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn instant(text: &str) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc())
}
