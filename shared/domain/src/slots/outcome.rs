//! What came of an event that held a token.

use std::ops::Range;

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

/// Outcomes that a slot group keeps until they are compacted into their pack's history: of events that follow one another and
/// ended alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutcomeEntry {
    /// The pack, as a number of [`super::SlotGroup::packs`].
    pub pack_number: u32,
    /// How the first of the events ended.
    pub first: Ended,
    /// How many events there are, at least 1.
    pub events: u32,
}

impl OutcomeEntry {
    /// Outcomes of events that ended in one write, as few as say it.
    pub(super) fn all(ends: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut ends: Vec<Self> = ends.into_iter().collect();
        ends.sort_by_key(|end| (end.pack_number, end.first.index));
        let mut entries: Vec<Self> = Vec::with_capacity(ends.len());
        for end in ends {
            match entries.last_mut().filter(|last| last.goes_on_with(&end)) {
                Some(last) => last.events = last.events.saturating_add(end.events),
                None => entries.push(end),
            }
        }
        entries
    }

    fn goes_on_with(&self, next: &Self) -> bool {
        let index = self.first.index.saturating_add(self.events);
        (self.pack_number, Ended { index, ..self.first }) == (next.pack_number, next.first)
    }

    /// The events' numbers in their pack.
    pub fn numbers(&self) -> Range<u32> {
        self.first.index..self.first.index.saturating_add(self.events)
    }

    /// How each of the events ended.
    pub fn each(&self) -> impl Iterator<Item = Ended> + use<> {
        let first = self.first;
        self.numbers().map(move |index| Ended { index, ..first })
    }
}
