//! The state of a slot group, and what can be read off it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{Ended, Lease, LeaseEnd, LeaseId, Outcome, OutcomeEntry, Transition};
use crate::ids::{ClientId, PolicyId};
use crate::job::HistoryDays;
use crate::limits::{EVENTS_PER_COMPACTION, OUTCOMES_PER_COMPACTION, SLOTS_PER_GROUP, TOKENS_PER_GROUP};
use crate::pack::PackId;
use crate::policy::{Policy, PolicyRef};
use crate::retry::Tries;
use crate::shares;

/// Names a slot group: a policy's share number `group`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// The client whose policy it is of.
    pub client: ClientId,
    /// The policy's name within the client.
    pub policy: PolicyId,
    /// Its number, from 0.
    pub group: u32,
}

/// A slot group.
///
/// Invariant: `held` is the sum of the costs of `leases`, and no two leases ever have the same fencing number.
///
/// A group of four tokens takes a range of five events, and grants two of them. Each transition is a value; the store
/// makes one conditional write of it, whose image is the group after it:
///
/// ```
/// use chrono::{DateTime, Utc};
/// use tidegate_domain::job::HistoryDays;
/// use tidegate_domain::slots::{GroupKey, NewLease, PackRef, Range, Share, SlotGroup, Transition};
///
/// let key = GroupKey { client: "acme".parse()?, policy: "small".parse()?, group: 0 };
/// let share = Share { plan: 1, groups: 1, limit: 4, cap: 4, rated: false };
/// let idle = SlotGroup::new(key, share);
/// let begun = idle.after(&Transition::begin_refill(&idle, "5|001790000000|nightly.3.1790000000")).unwrap();
/// let (pack, history_days) = ("nightly.3.1790000000".parse()?, HistoryDays::DEFAULT);
/// let pack = PackRef { pack, watched: false, recheck: false, history_days, tries: None };
/// let range = Range { pack_number: 1, next: 0, left: 5, cost: 1, deadline: None };
/// let serving = begun.after(&Transition::commit_refill(&begun, Some((range, pack)))).unwrap();
///
/// let lease = NewLease { ends_at: DateTime::<Utc>::MAX_UTC, write_id: 7 };
/// let granted = serving.after(&Transition::grant(&serving, &[0, 1], lease, Utc::now())).unwrap();
/// assert_eq!((granted.held, granted.range().unwrap().left), (2, 3));
/// // Seen as it was before, the same slots are not granted twice.
/// assert!(!granted.admits(&Transition::grant(&serving, &[0, 1], lease, Utc::now())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotGroup {
    /// Which group.
    pub key: GroupKey,
    /// What its policy's plan lets it grant.
    pub share: Share,
    /// How many tokens are taken: the sum of the costs of its leases.
    pub held: u32,
    /// The leases, by the number of their slot, from 0.
    pub leases: BTreeMap<u32, Lease>,
    /// Where its next events come from.
    pub refill: Refill,
    /// Rises with each refill: what is taken from the line is taken under this number.
    pub refills: u64,
    /// The number of the pack that it was last refilled from; 0 before the first.
    pub last_pack: u32,
    /// The pack numbers in use, and the packs that they stand for.
    pub packs: BTreeMap<u32, PackRef>,
    /// What came of released events, not yet compacted into their packs' history.
    pub outcomes: Vec<OutcomeEntry>,
    /// Whether outcomes are on their way there.
    pub compaction: Compaction,
    /// Rises by one with each compaction: what is compacted under a number is kept once.
    pub compactions: u64,
    /// The fencing number of the next lease: every number below it was given, none from it on.
    pub next_fence: u64,
    /// The fencing numbers of the leases that were taken back last: their holders are told so when they release late.
    pub reclaimed: Vec<u64>,
}

