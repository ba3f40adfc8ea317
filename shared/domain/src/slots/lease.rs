//! A lease: one event's hold on the tokens of a slot.

use chrono::{DateTime, Utc};

use super::{Ended, Outcome, OutcomeEntry};

/// Names one lease of a slot group, and all that its holder was promised by it.
///
/// Invariant: no two leases of a group have the same fencing number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId {
    /// The slot, from 0.
    pub slot: u32,
    /// The fencing number: it rises with each lease of the group.
    pub fence: u64,
    /// The pack of the event, as a number of [`SlotGroup::packs`](super::SlotGroup::packs).
    pub pack_number: u32,
    /// The event's number in its pack, from 0.
    pub index: u32,
    /// How many tokens it takes.
    pub cost: u32,
}

/// A lease as its slot holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Which lease.
    pub id: LeaseId,
    /// When it ends, unless it is extended; kept to the millisecond.
    pub ends_at: DateTime<Utc>,
    /// The number of the write that gave it: whoever chose it knows its own write by it.
    pub write_id: u64,
    /// Which delivery of the event this is, from 1, not counting those before it went back to the line:
    /// [`SlotGroup::delivery_at`](super::SlotGroup::delivery_at) counts all.
    pub attempt: u8,
    /// Whether a delivery under it is known to have been sent. Noted of an event's last one only.
    pub sent: bool,
}

/// What leases get that a write gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NewLease {
    /// When they end.
    pub ends_at: DateTime<Utc>,
    /// A number that no other write has: when the reply to a write is lost and it is sent again, the second is refused,
    /// and only the row can say that the first took place.
    pub write_id: u64,
}

/// The end of one lease: of exactly this one, or of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseEnd {
    /// The lease that ends.
    pub lease: LeaseId,
    /// Which delivery of its event it is at, from 1. Recorded with the outcome, and so a condition.
    pub attempt: u8,
    /// What came of the event.
    pub outcome: Outcome,
}

impl LeaseEnd {
    /// What is recorded of it.
    pub fn entry(&self) -> OutcomeEntry {
        let Self { lease: LeaseId { pack_number, index, .. }, attempt, outcome } = *self;
        OutcomeEntry { pack_number, first: Ended { index, outcome, attempts: attempt }, events: 1 }
    }
}
