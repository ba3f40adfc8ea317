//! What is stored, and what a worker knows: a policy, its slot groups, its line, and the steps of the engine.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::shares::SharePlan;
use tidegate_domain::slots::{
    Follow, GroupKey, LeaseEnd, LeaseId, NewLease, Outcome, PackRef, Range, Refill, Share, SlotGroup,
    Transition,
};

/// How large a world is: its two slot groups share the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Size {
    /// Events of the run.
    pub(crate) events: u32,
    /// Tokens of the policy.
    pub(crate) tokens: u32,
    /// Events that a group takes at once.
    pub(crate) portion: u32,
    /// Whether a single event arrives beside the run.
    pub(crate) arrival: bool,
    /// Whether a group whose range is used up takes another one while all of its slots are taken.
    pub(crate) ahead: bool,
}

/// The number of the event that arrives, which is no event of the run.
pub(crate) const ARRIVAL: u32 = 100;

/// Deliveries of an event.
const ATTEMPTS: u8 = 2;

/// All that lasts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub(crate) size: Size,
    pub(crate) limit: u32,
    pub(crate) plan: (u64, Vec<u32>),
    pub(crate) groups: [SlotGroup; 2],
    pub(crate) line: BTreeMap<String, Entry>,
    /// The message with the event that arrives is there.
    pub(crate) message: bool,
    pub(crate) pack: PackRow,
}

/// The row of the pack of the event that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PackRow {
    Absent,
    /// It goes straight to a group, which had begun so many refills.
    Straight(usize, u64),
    /// It waits in the line, or waited there.
    Queued,
}

/// An entry of the line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) cursor: u32,
    pub(crate) end: u32,
    /// It is the pack of the event that arrived.
    pub(crate) arrived: bool,
    /// The last range that each group took, with its refill number.
    taken: BTreeMap<usize, (u64, u32, u32)>,
}

/// What a worker is about to do. Whatever it knows may be out of date.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Rest,
    /// It serves a group as it saw it.
    Serve(usize, Box<SlotGroup>),
    /// It took a range for a group as it saw it.
    Commit(usize, Box<SlotGroup>, (u32, u32)),
    /// It ends a lease, after a first attempt was refused by the group as it saw it then.
    Release(usize, LeaseId, Box<SlotGroup>),
    /// It ends a lease that ran out.
    Reclaim(usize, LeaseId, Box<SlotGroup>),
    /// It brings the plan forward; it has read what so many groups hold.
    Converge(u64, Vec<u32>),
    /// It writes the pack of an event that arrived, to go straight to a group as it saw it.
    Place(usize, Box<SlotGroup>),
    /// It has the pack admitted that it wrote.
    Admit(usize, Box<SlotGroup>),
    /// It puts the pack into the line, since no group has room.
    Join,
    /// It looks where the pack is that somebody wrote.
    Finish,
    /// It has seen to it that the pack will not be admitted to its group.
    Bar(usize, u64),
    /// It puts a pack into the line that was not admitted.
    Queue(usize, u64),
}

/// What a write came to, as its worker was told.
pub(crate) enum Answer {
    Done(SlotGroup),
    Refused(SlotGroup),
}

impl Answer {
    pub(crate) fn group(self) -> SlotGroup {
        match self {
            Self::Done(group) | Self::Refused(group) => group,
        }
    }
}

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

/// Every write has a number of its own: the fencing number that it saw, its group and its kind are enough of one.
pub(crate) fn lease(worker: usize, seen_fence: u64) -> NewLease {
    NewLease { ends_at: now(), write_id: seen_fence * 10 + worker as u64 }
}

/// The pack of the run, or of the event that arrives.
pub(crate) fn pack(arrived: bool) -> PackRef {
    let id = if arrived { "~29921044.5.1.0" } else { "job.1.1795262640" };
    PackRef {
        pack: id.parse().unwrap(),
        watched: false,
        recheck: false,
        history_days: HistoryDays::DEFAULT,
        tries: None,
    }
}

