//! The transitions of a slot group, as data: what must hold, what changes, what follows.

use chrono::{DateTime, Utc};

use super::{
    Change, Clause, Lease, LeaseEnd, LeaseId, NewLease, OutcomeEntry, PackRef, Range, Share, SlotGroup,
};

/// Leases that a group remembers to have taken back.
const RECLAIMED: usize = 8;

/// A transition of a slot group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transition {
    /// What must hold: all of it, or nothing changes.
    pub when: Vec<Clause>,
    /// What changes, all at once.
    pub then: Vec<Change>,
    follow: Vec<Follow>,
}

/// What follows from a transition that took place. Whoever dies before it leaves it to the next look at the group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Follow {
    /// The events in these slots are to be sent.
    Send(Vec<u32>),
    /// Slots are free, and what waits may have them; or the range is used up, and the next release finds nothing to hand on.
    /// When nothing more happens then, outcomes are compacted.
    Serve,
    /// Tokens drained out of a group that has less than its share: they may be handed to others.
    Reshare,
    /// Outcomes are to be compacted into their packs' history.
    Compact,
}

impl Transition {
    fn new(when: Vec<Clause>, then: Vec<Change>) -> Self {
        Self { when, then, follow: Vec::new() }
    }

    fn followed_by(self, follow: impl Into<Vec<Follow>>) -> Self {
        Self { follow: follow.into(), ..self }
    }

    /// What is to be done once it took place, given the group as it is then.
    pub fn follows(&self, after: &SlotGroup) -> Vec<Follow> {
        let is_served = after.room() > 0 || after.range().is_none();
        let is_served = is_served && self.follow.contains(&Follow::Serve);
        let is_due = |follow: &Follow| match follow {
            Follow::Send(_) => true,
            Follow::Serve => is_served,
            Follow::Reshare => after.is_draining(),
            Follow::Compact => after.is_compaction_due() && !is_served,
        };
        self.follow.iter().filter(|follow| is_due(follow)).cloned().collect()
    }

    /// The group gets the share that follows from a later plan. Acts on the next grant. Refused when the group follows
    /// that plan or a later one.
    pub fn set_share(share: Share) -> Self {
        Self::new(vec![Clause::PlanIsBefore(share.plan)], vec![Change::SetShare(share)])
    }

    /// Free slots of `seen` go to the next events of its range.
    ///
    /// Refused when a slot was taken, the share changed, more is held than leaves room, or the range has fewer events,
    /// others, or is over at `now`.
    pub fn grant(seen: &SlotGroup, slots: &[u32], lease: NewLease, now: DateTime<Utc>) -> Self {
        let cost = seen.range().map_or(1, |range| range.cost);
        let weight = seen.weight(cost);
        let (events, tokens) = counts(slots.len(), weight);
        let mut when = have_room(seen, slots, tokens);
        when.extend(admission(events, cost, now));
        let mut then = assign(slots.iter().copied(), weight, lease);
        then.extend([Change::Advance(events), Change::Hold(tokens)]);
        Self::new(when, then).followed_by([Follow::Send(slots.to_vec())])
    }

    /// Free slots of `seen`, which has no range, go to the events of a pack that does not wait in the line: the first slot
    /// to its first event, and so on.
    ///
    /// Refused when a slot was taken, the share changed, more is held than leaves room, a refill has begun since, or the
    /// policy has a rate.
    pub fn admit(seen: &SlotGroup, slots: &[u32], cost: u32, pack: PackRef, lease: NewLease) -> Self {
        let weight = seen.weight(cost);
        let (events, tokens) = counts(slots.len(), weight);
        let mut when = have_room(seen, slots, tokens);
        when.extend([Clause::NoRefill, Clause::RefillsAre(seen.refills), Clause::Unrated]);
        let number = seen.number_for(&pack);
        let place = |(offset, slot): (u32, &u32)| Change::Place {
            slot: *slot,
            offset,
            event: (number, offset),
            cost: weight,
            lease,
        };
        let mut then: Vec<Change> = (0..).zip(slots).map(place).collect();
        let stale = seen.stale_packs().filter(|stale| *stale != number).collect();
        then.extend([Change::TakeFences(events), Change::Hold(tokens), Change::CountRefill]);
        then.extend([Change::SetPack(number, pack), Change::ForgetPacks(stale)]);
        Self::new(when, then).followed_by([Follow::Send(slots.to_vec())])
    }

    /// What was to be admitted to the group as it was `seen` is not, from now on.
    pub fn bar_admission(refills: u64) -> Self {
        Self::new(vec![Clause::NoRefill, Clause::RefillsAre(refills)], vec![Change::CountRefill])
    }

