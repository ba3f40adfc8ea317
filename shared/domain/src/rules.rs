//! What a job says about its launches beside its trigger: from when to when, how late, on which days.

use crate::time::{OnClosedDay, seconds};
use chrono::{DateTime, Duration, Utc};
use thiserror::Error;

use crate::bounded::bounded;
use crate::ids::{CalendarId, ClientId, JobId};
use crate::limits::{
    CALENDARS_PER_JOB, DEFAULT_MISFIRE_LAUNCHES, JITTER_SECONDS, MISFIRE_LAUNCHES, RELEVANCY_SECONDS,
    SKIPPED_LAUNCHES,
};
use crate::shard::shard_of;
use crate::unknown::Unknown;

/// A job's rules for its launches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Nothing is launched before it; `None`: no bound.
    pub start_at: Option<DateTime<Utc>>,
    /// Nothing is launched at it or later; `None`: no bound.
    pub end_at: Option<DateTime<Utc>>,
    /// The width of the flexible window; 0 seconds by default.
    pub jitter: Jitter,
    /// What becomes of launches that an outage missed; the latest 100 are made up for by default.
    pub misfire: Misfire,
    /// The names of the calendars on whose days it does not launch, at most [`CALENDARS_PER_JOB`].
    pub calendars: Vec<CalendarId>,
    /// The names of the calendars on whose days alone it launches; none: it launches on any day. Together with `calendars` at
    /// most [`CALENDARS_PER_JOB`].
    pub only_on: Vec<CalendarId>,
    /// What becomes of launches that its calendars leave out. Moved are those of cron triggers alone.
    pub on_closed_day: OnClosedDay,
    /// Launches that its client leaves out, by what the trigger says of them (before jitter), each once and in their order: at
    /// most [`SKIPPED_LAUNCHES`].
    pub skip: Vec<DateTime<Utc>>,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

bounded! {
    /// A flexible window, in seconds: a job launches at an offset within it that is its own and never changes.
    Jitter(u32), "jitter_seconds", 0..=JITTER_SECONDS, default 0
}

/// What becomes of launches that an outage missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfire {
    /// None is made up for: all are recorded as skipped.
    Skip,
    /// The latest is made up for; the others are recorded as skipped.
    Latest,
    /// The latest so many are made up for; those before them are recorded as skipped.
    All(MisfireLaunches),
}

bounded! {
    /// A number of missed launches that are made up for.
    MisfireLaunches(u32), "misfire.max", 1..=MISFIRE_LAUNCHES, default DEFAULT_MISFIRE_LAUNCHES
}
bounded! {
    /// How old a launch may be when it is delivered, in seconds.
    Relevancy(u32), "relevancy_seconds", RELEVANCY_SECONDS
}

/// Why a job's rules are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RulesError {
    /// It ends before it starts.
    #[error("end_at {end_at} is not after start_at {start_at}; give a later end")]
    Backward {
        /// The given start.
        start_at: DateTime<Utc>,
        /// The given end.
        end_at: DateTime<Utc>,
    },
    /// More calendars than [`CALENDARS_PER_JOB`].
    #[error("calendars has {found} names; {CALENDARS_PER_JOB} is the most")]
    Calendars {
        /// How many calendars there are.
        found: usize,
    },
    /// More calendars of both kinds than [`CALENDARS_PER_JOB`].
    #[error("calendars and only_on have {found} names together; {CALENDARS_PER_JOB} is the most")]
    Together {
        /// How many there are.
        found: usize,
    },
    /// Launches are to be moved off closed days, and no calendar says which these are.
    #[error("on_closed_day is '{}', and the job names no calendar; name one in 'calendars' or 'only_on', or leave it out", .rule.as_str())]
    NeverClosed {
        /// The given rule.
        rule: OnClosedDay,
    },
    /// More launches are left out than [`SKIPPED_LAUNCHES`].
    #[error("skip has {found} instants; {SKIPPED_LAUNCHES} is the most")]
    Skipped {
        /// How many there are.
        found: usize,
    },
    /// The job would launch on the days of a calendar alone, and not on them: never.
    #[error("calendar '{calendar}' is named in 'calendars' and in 'only_on'; leave it out of one of them")]
    Both {
        /// The name of that calendar.
        calendar: CalendarId,
    },
}

