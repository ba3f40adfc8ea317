//! A client's throttling policy: how many of its events may be in flight, and for how long each.

use std::ops::RangeInclusive;

use thiserror::Error;

use crate::ids::{ClientId, PolicyId};
use crate::limits::{LEASE_SECONDS, MAX_IN_FLIGHT, SLOTS_PER_GROUP};

/// A throttling policy.
///
/// Invariant (I1): at no instant do more than `max_in_flight` live leases exist for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub id: PolicyId,
    /// Rises by one with each change; starts at 1.
    pub revision: u32,
    /// The limit and the lease.
    pub terms: PolicyTerms,
}

/// What a policy says. Built only by [`PolicyTerms::new`], so always within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyTerms {
    max_in_flight: u32,
    lease_seconds: u32,
}

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// `max_in_flight` is 0 or beyond the limit.
    #[error("max_in_flight is {value}; it must lie between 1 and {MAX_IN_FLIGHT}")]
    MaxInFlight {
        /// What was given.
        value: u32,
    },
    /// `lease_seconds` is too short or too long.
    #[error("lease_seconds is {value}; it must lie between {} and {}", LEASE_SECONDS.start(), LEASE_SECONDS.end())]
    LeaseSeconds {
        /// What was given.
        value: u32,
    },
}

impl PolicyTerms {
    /// Checks the numbers of a policy.
    ///
    /// # Errors
    /// Names the number that lies outside its bounds.
    pub fn new(max_in_flight: u32, lease_seconds: u32) -> Result<Self, PolicyError> {
        if !(1..=MAX_IN_FLIGHT).contains(&max_in_flight) {
            return Err(PolicyError::MaxInFlight { value: max_in_flight });
        }
        if !LEASE_SECONDS.contains(&lease_seconds) {
            return Err(PolicyError::LeaseSeconds { value: lease_seconds });
        }
        Ok(Self { max_in_flight, lease_seconds })
    }

    /// The most events in flight at once.
    pub fn max_in_flight(self) -> u32 {
        self.max_in_flight
    }

    /// How long a token may be held without a heartbeat, in seconds.
    pub fn lease_seconds(self) -> u32 {
        self.lease_seconds
    }

    /// How many slot groups share the limit.
    pub fn groups(self) -> u32 {
        self.max_in_flight.div_ceil(SLOTS_PER_GROUP)
    }

    /// The share of the limit that slot group `group` holds; 0 for a group that the policy no longer has.
    ///
    /// Invariant: the shares of all groups add up to `max_in_flight`, none passes `SLOTS_PER_GROUP`, and none falls when
    /// the limit rises. So what a group holds under an old limit never meets a new group's grants above the higher one.
    pub fn share(self, group: u32) -> u32 {
        self.max_in_flight.saturating_sub(group.saturating_mul(SLOTS_PER_GROUP)).min(SLOTS_PER_GROUP)
    }

    /// The numbers of its groups.
    pub fn group_numbers(self) -> RangeInclusive<u32> {
        0..=self.groups() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_add_up_to_the_limit_and_fit_their_groups() {
        for max in (1..200).chain([999, 1_000, MAX_IN_FLIGHT]) {
            let terms = PolicyTerms::new(max, 60).unwrap();
            let shares: Vec<u32> = terms.group_numbers().map(|g| terms.share(g)).collect();
            assert_eq!(shares.iter().sum::<u32>(), max);
            assert!(shares.iter().all(|s| (1..=SLOTS_PER_GROUP).contains(s)), "{max}: {shares:?}");
            assert_eq!(terms.share(terms.groups()), 0);
        }
    }

    /// I1 across a change: 12 holders of group 0 beside the grants of a group that a limit of 13 adds.
    #[test]
    fn no_share_falls_when_the_limit_rises() {
        let share = |max, group| PolicyTerms::new(max, 60).unwrap().share(group);
        for max in 1..100 {
            assert!((0..10).all(|group| share(max, group) <= share(max + 1, group)), "{max}");
        }
    }

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let says = |m, l| PolicyTerms::new(m, l).unwrap_err().to_string();
        assert_eq!(says(0, 60), "max_in_flight is 0; it must lie between 1 and 10000");
        assert_eq!(says(10_001, 60), "max_in_flight is 10001; it must lie between 1 and 10000");
        assert_eq!(says(1, 4), "lease_seconds is 4; it must lie between 5 and 43200");
    }
}
