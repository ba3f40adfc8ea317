//! A client's throttling policy: how many of its events may be in flight, for how long each, and how fast they may begin.

use chrono::{DateTime, Utc};

use crate::backpressure::{Backpressure, Closure};
use crate::bounded::{OutOfBounds, bounded};
use crate::ids::{ClientId, PolicyId};
use crate::limits::{DEFAULT_LEASE_SECONDS, LEASE_SECONDS, MAX_IN_FLIGHT, WAITING_RUNS};
use crate::rate_limit::RateLimit;
use crate::shares::SharePlan;
use crate::sideline::Sideline;

/// A throttling policy.
///
/// Invariant (I1): at no instant do more than `max_in_flight` live leases exist for it, each counted by its cost, and
/// while a lowered limit drains, none begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The client whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub id: PolicyId,
    /// Rises by one with each change by its client; starts at 1.
    pub revision: u32,
    /// What its client says of it: limit, lease, rate, bound of its line.
    pub terms: PolicyTerms,
    /// Whether it is paused: nothing is admitted, and what is in flight goes on.
    pub paused: bool,
    /// What is done about a consumer that cannot keep up; `None`: nothing.
    pub backpressure: Option<Backpressure>,
    /// That its client was sidelined, and how what waits since then drains; `None`: neither.
    pub sidelined: Option<Sideline>,
    /// How its limit is shared out at present.
    pub plan: SharePlan,
}

impl Policy {
    /// The limit that is in force, in tokens: 0 while the policy is paused, closed or sidelined.
    pub fn limit(&self) -> u32 {
        let limit = self.terms.max_in_flight();
        match &self.backpressure {
            _ if self.paused || self.is_sidelined() => 0,
            Some(backpressure) => backpressure.limit(limit),
            None => limit,
        }
    }

    /// The same without backpressure that is over.
    #[must_use]
    pub fn at(self, now: DateTime<Utc>) -> Self {
        let backpressure = self.backpressure.as_ref().and_then(|backpressure| backpressure.at(now));
        Self { backpressure, ..self }
    }

    /// Until when it is closed, and who wants it so; `None`: it is open.
    pub fn closed(&self) -> Option<Closure> {
        self.backpressure.as_ref().and_then(Backpressure::closed)
    }

    /// Whether its client is sidelined: nothing is admitted until it drains.
    pub fn is_sidelined(&self) -> bool {
        self.sidelined.as_ref().is_some_and(Sideline::is_held)
    }

    /// How fast events may begin at present: as its client says, and no faster than what was sidelined drains; `None`: as fast as
    /// tokens allow.
    pub fn rate(&self) -> Option<RateLimit> {
        let own = self.terms.rate();
        let drain = self.sidelined.as_ref().and_then(|sidelined| sidelined.drain?.rate());
        match (own, drain) {
            (Some(own), Some(drain)) if own.per_second() <= drain.per_second() => Some(own),
            (own, drain) => drain.or(own),
        }
    }

    /// The limit that it goes on with when it is neither paused nor closed, in tokens.
    pub fn open_limit(&self) -> u32 {
        let limit = self.terms.max_in_flight();
        self.backpressure.as_ref().map_or(limit, |backpressure| backpressure.open_limit(limit))
    }
}

/// Names a policy: client and name, since names are unique within a client only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyRef {
    /// The client whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub policy: PolicyId,
}

impl PolicyRef {
    /// The policy of a client that has a name.
    pub fn new(client: &ClientId, policy: &PolicyId) -> Self {
        Self { client: client.clone(), policy: policy.clone() }
    }
}

bounded! {
    /// The most events of a policy in flight at once, each counted by its cost.
    MaxInFlight(u32), "max_in_flight", 1..=MAX_IN_FLIGHT
}
bounded! {
    /// How long a token may be held without a heartbeat, in seconds.
    LeaseSeconds(u32), "lease_seconds", LEASE_SECONDS, default DEFAULT_LEASE_SECONDS
}
bounded! {
    /// How many runs may wait in a policy's line.
    WaitingRuns(u32), "max_waiting_runs", WAITING_RUNS
}

