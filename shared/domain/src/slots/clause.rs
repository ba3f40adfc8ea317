//! What must hold for a transition: each clause is one part of the condition of a write.

use chrono::{DateTime, Utc};

use super::{Compaction, LeaseId, PackRef, Range, Refill, SlotGroup};

/// A clause of a condition: what a transition asks of the group that it acts on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Clause {
    /// The lease is the present one of its slot.
    LeaseIs(LeaseId),
    /// The lease of a slot is at this delivery of its event.
    AttemptIs {
        /// The number of the slot, from 0.
        slot: u32,
        /// The delivery, from 1.
        attempt: u8,
    },
    /// The lease of a slot ends at this instant: it was not extended since.
    LeaseEndsAt {
        /// The number of the slot, from 0.
        slot: u32,
        /// The instant that it was seen to end at.
        ends_at: DateTime<Utc>,
    },
    /// No lease has the slot.
    SlotIsFree(u32),
    /// At least so many events are left of the range.
    RangeHas(u32),
    /// Each event of the range takes so many tokens.
    RangeCosts(u32),
    /// The range may be granted from at this instant.
    RangeIsOpenAt(DateTime<Utc>),
    /// The range is exactly this one.
    RangeIs(Range),
    /// A number stands for exactly this pack.
    PackIs(u32, PackRef),
    /// No range is left, and none is being taken.
    NoRefill,
    /// A range is being taken.
    RefillBegun,
    /// So many refills have begun.
    RefillsAre(u64),
    /// No more is held than the share allows.
    WithinShare,
    /// The share is this many tokens.
    CapIs(u32),
    /// No more tokens are held than this; none at all below 0.
    HeldIsAtMost(i64),
    /// The policy has no rate.
    Unrated,
    /// The share follows from an earlier plan.
    PlanIsBefore(u64),
    /// No outcomes are being compacted.
    NoCompaction,
    /// Outcomes are being compacted.
    CompactionBegun,
    /// So many compactions have begun.
    CompactionsAre(u64),
}

impl Clause {
    /// Whether it holds of a group.
    pub fn holds(&self, group: &SlotGroup) -> bool {
        let lease = |slot: &u32| group.leases.get(slot);
        let range = |holds: &dyn Fn(&Range) -> bool| group.range().is_some_and(holds);
        match self {
            Self::LeaseIs(id) => group.holds(id),
            Self::AttemptIs { slot, attempt } => lease(slot).is_some_and(|held| held.attempt == *attempt),
            Self::LeaseEndsAt { slot, ends_at } => lease(slot).is_some_and(|held| held.ends_at == *ends_at),
            Self::SlotIsFree(slot) => lease(slot).is_none(),
            Self::RangeHas(events) => range(&|range| range.left >= *events),
            Self::RangeCosts(cost) => range(&|range| range.cost == *cost),
            Self::RangeIsOpenAt(now) => range(&|range| range.deadline.is_none_or(|deadline| deadline > *now)),
            Self::RangeIs(expected) => range(&|range| range == expected),
            Self::PackIs(number, pack) => group.packs.get(number) == Some(pack),
            Self::NoRefill => group.refill == Refill::Idle,
            Self::RefillBegun => group.refilling().is_some(),
            Self::RefillsAre(number) => group.refills == *number,
            Self::WithinShare => group.held <= group.share.cap,
            Self::CapIs(cap) => group.share.cap == *cap,
            Self::HeldIsAtMost(most) => i64::from(group.held) <= *most,
            Self::Unrated => !group.share.rated,
            Self::PlanIsBefore(number) => group.share.plan < *number,
            Self::NoCompaction => group.compaction == Compaction::Idle,
            Self::CompactionBegun => group.compaction != Compaction::Idle,
            Self::CompactionsAre(number) => group.compactions == *number,
        }
    }
}
