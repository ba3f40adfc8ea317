//! A slot group as it was read, or came back from a write.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::RunId;
use tidegate_domain::limits::SLOTS_PER_GROUP;
use tidegate_domain::token::Token;

use super::{Ended, GroupKey, SlotRelease};
use crate::Result;
use crate::item::{Attributes, Item};
use crate::tables::Table;

/// Behind the id of a run whose end somebody waits for.
pub(super) const WATCHED: char = '!';

/// The image of a slot group's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotGroup {
    /// Which group.
    pub key: GroupKey,
    /// The number of the plan that `cap` follows from.
    pub plan: u64,
    /// How many groups that plan has.
    pub groups: u32,
    /// The limit that they share: 0 while their policy is paused.
    pub limit: u32,
    /// Its share of the limit, in tokens.
    pub cap: u32,
    /// How many tokens are taken.
    pub held: u32,
    /// Its policy has a rate: no slot is handed on without leave.
    pub rated: bool,
    /// The taken slots, by slot number.
    pub slots: BTreeMap<u32, Held>,
    /// What is left of the range of the run that it serves.
    pub range: Range,
    /// The run numbers in use, and the runs that they stand for.
    pub runs: BTreeMap<u32, RunId>,
    /// Those whose end somebody waits for: their outcomes are packed without delay.
    pub watched: BTreeSet<u32>,
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
    /// The fencing numbers of the leases that were taken back last.
    pub reclaimed: Vec<u64>,
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
    /// The mark of the write that gave the slot its lease: whoever chose it knows its own write by it.
    pub mark: u64,
    /// Which delivery of the event this is, from 1: repeats under one lease count, once each is under way.
    pub attempt: u8,
    /// How many tokens it takes.
    pub cost: u32,
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
    /// How many tokens each event takes.
    pub cost: u32,
    /// None is granted from then on.
    pub deadline: Option<DateTime<Utc>>,
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
    /// How the event ended.
    pub ended: Ended,
}

impl OutcomeEntry {
    pub(crate) fn encode(self) -> String {
        format!("{}.{}", self.run_number, self.ended.encode())
    }

    fn decode(text: &str) -> Option<Self> {
        let (run_number, ended) = text.split_once('.')?;
        Some(Self { run_number: run_number.parse().ok()?, ended: Ended::decode(ended)? })
    }
}

