//! How the events of a job go through their policy: weight, priority, overlap, window, end.
//!
//! All of it matters only where a policy throttles: what nothing throttles is delivered at once.

use chrono::{DateTime, Duration, Utc};

use crate::bounded::{OutOfBounds, bounded};
use crate::fair::{FairBy, Rank};
use crate::limits::{DEFAULT_PRIORITY, EVENTS_PER_RUN, MAX_COST, MAX_PRIORITY, WINDOW_SECONDS};
use crate::target::Target;
use crate::time::{self, shifted};
use crate::unknown::Unknown;

/// How a job's events go through their policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flow {
    /// How many tokens each event takes; 1 by default.
    pub cost: Cost,
    /// Its place in the line; 5 by default.
    pub priority: Priority,
    /// The key of its payload by which shares of its policy are fair; `None`: by none.
    pub fair_by: Option<FairBy>,
    /// What becomes of a run whose predecessor is not finished; it waits like any other by default.
    pub overlap: Overlap,
    /// The time that a run has; `None`: any.
    pub window: Option<BatchWindow>,
    /// So many events that did not succeed stop the run; `None`: none do.
    pub max_failures: Option<MaxFailures>,
    /// Who is told when a run has come to its end; `None`: nobody.
    pub on_completion: Option<Target>,
    /// The endpoint that is called when a run has come to its end, and `/fail` beneath it when it ended badly; `None`: none is.
    pub heartbeat: Option<Box<Target>>,
    /// A 2xx answer of an HTTP target releases the token: the work was done in the call.
    pub release_on_response: bool,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

impl Flow {
    /// Whether the end of a run means something to somebody (an overlap rule, a failure limit or whoever is told of it), so
    /// that its outcomes are compacted without delay.
    pub fn is_watched(&self) -> bool {
        self.overlap != Overlap::Allow || self.max_failures.is_some() || self.tells_of_the_end()
    }

    /// Whether somebody is told when a run has come to its end.
    pub fn tells_of_the_end(&self) -> bool {
        self.on_completion.is_some() || self.heartbeat.is_some()
    }

    /// Where its events stand in the line before their launch counts.
    pub fn rank(&self) -> Rank {
        Rank { priority: self.priority.get(), lane: self.fair_by.as_ref().map(|fair| fair.lane) }
    }

    /// Whether it says anything at all: all of it matters only under a policy.
    pub fn needs_policy(&self) -> bool {
        *self != Self::default()
    }
}

bounded! {
    /// How many tokens an event takes. An event heavier than its policy's whole limit takes all of it.
    Cost(u32), "cost", 1..=MAX_COST, default 1
}
bounded! {
    /// A place in the line: 0 is served first.
    Priority(u8), "priority", 0..=MAX_PRIORITY as u32, default DEFAULT_PRIORITY
}
bounded! {
    /// So many events that did not succeed stop their run.
    MaxFailures(u32), "max_failures", 1..=EVENTS_PER_RUN
}
bounded! {
    /// How long after its launch a run's window ends, in seconds.
    WindowSeconds(u32), "window.seconds", WINDOW_SECONDS
}

/// What becomes of a run that is due while an earlier run of its job is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It takes its place in the line like any other.
    #[default]
    Allow,
    /// It is recorded as skipped.
    Skip,
    /// It waits until the other is finished; any further one is recorded as skipped.
    BufferOne,
}

/// The time that a run has, from its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchWindow {
    /// When it is over.
    pub deadline: Deadline,
    /// What becomes of events that were not admitted by then.
    pub on_deadline: OnDeadline,
    /// Events are admitted evenly over the window, not as fast as tokens allow.
    ///
    /// Invariant: event number `i` of `count` is admitted no earlier than `i / count` of the window after the launch.
    pub paced: bool,
}

/// When a batch window is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// So long after the launch.
    After {
        /// How long.
        seconds: WindowSeconds,
    },
    /// At an instant; only of jobs that launch at instants.
    At(DateTime<Utc>),
}

/// What becomes of the events that were not admitted within their window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDeadline {
    /// They are admitted later, as if there were no window.
    #[default]
    Continue,
    /// They are not delivered, and counted as left out.
    Expire,
}