/// The event of a lease or an outcome of a group: one of the run's, or the one that arrives.
pub(crate) fn event(group: &SlotGroup, pack_number: u32, index: u32) -> u32 {
    if group.pack(pack_number) == Some(&pack(true).pack) { ARRIVAL } else { index }
}

impl Stored {
    pub(crate) fn new(size: Size) -> Self {
        let plan = SharePlan { number: 1, caps: vec![size.tokens - 1, 1] };
        let group = |group: u32| {
            let key = GroupKey { client: "acme".parse().unwrap(), policy: "small".parse().unwrap(), group };
            SlotGroup::new(key, share(&plan, size.tokens, group))
        };
        let groups = [group(0), group(1)];
        let entry = Entry { cursor: 0, end: size.events, arrived: false, taken: BTreeMap::new() };
        let line = BTreeMap::from([("5|run".to_owned(), entry)]);
        let (limit, message) = (size.tokens, size.arrival);
        Self { size, limit, plan: (plan.number, plan.caps), groups, line, message, pack: PackRow::Absent }
    }

    /// Puts the pack of the event that arrives into the line, if its row is as expected.
    pub(crate) fn queue(&mut self, expected: PackRow) -> bool {
        let is_expected = self.pack == expected;
        if is_expected {
            self.pack = PackRow::Queued;
            let entry = Entry { cursor: 0, end: 1, arrived: true, taken: BTreeMap::new() };
            self.line.insert("5|~".to_owned(), entry);
        }
        is_expected
    }

    /// A group that has room for one event and no range.
    pub(crate) fn free_group(&self) -> Option<usize> {
        let is_free = |row: &SlotGroup| row.refill == Refill::Idle && !row.slots_for(1, 1).is_empty();
        self.groups.iter().position(is_free)
    }

    pub(crate) fn plan(&self) -> SharePlan {
        SharePlan { number: self.plan.0, caps: self.plan.1.clone() }
    }

    /// The share that the plan gives a group.
    pub(crate) fn share(&self, group: usize) -> Share {
        share(&self.plan(), self.limit, group as u32)
    }

    /// The first entry that a group may take of.
    pub(crate) fn next_entry(&self) -> Option<&String> {
        self.line.iter().find(|(_, entry)| entry.cursor < entry.end).map(|(place, _)| place)
    }

    /// Whether a group that has no room may take a range all the same.
    pub(crate) fn takes_ahead(&self, group: &SlotGroup) -> bool {
        self.size.ahead && (1..=group.share.cap).contains(&group.held)
    }

    /// Takes a range for a group's refill, once for each number, and none for one that is over; with `any_number`, also for
    /// that.
    pub(crate) fn take(&mut self, group: usize, refills: u64, place: &str, any_number: bool) -> (u32, u32) {
        let Some(entry) = self.line.get_mut(place) else { return (0, 0) };
        match entry.taken.get(&group) {
            Some((number, start, end)) if *number == refills => return (*start, *end),
            Some((number, ..)) if *number > refills && !any_number => return (0, 0),
            _ => {}
        }
        let (start, end) = (entry.cursor, entry.end.min(entry.cursor + self.size.portion));
        if start < end {
            entry.cursor = end;
            entry.taken.insert(group, (refills, start, end));
        }
        (start, end)
    }

    /// Gives what is left of a group's range back to the line: both or neither.
    pub(crate) fn give_back(&mut self, group: usize, seen: &SlotGroup) {
        let Some(range) = seen.range().copied() else { return };
        if let Some(after) = self.groups[group].after(&Transition::drop_range(seen, range)) {
            self.groups[group] = after;
            let place = format!("5|+{group}.{}", seen.refills);
            let (cursor, end) = (range.next, range.next + range.left);
            let arrived = seen.pack(range.pack_number) == Some(&pack(true).pack);
            self.line.insert(place, Entry { cursor, end, arrived, taken: BTreeMap::new() });
        }
    }

    pub(crate) fn held(&self) -> u32 {
        self.groups.iter().map(|group| group.held).sum()
    }

