//! What a consumer keeps count of: when its slots became free, when their next events came, how long its jobs took.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use tidegate_domain::token::Token;

/// The count while it goes on.
#[derive(Debug, Default)]
pub(super) struct Book {
    indices: HashSet<u32>,
    free_since: HashMap<(u32, u32), Instant>,
    running: u32,
    released: u32,
    seen: Seen,
}

/// What a consumer saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Times from a release call to the arrival of the next event in the same slot, sorted.
    gaps: Vec<Duration>,
    /// Times from an event's arrival to its release call.
    worked: Vec<Duration>,
    /// Jobs that ran at one time.
    pub(super) most_at_once: u32,
    /// Messages of events that had come before.
    pub(super) repeated: u32,
}

impl Book {
    /// Notes an arrival; whether the event came for the first time.
    pub(super) fn begin(&mut self, token: &Token, arrived_at: Instant) -> bool {
        if !self.indices.insert(token.lease.index) {
            self.seen.repeated += 1;
            return false;
        }
        let since = self.free_since.remove(&(token.group.group, token.lease.slot));
        self.seen.gaps.extend(since.map(|since| arrived_at.saturating_duration_since(since)));
        self.running += 1;
        self.seen.most_at_once = self.seen.most_at_once.max(self.running);
        true
    }

    /// Notes that a job ended: its release is called now.
    pub(super) fn end(&mut self, token: &Token, arrived_at: Instant) {
        let now = Instant::now();
        self.seen.worked.push(now - arrived_at);
        self.running -= 1;
        self.free_since.insert((token.group.group, token.lease.slot), now);
    }

    /// Whether no job runs.
    pub(super) fn is_nobody_busy(&self) -> bool {
        self.running == 0
    }

    /// Notes that a token was released; how many have been.
    pub(super) fn note_release(&mut self) -> u32 {
        self.released += 1;
        self.released
    }

    /// How many tokens have been released.
    pub(super) fn released(&self) -> u32 {
        self.released
    }

    /// What was seen in all.
    pub(super) fn seen(mut self) -> Seen {
        self.seen.gaps.sort_unstable();
        self.seen
    }
}

impl Seen {
    /// The time from release to arrival that so many of a hundred stay under.
    pub(super) fn gap(&self, of_a_hundred: usize) -> Duration {
        self.gaps.get(self.gaps.len() * of_a_hundred / 100).copied().unwrap_or_default()
    }

    pub(super) fn mean_gap(&self) -> Duration {
        mean(&self.gaps)
    }

    /// How long a job took, from its arrival to its release call.
    pub(super) fn mean_work(&self) -> Duration {
        mean(&self.worked)
    }
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(u32::MAX).max(1)
}
