//! Keeping the leases of events that are worked on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_protocol::Event;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::warn;

use super::calls::{CallError, Calls};
use super::lease::Lease;
use super::limits;
use super::periodic::{Kept, Periodic};

/// Extends leases while they are held, at about a third of what is left of them, many by one call.
///
/// A heartbeat that gets no answer is followed by another one before the lease ends. Once the API says that a lease has
/// ended its heartbeats stop, and [`Lease::lost`] says so.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    calls: Arc<Calls>,
    /// How long each extension is; as the policy says when `None`.
    lease_seconds: Option<u32>,
    beats: Arc<Periodic<Lease>>,
    /// Those of events without token are here too.
    open: Mutex<BTreeMap<u64, Lease>>,
    next_id: AtomicU64,
}

/// A lease that is extended as long as this is kept.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) lease: Lease,
    heartbeats: Arc<Heartbeats>,
    id: u64,
    _beats: Option<Kept<Lease>>,
}

/// Leases are extended as long as this is kept; then all are lost.
#[derive(Debug)]
pub(crate) struct Beating {
    heartbeats: Arc<Heartbeats>,
    _running: JoinSet<()>,
}

impl Heartbeats {
    pub(crate) fn new(calls: &Arc<Calls>, lease_seconds: Option<u32>) -> Arc<Self> {
        let calls = Arc::clone(calls);
        let (open, next_id) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { calls, lease_seconds, beats: Periodic::new(), open, next_id })
    }

    /// Begins to extend the lease of an event, if it has one.
    pub(crate) fn start(self: &Arc<Self>, event: &Event) -> Held {
        self.hold(Lease::of(event))
    }

    pub(crate) fn hold(self: &Arc<Self>, lease: Lease) -> Held {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.open().insert(id, lease.clone());
        let first = lease.beat(self.calls.server_now());
        let beats = lease.token().is_some().then(|| self.beats.add(lease.clone(), first));
        Held { lease, heartbeats: Arc::clone(self), id, _beats: beats }
    }

    /// Extends a lease now; if it has ended, it is lost.
    pub(crate) async fn confirm(&self, lease: &Lease) -> Result<(), CallError> {
        if let Some(token) = lease.token() {
            let answers = self.calls.extend(&[token], self.lease_seconds, None).await?;
            answers.iter().for_each(|answer| lease.answered(answer));
        }
        Ok(())
    }

    /// Whether a lease has ended, or is about to, by the time that is known of the server.
    pub(crate) fn is_short(&self, lease: &Lease) -> bool {
        lease.token().is_some() && lease.remaining(self.calls.server_now()) < limits::CHECKED_BELOW
    }

    /// Tells all that is still at work that its event is not its own any more.
    pub(crate) fn give_up(&self) {
        self.open().values().for_each(Lease::give_up);
    }

    /// Begins to extend what is due. Needs a Tokio runtime.
    pub(crate) fn run(self: &Arc<Self>) -> Beating {
        let (heartbeats, mut running) = (Arc::clone(self), JoinSet::new());
        running.spawn(async move { heartbeats.extend_when_due().await });
        Beating { heartbeats: Arc::clone(self), _running: running }
    }

    async fn extend_when_due(&self) {
        loop {
            let due = self.beats.due().await;
            for leases in due.chunks(limits::TOKENS_PER_CALL) {
                self.extend(leases).await;
            }
            for (id, lease) in due {
                self.beats.again(id, lease.beat(self.calls.server_now()));
            }
        }
    }

    async fn extend(&self, leases: &[(u64, Lease)]) {
        let held = leases.iter().filter(|(_, lease)| !lease.is_lost());
        let (asked, tokens): (Vec<_>, Vec<&str>) =
            held.filter_map(|asked| Some((asked, asked.1.token()?))).unzip();
        asked.iter().for_each(|(_, lease)| lease.asked());
        let server_now = self.calls.server_now();
        let Some(next_beat) = asked.iter().map(|(_, lease)| lease.beat(server_now)).min() else { return };
        // Retries end when the next heartbeat is due, which is one more.
        let deadline = Instant::now() + next_beat;
        let answers = match self.calls.extend(&tokens, self.lease_seconds, Some(deadline)).await {
            Ok(answers) => answers,
            Err(error) => {
                warn!(%error, "failed to extend {} leases, trying again soon", tokens.len());
                return;
            }
        };
        for ((id, lease), answer) in asked.into_iter().zip(&answers) {
            if !self.beats.has(*id) {
                continue; // The work has ended since: of a token that was released the answer is no news.
            }
            lease.answered(answer);
            if lease.is_lost() {
                self.beats.discard(*id);
                warn!(event_id = lease.event_id(), answer = ?answer.status, "a lease is lost");
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Lease>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        self.heartbeats.give_up();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.heartbeats.open().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::sleep;

    use super::*;
    use crate::consumer::fakes::{FakeApi, Scripted, at, body, body_with, event, seconds};

    fn beating(calls: &Arc<Calls>) -> (Arc<Heartbeats>, Beating) {
        let heartbeats = Heartbeats::new(calls, None);
        let beating = heartbeats.run();
        (heartbeats, beating)
    }

    fn extended_at(api: &FakeApi) -> Vec<u64> {
        api.extended().into_iter().map(|(at, _)| at.as_secs()).collect()
    }

    fn lease_of(index: u32, lease_s: i64) -> Event {
        event(&body_with(index, json!({"lease_expires_at": at(lease_s)})))
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_extended_at_each_third_of_what_is_left() {
        let api = FakeApi::new();
        let (heartbeats, _beating) = beating(&api.calls());
        let held = heartbeats.start(&lease_of(0, 30));
        sleep(seconds(51)).await;
        assert_eq!(extended_at(&api), [10, 30, 50]); // then a third of the minute that the API gave
        assert!(!held.lease.is_lost());
        drop(held);
        sleep(seconds(100)).await;
        assert_eq!(extended_at(&api).len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_heartbeat_of_a_long_lease_comes_early() {
        let api = FakeApi::new();
        api.lease(seconds(3_600));
        let (heartbeats, _beating) = beating(&api.calls());
        let _held = heartbeats.start(&lease_of(0, 3_600));
        sleep(seconds(2_000)).await;
        assert_eq!(extended_at(&api), [20, 1_220]);
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_go_by_the_servers_clock() {
        let api = FakeApi::new();
        let (heartbeats, _beating) = beating(&api.calls_by_a_clock_ahead_by(-600));
        let _held = heartbeats.start(&lease_of(0, 60));
        sleep(seconds(41)).await;
        assert_eq!(extended_at(&api), [20, 40]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_without_an_answer_is_followed_by_another() {
        let api = FakeApi::new();
        api.script([Scripted::Refused(401), Scripted::Silence]);
        let (heartbeats, _beating) = beating(&api.calls());
        let held = heartbeats.start(&lease_of(0, 9));
        sleep(seconds(9)).await;
        // A third of 9 s, of the 6 s that were left then, and of the 4 s after those, which the silence took away.
        let times: Vec<Duration> = api.extended().into_iter().map(|(at, _)| at).collect();
        assert_eq!(times.len(), 3, "{times:?}");
        assert_eq!(times[..2], [seconds(3), seconds(5)]);
        assert!(times[2] < seconds(9) && !held.lease.is_lost());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_is_told_and_not_extended_again() {
        for (status, is_over) in
            [("expired", true), ("unknown", false), ("not_yours", false), ("malformed", false)]
        {
            let api = FakeApi::new();
            api.status("tok.0", status);
            let (heartbeats, _beating) = beating(&api.calls());
            let (lost, held) = (heartbeats.start(&event(&body(0))), heartbeats.start(&event(&body(1))));
            lost.lease.lost().await;
            assert_eq!((lost.lease.is_over(), held.lease.is_lost()), (is_over, false), "{status}");
            sleep(seconds(21)).await;
            assert_eq!(api.extended()[1], (seconds(40), vec!["tok.1".to_owned()]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leases_are_extended_together_but_for_those_that_began_just_now() {
        let api = FakeApi::new();
        let (heartbeats, _beating) = beating(&api.calls());
        let mut held: Vec<Held> = (0..101).map(|index| heartbeats.start(&lease_of(index, 60))).collect();
        sleep(seconds(9)).await;
        held.push(heartbeats.start(&lease_of(101, 69))); // more than half-way when the others are due
        sleep(seconds(2)).await;
        held.push(heartbeats.start(&lease_of(102, 71))); // less than half-way
        sleep(seconds(10)).await;
        let sizes: Vec<(u64, usize)> =
            api.extended().into_iter().map(|(at, tokens)| (at.as_secs(), tokens.len())).collect();
        assert_eq!(sizes, [(20, 100), (20, 2)]);
        assert_eq!(api.extended()[1].1, ["tok.100", "tok.101"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_about_a_token_that_was_released_meanwhile_is_no_news() {
        let api = FakeApi::new();
        api.takes(seconds(2));
        api.status("tok.0", "expired");
        let (heartbeats, _beating) = beating(&api.calls());
        let held = heartbeats.start(&event(&body(0)));
        let lease = held.lease.clone();
        sleep(seconds(21)).await;
        drop(held);
        sleep(seconds(5)).await;
        assert_eq!((extended_at(&api), lease.is_lost()), (vec![20], false));
    }

    #[tokio::test(start_paused = true)]
    async fn giving_up_is_told_to_all_also_where_there_is_no_token() {
        let api = FakeApi::new();
        let heartbeats = Heartbeats::new(&api.calls(), None);
        let unthrottled = body_with(1, json!({"token": null, "lease_expires_at": null}));
        let held = [heartbeats.start(&event(&body(0))), heartbeats.start(&event(&unthrottled))];
        heartbeats.give_up();
        for held in held {
            assert!(held.lease.is_lost() && !held.lease.is_over());
            assert_eq!(held.lease.while_held(std::future::pending::<()>()).await, Err(crate::LeaseLost));
        }
    }
}