/// What a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyTerms {
    max_in_flight: MaxInFlight,
    lease_seconds: LeaseSeconds,
    on_expiry: OnExpiry,
    rate: Option<RateLimit>,
    max_waiting_runs: Option<WaitingRuns>,
}

/// What becomes of a token whose lease ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExpiry {
    /// It is taken back; the event is delivered again, up to its job's `max_attempts`, then recorded as expired.
    #[default]
    Reclaim,
    /// It stays with its holder until that one releases it, or an operator frees it: for work that must never run twice
    /// at once.
    Hold,
}

impl PolicyTerms {
    /// Checks the numbers of a policy that reclaims what runs out and has neither a rate nor a bound on its line.
    ///
    /// ```
    /// use tidegate_domain::policy::PolicyTerms;
    ///
    /// // Ten events in flight, each for a minute unless it is extended.
    /// let terms = PolicyTerms::new(10, 60)?;
    /// assert_eq!((terms.max_in_flight(), terms.lease_seconds()), (10, 60));
    /// assert!(PolicyTerms::new(0, 60).is_err());
    /// # Ok::<(), tidegate_domain::bounded::OutOfBounds>(())
    /// ```
    ///
    /// # Errors
    /// [`OutOfBounds`] when a number lies outside its bounds, with which one.
    pub fn new(max_in_flight: u32, lease_seconds: u32) -> Result<Self, OutOfBounds> {
        Ok(Self::of(MaxInFlight::new(max_in_flight.into())?, LeaseSeconds::new(lease_seconds.into())?))
    }

    /// The same of numbers that have been checked.
    pub fn of(max_in_flight: MaxInFlight, lease_seconds: LeaseSeconds) -> Self {
        let on_expiry = OnExpiry::Reclaim;
        Self { max_in_flight, lease_seconds, on_expiry, rate: None, max_waiting_runs: None }
    }

    /// The same with another rule for leases that ran out.
    #[must_use]
    pub fn with_on_expiry(self, on_expiry: OnExpiry) -> Self {
        Self { on_expiry, ..self }
    }

    /// The same with a rate, or without.
    #[must_use]
    pub fn with_rate(self, rate: Option<RateLimit>) -> Self {
        Self { rate, ..self }
    }

    /// The same with a bound on the runs in its line, or without.
    #[must_use]
    pub fn with_max_waiting_runs(self, max_waiting_runs: Option<WaitingRuns>) -> Self {
        Self { max_waiting_runs, ..self }
    }

    /// The most tokens that events may hold at once, each event counted by its cost: 1 to 10,000.
    pub fn max_in_flight(self) -> u32 {
        self.max_in_flight.get()
    }

    /// How long a token may be held without a heartbeat, in seconds: 10 to 43,200.
    pub fn lease_seconds(self) -> u32 {
        self.lease_seconds.get()
    }

    /// What becomes of a token whose lease ran out.
    pub fn on_expiry(self) -> OnExpiry {
        self.on_expiry
    }

    /// How fast events may begin; `None`: as fast as tokens allow.
    pub fn rate(self) -> Option<RateLimit> {
        self.rate
    }

    /// How many runs may wait in its line; `None`: any number.
    pub fn max_waiting_runs(self) -> Option<u32> {
        self.max_waiting_runs.map(WaitingRuns::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let says = |m, l| PolicyTerms::new(m, l).unwrap_err().to_string();
        assert_eq!(says(0, 60), "max_in_flight is 0; it must lie between 1 and 10000");
        assert_eq!(says(10_001, 60), "max_in_flight is 10001; it must lie between 1 and 10000");
        assert_eq!(says(1, 9), "lease_seconds is 9; it must lie between 10 and 43200");
        assert!(WaitingRuns::new(0).unwrap_err().to_string().starts_with("max_waiting_runs is 0"));
        let terms = PolicyTerms::new(1, 60).unwrap().with_max_waiting_runs(WaitingRuns::new(5).ok());
        assert_eq!(terms.max_waiting_runs(), Some(5));
    }
}