impl Rules {
    /// Checks what the parts say about each other; drops calendars and launches that are named twice.
    ///
    /// # Errors
    /// [`RulesError::Backward`] when the end does not come after the start, [`RulesError::Calendars`] and
    /// [`RulesError::Together`] when there are more calendars than [`CALENDARS_PER_JOB`], [`RulesError::Both`] when one is
    /// named both ways, [`RulesError::NeverClosed`] when launches are to be moved and none is named, [`RulesError::Skipped`] when
    /// more launches are left out than [`SKIPPED_LAUNCHES`].
    pub fn checked(mut self) -> Result<Self, RulesError> {
        if let (Some(start_at), Some(end_at)) = (self.start_at, self.end_at)
            && end_at <= start_at
        {
            return Err(RulesError::Backward { start_at, end_at });
        }
        self.calendars.sort_unstable();
        self.calendars.dedup();
        self.only_on.sort_unstable();
        self.only_on.dedup();
        let (found, together) = (self.calendars.len(), self.calendars.len() + self.only_on.len());
        if found > CALENDARS_PER_JOB {
            return Err(RulesError::Calendars { found });
        }
        if together > CALENDARS_PER_JOB {
            return Err(RulesError::Together { found: together });
        }
        if together == 0 && self.on_closed_day.moves() {
            return Err(RulesError::NeverClosed { rule: self.on_closed_day });
        }
        self.skip.sort_unstable();
        self.skip.dedup();
        if self.skip.len() > SKIPPED_LAUNCHES {
            return Err(RulesError::Skipped { found: self.skip.len() });
        }
        match self.only_on.iter().find(|id| self.calendars.contains(id)) {
            Some(calendar) => Err(RulesError::Both { calendar: calendar.clone() }),
            None => Ok(self),
        }
    }

    /// The rules with one launch more that is left out; where there are [`SKIPPED_LAUNCHES`] already, in the place of the oldest
    /// that is past `now`.
    ///
    /// # Errors
    /// [`RulesError::Skipped`] when all of those are to come.
    pub fn skipping(mut self, launch_at: DateTime<Utc>, now: DateTime<Utc>) -> Result<Self, RulesError> {
        let is_full = self.skip.len() >= SKIPPED_LAUNCHES && !self.skip.contains(&launch_at);
        if let [oldest, rest @ ..] = &*self.skip
            && is_full
            && *oldest < now
        {
            self.skip = rest.to_vec();
        }
        self.skip.push(launch_at);
        self.checked()
    }

    /// The names of all its calendars, of both kinds.
    pub fn all_calendars(&self) -> impl Iterator<Item = &CalendarId> {
        self.calendars.iter().chain(&self.only_on)
    }

    /// Whether an instant lies at `start_at` or later, and before `end_at`.
    pub fn is_within(&self, at: DateTime<Utc>) -> bool {
        self.start_at.is_none_or(|start_at| start_at <= at) && self.end_at.is_none_or(|end_at| at < end_at)
    }
}

impl Jitter {
    /// The width, in seconds.
    pub fn seconds(self) -> u32 {
        self.0
    }

    /// By how much the launches of a job come later, in whole seconds from 0 to the width: the same for all of them, so
    /// they keep their distances.
    pub fn offset(self, client: &ClientId, job: &JobId) -> Duration {
        seconds(shard_of(&format!("jitter|{client}|{job}"), self.0 + 1).into())
    }
}

impl Default for Misfire {
    fn default() -> Self {
        Self::All(MisfireLaunches::default())
    }
}

impl Misfire {
    /// How many of the missed launches are made up for, the latest first: 0 up to what the rule says.
    pub fn kept(self) -> usize {
        match self {
            Self::Skip => 0,
            Self::Latest => 1,
            Self::All(most) => most.get() as usize,
        }
    }
}

