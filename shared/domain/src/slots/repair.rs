//! What a repair changes of a slot group: after a restore, its numbers begin beyond all that were given before, and what it
//! holds of packs that are gone is let go.

use super::{Compaction, OutcomeEntry, Refill, SlotGroup};
use crate::pack::PackId;

/// Fencing numbers of one millisecond: more than a group can give, which is some 12 in each of 1,000 writes a second.
const FENCES_PER_MS: u64 = 16;

/// What numbers of slot groups begin at after a repair, from the clock: greater than every number that was given before,
/// those included that no table knows any more.
///
/// ```
/// use tidegate_domain::slots::Epoch;
///
/// let (earlier, later) = (Epoch::from_millis(1_000), Epoch::from_millis(1_001));
/// assert!(earlier.fence() + 15 < later.fence() && earlier.compaction() < later.compaction());
/// assert_eq!(Epoch::from_millis(-5), Epoch::from_millis(0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch that begins at an instant, in milliseconds since 1970; the first one before that.
    pub fn from_millis(millis: i64) -> Self {
        Self(u64::try_from(millis).unwrap_or_default())
    }

    /// The same as a number.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// The first fencing number of a group; at least 1.
    pub fn fence(self) -> u64 {
        self.0.saturating_mul(FENCES_PER_MS).max(1)
    }

    /// The number of compactions that a group counts as having begun.
    pub fn compaction(self) -> u64 {
        self.0
    }
}

impl SlotGroup {
    /// The group with numbers of an epoch: no lease and no compaction that it begins from now on has the number of one
    /// before, be it in another copy of its row.
    #[must_use]
    pub fn in_epoch(self, epoch: Epoch) -> Self {
        Self {
            next_fence: self.next_fence.max(epoch.fence()),
            compactions: self.compactions.max(epoch.compaction()),
            ..self
        }
    }

    /// The group without what it has of some packs: leases, range and outcomes, and their numbers.
    #[must_use]
    pub fn without(mut self, is_gone: impl Fn(&PackId) -> bool) -> Self {
        let gone: Vec<u32> =
            self.packs.iter().filter(|(_, known)| is_gone(&known.pack)).map(|(number, _)| *number).collect();
        let stays = |entry: &OutcomeEntry| !gone.contains(&entry.pack_number);
        self.leases.retain(|_, lease| !gone.contains(&lease.id.pack_number));
        self.held = self.leases.values().fold(0, |sum, lease| sum.saturating_add(lease.id.cost));
        self.outcomes.retain(stays);
        if let Compaction::Begun(entries) = &mut self.compaction {
            entries.retain(stays);
        }
        if self.range().is_some_and(|range| gone.contains(&range.pack_number)) {
            self.refill = Refill::Idle;
        }
        self.packs.retain(|number, _| !gone.contains(number));
        self
    }
}
