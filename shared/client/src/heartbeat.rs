//! Keeping a token while its event is worked on.

use std::sync::Arc;
use std::time::Duration;

use crate::Client;
use crate::consumer::{Beating, Calls, Heartbeats, Held, Lease};

/// Extends a token's lease, at once and then at each third of it, until dropped. The consumers of this crate do that by
/// themselves; this is for who reads a queue otherwise.
///
/// A beat that gets no answer, or is refused, is followed by another before the lease ends. Once the token is lost (its lease ended, or
/// it was released) the beats stop and [`Heartbeat::lost`] says so: another consumer may have the event by then.
///
/// ```no_run
/// # use std::time::Duration;
/// # use tidegate_client::{Client, Event, Heartbeat};
/// # async fn long_work() {}
/// # async fn consume(tidegate: &Client, event: &Event) -> Result<(), tidegate_client::Error> {
/// if let Some(token) = &event.token {
///     let mut heartbeat = Heartbeat::start(tidegate, token, Duration::from_secs(60));
///     tokio::select! {
///         () = long_work() => {
///             drop(heartbeat);
///             tidegate.release(&[token]).await?;
///         }
///         () = heartbeat.lost() => {} // give up: the event will come again
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Heartbeat {
    held: Held,
    _beating: Beating,
}

impl Heartbeat {
    /// Starts to extend `token` by `lease` (whole seconds, 10 at the least) at each beat. Needs a Tokio runtime, and
    /// panics without one, as `tokio::spawn` does.
    pub fn start(client: &Client, token: &str, lease: Duration) -> Self {
        let lease_seconds = u32::try_from(lease.as_secs()).unwrap_or(u32::MAX).max(10);
        Self::beating(&Calls::new(client), token, lease_seconds)
    }

    fn beating(calls: &Arc<Calls>, token: &str, lease_seconds: u32) -> Self {
        let heartbeats = Heartbeats::new(calls, Some(lease_seconds));
        let held = heartbeats.hold(Lease::of_token(token));
        Self { held, _beating: heartbeats.run() }
    }

    /// Whether the token is known to be lost.
    pub fn is_lost(&self) -> bool {
        self.held.lease.is_lost()
    }

    /// Waits until the token is known to be lost; for as long as it is held, that is forever.
    pub async fn lost(&mut self) {
        self.held.lease.lost().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::consumer::fakes::{FakeApi, Scripted, seconds};

    #[tokio::test(start_paused = true)]
    async fn it_extends_at_once_and_at_each_third_until_dropped() {
        let api = FakeApi::new();
        api.lease(seconds(30));
        let heartbeat = Heartbeat::beating(&api.calls(), "tok.0", 30);
        sleep(seconds(25)).await;
        let times: Vec<u64> = api.extended().into_iter().map(|(at, _)| at.as_secs()).collect();
        assert_eq!((times, api.lease_seconds()), (vec![0, 10, 20], vec![Some(30); 3]));
        assert!(!heartbeat.is_lost());
        drop(heartbeat);
        sleep(seconds(60)).await;
        assert_eq!(api.extended().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_token_ends_it_and_is_told() {
        let api = FakeApi::new();
        let mut heartbeat = Heartbeat::beating(&api.calls(), "tok.0", 60);
        sleep(seconds(30)).await;
        api.status("tok.0", "expired");
        let waiting = Instant::now();
        heartbeat.lost().await;
        assert_eq!((waiting.elapsed(), heartbeat.is_lost()), (seconds(10), true));
        sleep(seconds(60)).await;
        assert_eq!(api.extended().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_without_a_good_answer_is_followed_by_another() {
        let api = FakeApi::new();
        api.script([Scripted::Refused(401), Scripted::Refused(503)]);
        let heartbeat = Heartbeat::beating(&api.calls(), "tok.0", 60);
        sleep(seconds(10)).await;
        let times: Vec<u128> = api.extended().into_iter().map(|(at, _)| at.as_millis()).collect();
        assert_eq!((times, heartbeat.is_lost()), (vec![0, 5_000, 5_500], false));
    }
}
