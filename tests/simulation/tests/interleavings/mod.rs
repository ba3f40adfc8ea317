//! The watermark protocol: whatever a writer and the emitter do in whatever order, no launch is lost, none comes twice.
//!
//! A writer changes a job while a tick runs; each request of either is one step of an interleaving. All cuts of two
//! calls into two pieces each are played, in both orders, then random ones with a second tick beside them; then writers
//! and ticks that die at any request, and writers that are late. Reads that touch nothing of the job are no steps.
//!
//! That the account bites is shown by two protocols that are known to be wrong: one that forgets the outbox,
//! and one that reads the watermark before it writes.

mod act;
mod case;
mod stage;

use act::Act;
use stage::{Found, Plan, Stage};

/// Random orders that are played of each act.
const RANDOM_ORDERS: u64 = 80;

/// Plays cases of one act and fails with what was wrong.
async fn hold(act: Act, plans: Vec<Plan>) {
    let found = Stage::play(act, plans).await;
    assert!(found.wrong.is_empty(), "{act:?}: {} of {}:\n{}", found.wrong.len(), found.cases, found.told());
}

/// Every cut of both calls, and random orders of three.
async fn every_order(act: Act) {
    let Found { writer_steps, tick_steps, .. } = Stage::play(act, vec![Plan::cut(true, 99, 0)]).await;
    assert!(writer_steps > 1 && tick_steps > 5, "{writer_steps} and {tick_steps} requests");
    let mut plans = Vec::new();
    for writer in 1..=writer_steps {
        for tick in 1..=tick_steps {
            plans.push(Plan::cut(true, writer, tick));
            plans.push(Plan::cut(false, writer, tick));
        }
    }
    plans.extend((0..RANDOM_ORDERS).map(Plan::Random));
    hold(act, plans).await;
}

/// Writers that die after any request, before, between or after those of a tick; ticks that die beside a writer.
async fn every_death(act: Act) {
    let Found { writer_steps, tick_steps, .. } = Stage::play(act, vec![Plan::cut(true, 99, 0)]).await;
    let mut plans = Vec::new();
    for writer in 0..=writer_steps {
        plans.extend([0, tick_steps / 2, tick_steps].map(|tick| Plan::WriterDies { writer, tick }));
        for tick in (0..tick_steps).step_by(2) {
            // The next tick takes over. Nobody dies in it.
            plans.extend([Plan::TickDies { writer, tick }, Plan::cut(true, writer, tick)]);
        }
    }
    hold(act, plans).await;
}

/// Writers that stop at any request and go on minutes later, in the middle of another tick.
async fn every_delay(act: Act, most_minutes: usize) {
    let Found { writer_steps, tick_steps, .. } = Stage::play(act, vec![Plan::cut(true, 99, 0)]).await;
    let mut plans = Vec::new();
    for writer in 0..writer_steps {
        for minutes in 1..=most_minutes {
            let late = |tick| Plan::WriterIsLate { writer, minutes, tick };
            plans.extend([0, tick_steps / 2, tick_steps].map(late));
        }
    }
    hold(act, plans).await;
}

macro_rules! acts {
    ($($name:ident: $act:expr;)*) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn holds_in_every_order() {
                every_order($act).await;
            }

            #[tokio::test]
            async fn holds_through_deaths() {
                every_death($act).await;
            }
        }
    )*};
}

acts! {
    creating_a_cron_job: Act::CreateCron;
    creating_a_rate: Act::CreateRate;
    creating_a_job_for_ten_seconds_from_now: Act::CreateAt { ahead_s: 10, named: true };
    creating_a_job_at_the_edge_of_the_handover: Act::CreateAt { ahead_s: 235, named: true };
    creating_a_nameless_job: Act::CreateAt { ahead_s: 235, named: false };
    creating_a_set_of_instants: Act::CreateSet;
    replacing_a_job: Act::Replace;
    pausing_a_job: Act::Pause;
    resuming_a_job: Act::Resume;
    deleting_a_job: Act::Delete;
}

#[tokio::test]
async fn a_late_creation_loses_nothing() {
    every_delay(Act::CreateCron, 6).await;
    // Its row in the index is written by itself: the job must follow before it launches.
    every_delay(Act::CreateAt { ahead_s: 235, named: true }, 3).await;
}

#[tokio::test]
async fn a_late_change_loses_nothing() {
    every_delay(Act::Replace, 6).await;
}

/// What a master left in the outbox is emitted by the next ticks.
#[tokio::test]
async fn the_account_notices_when_nobody_knows_what_a_dead_master_owed() {
    let Found { writer_steps, .. } = Stage::play(Act::CreateCron, vec![Plan::cut(true, 99, 0)]).await;
    let plans = (0..=writer_steps).map(|writer| Plan::OwedIsForgotten { writer }).collect();
    let found = Stage::play(Act::CreateCron, plans).await;
    assert!(found.told().contains("never came"), "{}", found.told());
}

/// A writer reads the watermark after its write, so it sees that it has been passed.
#[tokio::test]
async fn the_account_notices_when_the_watermark_is_read_before_the_write() {
    let Found { writer_steps, .. } = Stage::play(Act::CreateCron, vec![Plan::cut(true, 99, 0)]).await;
    let plans = (0..writer_steps).map(|writer| Plan::WatermarkIsReadFirst { writer, minutes: 5 }).collect();
    let found = Stage::play(Act::CreateCron, plans).await;
    assert!(found.told().contains("never came"), "{}", found.told());
}
