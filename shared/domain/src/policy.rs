//! A client's throttling policy: how many of its events may be in flight, for how long each, and how fast they may begin.

use thiserror::Error;

use crate::ids::{ClientId, PolicyId};
use crate::limits::{LEASE_SECONDS, MAX_IN_FLIGHT, WAITING_RUNS};
use crate::rate_limit::RateLimit;
use crate::shares::SharePlan;
use crate::slots::{GroupKey, SlotGroup};

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
    /// How its limit is shared out at present.
    pub plan: SharePlan,
}

impl Policy {
    /// The limit that is in force, in tokens: 0 while the policy is paused.
    pub fn limit(&self) -> u32 {
        if self.paused { 0 } else { self.terms.max_in_flight }
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

    /// The policy that a slot group is of.
    pub fn of(group: &SlotGroup) -> Self {
        Self::of_key(&group.key)
    }

    /// The same, by the name of the group.
    pub fn of_key(key: &GroupKey) -> Self {
        Self::new(&key.client, &key.policy)
    }
}

/// What a policy says. Built only by [`PolicyTerms::new`] and what refines it, so always within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyTerms {
    max_in_flight: u32,
    lease_seconds: u32,
    on_expiry: OnExpiry,
    rate: Option<RateLimit>,
    max_waiting_runs: Option<u32>,
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

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// `max_in_flight` is 0 or beyond the limit.
    #[error(
        "max_in_flight is {value}; it must lie between 1 and {MAX_IN_FLIGHT} (pause the policy to let nothing through)"
    )]
    MaxInFlight {
        /// What was given, in tokens.
        value: u32,
    },
    /// `lease_seconds` is too short or too long.
    #[error(
        "lease_seconds is {value}; it must lie between {}, which one delivery may take, and {}",
        LEASE_SECONDS.start(),
        LEASE_SECONDS.end()
    )]
    LeaseSeconds {
        /// What was given, in seconds.
        value: u32,
    },
    /// `max_waiting_runs` is 0 or beyond the limit.
    #[error("max_waiting_runs is {value}; it must lie between {} and {}", WAITING_RUNS.start(), WAITING_RUNS.end())]
    WaitingRuns {
        /// What was given, in runs.
        value: u32,
    },
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
    /// # Ok::<(), tidegate_domain::policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::MaxInFlight`] or [`PolicyError::LeaseSeconds`] when that number lies outside its bounds.
    pub fn new(max_in_flight: u32, lease_seconds: u32) -> Result<Self, PolicyError> {
        if !(1..=MAX_IN_FLIGHT).contains(&max_in_flight) {
            return Err(PolicyError::MaxInFlight { value: max_in_flight });
        }
        if !LEASE_SECONDS.contains(&lease_seconds) {
            return Err(PolicyError::LeaseSeconds { value: lease_seconds });
        }
        Ok(Self {
            max_in_flight,
            lease_seconds,
            on_expiry: OnExpiry::Reclaim,
            rate: None,
            max_waiting_runs: None,
        })
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
    ///
    /// # Errors
    /// [`PolicyError::WaitingRuns`] when the bound lies outside its own.
    pub fn with_max_waiting_runs(self, max_waiting_runs: Option<u32>) -> Result<Self, PolicyError> {
        match max_waiting_runs.filter(|runs| !WAITING_RUNS.contains(runs)) {
            Some(value) => Err(PolicyError::WaitingRuns { value }),
            None => Ok(Self { max_waiting_runs, ..self }),
        }
    }

    /// The most tokens that events may hold at once, each event counted by its cost: 1 to 10,000.
    pub fn max_in_flight(self) -> u32 {
        self.max_in_flight
    }

    /// How long a token may be held without a heartbeat, in seconds: 10 to 43,200.
    pub fn lease_seconds(self) -> u32 {
        self.lease_seconds
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
        self.max_waiting_runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let says = |m, l| PolicyTerms::new(m, l).unwrap_err().to_string();
        let limits = "it must lie between 1 and 10000 (pause the policy to let nothing through)";
        assert_eq!(says(0, 60), format!("max_in_flight is 0; {limits}"));
        assert_eq!(says(10_001, 60), format!("max_in_flight is 10001; {limits}"));
        assert_eq!(
            says(1, 9),
            "lease_seconds is 9; it must lie between 10, which one delivery may take, and 43200"
        );
        let terms = PolicyTerms::new(1, 60).unwrap();
        assert!(
            terms
                .with_max_waiting_runs(Some(0))
                .unwrap_err()
                .to_string()
                .starts_with("max_waiting_runs is 0")
        );
        assert_eq!(terms.with_max_waiting_runs(Some(5)).unwrap().max_waiting_runs(), Some(5));
    }
}
