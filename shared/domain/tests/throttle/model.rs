//! The model: what can happen next, and what must hold in every state.

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};
use tidegate_domain::shares::target;
use tidegate_domain::slots::{Change, Clause, LeaseId, OutcomeEntry, Refill, SlotGroup, Transition};

use crate::world::{self, Answer, PackRow, Size, Stored, Task};

/// How many faults of each kind may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// A worker forgets what it was about to do.
    pub(crate) crashes: u8,
    /// A write takes place, its reply is lost, and it is sent again.
    pub(crate) lost_replies: u8,
    /// A lease runs out.
    pub(crate) expiries: u8,
    /// The limit is lowered.
    pub(crate) changes: u8,
    /// A consumer releases a lease that has ended.
    pub(crate) repeats: u8,
}

impl Faults {
    pub(crate) const NONE: Self = Self { crashes: 0, lost_replies: 0, expiries: 0, changes: 0, repeats: 0 };
}

/// A clause that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    GrantsTakenSlots,
    GrantsBeyondItsShare,
    ReleasesAnyLease,
    CommitsTwice,
    AdmitsAnyTime,
    /// Not of a group's write but of the line's.
    TakesForAnEndedRefill,
}

impl Mutant {
    fn takes_off(self, clause: &Clause) -> bool {
        match self {
            Self::GrantsTakenSlots => matches!(clause, Clause::SlotIsFree(_) | Clause::HeldIsAtMost(_)),
            Self::GrantsBeyondItsShare => {
                matches!(clause, Clause::HeldIsAtMost(_) | Clause::CapIs(_) | Clause::SlotIsFree(_))
            }
            Self::ReleasesAnyLease => matches!(clause, Clause::LeaseIs(_) | Clause::AttemptIs { .. }),
            Self::CommitsTwice => matches!(clause, Clause::RefillsAre(_) | Clause::RefillBegun),
            Self::AdmitsAnyTime => {
                matches!(clause, Clause::RefillsAre(_) | Clause::NoRefill | Clause::SlotIsFree(_))
            }
            Self::TakesForAnEndedRefill => false,
        }
    }
}

pub(crate) struct Throttle {
    pub(crate) size: Size,
    pub(crate) faults: Faults,
    pub(crate) mutant: Option<Mutant>,
}

/// A state: what is stored, what the workers and consumers know, and what the properties remember.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    stored: Stored,
    workers: [Task; 2],
    /// What consumers may release: the leases whose events reached them.
    received: BTreeSet<(usize, LeaseId)>,
    left: Faults,
    /// How often each event began, first deliveries only.
    begun: BTreeMap<u32, u8>,
    /// How often each event came to its end.
    ended: BTreeMap<u32, u8>,
    /// A lease began while more than the limit was held.
    overdrawn: bool,
    /// A lease ended that nobody named.
    robbed: bool,
}

/// What happens to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    None,
    /// Its reply is lost, and the client library sends it again.
    LostReply,
    /// Its worker dies before it reads the reply.
    Crash,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Look(usize, usize),
    Release(usize, usize, LeaseId, Fault),
    Expire(usize, usize, LeaseId),
    Converge(usize),
    Arrive(usize),
    Step(usize, Fault),
    ChangeLimit,
}

