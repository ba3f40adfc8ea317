//! Slot groups: where a policy's tokens exist, as entries of rows of at most 1 KB.
//!
//! A row holds a share of the limit (`cap`), the holders, and a leased range of the waiting run at the head of the
//! line. Releasing k events and handing their slots to the next k is one conditional update of one write unit.
//!
//! Invariants: a token is a slot entry and nothing else; `held` is the number of entries; a grant happens only while
//! `held` stays within `cap`; the fencing number `fc` rises with each lease; an index leaves the range exactly once.
//!
//! Deliberately absent: any decision about whom to serve next, and any clock.

mod ended;
mod image;
mod write;

pub use ended::Ended;
pub use image::{Held, Outcome, OutcomeEntry, Range, SlotGroup};
pub use write::{Change, NewLease, RangeTerms, SlotRelease};

use tidegate_domain::ids::{ClientId, PolicyId};

use crate::item::Key;

/// Names a slot group: a policy's share number `group`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// Whose policy.
    pub client: ClientId,
    /// Which policy.
    pub policy: PolicyId,
    /// Its number, from 0.
    pub group: u32,
}

impl GroupKey {
    pub(crate) fn key(&self) -> Key {
        Key::new(format!("{}|{}|{:04}", self.client, self.policy, self.group), "slots")
    }
}
