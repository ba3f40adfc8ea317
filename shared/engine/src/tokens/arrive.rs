//! Arrival: single events that are due, and that have not waited in the line of their policy.
//!
//! Where nobody waits and a slot group has room for all of them, they go straight to it: their pack is written, with the
//! name of that group, and the group takes it, in two plain writes. Otherwise they join the line.
//!
//! Invariant: the events of a pack that goes straight are granted by the first refill that its group begins after it was
//! seen, or wait in the line. A crash between the two writes is finished when the message comes again: what the group, or the
//! history, knows of the pack says whether they were granted.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{TOKENS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, Singles, SinglesId, SinglesKind, Straight};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{GroupKey, PackRef, Refill, SlotGroup, Transition};
use tidegate_store::events::HistoryOf;
use tidegate_store::slots::Written;
use tidegate_store::{Create, Write, packs};

use super::Tokens;
use crate::effect::{Effect, Granted};
use crate::effect_loop::Left;
use crate::queues::Outgoing;
use crate::queues::message::{ArrivalsAt, Chunk, Message};
use crate::throttle::lines::{Failure, Joining, Lines};
use crate::throttle::shares::PolicySnapshot;
use crate::{EngineError, Panicked};

/// Slot groups that are looked at for room.
const GROUPS_LOOKED_AT: usize = 2;
/// Events that cannot be read or written and are recorded at once.
const RECORDED_AT_ONCE: usize = 16;
/// Numbers that are tried for a pack.
const NUMBERS_TRIED: u32 = 3;

/// What came of events that were to be placed.
#[derive(Default)]
struct Placed {
    /// The packs of their kind, as far as they were read or written.
    packs: Vec<Singles>,
    /// Those of them that were seen to be with their slot group or in the line.
    now: Vec<SinglesId>,
    /// What follows from it.
    effects: Vec<Effect>,
}

impl Tokens {
    /// Has the events of a message admitted, or puts them into their line. `received` is how often the message came.
    pub(crate) async fn arrive(&self, chunk: &Chunk, received: u32) -> Result<(), EngineError> {
        let (client, launch_at) = chunk.head_of_arrivals()?;
        if self.clock.now() < launch_at {
            let again = Outgoing::at(&client, Message::Arrival(chunk.clone()), launch_at);
            return self.queues.dispatch(&[again]).await;
        }
        let (mut members, mut known) = (Vec::with_capacity(chunk.items.len()), BTreeSet::new());
        let mut unreadable = Vec::new();
        for item in &chunk.items {
            match item.occurrence(&client, launch_at) {
                // Messages that are handled as one may say the same: SQS was asked twice to take it.
                Ok(member) if !known.insert(member.run_id()) => {}
                Ok(member) => members.push(member),
                Err(error) => unreadable.push((item, error)),
            }
        }
        let asides: Vec<_> = unreadable
            .iter()
            .map(|(item, error)| self.contents.set_aside_item(&client, launch_at, item, error))
            .collect();
        stream::iter(asides).buffer_unordered(RECORDED_AT_ONCE).try_collect::<()>().await?;
        if chunk.ahead {
            members = self.stored(&client, members).await?;
        }
        let Some(ArrivalsAt { policy, kind, .. }) = ArrivalsAt::of(&members) else {
            // All are set aside, or their jobs were never stored.
            return if members.is_empty() { Ok(()) } else { chunk.arrivals().map(drop) };
        };
        let policy = PolicyRef::new(&client, &policy);
        // An earlier call may have placed some of them.
        let line = (&client, &policy.policy, kind);
        let repeat = chunk.repeat || received > 1 || self.throttle.memory.may_be_halfway(line, &members);
        let mut placed = Placed::default();
        let mut members = self.place_straight(&policy, kind, members, repeat, &mut placed).await?;
        self.finish_placing(&policy, placed).await?;
        if members.is_empty() {
            return Ok(());
        }
        let as_of = DateTime::from_timestamp_millis(chunk.as_of_ms).unwrap_or_default();
        let joined = self.join_line((as_of, repeat), members.clone()).await?;
        if joined < members.len() as u64 {
            // A copy of the message has put some into a pack: it may be handled by nobody any more.
            let mut placed = Placed::default();
            self.leave_placed(&policy, kind, &mut members, &mut placed).await?;
            self.finish_placing(&policy, placed).await?;
        }
        self.admit_paced(&client, &policy.policy, Left::ToAWake).await
    }

