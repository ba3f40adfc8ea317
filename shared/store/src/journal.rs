//! What runs and events came to, noted as it is written, for a deployment that publishes it.
//!
//! Kept in memory until somebody takes it, and bounded: what does not fit is counted and lost. Without a journal nothing is noted.
//!
//! Deliberately absent: how it is published, which is the engine's, and what is known of an event by its delivery or its release
//! alone: the engine notes that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, PolicyId, RunId};
use tidegate_domain::limits::JOURNAL_ENTRIES;
use tidegate_domain::occurrence::Occurrence;

use crate::{Create, Store};

/// What runs and events came to, and nobody has taken.
#[derive(Debug, Default)]
pub struct Journal(Mutex<Noted>);

/// What was noted since it was taken last.
#[derive(Debug, Default)]
pub struct Noted {
    /// The first of them, in their order; at most [`JOURNAL_ENTRIES`].
    pub entries: Vec<Entry>,
    /// How many more there were.
    pub lost: u64,
}

/// What a run or an event came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The client whose it is.
    pub client: ClientId,
    /// The run, or the run of the event.
    pub run: RunId,
    /// The policy that throttles it; `None`: nothing does, or whoever notes it does not know.
    pub policy: Option<PolicyId>,
    /// What it came to.
    pub step: Step,
    /// Why; `None` where there is nothing to say.
    pub reason: Option<String>,
    /// When that was; `None`: when the entry is taken.
    pub at: Option<DateTime<Utc>>,
}

/// What a run or an event came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A run is there, of so many events.
    Launched {
        /// Its events.
        count: u32,
    },
    /// Launches were not made, of which the run is the first.
    Skipped {
        /// How many.
        launches: u32,
        /// The last of them.
        until: DateTime<Utc>,
    },
    /// Nothing more of a run is delivered.
    Stopped,
    /// All events of a run have come to an end.
    Finished {
        /// Its events.
        count: u32,
        /// How many to which.
        ends: Ends,
        /// How many ends were taken back before, since their events were sent again.
        redriven: u32,
    },
    /// A run, or what should have been one, was not over in time.
    Overdue,
    /// An event.
    Event {
        /// Its number in the run, from 0.
        index: u32,
        /// Which delivery it is of, from 1.
        attempt: u8,
        /// What it came to.
        end: EventStep,
    },
}

/// To which ends how many events of a run have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Released as succeeded.
    pub succeeded: u32,
    /// Released as failed.
    pub failed: u32,
    /// Never released.
    pub expired: u32,
    /// Not taken by their target.
    pub dead: u32,
    /// Never admitted, since the run was stopped.
    pub left_out: u32,
}

/// What an event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventStep {
    /// Its target has it.
    Delivered,
    /// It was released as succeeded.
    Succeeded,
    /// It was released as failed.
    Failed,
    /// Its last lease ran out.
    Expired,
    /// Its target does not take it.
    Dead,
}

impl Journal {
    /// Takes what was noted.
    pub fn take(&self) -> Noted {
        std::mem::take(&mut *self.noted())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.noted().entries.len()
    }

    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        let noted = self.noted();
        noted.entries.is_empty() && noted.lost == 0
    }

    /// Notes what something came to.
    pub fn note(&self, entry: Entry) {
        let mut noted = self.noted();
        match noted.entries.len() < JOURNAL_ENTRIES {
            true => noted.entries.push(entry),
            false => noted.lost = noted.lost.saturating_add(1),
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// What the run of an occurrence came to.
    pub fn of(occurrence: &Occurrence, step: Step, at: DateTime<Utc>) -> Self {
        Self {
            client: occurrence.client.clone(),
            run: occurrence.run_id(),
            policy: occurrence.terms.policy.clone(),
            step,
            reason: None,
            at: Some(at),
        }
    }

    /// That a run of an occurrence is there.
    pub(crate) fn launched(occurrence: &Occurrence, at: DateTime<Utc>) -> Self {
        Self::of(occurrence, Step::Launched { count: occurrence.terms.count.get() }, at)
    }

    /// The same, and why.
    #[must_use]
    pub fn because(self, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..self }
    }

    /// What an event came to by a delivery.
    pub fn of_event(
        (client, policy): (&ClientId, Option<&PolicyId>),
        event: &EventId,
        (end, attempt): (EventStep, u8),
        at: DateTime<Utc>,
    ) -> Self {
        Self {
            client: client.clone(),
            run: event.run().clone(),
            policy: policy.cloned(),
            step: Step::Event { index: event.index(), attempt, end },
            reason: None,
            at: Some(at),
        }
    }
}

impl Store {
    /// The same tables, and what is written of runs is noted in `journal`, if there is one.
    #[must_use]
    pub fn with_journal(self, journal: Option<Arc<Journal>>) -> Self {
        Self { journal, ..self }
    }

    /// Notes what something came to, where there is a journal. Otherwise `entry` is not made.
    pub fn note(&self, entry: impl FnOnce() -> Entry) {
        if let Some(journal) = &self.journal {
            journal.note(entry());
        }
    }

    /// Notes what a write created, unless it was there before, and passes on which it was.
    pub(crate) fn noting(&self, created: Create, entry: impl FnOnce() -> Entry) -> Create {
        if created == Create::Done {
            self.note(entry);
        }
        created
    }

    /// Whether what things come to is noted.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let journal = Journal::default();
        let entry = Entry {
            client: "acme".parse().unwrap(),
            run: "a.1.1795263000".parse().unwrap(),
            policy: None,
            step: Step::Stopped,
            reason: None,
            at: None,
        };
        assert!(journal.is_empty());
        (0..JOURNAL_ENTRIES + 2).for_each(|_| journal.note(entry.clone()));
        let noted = journal.take();
        assert_eq!((noted.entries.len(), noted.lost), (JOURNAL_ENTRIES, 2));
        assert!(journal.is_empty() && journal.take().entries.is_empty());
    }
}
