//! The two calls of the API that a consumer makes, release and extend, with their retries.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tidegate_protocol::{Extended, Release, Released};
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use super::limits;
use crate::client::{Attempt, Client};
use crate::error::Error;

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One attempt of each call, behind an interface so that tests answer it.
pub(crate) trait TokenApi: Send + Sync {
    fn release<'a>(&'a self, entries: &'a [Release]) -> Boxed<'a, Attempt<Vec<Released>>>;

    fn extend<'a>(
        &'a self,
        tokens: &'a [&'a str],
        lease_seconds: Option<u32>,
    ) -> Boxed<'a, Attempt<Vec<Extended>>>;
}

impl TokenApi for Client {
    fn release<'a>(&'a self, entries: &'a [Release]) -> Boxed<'a, Attempt<Vec<Released>>> {
        Box::pin(self.attempt_release(entries))
    }

    fn extend<'a>(
        &'a self,
        tokens: &'a [&'a str],
        lease_seconds: Option<u32>,
    ) -> Boxed<'a, Attempt<Vec<Extended>>> {
        Box::pin(self.attempt_extend(tokens, lease_seconds))
    }
}

/// Why a call failed for good.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Api(#[from] Error),
    #[error("no answer from the API within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

impl CallError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Api(error) => error.is_retryable(),
            Self::TimedOut(_) => true,
        }
    }
}

/// Makes calls, and repeats each while that may help and there is time.
pub(crate) struct Calls {
    api: Arc<dyn TokenApi>,
    wall_clock: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    /// Evenly from 0 to 1.
    jitter: fn() -> f64,
    /// By how much the server's clock is ahead of this one, in milliseconds, as its last answer told.
    ahead_ms: AtomicI64,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

impl Calls {
    pub(crate) fn new(client: &Client) -> Arc<Self> {
        Self::with(Arc::new(client.clone()), Arc::new(Utc::now), random)
    }

    pub(crate) fn with(
        api: Arc<dyn TokenApi>,
        wall_clock: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
        jitter: fn() -> f64,
    ) -> Arc<Self> {
        Arc::new(Self { api, wall_clock, jitter, ahead_ms: AtomicI64::new(0) })
    }

    /// The server's time of day: leases go by its clock, and this one may be wrong.
    pub(crate) fn server_now(&self) -> DateTime<Utc> {
        let now = (self.wall_clock)();
        let ahead = TimeDelta::try_milliseconds(self.ahead_ms.load(Ordering::Relaxed));
        ahead.and_then(|ahead| now.checked_add_signed(ahead)).unwrap_or(now)
    }

    /// Releases 1 to 100 tokens; one answer for each, in order. After `deadline` no attempt is begun.
    pub(crate) async fn release(
        &self,
        entries: &[Release],
        deadline: Option<Instant>,
    ) -> Result<Vec<Released>, CallError> {
        self.repeated(|| self.api.release(entries), entries.len(), deadline).await
    }

    /// Makes the leases of 1 to 100 tokens last `lease_seconds` from now, or as long as their policies say; one answer for
    /// each, in order. After `deadline` no attempt is begun.
    pub(crate) async fn extend(
        &self,
        tokens: &[&str],
        lease_seconds: Option<u32>,
        deadline: Option<Instant>,
    ) -> Result<Vec<Extended>, CallError> {
        self.repeated(|| self.api.extend(tokens, lease_seconds), tokens.len(), deadline).await
    }

    async fn repeated<'a, T>(
        &self,
        attempt: impl Fn() -> Boxed<'a, Attempt<Vec<T>>>,
        count: usize,
        deadline: Option<Instant>,
    ) -> Result<Vec<T>, CallError> {
        let mut attempts = 1;
        loop {
            let limit = deadline.map_or(limits::TIMEOUT, |at| {
                at.saturating_duration_since(Instant::now()).min(limits::TIMEOUT)
            });
            let (error, retry_after) = match timeout(limit, attempt()).await {
                Err(_) => (CallError::TimedOut(limit), None),
                Ok(answered) => {
                    self.learn_time(answered.server_time);
                    match answered.outcome.and_then(|results| counted(results, count)) {
                        Ok(results) => return Ok(results),
                        Err(error) => (error.into(), answered.retry_after),
                    }
                }
            };
            let wait = backoff(attempts, (self.jitter)()).max(retry_after.unwrap_or_default());
            let is_last = attempts >= limits::ATTEMPTS || wait > limits::LONGEST_RETRY_AFTER;
            let is_late = deadline.is_some_and(|at| Instant::now() + wait >= at);
            if !error.is_retryable() || is_last || is_late {
                return Err(error);
            }
            info!(%error, attempt = attempts, ?wait, "a call is repeated");
            sleep(wait).await;
            attempts += 1;
        }
    }