impl SlotGroup {
    /// The slots that are free, lowest first.
    pub fn free_slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..SLOTS_PER_GROUP).filter(|slot| !self.slots.contains_key(slot))
    }

    /// How many tokens are free in its share.
    pub fn room(&self) -> u32 {
        self.cap.saturating_sub(self.held)
    }

    /// How many tokens an event takes whose job says `cost`: one that is heavier than the whole limit takes all of it.
    pub fn weight(&self, cost: u32) -> u32 {
        cost.min(self.limit).max(1)
    }

    /// How many events of its range may be granted now: there must be room for their weight, and a slot for each.
    pub fn grantable(&self) -> u32 {
        let fitting = self.room() / self.weight(self.range.cost).max(1);
        fitting
            .min(self.range.left)
            .min(SLOTS_PER_GROUP - self.slots.len().min(SLOTS_PER_GROUP as usize) as u32)
    }

    /// Whether its share can ever hold an event of a cost.
    pub fn can_hold(&self, cost: u32) -> bool {
        self.cap >= self.weight(cost)
    }

    /// Whether events of a run that somebody watches have come to an end here, and nothing of that run is left: or one
    /// of them did not succeed.
    pub fn is_awaited(&self) -> bool {
        self.outcomes.iter().any(|entry| {
            let number = entry.run_number;
            let open = self.slots.values().any(|held| held.run_number == number)
                || (self.range.left > 0 && self.range.run_number == number);
            self.watched.contains(&number) && (!open || entry.ended.outcome != Outcome::Succeeded)
        })
    }

    /// Whether nothing is held, left to grant, being taken or waiting to be packed.
    pub fn is_idle(&self) -> bool {
        self.held == 0
            && self.range.left == 0
            && self.wanted.is_none()
            && self.outcomes.is_empty()
            && self.packing.is_empty()
    }

    /// The token of a slot's present lease, as its consumer carries it; `None` when the slot is free.
    pub fn token(&self, slot: u32) -> Option<Token> {
        let Held { index, run_number, fence, cost, .. } = *self.slots.get(&slot)?;
        let GroupKey { client, policy, group } = self.key.clone();
        Some(Token { client, policy, group, slot, fence, run_number, index, cost })
    }

    /// Whether a lease is the present one of its slot.
    pub fn holds(&self, lease: &SlotRelease) -> bool {
        let key = (lease.fence, lease.run_number, lease.index, lease.cost);
        let is_it = |held: &Held| (held.fence, held.run_number, held.index, held.cost) == key;
        self.slots.get(&lease.slot).is_some_and(is_it)
    }

    /// A lease at the delivery that its slot says, for the writes that record it.
    pub fn at_attempt(&self, lease: SlotRelease) -> SlotRelease {
        let held = self.slots.get(&lease.slot);
        SlotRelease { attempt: held.map_or(lease.attempt, |held| held.attempt), ..lease }
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
        let (mut runs, mut watched) = (BTreeMap::new(), BTreeSet::new());
        for name in item.names() {
            if let Some(run_number) = name.strip_prefix('x').and_then(|n| n.parse().ok()) {
                let text = item.text(name)?;
                let run = text.strip_suffix(WATCHED);
                watched.extend(run.map(|_| run_number));
                runs.insert(run_number, item.parsed(name, run.unwrap_or(text))?);
            }
        }
        let decode =
            |text| OutcomeEntry::decode(text).ok_or_else(|| item.corrupt(format!("outcome '{text}'")));
        let entries = |name| item.texts(name).into_iter().map(decode).collect::<Result<Vec<_>>>();
        Ok(Self {
            key: key.clone(),
            plan: item.number("pr")?,
            groups: item.number("ng")?,
            limit: item.number("lm")?,
            cap: item.number("cap")?,
            held: item.number("held")?,
            rated: item.flag("rt"),
            slots,
            range: Range {
                run_number: item.number("rn")?,
                next: item.number("nx")?,
                left: item.number("lf")?,
                cost: item.number_or("rc", 1)?,
                deadline: item.find_instant_ms("dl")?,
            },
            runs,
            watched,
            wanted: item.find_text("want").map(str::to_owned),
            grant: item.number("gs")?,
            outcomes: entries("oc")?,
            packing: entries("pk_oc")?,
            flush: item.number("fs")?,
            next_fence: item.number("fc")?,
            reclaimed: item.numbers("rx"),
        })
    }
}

fn read_held(item: Item<'_>, slot: u32, fence: u64) -> Result<Held> {
    Ok(Held {
        index: item.number(&format!("i{slot}"))?,
        run_number: item.number(&format!("r{slot}"))?,
        fence,
        lease_end: item.instant_ms(&format!("e{slot}"))?,
        mark: item.number_or(&format!("p{slot}"), 0)?,
        attempt: item.number_or(&format!("t{slot}"), 1)?,
        cost: item.number_or(&format!("w{slot}"), 1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_entry_reads_back_and_a_broken_one_does_not() {
        for attempts in [1, 4] {
            let ended = Ended { index: 999_999, outcome: Outcome::Failed, attempts };
            let entry = OutcomeEntry { run_number: 3, ended };
            assert_eq!(OutcomeEntry::decode(&entry.encode()), Some(entry));
        }
        for broken in ["", "3", "3.", "3.1", "3.1q", "x.1s", "3.é"] {
            assert_eq!(OutcomeEntry::decode(broken), None, "{broken}");
        }
    }
}
