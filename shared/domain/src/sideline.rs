//! Sidelining: what a client or a job would deliver is set aside until it is drained at a pace.
//!
//! Pure: who is sidelined, since when, and how fast it drains. What is set aside lies in the store.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::ids::JobId;
use crate::rate_limit::{Per, RateLimit};
use crate::retry::RedrivePace;
use crate::time::{milliseconds, shifted};

/// That a client, a job or a policy is sidelined, or drains what was set aside while it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sideline {
    /// Since when, to the millisecond.
    pub since: DateTime<Utc>,
    /// Why, in the words of whoever did it; may be empty.
    pub because: String,
    /// How it drains; `None`: it is sidelined, and nothing is delivered.
    pub drain: Option<Drain>,
}

/// How what was set aside drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// Events that are delivered in a second, at the most.
    pub pace: RedrivePace,
    /// When it was asked for, to the millisecond. What is launched later is not part of it.
    pub since: DateTime<Utc>,
    /// Before this instant nothing more of it is sent than what is on its way, to the millisecond.
    pub next_at: DateTime<Utc>,
}

impl Sideline {
    /// Sidelined from an instant on.
    pub fn new(since: DateTime<Utc>, because: &str) -> Self {
        Self { since, because: because.to_owned(), drain: None }
    }

    /// The same, draining from an instant on. One that drains already takes the new pace and goes on.
    #[must_use]
    pub fn draining(&self, pace: RedrivePace, now: DateTime<Utc>) -> Self {
        let drain = match self.drain {
            Some(drain) => Drain { pace, ..drain },
            None => Drain { pace, since: now, next_at: now },
        };
        Self { drain: Some(drain), ..self.clone() }
    }

    /// Whether nothing is delivered: it does not drain yet.
    pub fn is_held(&self) -> bool {
        self.drain.is_none()
    }
}

impl Drain {
    /// Its pace as a rate: a hard cap.
    pub fn rate(&self) -> Option<RateLimit> {
        RateLimit::new(self.pace.get(), Per::Second, None).ok()
    }

    /// How long so many events take, rounded up to a millisecond.
    pub fn takes(&self, events: u32) -> chrono::Duration {
        let ms = u64::from(events).saturating_mul(1_000).div_ceil(u64::from(self.pace.get().max(1)));
        milliseconds(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    /// The same once so many more events are on their way, the first of them from `from` on.
    #[must_use]
    pub fn after(&self, from: DateTime<Utc>, events: u32) -> Self {
        Self { next_at: shifted(from, self.takes(events)), ..*self }
    }
}

/// What of a client is sidelined, or drains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sidelines {
    /// All of it.
    pub client: Option<Sideline>,
    /// Jobs of it.
    pub jobs: BTreeMap<JobId, Sideline>,
}

/// Who is sidelined: a whole client, or one of its jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SidelineOf {
    /// The whole client.
    Client,
    /// A job.
    Job(JobId),
}

impl Sidelines {
    /// What is said of a client or a job.
    pub fn get(&self, of: &SidelineOf) -> Option<&Sideline> {
        match of {
            SidelineOf::Client => self.client.as_ref(),
            SidelineOf::Job(job) => self.jobs.get(job),
        }
    }

    /// The same with something else said of it; `None`: nothing any more.
    #[must_use]
    pub fn with(mut self, of: &SidelineOf, sideline: Option<Sideline>) -> Self {
        match (of, sideline) {
            (SidelineOf::Client, sideline) => self.client = sideline,
            (SidelineOf::Job(job), Some(sideline)) => drop(self.jobs.insert(job.clone(), sideline)),
            (SidelineOf::Job(job), None) => drop(self.jobs.remove(job)),
        }
        self
    }

    /// Whose events of a job are set aside with; `None`: they are delivered.
    ///
    /// ```
    /// use chrono::DateTime;
    /// use tidegate_domain::sideline::{Sideline, SidelineOf, Sidelines};
    ///
    /// let (job, other) = ("sync".parse()?, "mail".parse()?);
    /// let of = SidelineOf::Job("sync".parse()?);
    /// let sidelines = Sidelines::default().with(&of, Some(Sideline::new(DateTime::UNIX_EPOCH, "")));
    /// assert_eq!((sidelines.held(&job), sidelines.held(&other)), (Some(of), None));
    /// # Ok::<(), tidegate_domain::ids::IdError>(())
    /// ```
    pub fn held(&self, job: &JobId) -> Option<SidelineOf> {
        if self.client.as_ref().is_some_and(Sideline::is_held) {
            return Some(SidelineOf::Client);
        }
        self.holds_job(job).then(|| SidelineOf::Job(job.clone()))
    }

    /// What is said of those that [`Self::held`] names.
    pub fn held_by(&self, job: &JobId) -> Option<&Sideline> {
        self.held(job).and_then(|of| self.get(&of))
    }

    /// Whether a job is held by itself, whatever is said of its client.
    pub fn holds_job(&self, job: &JobId) -> bool {
        self.jobs.get(job).is_some_and(Sideline::is_held)
    }

    /// Whether anything is held.
    pub fn holds_anything(&self) -> bool {
        self.client.iter().chain(self.jobs.values()).any(Sideline::is_held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_800_000_000_000 + ms).unwrap()
    }

    fn pace(per_second: u64) -> RedrivePace {
        RedrivePace::new(per_second).unwrap()
    }

    #[test]
    fn what_drains_is_not_held_and_takes_a_new_pace_where_it_stood() {
        let held = Sideline::new(at(0), "repairs");
        let draining = held.draining(pace(10), at(5));
        let drain = draining.drain.unwrap();
        assert_eq!((held.is_held(), draining.is_held(), drain.since), (true, false, at(5)));
        let on_its_way = drain.after(at(5), 25);
        assert_eq!(on_its_way.next_at, at(2_505));
        let faster = Sideline { drain: Some(on_its_way), ..held }.draining(pace(100), at(9)).drain.unwrap();
        assert_eq!((faster.pace, faster.since, faster.next_at), (pace(100), at(5), at(2_505)));
    }

    #[test]
    fn a_pace_is_never_exceeded() {
        let drain = Sideline::new(at(0), "").draining(pace(3), at(0)).drain.unwrap();
        assert_eq!(drain.takes(1).num_milliseconds(), 334);
        assert_eq!(drain.takes(3).num_milliseconds(), 1_000);
        assert_eq!(drain.rate().map(|rate| rate.bucket()), Some(3));
    }

    #[test]
    fn a_client_holds_all_its_jobs_and_a_job_itself() {
        let (job, other): (JobId, JobId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let of = SidelineOf::Job(job.clone());
        let one = Sidelines::default().with(&of, Some(Sideline::new(at(0), "")));
        assert_eq!((one.held(&job), one.held(&other)), (Some(of.clone()), None));
        let all = one.clone().with(&SidelineOf::Client, Some(Sideline::new(at(0), "")));
        assert_eq!(all.held(&other), Some(SidelineOf::Client));
        let drained = all.with(&SidelineOf::Client, None).with(&of, None);
        assert_eq!((drained.holds_anything(), drained), (false, Sidelines::default()));
        assert!(one.holds_anything());
    }
}
