//! What a client may take of the deployment at the most, as an admin says.

mod pace;
mod room;

use chrono::{DateTime, SubsecRound as _, Utc};

use crate::bounded::bounded;
use crate::limits::{
    CREATES_PER_MINUTE, DELIVERY_SHARES, EVENTS_PER_MINUTE, EVENTS_PER_RUN, MAX_IN_FLIGHT, QUOTA_JOBS,
    QUOTA_NAMED, QUOTA_PAYLOAD_BYTES, QUOTA_WAITING, QUOTA_ZONES,
};
pub use pace::EventsPace;
pub use room::{Ask, Count, Counted, OverQuota, Portion, Quota, Taken, fit, given_back_in};

/// The quotas of a client; `None`: it may take as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// How many jobs it may write in a minute of UTC.
    pub creates_per_minute: Option<CreatesPerMinute>,
    /// How many bytes of JSON the payload of each of its jobs may have.
    pub payload_bytes: Option<PayloadBytes>,
    /// How many jobs it may have, but for one-time jobs with a generated id.
    pub jobs: Option<MostJobs>,
    /// How many one-time jobs may wait for their launch.
    pub one_time_jobs: Option<MostOneTimeJobs>,
    /// How many policies it may have.
    pub policies: Option<MostPolicies>,
    /// How many calendars it may have.
    pub calendars: Option<MostCalendars>,
    /// How many zones the cron triggers of its jobs may have together.
    pub zones: Option<MostZones>,
    /// How many events one launch of each of its jobs may have.
    pub events_per_launch: Option<EventsPerLaunch>,
    /// How many tokens each of its policies may have.
    pub tokens: Option<MostTokens>,
    /// How many of its events go in a minute of UTC: of all that nothing throttles together, and of each of its policies.
    pub events_per_minute: Option<EventsPerMinute>,
    /// How much may wait: of its events that are over `events_per_minute`, and of the runs in the line of each of its policies.
    pub waiting: Option<MostWaiting>,
    /// How many turns its messages have where those of a client without a share have one; `None`: one.
    pub delivery_share: Option<DeliveryShare>,
    /// Since when it has all of those that are [`Counted`], to the millisecond; `None`: it has none of them. What was counted before
    /// does not count: nobody took of a quota that was not there.
    pub counted_since: Option<DateTime<Utc>>,
}

impl Quotas {
    /// The same as they follow others at an instant: what is counted is counted anew where one is new.
    #[must_use]
    pub fn in_place_of(self, before: &Self, now: DateTime<Utc>) -> Self {
        let has = |quotas: &Self, of: &Counted| quotas.most_of(*of).is_some();
        let mut counted = Counted::ALL.iter().filter(|of| has(&self, of)).peekable();
        let counted_since = match before.counted_since {
            _ if counted.peek().is_none() => None,
            Some(since) if counted.all(|of| has(before, of)) => Some(since),
            _ => Some(now.trunc_subsecs(3)),
        };
        Self { counted_since, ..self }
    }

    /// How much of what is counted it may have.
    pub fn most_of(&self, of: Counted) -> Option<u32> {
        match of {
            Counted::Jobs => self.jobs.map(MostJobs::get),
            Counted::Policies => self.policies.map(MostPolicies::get),
            Counted::Calendars => self.calendars.map(MostCalendars::get),
            Counted::Zones => self.zones.map(MostZones::get),
        }
    }

    /// How fast its events go that nothing throttles; `None`: as they come.
    pub fn events_pace(&self) -> Option<EventsPace> {
        let waiting = self.waiting;
        self.events_per_minute.map(|per_minute| EventsPace { per_minute, waiting })
    }

    /// How much it may have of what is taken by writes.
    pub fn most(&self, quota: Quota) -> Option<u32> {
        match quota {
            Quota::CreatesPerMinute => self.creates_per_minute.map(CreatesPerMinute::get),
            Quota::OneTimeJobs => self.one_time_jobs.map(MostOneTimeJobs::get),
            Quota::Of(of) => self.most_of(of),
        }
    }

    /// Whether what a job takes of them depends on what is stored under its id.
    pub fn ask_what_is_stored(&self) -> bool {
        self.jobs.is_some() || self.one_time_jobs.is_some() || self.zones.is_some()
    }
}

bounded! {
    /// A number of jobs that are written in a minute.
    CreatesPerMinute(u32), "quotas.creates_per_minute", CREATES_PER_MINUTE
}

bounded! {
    /// A number of bytes of JSON that the payload of a job may have.
    PayloadBytes(u32), "quotas.payload_bytes", QUOTA_PAYLOAD_BYTES
}

bounded! {
    /// A number of jobs that a client may have.
    MostJobs(u32), "quotas.jobs", QUOTA_JOBS
}

bounded! {
    /// A number of one-time jobs that may wait.
    MostOneTimeJobs(u32), "quotas.one_time_jobs", QUOTA_JOBS
}

bounded! {
    /// A number of policies that a client may have.
    MostPolicies(u32), "quotas.policies", QUOTA_NAMED
}

bounded! {
    /// A number of calendars that a client may have.
    MostCalendars(u32), "quotas.calendars", QUOTA_NAMED
}

bounded! {
    /// A number of zones that the jobs of a client may have.
    MostZones(u32), "quotas.zones", QUOTA_ZONES
}

bounded! {
    /// A number of events that a launch may have.
    EventsPerLaunch(u32), "quotas.events_per_launch", 1..=EVENTS_PER_RUN
}

bounded! {
    /// A number of tokens that a policy may have.
    MostTokens(u32), "quotas.tokens", 1..=MAX_IN_FLIGHT
}

bounded! {
    /// A number of events that go in a minute.
    EventsPerMinute(u32), "quotas.events_per_minute", EVENTS_PER_MINUTE
}

bounded! {
    /// A number of events, or of runs in a line, that wait.
    MostWaiting(u32), "quotas.waiting", QUOTA_WAITING
}

bounded! {
    /// A number of turns.
    DeliveryShare(u32), "quotas.delivery_share", DELIVERY_SHARES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn quotas(jobs: Option<u64>, policies: Option<u64>) -> Quotas {
        let jobs = jobs.map(|most| MostJobs::new(most).unwrap());
        let policies = policies.map(|most| MostPolicies::new(most).unwrap());
        Quotas { jobs, policies, ..Quotas::default() }
    }

    #[test]
    fn what_is_counted_is_counted_anew_where_a_quota_is_new_and_not_where_it_is_raised_or_lowered() {
        let none = quotas(None, None).in_place_of(&Quotas::default(), at(1));
        assert_eq!(none.counted_since, None);
        let first = quotas(Some(3), None).in_place_of(&none, at(2));
        assert_eq!(first.counted_since, Some(at(2)));
        let raised = quotas(Some(5), None).in_place_of(&first, at(3));
        assert_eq!(raised.counted_since, Some(at(2)));
        let two = quotas(Some(5), Some(0)).in_place_of(&raised, at(4));
        assert_eq!(two.counted_since, Some(at(4)));
        let one_less = quotas(None, Some(0)).in_place_of(&two, at(5));
        assert_eq!(one_less.counted_since, Some(at(4)));
        assert_eq!(quotas(Some(5), Some(0)).in_place_of(&one_less, at(6)).counted_since, Some(at(6)));
        assert_eq!(quotas(None, None).in_place_of(&one_less, at(7)).counted_since, None);
    }
}