    /// Writes single events into their line, now that they are due. Answers how many of them are in a pack now, or recorded
    /// as skipped, that were not before.
    async fn join_line(
        &self,
        terms: (DateTime<Utc>, bool),
        members: Vec<Occurrence>,
    ) -> Result<u64, EngineError> {
        let joining = members.into_iter().map(|occurrence| Joining { row: None, occurrence }).collect();
        let joined = Lines::default().join_packed(&self.throttle, terms, joining).await;
        let mut first_error = None;
        for Failure { runs, error } in joined.failed {
            if error.is_of_one_row() {
                let reason = error.to_string();
                let asides: Vec<_> = runs
                    .iter()
                    .map(|Joining { occurrence, .. }| self.contents.set_aside(occurrence, &reason))
                    .collect();
                // All of them, whatever becomes of one.
                let asides: Vec<_> = stream::iter(asides).buffer_unordered(RECORDED_AT_ONCE).collect().await;
                first_error = first_error.or(asides.into_iter().find_map(Result::err));
            } else {
                first_error = first_error.or(Some(error));
            }
        }
        first_error.map_or(Ok(joined.runs + joined.line_full), Err)
    }

    async fn finish_placing(&self, policy: &PolicyRef, placed: Placed) -> Result<(), EngineError> {
        self.effects.carry_out(placed.effects).await?;
        // Not before: to a copy of the message, what is remembered is done.
        self.throttle.memory.keep_pack_log(&policy.client, &policy.policy, &placed.packs);
        for pack in placed.packs.iter().filter(|pack| placed.now.contains(&pack.id)) {
            self.throttle.memory.keep_placed(&policy.client, &policy.policy, pack);
        }
        Ok(())
    }

    /// Those whose jobs were stored. Whoever was to store the others, and has not, cannot any more.
    async fn stored(
        &self,
        client: &ClientId,
        members: Vec<Occurrence>,
    ) -> Result<Vec<Occurrence>, EngineError> {
        let ids: Vec<_> = members.iter().map(|member| &member.job).collect();
        let are_stored = self.store.were_stored(client, &ids).await?;
        Ok(members.into_iter().zip(are_stored).filter_map(|(member, is)| is.then_some(member)).collect())
    }

    /// Has events admitted at once, if they can be. Returns those that are to join the line.
    async fn place_straight(
        &self,
        policy: &PolicyRef,
        kind: SinglesKind,
        mut members: Vec<Occurrence>,
        repeat: bool,
        placed: &mut Placed,
    ) -> Result<Vec<Occurrence>, EngineError> {
        let line = (&policy.client, &policy.policy, kind);
        let mut next = match repeat {
            true => self.leave_placed(policy, kind, &mut members, placed).await?,
            false => self.throttle.memory.leave_packed(line, &mut members, |member| member),
        };
        for _ in 0..NUMBERS_TRIED {
            if members.is_empty() {
                break;
            }
            let Some((group, slots, snapshot)) = self.room_for(policy, kind, &members).await? else { break };
            let to = Straight { group: group.key.group, refills: group.refills };
            let pack =
                Singles { id: kind.number(next), as_of: None, straight: Some(to), members: members.clone() };
            // Before anything holds a token: each tick looks after it from now on.
            self.store.touch_active(&policy.client, &policy.policy, self.clock.now()).await?;
            if self.store.put_pack(&policy.client, &policy.policy, &pack, self.clock.now()).await?
                == Create::Done
            {
                let effects = self.go_straight(policy, (&group, &slots), (&pack, to), snapshot).await?;
                placed.effects.extend(effects);
                placed.now.push(pack.id);
                placed.packs.push(pack);
                return Ok(Vec::new());
            }
            next = self.leave_placed(policy, kind, &mut members, placed).await?;
        }
        Ok(members)
    }

    /// Takes out what is in a pack already, and sees to it that packs that were to go straight to a group are there. Returns
    /// the number of the next pack.
    async fn leave_placed(
        &self,
        policy: &PolicyRef,
        kind: SinglesKind,
        members: &mut Vec<Occurrence>,
        placed: &mut Placed,
    ) -> Result<u32, EngineError> {
        let packs = self.store.readable_packs_of(&policy.client, &policy.policy, kind, 0).await?;
        for pack in &packs {
            let open = members.len();
            members.retain(|member| !pack.has(member));
            if let Some(to) = pack.straight.filter(|_| members.len() < open) {
                placed.effects.extend(self.finish_straight(policy, pack, to).await?);
                placed.now.push(pack.id);
            }
        }
        let next = packs.last().map_or(0, |last| last.id.number.saturating_add(1));
        placed.packs = packs;
        Ok(next)
    }

