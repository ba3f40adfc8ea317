//! The schedule of the tick: once a minute, at any phase of it, now and then twice or not at all.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use tidegate_domain::clock::Clock as _;
use tokio::time::{Instant, sleep};

use super::Account;
use super::invocation::{Failed, Work};
use crate::function::Function;
use crate::limits::ASYNC_AGAIN;

/// How long an event of the schedule may wait for the function, as `template.yaml` has it.
pub(crate) const EVENT_AGE: Duration = Duration::from_secs(60);

/// When ticks come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schedule {
    /// How long after the beginning of a minute.
    pub phase: Duration,
    /// Whether two come at once.
    pub twice: bool,
    /// From when and until when none comes.
    pub silent: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// Sends the ticks of a schedule until it is dropped.
pub(crate) async fn run(account: Arc<Account>, schedule: Schedule) {
    loop {
        let now = account.region.clock.now();
        let into_minute = Duration::from_millis(now.timestamp_millis().rem_euclid(60_000).unsigned_abs());
        let left = (schedule.phase + Duration::from_secs(60)).saturating_sub(into_minute);
        let left = if left > Duration::from_secs(60) { left - Duration::from_secs(60) } else { left };
        sleep(left.max(Duration::from_millis(1))).await;
        let now = account.region.clock.now();
        if schedule.silent.is_some_and(|(from, to)| from <= now && now < to) {
            continue;
        }
        for _ in 0..if schedule.twice { 2 } else { 1 } {
            tokio::spawn(invoke(Arc::clone(&account)));
        }
    }
}

/// An asynchronous call, which is repeated while the function is throttled, but not when it fails.
async fn invoke(account: Arc<Account>) {
    let (began, mut wait) = (Instant::now(), ASYNC_AGAIN);
    let event = json!({"source": "aws.scheduler", "detail-type": "Scheduled Event"});
    loop {
        let work = Work::Event(event.clone());
        match account.invoke(Function::Emitter, work).await {
            Err(Failed::Throttled) if began.elapsed() + wait < EVENT_AGE => sleep(wait).await,
            _ => return,
        }
        wait *= 2;
    }
}