    /// Leases end, and each slot goes straight to the next event of the range. Nothing needs to be read before. Whoever uses up
    /// the range serves the group, so that the next release hands on again.
    ///
    /// Refused when one of the leases is not the present one or is at another delivery, the range has fewer events, or
    /// events of another cost, or is over at `now`, more is held than the share (a lowered limit drains), or the policy
    /// has a rate. The leases must be of one cost.
    pub fn hand_off(ends: &[LeaseEnd], lease: NewLease, now: DateTime<Utc>) -> Self {
        let cost = ends.first().map_or(1, |end| end.lease.cost);
        let (events, _) = counts(ends.len(), cost);
        let mut when = are_present(ends);
        when.extend(admission(events, cost, now));
        // Each event takes what the lease before it gave back.
        when.extend([Clause::WithinShare, Clause::Unrated]);
        let slots: Vec<u32> = ends.iter().map(|end| end.lease.slot).collect();
        let mut then = assign(slots.iter().copied(), cost, lease);
        then.extend([Change::Advance(events), record(ends)]);
        Self::new(when, then).followed_by([Follow::Send(slots), Follow::Serve, Follow::Compact])
    }

    /// Leases end, and their slots are free. Refused when one of them is not the present one, or is at another delivery.
    pub fn free(ends: &[LeaseEnd]) -> Self {
        let tokens = ends.iter().fold(0_u32, |sum, end| sum.saturating_add(end.lease.cost));
        let mut then: Vec<Change> = ends.iter().map(|end| Change::Empty(end.lease.slot)).collect();
        then.extend([Change::Free(tokens), record(ends)]);
        Self::new(are_present(ends), then).followed_by([Follow::Serve, Follow::Reshare])
    }

    /// A lease that ran out as `seen` ends, and its slot is free. Refused when a heartbeat extended it.
    pub fn expire(group: &SlotGroup, seen: &Lease, end: LeaseEnd) -> Self {
        let Self { mut when, mut then, follow } = Self::free(&[end]);
        when.push(Clause::LeaseEndsAt { slot: seen.id.slot, ends_at: seen.ends_at });
        then.push(remember(group, seen.id.fence));
        Self { when, then, follow }
    }

    /// A lease that ran out as `seen` ends, and its event gets another one, under another fencing number. Refused when
    /// a heartbeat extended it.
    pub fn renew(group: &SlotGroup, seen: &Lease, lease: NewLease) -> Self {
        let (slot, attempt) = (seen.id.slot, seen.attempt);
        let when = vec![
            Clause::LeaseIs(seen.id),
            Clause::AttemptIs { slot, attempt },
            Clause::LeaseEndsAt { slot, ends_at: seen.ends_at },
        ];
        let renewed = Change::Renew { slot, attempt: attempt.saturating_add(1), lease };
        Self::new(when, vec![renewed, remember(group, seen.id.fence)]).followed_by([Follow::Send(vec![slot])])
    }

    /// Targets did not take the events of leases: the leases end without an outcome, and their slots are free. By the same
    /// transaction the events go back to the line. Refused when one of the leases is not the present one of its slot.
    pub fn requeue(leases: &[LeaseId]) -> Self {
        let tokens = leases.iter().fold(0_u32, |sum, lease| sum.saturating_add(lease.cost));
        let when = leases.iter().map(|lease| Clause::LeaseIs(*lease)).collect();
        let emptied = leases.iter().map(|lease| Change::Empty(lease.slot));
        Self::new(when, emptied.chain([Change::Free(tokens)]).collect())
    }

    /// What is delivered under leases was sent. Refused when one of them is not the present one of its slot.
    pub fn note_sent(leases: &[LeaseId]) -> Self {
        let when = leases.iter().map(|lease| Clause::LeaseIs(*lease)).collect();
        Self::new(when, leases.iter().map(|lease| Change::NoteSent(lease.slot)).collect())
    }

    /// A lease ends at another instant. Refused when it is not the present one of its slot.
    pub fn extend(lease: LeaseId, ends_at: DateTime<Utc>) -> Self {
        Self::new(vec![Clause::LeaseIs(lease)], vec![Change::SetEnd { slot: lease.slot, ends_at }])
    }

    /// A range of the entry at a place of the line is about to be taken: the first step of a refill. Refused when the
    /// group has a range, is taking one, or has begun a refill since `seen`.
    pub fn begin_refill(seen: &SlotGroup, entry: &str) -> Self {
        let when = vec![Clause::NoRefill, Clause::RefillsAre(seen.refills)];
        Self::new(when, vec![Change::BeginRefill { entry: entry.to_owned() }])
    }