    /// A slot group that has room for all of them, and its slots; `None`: they join the line.
    async fn room_for(
        &self,
        policy: &PolicyRef,
        kind: SinglesKind,
        members: &[Occurrence],
    ) -> Result<Option<(SlotGroup, Vec<u32>, PolicySnapshot)>, EngineError> {
        let PolicyRef { client, policy } = policy;
        let events = u32::try_from(members.len()).unwrap_or(u32::MAX);
        if events > TOKENS_PER_GROUP || packs::fitting(members) < members.len() {
            return Ok(None);
        }
        let Some(policy) = self.store.policy(client, policy).await? else { return Ok(None) };
        self.throttle.memory.keep_snapshot(
            client,
            &policy.id,
            self.clock.now(),
            PolicySnapshot::from(&policy),
        );
        // Fairness alone depends on it, so it may be a little out of date.
        if self.store.is_anything_waiting(client, &policy.id, self.clock.now()).await? {
            return Ok(None);
        }
        for number in self.throttle.group_numbers(&policy).take(GROUPS_LOOKED_AT) {
            let group = self.throttle.group_in_step(&policy, number).await?;
            let slots = group.slots_for(events, kind.cost);
            let is_free = group.refill == Refill::Idle && !group.share.rated && group.can_hold(kind.cost);
            if is_free && slots.len() == members.len() {
                return Ok(Some((group, slots, PolicySnapshot::from(&policy))));
            }
        }
        Ok(None)
    }

    /// Has a pack admitted whose row is written. What the group refuses waits in the line.
    async fn go_straight(
        &self,
        policy: &PolicyRef,
        (group, slots): (&SlotGroup, &[u32]),
        (pack, to): (&Singles, Straight),
        snapshot: PolicySnapshot,
    ) -> Result<Vec<Effect>, EngineError> {
        self.contents.keep_pack(policy, &Arc::new(pack.clone()));
        // Whoever changes a job of it cannot see it before the group has it: it is looked up in any case.
        let (id, history_days) = (PackId::Singles(pack.id), pack.history_days());
        let known = PackRef { pack: id, watched: false, recheck: true, history_days, tries: None };
        let lease = self.throttle.new_lease(snapshot.lease);
        let admit = Transition::admit(group, slots, pack.id.kind.cost, known, lease);
        match self.store.perform(&group.key, &admit).await? {
            Written::Done(group) => Ok(vec![Effect::Send(Granted::all_in(&group, slots.iter().copied()))]),
            Written::Refused(_) => self.finish_straight(policy, pack, to).await,
        }
    }

    /// Sees to it that the events of a pack that was to go straight to a group were granted there, or wait in the line.
    async fn finish_straight(
        &self,
        policy: &PolicyRef,
        pack: &Singles,
        to: Straight,
    ) -> Result<Vec<Effect>, EngineError> {
        let PolicyRef { client, policy: id } = policy;
        let key = GroupKey { client: client.clone(), policy: id.clone(), group: to.group };
        for _ in 0..WRITE_ROUNDS {
            if let Some(group) = self.store.slot_group(&key).await? {
                if let Some(number) = group.number_of(&PackId::Singles(pack.id)) {
                    // Whoever granted them may have died before they were sent.
                    let leases = group.leases.values().filter(|lease| lease.id.pack_number == number);
                    let granted = Granted::all_in(&group, leases.map(|lease| lease.id.slot));
                    return Ok(vec![Effect::Send(granted)]);
                }
                if group.refills <= to.refills {
                    self.store.perform(&key, &Transition::bar_admission(to.refills)).await?;
                    continue;
                }
            }
            // Not granted, or granted, ended and forgotten: then the history has them.
            let of = HistoryOf::Singles(id.clone(), pack.id);
            if !self.store.history(client, &of, None).await?.rows.is_empty() {
                return Ok(Vec::new());
            }
            self.store.touch_active(client, id, self.clock.now()).await?;
            return match self.store.queue_pack(client, id, pack, to).await? {
                Write::Done => self.throttle.admission(client, id).await,
                Write::Refused => Ok(Vec::new()),
            };
        }
        Err(EngineError::Contended { what: "a slot group", rounds: WRITE_ROUNDS })
    }

    /// Sets aside what a message panicked over. Its events are handled one by one from now on; the one at fault is recorded.
    pub(crate) async fn set_aside_arrivals(
        &self,
        chunk: &Chunk,
        panicked: &Panicked,
    ) -> Result<(), EngineError> {
        let (at, members) = chunk.arrivals()?;
        if let [member] = members.as_slice() {
            self.store.stop_single(member, &panicked.to_string(), self.clock.now()).await?;
            return Ok(());
        }
        // Some may be placed, or halfway.
        let alone = |item| Message::Arrival(Chunk { items: vec![item], repeat: true, ..chunk.clone() });
        let each = chunk.items.iter().cloned();
        let each: Vec<_> = each.map(|item| Outgoing::at(&at.client, alone(item), at.launch_at)).collect();
        self.queues.dispatch(&each).await
    }
}