    /// The leases of all groups.
    pub(crate) fn leases(&self) -> BTreeSet<(usize, LeaseId)> {
        let of = |(group, row): (usize, &SlotGroup)| {
            row.leases.values().map(|lease| (group, lease.id)).collect::<Vec<_>>()
        };
        self.groups.iter().enumerate().flat_map(of).collect()
    }
}

fn share(plan: &SharePlan, limit: u32, group: u32) -> Share {
    Share { plan: plan.number, groups: plan.groups(), limit, cap: plan.cap(group), rated: false }
}

/// The next write of serving a group as it was seen; `None`: there is none but what the line may have.
pub(crate) fn serve(worker: usize, seen: &SlotGroup) -> Option<(Transition, NewLease)> {
    let slots = seen.grantable();
    let lease = lease(worker, seen.next_fence);
    (!slots.is_empty()).then(|| (Transition::grant(seen, &slots, lease, now()), lease))
}

pub(crate) fn commit(seen: &SlotGroup, (start, end): (u32, u32), arrived: bool) -> Transition {
    let range = Range { pack_number: 0, next: start, left: end - start, cost: 1, deadline: None };
    Transition::commit_refill(seen, Some((range, pack(arrived))))
}

/// The event that arrives goes to a free slot of a group as it was seen.
pub(crate) fn admit(worker: usize, seen: &SlotGroup) -> (Transition, NewLease) {
    let lease = lease(worker, seen.next_fence);
    (Transition::admit(seen, &seen.slots_for(1, 1), 1, pack(true), lease), lease)
}

/// How a lease ends: handed on where what was seen admits it, and at first, when nothing was seen.
pub(crate) fn release(worker: usize, id: LeaseId, seen: Option<&SlotGroup>) -> (Transition, NewLease) {
    let end = LeaseEnd { lease: id, attempt: 1, outcome: Outcome::Succeeded };
    let end = seen.map_or(end, |seen| seen.at_attempt(end));
    let lease = lease(worker, id.fence * 100 + u64::from(seen.is_some()) * 10);
    let hand_off = Transition::hand_off(&[end], lease, now());
    match seen {
        Some(seen) if !seen.admits(&hand_off) => (Transition::free(&[end]), lease),
        _ => (hand_off, lease),
    }
}

/// How a lease ends that ran out: its event is delivered again, or has expired.
pub(crate) fn reclaim(worker: usize, seen: &SlotGroup, id: LeaseId) -> Option<(Transition, NewLease)> {
    let held = seen.leases.get(&id.slot).filter(|held| held.id == id)?;
    let lease = lease(worker, seen.next_fence);
    let end = LeaseEnd { lease: id, attempt: held.attempt, outcome: Outcome::Expired };
    Some(match held.attempt < ATTEMPTS {
        true => (Transition::renew(seen, held, lease), lease),
        false => (Transition::expire(seen, held, end), lease),
    })
}

/// What a worker does once its write was answered: the leases whose events it sends, and what it does then.
pub(crate) fn after(
    group: usize,
    transition: &Transition,
    lease: NewLease,
    answer: Answer,
) -> (Vec<LeaseId>, Task) {
    let (is_done, seen) = match answer {
        Answer::Done(seen) => (true, seen),
        Answer::Refused(seen) => (false, seen),
    };
    // A refused write may be ours, when its reply was lost.
    let given: Vec<LeaseId> =
        seen.given_by(lease.write_id).iter().filter_map(|slot| Some(seen.leases.get(slot)?.id)).collect();
    let serves = if is_done { transition.follows(&seen).contains(&Follow::Serve) } else { given.is_empty() };
    let task = if serves { Task::Serve(group, Box::new(seen)) } else { Task::Rest };
    (given, task)
}

/// Whether a group has something left that only a look at the line, or a crashed worker's next step, moves on.
pub(crate) fn is_at_rest(stored: &Stored, group: &SlotGroup) -> bool {
    match &group.refill {
        Refill::Begun { .. } => false,
        Refill::Serving(_) => group.grantable().is_empty(),
        Refill::Idle => group.room() == 0 || stored.next_entry().is_none(),
    }
}
