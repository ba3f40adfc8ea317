//! Fair shares within a policy: what waits for the values of one key of the payload takes turns.
//!
//! A job may say `fair_by`: where in its payload the key lies. All its events with one value there wait in one *lane* of their
//! policy's line, and slot groups take of the lanes in turn, so that nobody's backlog delays anybody else's events by more
//! than a turn. What says nothing waits in a lane of its own, together. Priority comes first: lanes are within one.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::limits::{FAIR_BY_BYTES, MAX_PRIORITY};
use crate::shard::hash_of;

/// The characters of a lane's name: in keys they sort before what separates their parts.
const LETTERS: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
/// How many of them a name has.
const LANE_LETTERS: usize = 8;

/// Names a lane: 40 bits of a hash of the value that its events have in common. Two values that share a name share a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane([u8; LANE_LETTERS]);

/// Where a pack stands in a line before its launch counts. Ranks are ordered as they are served: of one priority, the lanes
/// come before what has none.
///
/// ```
/// use tidegate_domain::fair::{Lane, Rank};
///
/// let rank = Rank { priority: 5, lane: Some(Lane::of("\"acme\"")) };
/// assert_eq!(rank.to_string().parse(), Ok(rank));
/// assert_eq!("5".parse(), Ok(Rank { priority: 5, lane: None }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rank {
    /// 0 is served first, 9 last.
    pub priority: u8,
    /// The lane that it waits in; `None`: the one of all that say nothing.
    pub lane: Option<Lane>,
}

/// What a job says of fairness: which key of its payload, and the lane of the value that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FairBy {
    /// Where the key lies.
    pub pointer: Pointer,
    /// The lane of its value.
    pub lane: Lane,
}

/// Where in a payload something lies: a JSON pointer (RFC 6901) of at most [`FAIR_BY_BYTES`] that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(String);

/// A text that is no JSON pointer, or none that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "fair_by is '{0}'; it must be a JSON pointer into the payload of 2 to {FAIR_BY_BYTES} bytes, such as /customer_id, in which \
     '~' is written as ~0 and '/' within a name as ~1"
)]
pub struct PointerError(String);

/// A text that names no lane or rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a place in a line is a priority, or a priority and a lane: 5.lane2345")]
pub struct RankError;

impl Lane {
    /// The lane of a value, by its JSON text.
    pub fn of(json: &str) -> Self {
        let hash = hash_of(json);
        let letter = |place: usize| {
            let bits = (hash >> (place.saturating_mul(5))) & 31;
            LETTERS.get(bits as usize).copied().unwrap_or(b'2')
        };
        Self(std::array::from_fn(letter))
    }
}

impl Pointer {
    /// Takes a text.
    ///
    /// # Errors
    /// [`PointerError`] when it is no JSON pointer, empty, or too long.
    pub fn new(text: &str) -> Result<Self, PointerError> {
        let is_escaped = text.split('~').skip(1).all(|rest| rest.starts_with('0') || rest.starts_with('1'));
        let is_pointer = text.starts_with('/') && is_escaped && (2..=FAIR_BY_BYTES).contains(&text.len());
        is_pointer.then(|| Self(text.to_owned())).ok_or_else(|| PointerError(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Rank {
    /// What waits at a priority and says nothing of fairness.
    pub fn of_all(priority: u8) -> Self {
        Self { priority, lane: None }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |rank: &Self| (rank.priority, rank.lane.is_none(), rank.lane);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl FromStr for Lane {
    type Err = RankError;

    fn from_str(text: &str) -> Result<Self, RankError> {
        let letters: [u8; LANE_LETTERS] = text.as_bytes().try_into().map_err(|_| RankError)?;
        letters.iter().all(|letter| LETTERS.contains(letter)).then_some(Self(letters)).ok_or(RankError)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.priority)?;
        self.lane.map_or(Ok(()), |lane| write!(f, ".{lane}"))
    }
}

impl FromStr for Rank {
    type Err = RankError;

    fn from_str(text: &str) -> Result<Self, RankError> {
        let (priority, lane) = match text.split_once('.') {
            Some((priority, lane)) => (priority, Some(lane.parse()?)),
            None => (text, None),
        };
        let priority = priority.parse().ok().filter(|priority| *priority <= MAX_PRIORITY).ok_or(RankError)?;
        Ok(Self { priority, lane })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lane_of_a_value_never_changes() {
        // Keys of rows depend on it.
        assert_eq!(
            ["\"acme\"", "17", "true"].map(|json| Lane::of(json).to_string()),
            ["udhbqtqw", "gdxhbq4c", "3xvkqw3d"]
        );
        let lanes: std::collections::BTreeSet<Lane> = (0..10_000).map(|i| Lane::of(&i.to_string())).collect();
        assert_eq!(lanes.len(), 10_000);
    }

    #[test]
    fn ranks_read_back_and_sort_by_priority_first() {
        let lane = Some(Lane::of("1"));
        for rank in [Rank { priority: 0, lane }, Rank { priority: 9, lane: None }] {
            assert_eq!(rank.to_string().parse(), Ok(rank));
        }
        for bad in ["", "10", "5.", "5.short", "5.lane23451", "5.LANE2345", "5.lane2345.x", "x.lane2345"] {
            assert!(bad.parse::<Rank>().is_err(), "{bad}");
        }
        let ranks = ["4", "5.lane2345", "5", "6.lane2345"].map(|rank| rank.parse::<Rank>().unwrap());
        assert!(ranks.is_sorted(), "{ranks:?}");
        // As keys of a line: a lane stands between what is more urgent and what is less.
        assert!(*"4|0" < *"5.lane2345|0" && *"5.lane2345|9" < *"5|0" && *"5|9" < *"6.lane2345|0");
    }

    #[test]
    fn a_pointer_names_a_key() {
        for good in ["/customer_id", "/a/b", "/0", "/~0~1"] {
            assert_eq!(Pointer::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "/", "customer_id", "/a~", "/a~2", &format!("/{}", "x".repeat(256))] {
            assert!(Pointer::new(bad).is_err(), "{bad}");
        }
    }
}
