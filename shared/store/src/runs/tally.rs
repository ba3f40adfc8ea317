//! How far a run has come, in numbers.

use tidegate_domain::occurrence::Occurrence;

use tidegate_domain::slots::Outcome;

/// How many events of a run have come to which end. Each event counts once.
///
/// ```
/// use tidegate_domain::slots::Outcome;
/// use tidegate_store::runs::Tally;
///
/// let tally = Tally::of([Outcome::Succeeded, Outcome::Succeeded, Outcome::Dead]);
/// assert_eq!((tally.succeeded, tally.dead), (2, 1));
/// assert_eq!((tally.total(), tally.unsuccessful()), (3, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Delivered without a policy: nobody releases them.
    pub delivered: u32,
    /// Released as succeeded.
    pub succeeded: u32,
    /// Released as failed.
    pub failed: u32,
    /// Never released in any of their deliveries: the last lease ran out.
    pub expired: u32,
    /// Could not be delivered: their target did not take them.
    pub dead: u32,
    /// Never granted a token, because the run was stopped.
    pub left_out: u32,
}

impl Tally {
    /// Counts outcomes. Those of throttled events only: `delivered` and `left_out` stay 0.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            *match outcome {
                Outcome::Succeeded => &mut tally.succeeded,
                Outcome::Failed => &mut tally.failed,
                Outcome::Expired => &mut tally.expired,
                Outcome::Dead => &mut tally.dead,
            } += 1;
        }
        tally
    }

    /// Its counts, by the attributes of a run's row that keep them.
    pub(crate) fn counts(self) -> [(&'static str, u32); 6] {
        [
            ("delivered", self.delivered),
            ("succeeded", self.succeeded),
            ("failed", self.failed),
            ("expired", self.expired),
            ("dead", self.dead),
            ("left_out", self.left_out),
        ]
    }

    /// That of an occurrence of which nothing is delivered.
    pub(super) fn none_of(occurrence: &Occurrence) -> Self {
        Self { left_out: occurrence.terms.count.get(), ..Self::default() }
    }

    /// The sum of two tallies, end by end.
    pub fn plus(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
            expired: self.expired + other.expired,
            dead: self.dead + other.dead,
            left_out: self.left_out + other.left_out,
        }
    }

    /// The tally without ends that were taken back.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            delivered: self.delivered.saturating_sub(other.delivered),
            succeeded: self.succeeded.saturating_sub(other.succeeded),
            failed: self.failed.saturating_sub(other.failed),
            expired: self.expired.saturating_sub(other.expired),
            dead: self.dead.saturating_sub(other.dead),
            left_out: self.left_out.saturating_sub(other.left_out),
        }
    }

    /// How many events have come to an end.
    pub fn total(self) -> u32 {
        self.delivered + self.unsuccessful() + self.succeeded + self.left_out
    }

    /// How many were given to a consumer, or were to be, and did not succeed.
    pub fn unsuccessful(self) -> u32 {
        self.failed + self.expired + self.dead
    }
}