/// What a policy's plan gives a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    /// The number of the plan.
    pub plan: u64,
    /// How many groups that plan has.
    pub groups: u32,
    /// The limit that they share, in tokens: 0 while their policy is paused.
    pub limit: u32,
    /// The group's part of the limit, in tokens.
    pub cap: u32,
    /// The policy has a rate: no slot is handed on without leave of the rate.
    pub rated: bool,
}

/// Where a group's next events come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refill {
    /// Nowhere: it has none, and takes none.
    Idle,
    /// A range of this entry of the line is being taken. Whoever finds it goes on from there, so that no range is lost
    /// between two rows.
    Begun {
        /// The place of the entry in the line.
        entry: String,
    },
    /// A range that it has.
    Serving(Range),
}

/// The part of a pack that a group may still grant: `left` events from `next` on. At least one is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// The pack, as a number of [`SlotGroup::packs`].
    pub pack_number: u32,
    /// The number in the pack of the first event that was not granted.
    pub next: u32,
    /// How many events are left, at least 1.
    pub left: u32,
    /// How many tokens each event takes.
    pub cost: u32,
    /// None is granted from then on; `None`: they may be granted at any time.
    pub deadline: Option<DateTime<Utc>>,
}

/// A pack that a group has a number for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PackRef {
    /// Which pack.
    pub pack: PackId,
    /// Somebody waits for its end: its outcomes are compacted without delay.
    pub watched: bool,
    /// A job of its client changed after the rows may have been read that the pack follows from: whether an event of it is
    /// still wanted is asked before it is sent.
    pub recheck: bool,
    /// How long what becomes of its events is kept.
    pub history_days: HistoryDays,
    /// The deliveries of the event that is sent again under this number, since its target did not take it; `None`: what has
    /// the number was never delivered before.
    pub tries: Option<Tries>,
}

/// Whether outcomes are on their way into their packs' history.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Compaction {
    /// None are on their way.
    Idle,
    /// These are; they no longer change until it is done.
    Begun(Vec<OutcomeEntry>),
}

impl Share {
    /// What the plan of a policy gives its group number `group`.
    pub fn of(policy: &Policy, group: u32) -> Self {
        Self {
            plan: policy.plan.number,
            groups: policy.plan.groups(),
            limit: policy.limit(),
            cap: policy.plan.cap(group),
            rated: policy.rate().is_some(),
        }
    }
}

impl PolicyRef {
    /// The policy that a slot group is of.
    pub fn of(group: &SlotGroup) -> Self {
        Self::of_key(&group.key)
    }

    /// The same, by the name of the group.
    pub fn of_key(key: &GroupKey) -> Self {
        Self::new(&key.client, &key.policy)
    }
}

impl SlotGroup {
    /// A group that was never used. Its fencing numbers begin at 1.
    pub fn new(key: GroupKey, share: Share) -> Self {
        Self {
            key,
            share,
            held: 0,
            leases: BTreeMap::new(),
            refill: Refill::Idle,
            refills: 0,
            last_pack: 0,
            packs: BTreeMap::new(),
            outcomes: Vec::new(),
            compaction: Compaction::Idle,
            compactions: 0,
            next_fence: 1,
            reclaimed: Vec::new(),
        }
    }

    /// The group after a transition; `None` when a clause of it does not hold, and nothing changes.
    #[must_use]
    pub fn after(&self, transition: &Transition) -> Option<Self> {
        if !self.admits(transition) {
            return None;
        }
        let mut after = self.clone();
        for change in &transition.then {
            change.apply(self, &mut after);
        }
        Some(after)
    }

    /// Whether every clause of a transition holds.
    pub fn admits(&self, transition: &Transition) -> bool {
        transition.when.iter().all(|clause| clause.holds(self))
    }

    /// What it may still grant; `None` when it has no range.
    pub fn range(&self) -> Option<&Range> {
        match &self.refill {
            Refill::Serving(range) => Some(range),
            Refill::Idle | Refill::Begun { .. } => None,
        }
    }