    /// What was taken under number `seen.refills` is put in place: the last step of a refill. `None`: nothing was
    /// taken. Refused when that refill is over.
    pub fn commit_refill(seen: &SlotGroup, taken: Option<(Range, PackRef)>) -> Self {
        let when = vec![Clause::RefillsAre(seen.refills), Clause::RefillBegun];
        let mut then = vec![Change::EndRefill];
        if let Some((range, pack)) = taken.filter(|(range, _)| range.left > 0) {
            let pack_number = seen.number_for(&pack);
            let stale = seen.stale_packs().filter(|number| *number != pack_number).collect();
            then.extend([Change::Serve(Range { pack_number, ..range }, pack), Change::ForgetPacks(stale)]);
        }
        Self::new(when, then)
    }

    /// What is left of a range is taken away: given back to the line, or counted as not admitted, by the same
    /// transaction. Refused when the group no longer has exactly this range.
    pub fn drop_range(seen: &SlotGroup, range: Range) -> Self {
        Self::new(vec![Clause::RefillsAre(seen.refills), Clause::RangeIs(range)], vec![Change::DropRange])
    }

    /// The events of a pack are looked up from now on before they are sent. Refused when the number stands for another
    /// pack, or what is said of it changed.
    pub fn mark_for_recheck(number: u32, seen: &PackRef) -> Self {
        let recheck = PackRef { recheck: true, ..seen.clone() };
        Self::new(vec![Clause::PackIs(number, seen.clone())], vec![Change::SetPack(number, recheck)])
    }

    /// The outcomes are set apart, to be compacted into their packs' history. Refused when some are already, or a
    /// compaction has begun since `seen`.
    pub fn begin_compaction(seen: &SlotGroup) -> Self {
        let when = vec![Clause::NoCompaction, Clause::CompactionsAre(seen.compactions)];
        Self::new(when, vec![Change::BeginCompaction])
    }

    /// The outcomes that were set apart are forgotten: they are in their packs' history. Refused when that compaction
    /// is over.
    pub fn end_compaction(seen: &SlotGroup) -> Self {
        let when = vec![Clause::CompactionBegun, Clause::CompactionsAre(seen.compactions)];
        Self::new(when, vec![Change::EndCompaction])
    }
}

/// The admission rule: events of the range may begin while so many are left at this cost, and its deadline is not
/// reached. That they have tokens is said beside it: free ones, or those of leases that end in the same write.
fn admission(events: u32, cost: u32, now: DateTime<Utc>) -> [Clause; 3] {
    [Clause::RangeHas(events), Clause::RangeCosts(cost), Clause::RangeIsOpenAt(now)]
}

/// The slots are free, and so are as many tokens of the share that was seen.
fn have_room(seen: &SlotGroup, slots: &[u32], tokens: u32) -> Vec<Clause> {
    let cap = seen.share.cap;
    let room = [Clause::CapIs(cap), Clause::HeldIsAtMost(i64::from(cap) - i64::from(tokens))];
    slots.iter().map(|slot| Clause::SlotIsFree(*slot)).chain(room).collect()
}

fn are_present(ends: &[LeaseEnd]) -> Vec<Clause> {
    let present = |end: &LeaseEnd| {
        let LeaseEnd { lease, attempt, .. } = *end;
        [Clause::LeaseIs(lease), Clause::AttemptIs { slot: lease.slot, attempt }]
    };
    ends.iter().flat_map(present).collect()
}

fn assign(slots: impl Iterator<Item = u32>, cost: u32, lease: NewLease) -> Vec<Change> {
    (0_u32..).zip(slots).map(|(offset, slot)| Change::Assign { slot, offset, cost, lease }).collect()
}

fn record(ends: &[LeaseEnd]) -> Change {
    Change::Record(OutcomeEntry::all(ends.iter().map(LeaseEnd::entry)))
}

fn remember(group: &SlotGroup, fence: u64) -> Change {
    let known: Vec<u64> = group.reclaimed.iter().copied().chain([fence]).collect();
    Change::Remember(known.into_iter().rev().take(RECLAIMED).rev().collect())
}

/// How many events there are, and how many tokens they take.
fn counts(events: usize, weight: u32) -> (u32, u32) {
    let events = u32::try_from(events).unwrap_or(u32::MAX);
    (events, events.saturating_mul(weight))
}