impl Model for Throttle {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            stored: Stored::new(self.size),
            workers: [Task::Rest, Task::Rest],
            received: BTreeSet::new(),
            left: self.faults,
            begun: BTreeMap::new(),
            ended: BTreeMap::new(),
            overdrawn: false,
            robbed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for worker in [0, 1] {
            if state.workers[worker] != Task::Rest {
                actions.extend(state.faults().map(|fault| Action::Step(worker, fault)));
                continue;
            }
            // Two workers at rest are the same.
            if worker == 1 && state.workers[0] == Task::Rest {
                continue;
            }
            state.begin(worker, actions);
        }
        if state.left.changes > 0 {
            actions.push(Action::ChangeLimit);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Look(worker, group) => {
                let seen = Box::new(next.stored.groups[group].clone());
                next.workers[worker] = Task::Serve(group, seen);
            }
            Action::Release(worker, group, id, fault) => {
                next.left.repeats -= u8::from(!next.stored.groups[group].holds(&id));
                let done = self.release(&mut next, worker, (group, id), None, fault);
                next.go_on(worker, fault, done);
            }
            Action::Expire(worker, group, id) => {
                next.left.expiries -= u8::from(state.received.contains(&(group, id)));
                let seen = Box::new(next.stored.groups[group].clone());
                next.workers[worker] = Task::Reclaim(group, id, seen);
            }
            Action::Converge(worker) => {
                next.workers[worker] = Task::Converge(next.stored.plan.0, Vec::new());
            }
            Action::Arrive(worker) => {
                next.workers[worker] = match (next.stored.pack, next.stored.free_group()) {
                    (PackRow::Absent, Some(group)) => {
                        Task::Place(group, Box::new(next.stored.groups[group].clone()))
                    }
                    (PackRow::Absent, None) => Task::Join,
                    _ => Task::Finish,
                };
            }
            Action::Step(worker, fault) => {
                let done = self.step(&mut next, worker, fault);
                next.go_on(worker, fault, done);
            }
            Action::ChangeLimit => {
                next.left.changes -= 1;
                let to = self.size.tokens - 1;
                let plan = next.stored.plan().changed(next.stored.limit, to);
                next.stored.limit = to;
                next.stored.plan = (plan.number, plan.caps);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1 never more than the limit", |_, state: &State| !state.overdrawn),
            Property::always("I3 each event begins once", |_, state: &State| {
                state.begun.values().all(|times| *times <= 1)
            }),
            Property::always("I4 a release acts once", |_, state: &State| {
                !state.robbed && state.ended.values().all(|times| *times <= 1)
            }),
            Property::always("I5 a token is a lease", |_, state: &State| {
                let is_sound = |group: &SlotGroup| {
                    group.held == group.leases.values().map(|lease| lease.id.cost).sum::<u32>()
                };
                state.stored.groups.iter().all(is_sound)
            }),
            Property::eventually(
                "I2 and I5 each event ends, and the bucket is full again",
                |_, state: &State| {
                    let shares: u32 = state.stored.groups.iter().map(|group| group.share.cap).sum();
                    let events = state.stored.size.events + u32::from(state.stored.size.arrival);
                    state.ended.len() as u32 == events
                        && state.stored.held() == 0
                        && shares == state.stored.limit
                },
            ),
        ]
    }
}

impl State {
    /// What may happen to the next write.
    fn faults(&self) -> impl Iterator<Item = Fault> + use<> {
        let lost = (self.left.lost_replies > 0).then_some(Fault::LostReply);
        let crash = (self.left.crashes > 0).then_some(Fault::Crash);
        [Some(Fault::None), lost, crash].into_iter().flatten()
    }

    /// What a worker at rest may begin.
    fn begin(&self, worker: usize, actions: &mut Vec<Action>) {
        for (group, row) in self.stored.groups.iter().enumerate() {
            let is_behind = row.share.plan < self.stored.plan.0;
            let must_return = row.share.cap == 0 && row.range().is_some();
            if is_behind || must_return || !world::is_at_rest(&self.stored, row) {
                actions.push(Action::Look(worker, group));
            }
        }
        for (group, id) in &self.received {
            if self.left.repeats > 0 || self.stored.groups[*group].holds(id) {
                actions.extend(self.faults().map(|fault| Action::Release(worker, *group, *id, fault)));
            }
        }
        for (group, id) in self.stored.leases() {
            // What was never sent is known to nobody, and runs out; what was received may.
            if !self.received.contains(&(group, id)) || self.left.expiries > 0 {
                actions.push(Action::Expire(worker, group, id));
            }
        }
        let follow = self.stored.groups.iter().all(|group| group.share.plan == self.stored.plan.0);
        let is_reached =
            (0..2).all(|group| self.stored.plan().cap(group) == target(self.stored.limit, group));
        if self.stored.message {
            actions.push(Action::Arrive(worker));
        }
        if self.stored.plan.0 > 1 && follow && !is_reached {
            actions.push(Action::Converge(worker));
        }
    }

    /// What a worker does after a step. One that died neither reads the reply nor sends anything.
    fn go_on(&mut self, worker: usize, fault: Fault, done: Done) {
        let Done { group, given, task, arrived } = done;
        if fault != Fault::Crash {
            self.stored.message &= !arrived;
        }
        self.workers[worker] = match fault {
            Fault::Crash => {
                self.left.crashes -= 1;
                Task::Rest
            }
            fault => {
                self.left.lost_replies -= u8::from(fault == Fault::LostReply);
                self.received.extend(given.into_iter().map(|id| (group, id)));
                task
            }
        };
    }
}

/// What a step came to: the leases whose events are sent, and what its worker does next.
struct Done {
    group: usize,
    given: Vec<LeaseId>,
    task: Task,
    /// The message with the event that arrives is handled.
    arrived: bool,
}

impl Done {
    fn then(group: usize, task: Task) -> Self {
        Self::sent(group, Vec::new(), task)
    }

    fn sent(group: usize, given: Vec<LeaseId>, task: Task) -> Self {
        Self { group, given, task, arrived: false }
    }

