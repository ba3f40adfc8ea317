//! Each process has a clock of its own: a few seconds beside the true one, and now and then an hour.
//!
//! What a process did with a clock that was set right since may still arrive: a reading counts for as long as a call may
//! take.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::{Clock, ManualClock};

/// The farthest that two processes' clocks lie apart, but for jumps, in milliseconds.
pub(crate) const APART_MS: i64 = 5_000;
/// How far a clock jumps, in milliseconds.
pub(crate) const JUMP_MS: i64 = 3_600_000;
/// How long a call may take at the most, in seconds.
const LONGEST_CALL_SECONDS: i64 = 60;

/// The clock of one process.
pub(crate) struct ProcessClock {
    true_clock: Arc<ManualClock>,
    offset_ms: AtomicI64,
}

impl ProcessClock {
    fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> DateTime<Utc> {
        self.true_clock.now() + Duration::milliseconds(self.offset_ms())
    }
}

/// The clocks of all processes.
pub(crate) struct Clocks {
    clocks: Vec<Arc<ProcessClock>>,
    /// What clocks showed before they were set, and until when that counts.
    past: Vec<(DateTime<Utc>, i64)>,
}

impl Clocks {
    pub(crate) fn new(true_clock: &Arc<ManualClock>, offsets_ms: &[i64]) -> Self {
        let clock = |offset_ms: &i64| {
            let (true_clock, offset_ms) = (Arc::clone(true_clock), AtomicI64::new(*offset_ms));
            Arc::new(ProcessClock { true_clock, offset_ms })
        };
        Self { clocks: offsets_ms.iter().map(clock).collect(), past: Vec::new() }
    }

    pub(crate) fn of(&self, process: usize) -> Arc<ProcessClock> {
        Arc::clone(&self.clocks[process])
    }

    /// Sets a process's clock forward, or back when negative, against what it shows.
    pub(crate) fn jump(&mut self, process: usize, by_ms: i64, now: DateTime<Utc>) {
        self.past.retain(|(until, _)| *until > now);
        self.past.push((now + Duration::seconds(LONGEST_CALL_SECONDS), self.clocks[process].offset_ms()));
        self.clocks[process].offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// By how many milliseconds a process's clock is ahead of the true one.
    pub(crate) fn offset_ms(&self, process: usize) -> i64 {
        self.clocks[process].offset_ms()
    }

    fn offsets(&self, now: DateTime<Utc>) -> impl Iterator<Item = i64> + '_ {
        let past = self.past.iter().filter(move |(until, _)| *until > now).map(|(_, offset_ms)| *offset_ms);
        self.clocks.iter().map(|clock| clock.offset_ms()).chain(past)
    }

    /// The latest instant that something may be judged by now.
    pub(crate) fn latest(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + Duration::milliseconds(self.offsets(now).max().unwrap_or(0))
    }
}
