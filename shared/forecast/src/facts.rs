//! What a forecast needs to know of jobs and policies: no more than their cost depends on.

use tidegate_domain::limits::{DEFAULT_PRIORITY, GRANT_EVENTS, TOKENS_PER_GROUP};

use crate::account::Account;

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// The place of its policy among [`Setting::policies`]; `None`: nothing throttles it.
    pub policy: Option<usize>,
    /// Events of each firing.
    pub count: u32,
    /// Whether each event that is delivered is recorded.
    pub keeps_record: bool,
    /// Whether its events wait in packs with those of others.
    pub is_packed: bool,
    /// Its place in the line.
    pub priority: u8,
    /// Tokens that an event takes.
    pub cost: u32,
    /// Where its events go.
    pub target: Target,
    /// What an event adds to a message, in bytes.
    pub item_bytes: u32,
    /// Read units that each of its runs takes of its row under its client, since its payload does not travel with its events.
    pub row_reads: u32,
    /// Write units of its row.
    pub row_units: u32,
    /// What it takes of a call that creates it, in bytes.
    pub body_bytes: u32,
    /// Whether an answer of its HTTP target releases the token, without a call of the API.
    pub releases_itself: bool,
    /// Whether the first delivery of each event is its last (`max_attempts` is 1).
    pub is_delivered_once: bool,
    /// Whether it is created for its one firing.
    pub created: Created,
}

impl Default for Job {
    /// A job that is there: one event for a queue, recorded, which nothing throttles.
    fn default() -> Self {
        Self {
            policy: None,
            count: 1,
            keeps_record: true,
            is_packed: false,
            priority: DEFAULT_PRIORITY,
            cost: 1,
            target: Target::Queue,
            item_bytes: 270,
            row_reads: 0,
            row_units: 1,
            body_bytes: 300,
            releases_itself: false,
            is_delivered_once: false,
            created: Created::Before,
        }
    }
}

/// Where events go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To a standard queue.
    Queue,
    /// To a FIFO queue, by its number.
    Fifo(usize),
    /// To an HTTP target.
    Http,
}

/// When a job is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is there: its creation is not counted.
    Before,
    /// For its firings, under a generated id.
    Generated,
    /// For its firings, under an id of its client's choice.
    Named,
    /// With so many instants: it has a row of its own, and one for each of them.
    Listed(u32),
}

/// A policy, and those who work under it.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Its name.
    pub id: String,
    /// Tokens.
    pub tokens: u32,
    /// Events that may begin in a second, in the long run, and at once after a pause.
    pub rate: Option<(f64, f64)>,
    /// How long a consumer works on an event, in seconds.
    pub work_seconds: f64,
    /// How many tokens a consumer releases in one call.
    pub released_together: u32,
}

impl Policy {
    /// Its slot groups.
    pub fn groups(&self) -> f64 {
        f64::from(self.tokens.div_ceil(TOKENS_PER_GROUP).max(1))
    }

    /// Slot groups that one release call writes. Tokens that are released together are those that a consumer has, of any groups.
    pub fn groups_of_a_release(&self) -> f64 {
        let groups = self.groups();
        groups * (1.0 - (1.0 - 1.0 / groups).powf(self.tokens_of_a_release()))
    }

    /// Tokens that one release call names.
    pub fn tokens_of_a_release(&self) -> f64 {
        f64::from(self.released_together.min(self.tokens).max(1))
    }

    /// How many ranges its groups take of so many events that wait. One group takes as many events as a range may have. Several
    /// take half of their share of what is left, of the last ones their share, and never less than they have room for: see
    /// the engine's `throttle/parts.rs`.
    pub fn ranges(&self, events: f64) -> f64 {
        let (most, share) = (f64::from(GRANT_EVENTS), f64::from(TOKENS_PER_GROUP));
        if self.groups() <= 1.0 {
            return events / most;
        }
        let tokens = f64::from(self.tokens);
        let room = self.tokens_of_a_release() / self.groups_of_a_release();
        let groups = tokens / share;
        // Ranges of a part of what is left, from where that is `from` down to where it is `to`.
        let falling = |from: f64, to: f64, parts: f64| {
            (events.min(from) / to).ln().max(0.0) / -(1.0 - 1.0 / parts).ln()
        };
        (events - 2.0 * groups * most).max(0.0) / most
            + falling(2.0 * groups * most, 2.0 * tokens, 2.0 * groups)
            + (events.min(2.0 * tokens) - tokens).max(0.0) / share
            + falling(tokens, groups * room, groups)
            + events.min(groups * room) / room
    }
}

/// All that a forecast is made from, beside the firings.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The policies that they name.
    pub policies: Vec<Policy>,
    /// Zones that ticks look at.
    pub zones: usize,
    /// When the window begins, in Unix seconds.
    pub from_s: i64,
    /// When it ends.
    pub to_s: i64,
    /// For how many jobs like it each stands.
    pub scale: f64,
    /// Jobs that are created in one call.
    pub created_together: f64,
    /// The most jobs that are created in a second; those of the busiest minute, evenly, when `None`.
    pub creates_per_second: Option<f64>,
    /// The partition of the index with most rows: its name, and its rows.
    pub largest_partition: Option<(String, f64)>,
    /// From a release to the next event in the hands of a consumer, in seconds.
    pub handover_seconds: f64,
    /// What the account may take.
    pub account: Account,
}

impl Setting {
    /// Seconds of the window.
    pub fn seconds(&self) -> f64 {
        (self.to_s - self.from_s).max(1) as f64
    }

    /// Whether any of its jobs is created for its firings.
    pub(crate) fn creates_any(&self) -> bool {
        self.jobs.iter().any(|job| job.created != Created::Before)
    }

    /// Minutes of the window, begun ones included.
    pub fn minutes(&self) -> usize {
        let minute = |second: i64| second.div_euclid(60);
        usize::try_from(minute(self.to_s - 1) - minute(self.from_s) + 1).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_as_many_as_groups_take_one_after_the_other() {
        for (tokens, released_together, events) in
            [(100, 10, 4_900), (1_000, 1, 50_000), (24, 1, 300), (100, 1, 60), (10, 1, 5_000)]
        {
            let id = "small".to_owned();
            let policy = Policy { id, tokens, rate: None, work_seconds: 1.0, released_together };
            let room = f64::from(released_together) / policy.groups_of_a_release();
            let (mut left, mut taken) = (f64::from(events), 0);
            while left > 0.5 {
                let part = left * 10.0 / f64::from(tokens);
                left -= match () {
                    () if tokens <= 10 => 250.0,
                    () if left > f64::from(tokens) => ((part / 20.0).round() * 10.0).clamp(10.0, 250.0),
                    () => part.max(room),
                };
                taken += 1;
            }
            let ranges = policy.ranges(f64::from(events));
            assert!((ranges / f64::from(taken) - 1.0).abs() < 0.1, "{tokens}, {events}: {ranges}, {taken}");
        }
    }

    #[test]
    fn tokens_that_are_released_together_lie_in_as_many_groups_as_there_are() {
        let groups = |tokens, released_together| {
            let policy =
                Policy { id: String::new(), tokens, rate: None, work_seconds: 1.0, released_together };
            policy.groups_of_a_release()
        };
        for one in [groups(10, 1), groups(10, 10), groups(1_000, 1)] {
            assert!((one - 1.0).abs() < 1e-9, "{one}");
        }
        assert!((9.0..9.6).contains(&groups(1_000, 10)), "{}", groups(1_000, 10));
    }
}
