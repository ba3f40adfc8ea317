//! A set of single instants: when an `at` trigger launches.

use chrono::{DateTime, Utc};
use thiserror::Error;

use super::ceil_second;
use super::firing::Firing;
use super::window::Window;
use crate::limits::AT_INSTANTS;

/// One or more instants, each once, in order, on whole seconds: at most [`AT_INSTANTS`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instants(Vec<DateTime<Utc>>);

/// Why a list of instants is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InstantsError {
    /// There is no instant.
    #[error("'at' is an empty list: give one instant or more")]
    Empty,
    /// More than [`AT_INSTANTS`], duplicates apart.
    #[error("'at' has {found} different instants; {AT_INSTANTS} is the most: spread them over several jobs")]
    TooMany {
        /// How many different ones there are.
        found: usize,
    },
}

impl Instants {
    /// A set of instants; duplicates are dropped. An instant within a second is rounded up: nothing is early.
    ///
    /// # Errors
    /// [`InstantsError::Empty`] when there is none, [`InstantsError::TooMany`] when there are more than
    /// [`AT_INSTANTS`].
    pub fn new(instants: impl IntoIterator<Item = DateTime<Utc>>) -> Result<Self, InstantsError> {
        let whole = |at: DateTime<Utc>| {
            let second = ceil_second(at);
            DateTime::from_timestamp(second, 0).unwrap_or(at)
        };
        let mut instants: Vec<_> = instants.into_iter().map(whole).collect();
        instants.sort_unstable();
        instants.dedup();
        match instants.len() {
            0 => Err(InstantsError::Empty),
            found if found > AT_INSTANTS => Err(InstantsError::TooMany { found }),
            _ => Ok(Self(instants)),
        }
    }

    /// A single instant, rounded up to a whole second.
    pub fn one(instant: DateTime<Utc>) -> Self {
        Self::new([instant]).unwrap_or_else(|_| Self(vec![instant]))
    }

    /// The instants, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = DateTime<Utc>> + '_ {
        self.0.iter().copied()
    }

    /// The earliest.
    pub fn first(&self) -> DateTime<Utc> {
        self.0.first().copied().unwrap_or_default()
    }

    /// The latest.
    pub fn last(&self) -> DateTime<Utc> {
        self.0.last().copied().unwrap_or_default()
    }

    /// The instant of a set of one; `None` of a larger set.
    pub fn only(&self) -> Option<DateTime<Utc>> {
        match self.0[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether an instant is one of them.
    pub fn contains(&self, instant: DateTime<Utc>) -> bool {
        self.0.binary_search(&instant).is_ok()
    }

    /// The launches of those in a window, in order of time.
    pub fn firings(&self, window: Window) -> impl Iterator<Item = Firing> + '_ {
        let inside = self.iter().filter(move |at| window.contains(*at));
        inside.map(Firing::plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn a_set_is_sorted_without_duplicates_and_never_early() {
        let late = second(20) + chrono::TimeDelta::milliseconds(1);
        let set = Instants::new([second(30), late, second(10), second(30)]).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [second(10), second(21), second(30)]);
        assert_eq!((set.first(), set.last(), set.only()), (second(10), second(30), None));
        assert!(set.contains(second(21)) && !set.contains(second(20)));
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert_eq!(Instants::new([]), Err(InstantsError::Empty));
        let many = (0..=AT_INSTANTS as i64).map(second);
        assert_eq!(Instants::new(many), Err(InstantsError::TooMany { found: AT_INSTANTS + 1 }));
    }
}
