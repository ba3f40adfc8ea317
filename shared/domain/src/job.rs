//! A ScheduleJob: what a client wants to happen, and when.

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use thiserror::Error;

use crate::bounded::{OutOfBounds, bounded};
use crate::flow::Flow;
use crate::ids::{ClientId, JobId, PolicyId};
use crate::limits::{
    CLIENT_HISTORY_DAYS, DEFAULT_HAND_OVERS, DELAY_SECONDS, EVENTS_PER_RUN, EXPECT_SECONDS, HANDOVER_SECONDS,
    HISTORY_DAYS, JSON_DEPTH, LOOK_AHEAD_SECONDS, MAX_ATTEMPTS, PAYLOAD_BYTES,
};
use crate::nesting::levels;
use crate::retry::{Retry, Tries};
use crate::rules::{Relevancy, Rules};
use crate::tags::Tags;
use crate::target::Target;
use crate::time::{Cadence, CronSpec, Instants, Rate, ShardedKey, days, shifted};
use crate::unknown::Unknown;

/// A ScheduleJob as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The client whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub id: JobId,
    /// Rises by one with each change, also over a deletion; starts at 1.
    pub revision: u32,
    /// When it fires.
    pub trigger: Trigger,
    /// What it says about its launches beside that.
    pub rules: Rules,
    /// Whether it is paused: its launches are recorded as skipped.
    pub paused: bool,
    /// Why it is paused, in the words of whoever did it; `None` when nobody said, and while it is not paused.
    pub paused_because: Option<String>,
    /// What each firing delivers.
    pub terms: Terms,
    /// By which its client finds it again.
    pub tags: Tags,
    /// How long after its instant each launch is expected to be over; `None`: nobody watches.
    pub expect: Option<ExpectedSeconds>,
    /// Where its children lie in the index, at most [`MAX_CHILDREN`](crate::limits::MAX_CHILDREN); none of a job for
    /// instants.
    pub children: Vec<ShardedKey>,
    /// The emitter emits its launches from this instant on, in whole seconds; the master emitted the earlier ones.
    pub emit_from: DateTime<Utc>,
    /// When this revision was written, to the millisecond.
    pub changed_at: DateTime<Utc>,
}

/// From when on the launches of a job that is written at an instant are the emitter's, in whole minutes; the master
/// emits those before. Further ahead than a watermark can come while the job is written.
pub fn emit_from(written_at: DateTime<Utc>) -> DateTime<Utc> {
    let ahead = i64::from(LOOK_AHEAD_SECONDS + HANDOVER_SECONDS);
    // Whole minutes, so that children of one minute agree, and whole seconds, as rows keep them.
    let second = written_at.timestamp().div_euclid(60) * 60 + ahead;
    DateTime::from_timestamp(second, 0).unwrap_or(written_at)
}

/// When a job fires.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// At every wall-clock time of the zone that the expression matches.
    Cron {
        /// The expression, compiled.
        spec: CronSpec,
        /// The IANA zone whose wall clock counts.
        zone: Tz,
    },
    /// In a steady beat from an anchor.
    Rate {
        /// The beat.
        rate: Rate,
        /// Whether the client named the anchor. An anchor that it left open stays when the job is sent again.
        anchored: bool,
    },
    /// At single instants.
    At(Instants),
}

impl Trigger {
    /// A trigger for one instant.
    pub fn at(launch_at: DateTime<Utc>) -> Self {
        Self::At(Instants::one(launch_at))
    }

    /// When it launches, compiled.
    pub fn cadence(&self) -> Cadence {
        match self {
            Self::Cron { spec, zone } => Cadence::Cron { cron: *spec.compiled(), zone: *zone },
            Self::Rate { rate, .. } => Cadence::Rate(*rate),
            Self::At(instants) => Cadence::At(instants.clone()),
        }
    }

    /// The zone of a cron trigger; `None`: it is another one.
    pub fn cron_zone(&self) -> Option<Tz> {
        match self {
            Self::Cron { zone, .. } => Some(*zone),
            Self::Rate { .. } | Self::At(_) => None,
        }
    }

    /// The instant of a trigger that launches once; `None`: it launches more often.
    pub fn only_instant(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::At(instants) => instants.only(),
            Self::Cron { .. } | Self::Rate { .. } => None,
        }
    }

    /// The zone whose days it goes by: UTC for rates and instants.
    pub fn zone(&self) -> Tz {
        match self {
            Self::Cron { zone, .. } => *zone,
            Self::Rate { .. } | Self::At(_) => Tz::UTC,
        }
    }
}

