//! What is due, from the definitions of the jobs alone: nothing here asks Tidegate what it did.

use tidegate_domain::limits::{LOOK_AHEAD_SECONDS, MISFIRE_LAUNCHES};

use super::score::{Fate, Score};
use super::{BATCH_EVENTS, BATCH_JOB, CRON_JOB, LIMIT};

const MINUTE_MS: i64 = 60_000;

/// The launches of the two jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    batch_launch_ms: i64,
    /// The first full minute of the cron job.
    first_minute_ms: i64,
}

impl Plan {
    /// `cron_since_ms` is when the cron job was written. What lay further back at this start than the job's misfire rule
    /// makes up for is not counted.
    pub(super) fn new(batch_launch_ms: i64, cron_since_ms: i64, started_ms: i64) -> Self {
        let since_ms = cron_since_ms.div_euclid(1_000) * 1_000;
        let reach_ms = i64::from(MISFIRE_LAUNCHES) * MINUTE_MS - i64::from(LOOK_AHEAD_SECONDS) * 1_000;
        let since_ms = since_ms.max(started_ms - reach_ms);
        let first_minute_ms = (since_ms + MINUTE_MS - 1).div_euclid(MINUTE_MS) * MINUTE_MS;
        Self { batch_launch_ms, first_minute_ms }
    }

    /// When the batch is due, in seconds since the epoch.
    pub(super) fn batch_launch_s(&self) -> i64 {
        self.batch_launch_ms.div_euclid(1_000)
    }

    fn minutes_due(&self, now_ms: i64) -> u64 {
        let minutes = (now_ms - self.first_minute_ms).div_euclid(MINUTE_MS) + 1;
        u64::try_from(minutes).unwrap_or(0)
    }

    /// How many events were due by then.
    pub(super) fn due(&self, now_ms: i64) -> u64 {
        let batch = if self.batch_launch_ms <= now_ms { BATCH_EVENTS.into() } else { 0 };
        batch + self.minutes_due(now_ms)
    }

    /// Whether an event is one of those that were due by then.
    pub(super) fn counts(&self, fate: &Fate, now_ms: i64) -> bool {
        fate.launch_ms <= now_ms
            && match fate.job.as_str() {
                CRON_JOB => fate.launch_ms >= self.first_minute_ms,
                BATCH_JOB => fate.launch_ms == self.batch_launch_ms,
                _ => false,
            }
    }

    /// Whether an event never had to wait: the cron job's, and as many of the batch as its policy has tokens.
    pub(super) fn is_unhindered(fate: &Fate) -> bool {
        !fate.throttled || fate.index < LIMIT
    }

    /// Whether something that was due by then and had nothing to wait for has not arrived.
    pub(super) fn is_late(&self, score: &Score, now_ms: i64) -> bool {
        let counted = |fate: &&Fate| self.counts(fate, now_ms) && Self::is_unhindered(fate);
        let arrived = score.events.values().filter(counted).count() as u64;
        let batch = if self.batch_launch_ms <= now_ms { LIMIT.into() } else { 0 };
        arrived < batch + self.minutes_due(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_full_minute_counts_from_the_second_in_which_the_job_was_written() {
        let plan = |since_ms| Plan::new(i64::MAX, since_ms, since_ms);
        assert_eq!(plan(60_000).due(60_000), 1);
        assert_eq!(plan(60_999).due(60_999), 1);
        assert_eq!(plan(61_000).due(119_999), 0);
        assert_eq!(plan(61_000).due(120_000), 1);
        assert_eq!(plan(61_000).due(300_001), 4);
    }

    #[test]
    fn the_batch_is_due_as_a_whole() {
        let plan = Plan::new(90_000, 61_000, 61_000);
        assert_eq!((plan.due(89_999), plan.due(90_000), plan.due(120_000)), (0, 20, 21));
    }

    #[test]
    fn what_is_too_long_ago_is_not_counted() {
        let (day_ms, now_ms) = (86_400_000, 10 * 86_400_000);
        let plan = Plan::new(0, 0, now_ms);
        let minutes = plan.due(now_ms) - 20;
        assert!((9_990..10_000).contains(&minutes), "{minutes}");
        assert_eq!(Plan::new(0, now_ms - day_ms / 2, now_ms).due(now_ms) - 20, 721);
    }
}
