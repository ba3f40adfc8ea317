//! A slot group as it was read, or came back from a write.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::RunId;
use tidegate_domain::limits::SLOTS_PER_GROUP;

use super::{GroupKey, SlotRelease};
use crate::Result;
use crate::item::{Attributes, Item};
use crate::tables::Table;

/// The image of a slot group's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotGroup {
    /// Which group.
    pub key: GroupKey,
    /// The policy's revision that `cap` follows from.
    pub policy_revision: u32,
    /// Its share of the limit.
    pub cap: u32,
    /// How many slots are taken.
    pub held: u32,
    /// The taken slots, by slot number.
    pub slots: BTreeMap<u32, Held>,
    /// What is left of the range of the run that it serves.
    pub range: Range,
    /// The run numbers in use, and the runs that they stand for.
    pub runs: BTreeMap<u32, RunId>,
    /// The line entry that a range is being taken from; set until the range has arrived.
    pub wanted: Option<String>,
    /// Rises with each range that is asked for.
    pub grant: u64,
    /// What came of released events, not yet packed into their runs' history.
    pub outcomes: Vec<OutcomeEntry>,
    /// Those that are being packed: they no longer change until packing number `flush` is done.
    pub packing: Vec<OutcomeEntry>,
    /// Rises with each packing.
    pub flush: u64,
    /// The fencing number of the next lease: every number below it was given, none from it on.
    pub next_fence: u64,
}

/// One holder of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The event's number in its run.
    pub index: u32,
    /// The run, as a number of [`SlotGroup::runs`].
    pub run_number: u32,
    /// The fencing number of the lease.
    pub fence: u64,
    /// When the lease ends.
    pub lease_end: DateTime<Utc>,
    /// The fencing number whose release handed the slot on, 0 when nobody's did.
    pub handed_by: u64,
    /// Which delivery of the event this is, from 1.
    pub attempt: u8,
}

/// The part of a run that a group may still grant: `left` events from `next` on, of run number `run_number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The run.
    pub run_number: u32,
    /// The first event not yet granted.
    pub next: u32,
    /// How many are left.
    pub left: u32,
}

/// What came of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The consumer said that it is done.
    Succeeded,
    /// The consumer said that it failed.
    Failed,
    /// Nobody released it, in any of its deliveries.
    Expired,
    /// It could not be delivered.
    Dead,
}

impl Outcome {
    pub(crate) fn code(self) -> char {
        match self {
            Self::Succeeded => 's',
            Self::Failed => 'f',
            Self::Expired => 'x',
            Self::Dead => 'd',
        }
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        [Self::Succeeded, Self::Failed, Self::Expired, Self::Dead]
            .into_iter()
            .find(|o| code.len() == 1 && code.starts_with(o.code()))
    }
}

/// An outcome that waits to be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeEntry {
    /// The run, as a number of [`SlotGroup::runs`].
    pub run_number: u32,
    /// The event's number in its run.
    pub index: u32,
    /// What came of it.
    pub outcome: Outcome,
}

impl OutcomeEntry {
    pub(crate) fn encode(self) -> String {
        format!("{}.{}{}", self.run_number, self.index, self.outcome.code())
    }

    fn decode(text: &str) -> Option<Self> {
        let (run_number, rest) = text.split_once('.')?;
        let (index, code) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
        Some(Self {
            run_number: run_number.parse().ok()?,
            index: index.parse().ok()?,
            outcome: Outcome::from_code(code)?,
        })
    }
}

impl SlotGroup {
    /// The slots that are free, lowest first.
    pub fn free_slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..SLOTS_PER_GROUP).filter(|slot| !self.slots.contains_key(slot))
    }

    /// How many more events may be granted now: what the share has room for, whatever the line holds.
    pub fn room(&self) -> u32 {
        self.cap.saturating_sub(self.held)
    }

    /// Whether nothing is held, left to grant, being taken or waiting to be packed.
    pub fn is_idle(&self) -> bool {
        self.held == 0
            && self.range.left == 0
            && self.wanted.is_none()
            && self.outcomes.is_empty()
            && self.packing.is_empty()
    }

    /// Whether a lease is the present one of its slot.
    pub fn holds(&self, lease: &SlotRelease) -> bool {
        let key = (lease.fence, lease.run_number, lease.index);
        self.slots.get(&lease.slot).is_some_and(|held| (held.fence, held.run_number, held.index) == key)
    }

    /// Whether the group has events of a run left to grant.
    pub fn serves(&self, run: &RunId) -> bool {
        self.range.left > 0 && self.run(self.range.run_number) == Some(run)
    }

    /// The run that a number of this group stands for.
    pub fn run(&self, number: u32) -> Option<&RunId> {
        self.runs.get(&number)
    }

    /// The run numbers that nothing of the group refers to any more.
    pub(crate) fn stale_runs(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.keys().copied().filter(|number| {
            *number != self.range.run_number
                && !self.slots.values().any(|held| held.run_number == *number)
                && !self.outcomes.iter().chain(&self.packing).any(|entry| entry.run_number == *number)
        })
    }

    pub(crate) fn read(key: &GroupKey, row: &Attributes) -> Result<Self> {
        let item = Item::new(Table::Policies, row);
        let mut slots = BTreeMap::new();
        for slot in 0..SLOTS_PER_GROUP {
            if let Some(fence) = item.find_number(&format!("f{slot}"))? {
                slots.insert(slot, read_held(item, slot, fence)?);
            }
        }
        let mut runs = BTreeMap::new();
        for name in item.names() {
            if let Some(run_number) = name.strip_prefix('x').and_then(|n| n.parse().ok()) {
                runs.insert(run_number, item.id(name)?);
            }
        }
        let decode =
            |text| OutcomeEntry::decode(text).ok_or_else(|| item.corrupt(format!("outcome '{text}'")));
        let entries = |name| item.texts(name).into_iter().map(decode).collect::<Result<Vec<_>>>();
        Ok(Self {
            key: key.clone(),
            policy_revision: item.number("pr")?,
            cap: item.number("cap")?,
            held: item.number("held")?,
            slots,
            range: Range {
                run_number: item.number("rn")?,
                next: item.number("nx")?,
                left: item.number("lf")?,
            },
            runs,
            wanted: item.find_text("want").map(str::to_owned),
            grant: item.number("gs")?,
            outcomes: entries("oc")?,
            packing: entries("pk_oc")?,
            flush: item.number("fs")?,
            next_fence: item.number("fc")?,
        })
    }
}

fn read_held(item: Item<'_>, slot: u32, fence: u64) -> Result<Held> {
    Ok(Held {
        index: item.number(&format!("i{slot}"))?,
        run_number: item.number(&format!("r{slot}"))?,
        fence,
        lease_end: item.instant_ms(&format!("e{slot}"))?,
        handed_by: item.number_or(&format!("p{slot}"), 0)?,
        attempt: item.number_or(&format!("t{slot}"), 1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_entry_reads_back_and_a_broken_one_does_not() {
        for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Expired, Outcome::Dead] {
            let entry = OutcomeEntry { run_number: 3, index: 999_999, outcome };
            assert_eq!(OutcomeEntry::decode(&entry.encode()), Some(entry));
        }
        for broken in ["", "3", "3.", "3.1", "3.1q", "x.1s", "3.é"] {
            assert_eq!(OutcomeEntry::decode(broken), None, "{broken}");
        }
    }
}