impl Deadline {
    /// So many seconds after the launch.
    ///
    /// # Errors
    /// [`OutOfBounds`] when that is not what a [`WindowSeconds`] may be.
    pub fn after(seconds: u64) -> Result<Self, OutOfBounds> {
        WindowSeconds::new(seconds).map(|seconds| Self::After { seconds })
    }
}

impl BatchWindow {
    /// When the window of a run is over: the first instant that is not in it.
    pub fn ends_at(&self, launch_at: DateTime<Utc>) -> DateTime<Utc> {
        match self.deadline {
            Deadline::After { seconds } => shifted(launch_at, time::seconds(seconds.get().into())),
            Deadline::At(instant) => instant,
        }
    }

    /// Whether the rest of a run is left out at `now`: only where events expire, and from the window's end on.
    pub fn is_over(&self, launch_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        self.on_deadline == OnDeadline::Expire && now >= self.ends_at(launch_at)
    }

    /// How many of a run's `count` events, the first ones, may have been admitted by `now`: all of them unless it is
    /// paced.
    pub fn admissible(&self, launch_at: DateTime<Utc>, count: u32, now: DateTime<Utc>) -> u32 {
        let length_ms = self.ends_at(launch_at).signed_duration_since(launch_at).num_milliseconds();
        if !self.paced || length_ms <= 0 {
            return count;
        }
        let past_ms = now.signed_duration_since(launch_at).num_milliseconds();
        if past_ms < 0 {
            return 0;
        }
        // The first at the launch, each further one an equal step later.
        let steps = i128::from(past_ms) * i128::from(count) / i128::from(length_ms);
        u32::try_from(steps + 1).unwrap_or(u32::MAX).min(count)
    }

    /// When event `index`, from 0, of a paced run of `count` may be admitted; at its launch when it is not paced.
    pub fn admits_at(&self, launch_at: DateTime<Utc>, count: u32, index: u32) -> DateTime<Utc> {
        if !self.paced {
            return launch_at;
        }
        let length_ms = self.ends_at(launch_at).signed_duration_since(launch_at).num_milliseconds().max(0);
        let past_ms = (i128::from(length_ms) * i128::from(index) + i128::from(count.max(1)) - 1)
            / i128::from(count.max(1));
        let past = Duration::try_milliseconds(i64::try_from(past_ms).unwrap_or(length_ms));
        shifted(launch_at, past.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(seconds: u64, on_deadline: OnDeadline, paced: bool) -> BatchWindow {
        BatchWindow { deadline: Deadline::after(seconds).unwrap(), on_deadline, paced }
    }

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        assert_eq!(Cost::new(11).unwrap_err().to_string(), "cost is 11; it must lie between 1 and 10");
        assert!(Cost::new(0).is_err() && Cost::new(10).is_ok());
        assert!(Priority::new(10).unwrap_err().to_string().starts_with("priority is 10; it must lie"));
        assert!(Deadline::after(0).is_err());
    }

    #[test]
    fn a_paced_run_is_admitted_evenly_and_whole() {
        let launch_at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for (seconds, count) in [(100_u64, 10_u32), (7, 1_000), (3_600, 7), (60, 1)] {
            let window = window(seconds, OnDeadline::Continue, true);
            for index in 0..count {
                let at = window.admits_at(launch_at, count, index);
                assert!(window.admissible(launch_at, count, at) > index, "{seconds} {count} {index}");
                let before = at - Duration::milliseconds(1);
                assert!(window.admissible(launch_at, count, before) <= index, "{seconds} {count} {index}");
            }
            assert_eq!(window.admissible(launch_at, count, window.ends_at(launch_at)), count);
        }
    }

    #[test]
    fn a_window_is_over_only_for_runs_that_expire() {
        let launch_at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let at = |seconds| launch_at + Duration::seconds(seconds);
        assert!(window(60, OnDeadline::Expire, false).is_over(launch_at, at(60)));
        assert!(!window(60, OnDeadline::Expire, false).is_over(launch_at, at(59)));
        assert!(!window(60, OnDeadline::Continue, false).is_over(launch_at, at(61)));
        assert_eq!(window(60, OnDeadline::Continue, false).admissible(launch_at, 9, launch_at), 9);
    }
}
