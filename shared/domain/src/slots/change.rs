//! What a transition changes: each change is one part of the update of a write.

use chrono::{DateTime, Utc};

use super::{Compaction, Lease, LeaseId, NewLease, OutcomeEntry, PackRef, Range, Refill, Share, SlotGroup};

/// A change of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// The group gets another share.
    SetShare(Share),
    /// A slot gets a lease for the event that lies `offset` behind the head of the range, under the fencing number that
    /// lies as far behind the next one. What held the slot before is gone.
    Assign {
        /// The number of the slot, from 0.
        slot: u32,
        /// How far behind, from 0: in events, and in fencing numbers.
        offset: u32,
        /// How many tokens the event takes.
        cost: u32,
        /// When the lease ends, and which write gives it.
        lease: NewLease,
    },
    /// The next events of the range, so many, and as many fencing numbers, are taken.
    Advance(u32),
    /// A slot gets a lease for an event of a pack, under the fencing number that lies `offset` behind the next one. What
    /// held the slot before is gone.
    Place {
        /// The number of the slot, from 0.
        slot: u32,
        /// How far behind, from 0, in fencing numbers.
        offset: u32,
        /// The number of the pack, and that of the event in it.
        event: (u32, u32),
        /// How many tokens the event takes.
        cost: u32,
        /// When the lease ends, and which write gives it.
        lease: NewLease,
    },
    /// So many fencing numbers are taken.
    TakeFences(u32),
    /// Something was taken that counts as a refill: a refill that was seen before it is refused.
    CountRefill,
    /// A slot's event gets another lease, under the next fencing number.
    Renew {
        /// The number of the slot, from 0.
        slot: u32,
        /// Which delivery of the event it is for, from 1.
        attempt: u8,
        /// When the lease ends, and which write gives it.
        lease: NewLease,
    },
    /// A delivery under a slot's lease was sent.
    NoteSent(u32),
    /// A slot's lease ends at this instant.
    SetEnd {
        /// The number of the slot, from 0.
        slot: u32,
        /// The instant that it ends at.
        ends_at: DateTime<Utc>,
    },
    /// A slot has no lease any more.
    Empty(u32),
    /// So many more tokens are held.
    Hold(u32),
    /// So many fewer tokens are held.
    Free(u32),
    /// Outcomes are kept behind those that are there.
    Record(Vec<OutcomeEntry>),
    /// These leases are remembered as the ones that were taken back last.
    Remember(Vec<u64>),
    /// A range of an entry of the line is being taken, under the next number.
    BeginRefill {
        /// The place of the entry in the line.
        entry: String,
    },
    /// The refill that had begun is over.
    EndRefill,
    /// A range is in place, with the number of its pack.
    Serve(Range, PackRef),
    /// What is said of the pack that has a number.
    SetPack(u32, PackRef),
    /// These pack numbers are not in use any more.
    ForgetPacks(Vec<u32>),
    /// Nothing is left of the range.
    DropRange,
    /// The outcomes are set apart, to be compacted under the next number.
    BeginCompaction,
    /// The outcomes that were set apart are in their packs' history.
    EndCompaction,
}

impl Change {
    /// Applies it. Like the update of a row it reads only the image from before the write.
    pub(super) fn apply(&self, before: &SlotGroup, after: &mut SlotGroup) {
        match self {
            Self::SetShare(share) => after.share = *share,
            Self::Assign { slot, offset, cost, lease } => {
                let Some(range) = before.range() else { return };
                let id = LeaseId {
                    slot: *slot,
                    fence: before.next_fence.saturating_add(u64::from(*offset)),
                    pack_number: range.pack_number,
                    index: range.next.saturating_add(*offset),
                    cost: *cost,
                };
                after.leases.insert(*slot, lease.of(id, 1));
            }
            Self::Advance(events) => {
                after.next_fence = before.next_fence.saturating_add(u64::from(*events));
                let Some(range) = before.range() else { return };
                let left = range.left.saturating_sub(*events);
                let next = range.next.saturating_add(*events);
                after.refill =
                    if left == 0 { Refill::Idle } else { Refill::Serving(Range { next, left, ..*range }) };
            }
            Self::Place { slot, offset, event: (pack_number, index), cost, lease } => {
                let fence = before.next_fence.saturating_add(u64::from(*offset));
                let (slot, pack_number, index, cost) = (*slot, *pack_number, *index, *cost);
                after.leases.insert(slot, lease.of(LeaseId { slot, fence, pack_number, index, cost }, 1));
            }
            Self::TakeFences(events) => {
                after.next_fence = before.next_fence.saturating_add(u64::from(*events));
            }
            Self::CountRefill => after.refills = before.refills.saturating_add(1),
            Self::Renew { slot, attempt, lease } => {
                let Some(held) = before.leases.get(slot) else { return };
                after
                    .leases
                    .insert(*slot, lease.of(LeaseId { fence: before.next_fence, ..held.id }, *attempt));
                after.next_fence = before.next_fence.saturating_add(1);
            }
            Self::NoteSent(slot) => {
                after.leases.entry(*slot).and_modify(|held| held.sent = true);
            }
            Self::SetEnd { slot, ends_at } => {
                after.leases.entry(*slot).and_modify(|held| held.ends_at = *ends_at);
            }
            Self::Empty(slot) => drop(after.leases.remove(slot)),
            Self::Hold(tokens) => after.held = before.held.saturating_add(*tokens),
            Self::Free(tokens) => after.held = before.held.saturating_sub(*tokens),
            Self::Record(entries) => after.outcomes.extend(entries),
            Self::Remember(fences) => after.reclaimed.clone_from(fences),
            Self::BeginRefill { entry } => {
                after.refill = Refill::Begun { entry: entry.clone() };
                after.refills = before.refills.saturating_add(1);
            }
            Self::EndRefill | Self::DropRange => after.refill = Refill::Idle,
            Self::Serve(range, pack) => {
                after.refill = Refill::Serving(*range);
                after.last_pack = range.pack_number;
                after.packs.insert(range.pack_number, pack.clone());
            }
            Self::SetPack(number, pack) => drop(after.packs.insert(*number, pack.clone())),
            Self::ForgetPacks(numbers) => numbers.iter().for_each(|number| drop(after.packs.remove(number))),
            Self::BeginCompaction => {
                after.compaction = Compaction::Begun(before.outcomes.clone());
                after.outcomes.clear();
                after.compactions = before.compactions.saturating_add(1);
            }
            Self::EndCompaction => after.compaction = Compaction::Idle,
        }
    }
}

impl NewLease {
    fn of(self, id: LeaseId, attempt: u8) -> Lease {
        Lease { id, ends_at: self.ends_at, write_id: self.write_id, attempt, sent: false }
    }
}