    /// Its events are sent, if any are, and its message is done with.
    fn arrived(group: usize, given: Vec<LeaseId>) -> Self {
        Self { group, given, task: Task::Rest, arrived: true }
    }
}

impl Throttle {
    /// One write of a worker, or the look before it.
    fn step(&self, state: &mut State, worker: usize, fault: Fault) -> Done {
        match std::mem::replace(&mut state.workers[worker], Task::Rest) {
            Task::Rest => Done::then(0, Task::Rest),
            Task::Serve(group, seen) => self.serve(state, (worker, group), *seen, fault),
            Task::Commit(group, seen, taken) => {
                let arrived = seen.refilling().is_some_and(|place| state.stored.line[place].arrived);
                let commit = world::commit(&seen, taken, arrived);
                let now_seen = self.perform(state, group, &commit, fault).group();
                Done::then(group, Task::Serve(group, Box::new(now_seen)))
            }
            Task::Release(group, id, seen) => self.release(state, worker, (group, id), Some(&seen), fault),
            Task::Reclaim(group, id, seen) => match world::reclaim(worker, &seen, id) {
                None => Done::then(group, Task::Rest),
                Some((reclaim, lease)) => {
                    let answer = self.perform(state, group, &reclaim, fault);
                    let (given, task) = world::after(group, &reclaim, lease, answer);
                    Done::sent(group, given, task)
                }
            },
            Task::Place(group, seen) => self.place(state, group, seen, fault),
            Task::Admit(group, seen) => {
                let (admit, lease) = world::admit(worker, &seen);
                match self.perform(state, group, &admit, fault) {
                    Answer::Done(row) if fault != Fault::LostReply => {
                        let slots = row.given_by(lease.write_id);
                        let given = slots.iter().filter_map(|slot| Some(row.leases.get(slot)?.id)).collect();
                        Done::arrived(group, given)
                    }
                    _ => Done::then(group, Task::Finish),
                }
            }
            Task::Join => match state.stored.queue(PackRow::Absent) && fault != Fault::LostReply {
                true => Done::arrived(0, Vec::new()),
                false => Done::then(0, Task::Finish),
            },
            Task::Finish => finish(state),
            Task::Bar(group, refills) => {
                self.perform(state, group, &Transition::bar_admission(refills), fault);
                Done::then(group, Task::Finish)
            }
            Task::Queue(group, refills) => {
                state.stored.queue(PackRow::Straight(group, refills));
                Done::arrived(group, Vec::new())
            }
            Task::Converge(number, mut held) => {
                held.push(state.stored.groups[held.len()].held);
                if held.len() < 2 {
                    return Done::then(0, Task::Converge(number, held));
                }
                let plan = state.stored.plan();
                let next = plan.advanced(state.stored.limit, &held).filter(|_| plan.number == number);
                if let Some(next) = next {
                    state.stored.plan = (next.number, next.caps);
                }
                Done::then(0, Task::Rest)
            }
        }
    }

    fn release(
        &self,
        state: &mut State,
        worker: usize,
        (group, id): (usize, LeaseId),
        seen: Option<&SlotGroup>,
        fault: Fault,
    ) -> Done {
        let (release, lease) = world::release(worker, id, seen);
        match self.perform(state, group, &release, fault) {
            Answer::Refused(row) if row.given_by(lease.write_id).is_empty() => match row.holds(&id) {
                true => Done::then(group, Task::Release(group, id, Box::new(row))),
                false => Done::then(group, Task::Rest),
            },
            answer => {
                let (given, task) = world::after(group, &release, lease, answer);
                Done::sent(group, given, task)
            }
        }
    }

    /// The row of the pack is written, unless there is one.
    fn place(&self, state: &mut State, group: usize, seen: Box<SlotGroup>, fault: Fault) -> Done {
        let is_written = state.stored.pack == PackRow::Absent;
        if is_written {
            state.stored.pack = PackRow::Straight(group, seen.refills);
        }
        // Sent a second time, the write meets its own effect.
        match is_written && fault != Fault::LostReply {
            true => Done::then(group, Task::Admit(group, seen)),
            false => Done::then(group, Task::Finish),
        }
    }

