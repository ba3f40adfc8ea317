//! Slot groups: where a policy's tokens exist. A pure state machine.
//!
//! A policy's limit is shared out to slot groups. A group holds its share of it (`cap`), a lease for each token that is
//! taken, and a range of events that wait. [`Transition`] is what a write does: which clauses must hold, what changes,
//! and what follows. A database performs it as one conditional write on one row; [`SlotGroup::after`] performs it in
//! memory. Both come to the same image.
//!
//! Invariants: a token is a lease of a slot and nothing else; `held` is the sum of the costs of the leases; a lease is
//! given only while `held` stays within `cap`; the fencing number rises with each lease; an event leaves the range once.
//!
//! Deliberately absent: any decision about whom to serve next, any clock, and how a row is written.

mod change;
mod clause;
mod group;
mod lease;
mod outcome;
mod repair;
mod transition;

pub use change::Change;
pub use clause::Clause;
pub use group::{Compaction, GroupKey, PackRef, Range, Refill, Share, SlotGroup};
pub use lease::{Lease, LeaseEnd, LeaseId, NewLease};
pub use outcome::{Ended, Outcome, OutcomeEntry};
pub use repair::Epoch;
pub use transition::{Follow, Transition};

#[cfg(test)]
mod tests;