    /// The pack that it serves; `None` when it has no range.
    pub fn serving(&self) -> Option<&PackId> {
        self.range().and_then(|range| self.pack(range.pack_number))
    }

    /// Whether it has events of a pack left to grant.
    pub fn serves(&self, pack: &PackId) -> bool {
        self.serving() == Some(pack)
    }

    /// The place of the entry of the line that a range is being taken from; `None` when none is.
    pub fn refilling(&self) -> Option<&str> {
        match &self.refill {
            Refill::Begun { entry } => Some(entry),
            Refill::Idle | Refill::Serving(_) => None,
        }
    }

    /// The outcomes that are being compacted; empty when none are.
    pub fn compacting(&self) -> &[OutcomeEntry] {
        match &self.compaction {
            Compaction::Idle => &[],
            Compaction::Begun(entries) => entries,
        }
    }

    /// The slots that are free, lowest first.
    pub fn free_slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..SLOTS_PER_GROUP).filter(|slot| !self.leases.contains_key(slot))
    }

    /// How many tokens are free in its share; 0 while more is held than that.
    pub fn room(&self) -> u32 {
        self.share.cap.saturating_sub(self.held)
    }

    /// How many tokens an event takes whose job says `cost`: one that is heavier than the whole limit takes all of it, one of a
    /// version in which it could be heavier than a group takes a group's.
    pub fn weight(&self, cost: u32) -> u32 {
        cost.min(self.share.limit).clamp(1, TOKENS_PER_GROUP)
    }

    /// Whether its share can ever hold an event of a cost.
    pub fn can_hold(&self, cost: u32) -> bool {
        self.share.cap >= self.weight(cost)
    }

    /// The slots that the next events of its range may have now: there must be room for their weight.
    pub fn grantable(&self) -> Vec<u32> {
        self.range().map_or_else(Vec::new, |range| self.slots_for(range.left, range.cost))
    }

    /// The slots that so many events of a cost may have now, or fewer, when there is no room for all.
    pub fn slots_for(&self, events: u32, cost: u32) -> Vec<u32> {
        let fitting = self.room().checked_div(self.weight(cost)).unwrap_or(0);
        self.free_slots().take(fitting.min(events) as usize).collect()
    }

    /// Whether outcomes should be compacted now: they are many, somebody waits for them, or nothing else will happen here.
    /// Those of single events alone are left to the tick then: no run counts them, and others may come until it does.
    pub fn is_compaction_due(&self) -> bool {
        let is_of_run = |entry: &OutcomeEntry| matches!(self.pack(entry.pack_number), Some(PackId::Run(_)));
        let is_quiet = self.held == 0 && self.range().is_none() && self.outcomes.iter().any(is_of_run);
        let events = self.outcomes.iter().fold(0, |sum: u32, entry| sum.saturating_add(entry.events));
        let are_many = self.outcomes.len() >= OUTCOMES_PER_COMPACTION || events >= EVENTS_PER_COMPACTION;
        let due = are_many || is_quiet || self.is_awaited();
        self.compaction != Compaction::Idle || (due && !self.outcomes.is_empty())
    }

    /// Whether events of a run that somebody watches have come to an end here, and nothing of that run is left: or one
    /// of them did not succeed.
    fn is_awaited(&self) -> bool {
        self.outcomes.iter().any(|entry| {
            let number = entry.pack_number;
            let is_open = self.leases.values().any(|lease| lease.id.pack_number == number)
                || self.range().is_some_and(|range| range.pack_number == number);
            let is_watched = self.packs.get(&number).is_some_and(|known| known.watched);
            is_watched && (!is_open || entry.first.outcome != Outcome::Succeeded)
        })
    }

    /// Whether nothing is held, left to grant, being taken or waiting to be compacted.
    pub fn is_idle(&self) -> bool {
        self.held == 0
            && self.refill == Refill::Idle
            && self.outcomes.is_empty()
            && self.compaction == Compaction::Idle
    }

    /// Whether the shares of its policy are on their way to a new limit, as far as a group can tell.
    pub fn is_draining(&self) -> bool {
        let Share { groups, limit, cap, .. } = self.share;
        let goal = shares::target(limit, self.key.group);
        groups > 1 && limit > 0 && (cap < goal || goal == 0)
    }

    /// Whether a lease is the present one of its slot.
    pub fn holds(&self, lease: &LeaseId) -> bool {
        self.leases.get(&lease.slot).is_some_and(|held| held.id == *lease)
    }

    /// The end of a lease, at the delivery that its slot says.
    #[must_use]
    pub fn at_attempt(&self, end: LeaseEnd) -> LeaseEnd {
        let held = self.leases.get(&end.lease.slot);
        LeaseEnd { attempt: held.map_or(end.attempt, |held| held.attempt), ..end }
    }

    /// The slots whose leases the write of this number gave: those of one's own, when its reply was lost.
    pub fn given_by(&self, write_id: u64) -> Vec<u32> {
        self.leases.values().filter(|lease| lease.write_id == write_id).map(|lease| lease.id.slot).collect()
    }

    /// The pack that a number of this group stands for; `None` when the number is not in use.
    pub fn pack(&self, number: u32) -> Option<&PackId> {
        self.packs.get(&number).map(|known| &known.pack)
    }

    /// The pack that it was last refilled from, as long as it has a number for it.
    pub fn last_served(&self) -> Option<&PackRef> {
        self.packs.get(&self.last_pack)
    }

    /// The number that a pack has here for events that were never delivered before; `None` when it has none.
    pub fn number_of(&self, pack: &PackId) -> Option<u32> {
        self.number_with(pack, None)
    }

    /// The number for a pack that a range is put in place of: the one that it has, or one beyond all that were in use.
    pub(super) fn number_for(&self, pack: &PackRef) -> u32 {
        let highest = self.packs.keys().copied().max().unwrap_or_default();
        let known = self.number_with(&pack.pack, pack.tries);
        known.unwrap_or_else(|| highest.max(self.last_pack).saturating_add(1))
    }

    fn number_with(&self, pack: &PackId, tries: Option<Tries>) -> Option<u32> {
        let is_same = |known: &PackRef| known.pack == *pack && known.tries == tries;
        self.packs.iter().find(|(_, known)| is_same(known)).map(|(number, _)| *number)
    }

    /// How the event of a lease was delivered before the lease; `None`: never.
    pub fn tries_before(&self, lease: &LeaseId) -> Option<Tries> {
        self.packs.get(&lease.pack_number).and_then(|known| known.tries)
    }

    /// Which delivery of its event a lease is at, from 1, those before it included.
    pub fn delivery_at(&self, lease: &Lease) -> u8 {
        lease.attempt.saturating_add(self.tries_before(&lease.id).map_or(0, |tries| tries.made))
    }

    /// How the events of an outcome have ended, with all their deliveries.
    pub fn ended(&self, entry: &OutcomeEntry) -> impl Iterator<Item = Ended> + use<> {
        let before = self.packs.get(&entry.pack_number).and_then(|known| known.tries);
        let attempts = entry.first.attempts.saturating_add(before.map_or(0, |tries| tries.made));
        entry.each().map(move |ended| Ended { attempts, ..ended })
    }

    /// The pack numbers that nothing of the group refers to any more.
    pub(super) fn stale_packs(&self) -> impl Iterator<Item = u32> + '_ {
        let is_recorded = |number: u32| {
            self.outcomes.iter().chain(self.compacting()).any(|entry| entry.pack_number == number)
        };
        self.packs.keys().copied().filter(move |number| {
            *number != self.last_pack
                && !self.leases.values().any(|lease| lease.id.pack_number == *number)
                && !is_recorded(*number)
        })
    }
}