    fn serve(
        &self,
        state: &mut State,
        (worker, group): (usize, usize),
        seen: SlotGroup,
        fault: Fault,
    ) -> Done {
        let rest = Done::then(group, Task::Rest);
        let next = match &seen.refill {
            _ if seen.share.plan < state.stored.plan.0 => Transition::set_share(state.stored.share(group)),
            Refill::Serving(_) if seen.share.cap == 0 => {
                state.stored.give_back(group, &seen);
                return rest;
            }
            Refill::Begun { entry } => {
                let any_number = self.mutant == Some(Mutant::TakesForAnEndedRefill);
                let taken = state.stored.take(group, seen.refills, entry, any_number);
                return Done::then(group, Task::Commit(group, Box::new(seen), taken));
            }
            Refill::Idle => match state.stored.next_entry() {
                Some(place) if seen.room() > 0 || state.stored.takes_ahead(&seen) => {
                    Transition::begin_refill(&seen, place)
                }
                _ => return rest,
            },
            Refill::Serving(_) => match world::serve(worker, &seen) {
                Some((grant, lease)) => {
                    let answer = self.perform(state, group, &grant, fault);
                    let (given, task) = world::after(group, &grant, lease, answer);
                    return Done::sent(group, given, task);
                }
                None => return rest,
            },
        };
        let now_seen = self.perform(state, group, &next, fault).group();
        Done::then(group, Task::Serve(group, Box::new(now_seen)))
    }

    /// Performs a transition as one conditional write. When its reply is lost it is sent a second time, as the client
    /// library does.
    fn perform(&self, state: &mut State, group: usize, transition: &Transition, fault: Fault) -> Answer {
        let mut transition = transition.clone();
        if let Some(mutant) = self.mutant {
            transition.when.retain(|clause| !mutant.takes_off(clause));
        }
        let first = state.write(group, &transition);
        if fault == Fault::LostReply { state.write(group, &transition) } else { first }
    }
}

/// What becomes of a pack that somebody wrote.
fn finish(state: &State) -> Done {
    let PackRow::Straight(group, refills) = state.stored.pack else { return Done::arrived(0, Vec::new()) };
    let row = &state.stored.groups[group];
    if let Some(number) = row.number_of(&world::pack(true).pack) {
        let leases = row.leases.values().filter(|lease| lease.id.pack_number == number);
        return Done::arrived(group, leases.map(|lease| lease.id).collect());
    }
    match state.ended.contains_key(&world::ARRIVAL) {
        _ if row.refills <= refills => Done::then(group, Task::Bar(group, refills)),
        true => Done::arrived(group, Vec::new()),
        false => Done::then(group, Task::Queue(group, refills)),
    }
}

impl State {
    fn write(&mut self, group: usize, transition: &Transition) -> Answer {
        let before = self.stored.groups[group].clone();
        let Some(mut after) = before.after(transition) else { return Answer::Refused(before) };
        // Nothing depends on their order, and each order would be a state of its own.
        after.outcomes.sort_by_key(|entry| (entry.pack_number, entry.first.index));
        self.stored.groups[group] = after.clone();
        if self.left.repeats == 0 {
            // Nobody asks again for what has ended.
            self.received.retain(|(of, id)| *of != group || after.holds(id));
        }
        self.remember(&before, &after, transition);
        Answer::Done(after)
    }

    /// What the properties look at.
    fn remember(&mut self, before: &SlotGroup, after: &SlotGroup, transition: &Transition) {
        let is_new = |slot: &u32| {
            before.leases.get(slot).map(|old| old.id) != after.leases.get(slot).map(|new| new.id)
        };
        for lease in after.leases.values().filter(|lease| is_new(&lease.id.slot)) {
            if lease.attempt == 1 {
                let event = world::event(after, lease.id.pack_number, lease.id.index);
                *self.begun.entry(event).or_default() += 1;
            }
            // Until a group follows the plan of a lowered limit, the former limit stands.
            let is_behind = self.stored.groups.iter().any(|row| row.share.plan < self.stored.plan.0);
            let limit = if is_behind { self.stored.size.tokens } else { self.stored.limit };
            self.overdrawn |= lease.attempt == 1 && self.stored.held() > limit;
        }
        for change in &transition.then {
            let Change::Record(entries) = change else { continue };
            for (entry, index) in entries.iter().flat_map(|entry| entry.numbers().map(move |i| (entry, i))) {
                *self.ended.entry(world::event(before, entry.pack_number, index)).or_default() += 1;
            }
        }
        let named = |id: &LeaseId| {
            transition.then.iter().any(|change| match change {
                Change::Record(entries) => {
                    let is_of = |e: &OutcomeEntry| e.pack_number == id.pack_number;
                    entries.iter().any(|entry| is_of(entry) && entry.numbers().contains(&id.index))
                }
                Change::Renew { slot, .. } => *slot == id.slot,
                _ => false,
            })
        };
        let gone = before.leases.values().filter(|lease| is_new(&lease.id.slot));
        self.robbed |= gone.into_iter().any(|lease| !named(&lease.id));
    }
}