/// What a firing delivers: the part of a job that travels with each of its occurrences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Events of one firing: 1 for a cron job, the size of the batch otherwise.
    pub count: Count,
    /// The policy that throttles them; `None`: they are delivered at once.
    pub policy: Option<PolicyId>,
    /// Where they go.
    pub target: Target,
    /// What they carry.
    pub payload: Payload,
    /// How much of what happened is kept.
    pub history: History,
    /// For how long.
    pub history_days: HistoryDays,
    /// The most deliveries of one event, those that failed and those under later leases included; `None`: as many as `retry`
    /// allows of those that failed, and [`DEFAULT_HAND_OVERS`] whose lease ran out.
    pub max_attempts: Option<Attempts>,
    /// When an event is sent again that its target did not take.
    pub retry: Retry,
    /// How old a launch may be when it is delivered; `None`: any age.
    pub relevancy: Option<Relevancy>,
    /// How the events go through their policy.
    pub flow: Flow,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

/// What the jobs of a client have that say nothing of it, from when they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobDefaults {
    /// When an event is sent again; `None`: as without a client.
    pub retry: Option<Retry>,
    /// The most deliveries of an event.
    pub max_attempts: Option<Attempts>,
    /// How old a launch may be when it is delivered.
    pub relevancy: Option<Relevancy>,
    /// How much of what happened is kept.
    pub history: Option<History>,
    /// For how long. A job cannot name it: an admin says it of a client.
    pub history_days: Option<HistoryDays>,
}

/// How much of what happened to a job's events is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// A record for each event.
    #[default]
    All,
    /// A record for each event that failed; what was delivered is counted, not listed.
    Failures,
    /// No record of single events: they are counted. Dead letters are kept all the same.
    None,
}

bounded! {
    /// The number of events of one firing.
    Count(u32), "count", 1..=EVENTS_PER_RUN, default 1
}
bounded! {
    /// Days that what happened is kept: runs, records of events, dead letters.
    HistoryDays(u16), "history_days", CLIENT_HISTORY_DAYS, default HISTORY_DAYS as u16
}
bounded! {
    /// How long after its instant a launch is expected to be over, in seconds.
    ExpectedSeconds(u32), "expect.within_seconds", EXPECT_SECONDS
}
bounded! {
    /// By how much the instants of a job are moved, in seconds.
    DelaySeconds(u32), "delay_seconds", DELAY_SECONDS
}
bounded! {
    /// The most deliveries of one event.
    Attempts(u8), "max_attempts", 1..=MAX_ATTEMPTS as u32
}

impl HistoryDays {
    /// Takes the number that is stored; `None`: as when nobody names one.
    ///
    /// # Errors
    /// When it lies outside the bounds.
    pub fn read(stored: Option<u16>) -> Result<Self, OutOfBounds> {
        stored.map_or(Ok(Self::DEFAULT), |days| Self::new(days.into()))
    }

    /// Until when a record is kept that nothing but its reader goes by.
    pub fn from(self, at: DateTime<Utc>) -> DateTime<Utc> {
        shifted(at, days(self.0.into()))
    }

    /// The same days, and no less than what delivery and repairs rely on.
    #[must_use]
    pub fn at_least_default(self) -> Self {
        self.max(Self::DEFAULT)
    }
}

/// A payload: JSON text of at most 64 KiB, or the word that it lies in its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The text itself, the same for every event.
    Inline(String),
    /// A JSON array with an element for each event, in their order.
    List(String),
    /// JSON in whose texts `{{index}}` and its like stand for what differs from event to event.
    Template(String),
    /// Too large to travel: read it from the job's row.
    InJob,
}

/// Why a job is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobError {
    /// A payload over the limit.
    #[error(
        "payload is {bytes} bytes of JSON; {PAYLOAD_BYTES} is the most: store the data elsewhere and send its address"
    )]
    Payload {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A payload that is nested too deep.
    #[error("payload is {levels} levels deep; {most} is the most: make it flatter, or send it as a string")]
    Depth {
        /// How many arrays and objects are within one another.
        levels: usize,
        /// How many may be: [`JSON_DEPTH`], or one more in a list.
        most: usize,
    },
}

impl Payload {
    /// Takes JSON text as a payload, the same for every event. That it is JSON is not looked at.
    ///
    /// # Errors
    /// [`JobError::Payload`] when it has more than [`PAYLOAD_BYTES`], [`JobError::Depth`] when it is nested deeper than
    /// [`JSON_DEPTH`].
    pub fn new(json: String) -> Result<Self, JobError> {
        within_bounds(json, JSON_DEPTH).map(Self::Inline)
    }