    fn learn_time(&self, server_time: Option<DateTime<Utc>>) {
        if let Some(told) = server_time {
            let ahead = told.signed_duration_since((self.wall_clock)());
            self.ahead_ms.store(ahead.num_milliseconds(), Ordering::Relaxed);
        }
    }
}

fn counted<T>(results: Vec<T>, count: usize) -> Result<Vec<T>, Error> {
    if results.len() == count {
        return Ok(results);
    }
    let reason = format!("{} results for {count} tokens", results.len());
    Err(Error::Unreadable { what: "the answer of the API", reason })
}

/// How long to wait after so many attempts in vain: doubling, and up to half as long again (`jitter` is 0 to 1).
pub(crate) fn backoff(attempts: u32, jitter: f64) -> Duration {
    let doubled = limits::FIRST_BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(10));
    doubled.min(limits::LONGEST_BACKOFF).mul_f64(1.0 + jitter / 2.0)
}

fn random() -> f64 {
    // Without randomness the retries of many consumers may come together, which is no error.
    getrandom::u32().map_or(0.0, |bits| f64::from(bits) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::fakes::{FakeApi, Scripted, seconds};

    async fn release(calls: &Calls, deadline: Option<Instant>) -> Result<usize, String> {
        let released = calls.release(&[Release::succeeded("tok.0")], deadline).await;
        released.map(|answers| answers.len()).map_err(|error| error.to_string())
    }

    fn tried_at(api: &FakeApi) -> Vec<u128> {
        api.releases().into_iter().map(|(at, _)| at.as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_repeated_with_doubling_waits_six_attempts_in_all() {
        let api = FakeApi::new();
        api.script([408, 425, 429, 500, 503].map(Scripted::Refused));
        assert_eq!(release(&api.calls(), None).await, Ok(1));
        assert_eq!(tried_at(&api), [0, 500, 1_500, 3_500, 7_500, 15_500]);
        let api = FakeApi::new();
        api.script([Scripted::Refused(503); 7]);
        assert!(release(&api.calls(), None).await.unwrap_err().ends_with("(503)"));
        assert_eq!(tried_at(&api).len(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_as_long_as_the_api_wants_and_a_minute_at_the_most() {
        let api = FakeApi::new();
        api.script([Scripted::RefusedFor(429, seconds(60)), Scripted::RefusedFor(429, seconds(61))]);
        assert!(release(&api.calls(), None).await.unwrap_err().ends_with("(429)"));
        assert_eq!(tried_at(&api), [0, 60_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_is_not_waited_for() {
        let api = FakeApi::new();
        api.script([Scripted::Silence]);
        assert_eq!(release(&api.calls(), None).await, Ok(1));
        assert_eq!(tried_at(&api), [0, 10_500]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_after_the_deadline() {
        let api = FakeApi::new();
        api.script([Scripted::Refused(503), Scripted::Silence]);
        let error = release(&api.calls(), Some(Instant::now() + seconds(3))).await.unwrap_err();
        assert_eq!(error, "no answer from the API within 2.5 s");
        assert_eq!((tried_at(&api), api.now().timestamp_subsec_millis()), (vec![0, 500], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_succeed_later_is_not_repeated() {
        let api = FakeApi::new();
        api.script([Scripted::Refused(401), Scripted::TooFewResults]);
        let calls = api.calls();
        assert!(release(&calls, None).await.unwrap_err().ends_with("(401)"));
        let error = release(&calls, None).await.unwrap_err();
        assert_eq!(error, "the answer of the API cannot be read: 0 results for 1 tokens");
        assert_eq!(tried_at(&api), [0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_time_is_learned_from_its_answers() {
        let api = FakeApi::new();
        let calls = api.calls_by_a_clock_ahead_by(600);
        assert_eq!((calls.server_now() - api.now()).num_seconds(), 600);
        release(&calls, None).await.unwrap();
        assert_eq!((calls.server_now() - api.now()).num_seconds(), 0);
    }

    #[test]
    fn the_wait_doubles_up_to_ten_seconds_and_half_as_long_again() {
        let waits: Vec<u128> = (1..8).map(|attempts| backoff(attempts, 0.0).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        assert_eq!(backoff(u32::MAX, 1.0), seconds(15));
        assert!((0..100).map(|_| random()).all(|jitter| (0.0..=1.0).contains(&jitter)));
    }
}
