//! What waits longer than rows are kept: it is neither lost nor miscounted, though what has expired is deleted at once.

use tidegate_domain::limits::{GROUPS_PER_PART, HISTORY_DAYS, TOKENS_PER_GROUP};
use tidegate_domain::policy::OnExpiry;
use tidegate_simulation::world::Received;
use tidegate_store::runs::Tally;

use super::stage::{Stage, client, jobs_of, terms};

/// Longer than rows are kept.
const PAUSED_DAYS: i64 = 30;
const _: () = assert!(PAUSED_DAYS > 2 * HISTORY_DAYS);

impl Stage {
    /// A day goes by, and what a tick wakes is woken at its end. Returns what arrived.
    async fn day(&self) -> Vec<Received> {
        self.world.advance(86_400);
        self.world.engine.emission().wake_policies().await.unwrap();
        let arrived = self.arrived().await;
        self.world.embedded.sweep_ttl().unwrap();
        arrived
    }
}

#[tokio::test]
async fn a_run_that_lasts_forty_days_is_counted_to_its_end() {
    let stage = Stage::new().await;
    stage.policy("slow", terms(1).with_on_expiry(OnExpiry::Hold)).await;
    let events = 41;
    stage.job("batch", events, "slow", Default::default()).await;
    let mut held = stage.arrived().await;
    for day in 1..events {
        assert_eq!(held.len(), 1, "day {day}");
        // Its consumer takes a day.
        assert!(stage.day().await.is_empty(), "day {day}");
        stage.release(&held).await;
        held = stage.arrived().await;
    }
    stage.release(&held).await;
    stage.day().await;
    let run = stage.runs("batch").await.pop().expect("its run has expired");
    assert_eq!((run.tally.succeeded, run.tally.total()), (41, 41));
}

#[tokio::test]
async fn what_waits_while_its_policy_is_paused_for_thirty_days_arrives() {
    let mut stage = Stage::new().await;
    // Also those that are few wait in packs.
    stage.world.engine = stage.world.engine.clone().with_few(0);
    stage.policy("small", terms(10)).await;
    stage.pause("small", true).await;
    stage.job("batch", 3, "small", Default::default()).await;
    for single in ["single-a", "single-b"] {
        stage.job_in(60, single, 1, "small", Default::default()).await;
    }
    for _ in 0..PAUSED_DAYS {
        assert!(stage.day().await.is_empty());
    }
    stage.pause("small", false).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let arrived = stage.arrived().await;
        jobs.extend(jobs_of(&arrived).into_iter().map(str::to_owned));
        stage.release(&arrived).await;
        stage.world.engine.emission().wake_policies().await.unwrap();
    }
    jobs.sort_unstable();
    assert_eq!(jobs, ["batch", "batch", "batch", "single-a", "single-b"]);
    assert_eq!(stage.ended("batch").await, 3);
}

#[tokio::test]
async fn what_was_counted_in_parts_of_a_run_is_kept_with_it() {
    let stage = Stage::new().await;
    let tokens = (GROUPS_PER_PART + 1) * TOKENS_PER_GROUP;
    stage.policy("many", terms(tokens)).await;
    stage.pause("many", true).await;
    stage.job("batch", u64::from(2 * tokens), "many", Default::default()).await;
    stage.world.pump().await.unwrap();
    let run = stage.runs("batch").await.pop().unwrap().id;
    let (store, tally) = (stage.world.engine.store(), Tally { succeeded: 5, ..Tally::default() });
    for compaction in [1, 2] {
        let now = tidegate_domain::clock::Clock::now(&*stage.world.clock);
        let of = (GROUPS_PER_PART, compaction);
        assert!(store.add_outcomes(&client(), &run, of, tally, now).await.unwrap().counted);
        for _ in 0..PAUSED_DAYS {
            stage.day().await;
        }
    }
    assert_eq!(store.run(&client(), &run).await.unwrap().unwrap().tally.succeeded, 10);
}