    /// Takes a JSON array as the payloads of the events, in their order. How many they are is not looked at.
    ///
    /// # Errors
    /// [`JobError::Payload`] when it has more than [`PAYLOAD_BYTES`], [`JobError::Depth`] when an element is nested
    /// deeper than [`JSON_DEPTH`].
    pub fn list(json: String) -> Result<Self, JobError> {
        // Each payload lies one level down.
        within_bounds(json, JSON_DEPTH + 1).map(Self::List)
    }

    /// Takes JSON text as a template of the payloads. Its placeholders are
    /// [`Template::check`](crate::template::Template::check)'s to look at.
    ///
    /// # Errors
    /// [`JobError::Payload`] when it has more than [`PAYLOAD_BYTES`], [`JobError::Depth`] when it is nested deeper than
    /// [`JSON_DEPTH`].
    pub fn template(json: String) -> Result<Self, JobError> {
        within_bounds(json, JSON_DEPTH).map(Self::Template)
    }

    /// Its text, if it is here; `None` when it lies in its job.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Inline(json) | Self::List(json) | Self::Template(json) => Some(json),
            Self::InJob => None,
        }
    }

    /// The same payload if it has at most [`INLINE_PAYLOAD_BYTES`](crate::limits::INLINE_PAYLOAD_BYTES), so that it
    /// travels with each occurrence, else the word that it lies in its job.
    pub fn to_travel(&self) -> Self {
        match self.text() {
            Some(json) if json.len() > crate::limits::INLINE_PAYLOAD_BYTES => Self::InJob,
            _ => self.clone(),
        }
    }
}

fn within_bounds(json: String, depth: usize) -> Result<String, JobError> {
    match (json.len(), levels(&json)) {
        (bytes, _) if bytes > PAYLOAD_BYTES => Err(JobError::Payload { bytes }),
        (_, levels) if levels > depth => Err(JobError::Depth { levels, most: depth }),
        _ => Ok(json),
    }
}

impl Terms {
    /// The terms as they travel with an occurrence: without a large payload.
    pub fn to_travel(&self) -> Self {
        Self { payload: self.payload.to_travel(), ..self.clone() }
    }

    /// How long an event waits before it is sent again that its target did not take; `None`: it is given up. See
    /// [`Retry::wait`].
    pub fn retry_in(
        &self,
        tries: Tries,
        asked_for: Option<Duration>,
        now: DateTime<Utc>,
        draw: u64,
    ) -> Option<Duration> {
        let is_last = self.max_attempts.is_some_and(|most| tries.made >= most.get());
        if is_last { None } else { self.retry.wait(tries, asked_for, now, draw) }
    }

    /// Whether delivery number `made` of an event is its last one if its lease runs out, given how many before it its target
    /// did not take.
    pub fn is_last_hand_over(&self, made: u8, failed: u8) -> bool {
        match self.max_attempts {
            Some(most) => made >= most.get(),
            None => made.saturating_sub(failed) >= DEFAULT_HAND_OVERS,
        }
    }

    /// Whether a launch is older at `now` than the relevancy window allows: then it is not delivered. Never without a
    /// window.
    pub fn is_too_old(&self, launch_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        self.relevancy.is_some_and(|relevancy| relevancy.is_over(launch_at, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        assert_eq!(Count::new(0).unwrap_err().to_string(), "count is 0; it must lie between 1 and 1000000");
        assert!(Count::new(1_000_001).is_err() && Count::new(1_000_000).is_ok());
        assert_eq!(
            Attempts::new(201).unwrap_err().to_string(),
            "max_attempts is 201; it must lie between 1 and 200"
        );
        let error = Payload::new("x".repeat(PAYLOAD_BYTES + 1)).unwrap_err().to_string();
        assert!(error.starts_with("payload is 65537 bytes of JSON; 65536 is the most"), "{error}");
    }

    #[test]
    fn a_payload_has_64_levels_at_the_most() {
        let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Payload::new(deep(64)).is_ok() && Payload::template(deep(64)).is_ok());
        assert!(Payload::list(format!("[{}]", deep(64))).is_ok());
        let error = Payload::new(deep(30_000)).unwrap_err().to_string();
        assert!(error.starts_with("payload is 30000 levels deep; 64 is the most"), "{error}");
        assert!(Payload::template(deep(65)).is_err() && Payload::list(format!("[{}]", deep(65))).is_err());
    }

    #[test]
    fn a_large_payload_stays_at_home() {
        let payload = |bytes| Payload::new("x".repeat(bytes)).unwrap().to_travel();
        assert_eq!(payload(401), Payload::InJob);
        assert!(matches!(payload(400), Payload::Inline(_)));
    }
}