impl Relevancy {
    /// The length, in seconds.
    pub fn seconds(self) -> u32 {
        self.0
    }

    /// Whether a launch is too old at `now` to be delivered: older than the length.
    pub fn is_over(self, launch_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        now.signed_duration_since(launch_at) > seconds(self.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::OutOfBounds;

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let text = |error: OutOfBounds| error.to_string();
        assert_eq!(
            text(Jitter::new(3_601).unwrap_err()),
            "jitter_seconds is 3601; it must lie between 0 and 3600"
        );
        assert_eq!(
            text(MisfireLaunches::new(0).unwrap_err()),
            "misfire.max is 0; it must lie between 1 and 10000"
        );
        assert_eq!(
            text(Relevancy::new(0).unwrap_err()),
            "relevancy_seconds is 0; it must lie between 1 and 2592000"
        );
    }

    #[test]
    fn an_end_before_the_start_is_refused() {
        let at = |second| DateTime::from_timestamp(second, 0);
        let rules = |start_at, end_at| Rules { start_at, end_at, ..Rules::default() }.checked();
        assert!(matches!(rules(at(10), at(10)), Err(RulesError::Backward { .. })));
        let rules = rules(at(10), at(20)).unwrap();
        let within = [9, 10, 19, 20].map(|second| rules.is_within(at(second).unwrap()));
        assert_eq!(within, [false, true, true, false]);
    }

    #[test]
    fn a_launch_more_is_left_out_in_the_place_of_one_that_is_over() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let rules = Rules::default().skipping(at(20), at(0)).unwrap().skipping(at(10), at(0)).unwrap();
        assert_eq!(rules.skipping(at(20), at(0)).unwrap().skip, [at(10), at(20)]);
        let full = Rules { skip: (0..50).map(at).collect(), ..Rules::default() };
        let skipped = full.clone().skipping(at(90), at(1)).unwrap().skip;
        assert_eq!((skipped.len(), skipped[0], skipped[49]), (50, at(1), at(90)));
        assert_eq!(full.skipping(at(90), at(0)), Err(RulesError::Skipped { found: 51 }));
    }

    #[test]
    fn calendars_are_counted_together_and_none_is_named_both_ways() {
        let names = |from: usize, to: usize| -> Vec<CalendarId> {
            (from..to).map(|number| format!("c{number}").parse().unwrap()).collect()
        };
        let rules = |calendars, only_on| Rules { calendars, only_on, ..Rules::default() }.checked();
        assert_eq!(rules(names(0, 4), names(4, 9)), Err(RulesError::Together { found: 9 }));
        assert_eq!(
            rules(names(0, 2), names(1, 3)),
            Err(RulesError::Both { calendar: "c1".parse().unwrap() })
        );
        let both = rules(names(0, 4), [names(4, 8), names(4, 8)].concat()).unwrap();
        assert_eq!(both.all_calendars().cloned().collect::<Vec<_>>(), names(0, 8));
    }

    #[test]
    fn an_offset_is_stable_and_spreads_over_the_window() {
        let client = "acme".parse().unwrap();
        let jitter = Jitter::new(59).unwrap();
        let offset =
            |job: usize| jitter.offset(&client, &format!("job-{job}").parse().unwrap()).num_seconds();
        let mut seen = [0; 60];
        for job in 0..6_000 {
            seen[offset(job) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (50..170).contains(count)), "{seen:?}");
        assert_eq!(offset(7), offset(7));
        assert_eq!(Jitter::default().offset(&client, &"a".parse().unwrap()), Duration::zero());
    }

    #[test]
    fn too_old_is_later_than_the_window() {
        let relevancy = Relevancy::new(60).unwrap();
        let launch_at = DateTime::from_timestamp(0, 0).unwrap();
        let is_over = |second| relevancy.is_over(launch_at, DateTime::from_timestamp(second, 0).unwrap());
        assert!(!is_over(60) && is_over(61));
    }
}
