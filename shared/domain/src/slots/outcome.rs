//! What came of an event that held a token.

/// What came of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The consumer said that it is done.
    Succeeded,
    /// The consumer said that it failed.
    Failed,
    /// Nobody released it, in any of its deliveries: each lease ran out.
    Expired,
    /// It could not be delivered: its target did not take it.
    Dead,
}

/// How an event came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ended {
    /// The event's number in its pack, from 0.
    pub index: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// Which delivery of it was the last one, from 1.
    pub attempts: u8,
}

/// An outcome that a slot group keeps until it is compacted into its pack's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutcomeEntry {
    /// The pack, as a number of [`super::SlotGroup::packs`].
    pub pack_number: u32,
    /// How the event ended.
    pub ended: Ended,
}
