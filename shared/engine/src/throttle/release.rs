//! The end of leases by a release: one write for each slot group, which hands the slots on.
//!
//! Invariant (I4): a release acts once, on its own lease only. The lease's fencing number is part of the write's condition;
//! repeated, late and forged releases do not meet it.

use std::collections::BTreeMap;

use tidegate_domain::limits::{SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::slots::{Follow, GroupKey, Lease, LeaseEnd, LeaseId, Outcome, SlotGroup, Transition};
use tidegate_domain::token::Token;
use tidegate_store::events::{HistoryOf, Record};
use tidegate_store::slots::Written;
use tracing::warn;

use super::Throttle;
use super::shares::PolicySnapshot;
use crate::EngineError;
use crate::effect::{Effect, Granted, Release};
use crate::queues::Outgoing;
use crate::queues::message::Message;

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The token is free, or went on to the next event.
    Released,
    /// It was released before; nothing changed.
    AlreadyReleased,
    /// The lease ran out, and the token was taken back: the event may be with another consumer.
    Reclaimed,
    /// It belongs to another client; nothing changed.
    NotYours,
    /// No such token was ever given, or its policy is gone.
    Unknown,
    /// The dispatch queue has it: it will be applied as soon as the store answers.
    Deferred,
}

pub(crate) type Answers = Vec<(Token, Released)>;

/// Leases of one group that are to end, at the most one for each slot.
type Pending = Vec<(Token, LeaseEnd)>;

impl Throttle {
    /// Ends the leases of events that cannot be sent. Nobody waits for answers.
    pub(crate) async fn release_unsent(&self, releases: Vec<Release>) -> Result<Vec<Effect>, EngineError> {
        let mut effects = Vec::new();
        for (key, releases) in by_group(releases) {
            match self.release_group(&key, releases.clone()).await {
                Ok((_, more)) => effects.extend(more),
                Err(error) => drop(self.defer(&key, releases, error).await?),
            }
        }
        Ok(effects)
    }

    /// Leaves releases to the dispatch queue, when what stopped them may pass.
    pub(crate) async fn defer(
        &self,
        key: &GroupKey,
        releases: Vec<Release>,
        error: EngineError,
    ) -> Result<Answers, EngineError> {
        if !error.is_retryable() {
            return Err(error);
        }
        warn!(%error, group = ?key, "releases are left to the dispatch queue");
        let message = |release: &Release| {
            let succeeded = release.outcome == Outcome::Succeeded;
            let dead = release.outcome == Outcome::Dead;
            let (token, text) = (release.token.to_string(), release.text.clone());
            Outgoing::now(&key.client, Message::Release { token, succeeded, dead, text })
        };
        self.queues.dispatch(&releases.iter().map(message).collect::<Vec<_>>()).await?;
        Ok(releases.into_iter().map(|release| (release.token, Released::Deferred)).collect())
    }

    /// Ends leases of one slot group and hands their slots on: one write where the group's range suffices.
    pub(crate) async fn release_group(
        &self,
        key: &GroupKey,
        releases: Vec<Release>,
    ) -> Result<(Answers, Vec<Effect>), EngineError> {
        let Some(snapshot) = self.snapshot(&key.client, &key.policy, 0).await? else {
            return Ok((releases.into_iter().map(|r| (r.token, Released::Unknown)).collect(), Vec::new()));
        };
        self.keep_texts(key, &releases).await?;
        let (mut answers, mut effects) = (Vec::with_capacity(releases.len()), Vec::new());
        let mut open = releases;
        // Of two tokens of one slot only one can be live, so they go into writes of their own.
        while !open.is_empty() {
            let (pending, later) = first_of_each_slot(open, &mut answers);
            match self.end_leases(key, pending, &snapshot, &mut answers).await {
                Ok(more) => effects.extend(more),
                Err(error) if effects.is_empty() => return Err(error),
                Err(error) => {
                    effects.push(Effect::Fail(error));
                    break;
                }
            }
            open = later;
        }
        Ok((answers, effects))
    }

    async fn end_leases(
        &self,
        key: &GroupKey,
        mut pending: Pending,
        snapshot: &PolicySnapshot,
        answers: &mut Answers,
    ) -> Result<Vec<Effect>, EngineError> {
        // Nothing is read before the first attempt: that the slots may be handed on is a condition of the write.
        let mut hand_off = snapshot.rate.is_none() && is_of_one_cost(&pending);
        for _ in 0..WRITE_ROUNDS {
            if pending.is_empty() {
                return Ok(Vec::new());
            }
            let ends: Vec<LeaseEnd> = pending.iter().map(|(_, end)| *end).collect();
            let lease = self.new_lease(snapshot.lease);
            let transition = match hand_off {
                true => Transition::hand_off(&ends, lease, self.clock.now()),
                false => Transition::free(&ends),
            };
            match self.store.perform(key, &transition).await? {
                Written::Done(group) => {
                    answers.extend(pending.into_iter().map(|(token, _)| (token, Released::Released)));
                    return Ok(follow_up(&transition, &group));
                }
                Written::Refused(None) => {
                    answers.extend(pending.into_iter().map(|(token, _)| (token, Released::Unknown)));
                    return Ok(Vec::new());
                }
                Written::Refused(Some(group)) => {
                    // The reply to our own write can be lost and the client library repeat it: then it is ours. All of
                    // its leases or none: some may have been released again since.
                    let ours = group.given_by(lease.write_id);
                    if hand_off && !ours.is_empty() {
                        answers.extend(pending.into_iter().map(|(token, _)| (token, Released::Released)));
                        return Ok(vec![Effect::Send(Granted::all_in(&group, ours))]);
                    }
                    let (live, gone): (Pending, Pending) =
                        pending.into_iter().partition(|(_, end)| group.holds(&end.lease));
                    answers
                        .extend(gone.into_iter().map(|(token, end)| (token, why_gone(&group, &end.lease))));
                    pending = live.into_iter().map(|(token, end)| (token, group.at_attempt(end))).collect();
                    let ends: Vec<LeaseEnd> = pending.iter().map(|(_, end)| *end).collect();
                    let again = Transition::hand_off(&ends, lease, self.clock.now());
                    hand_off = is_of_one_cost(&pending) && group.admits(&again);
                }
            }
        }
        Err(EngineError::Contended { what: "a slot group", rounds: WRITE_ROUNDS })
    }

    /// Keeps what consumers say about events whose leases they hold. Before the release: whoever repeats a call that died
    /// in between says it again.
    async fn keep_texts(&self, key: &GroupKey, releases: &[Release]) -> Result<(), EngineError> {
        if releases.iter().all(|release| release.text.is_none()) {
            return Ok(());
        }
        let Some(group) = self.store.slot_group(key).await? else { return Ok(()) };
        let at = self.clock.now();
        let said = |release: &Release| {
            let lease = release.token.lease;
            let known = group.packs.get(&lease.pack_number).filter(|_| group.holds(&lease))?;
            Some(Record::ReleaseNote {
                client: key.client.clone(),
                of: HistoryOf::pack(&key.policy, &known.pack),
                index: lease.index,
                fence: lease.fence,
                outcome: release.outcome,
                text: release.text.clone()?,
                at,
                kept: known.history_days,
            })
        };
        let records: Vec<Record> = releases.iter().filter_map(said).collect();
        Ok(self.store.keep(&records).await?)
    }
}

/// What follows from a transition that ended leases, given the group as it is then.
fn follow_up(transition: &Transition, group: &SlotGroup) -> Vec<Effect> {
    let effect = |follow: Follow| match follow {
        Follow::Send(slots) => Effect::Send(Granted::all_in(group, slots)),
        Follow::Serve => Effect::Serve(Box::new(group.clone())),
        Follow::Reshare => Effect::Reshare(Box::new(group.clone())),
        Follow::Compact => Effect::Compact(Box::new(group.clone())),
    };
    transition.follows(group).into_iter().map(effect).collect()
}

/// The releases that one write can hold; those behind it, and at once answers for those that none can.
fn first_of_each_slot(releases: Vec<Release>, answers: &mut Answers) -> (Pending, Vec<Release>) {
    let (mut pending, mut later): (Pending, Vec<Release>) = (Vec::new(), Vec::new());
    for release in releases {
        let slot = release.token.lease.slot;
        match () {
            () if slot >= SLOTS_PER_GROUP => answers.push((release.token, Released::Unknown)),
            () if pending.iter().any(|(token, _)| *token == release.token) => {
                answers.push((release.token, Released::AlreadyReleased));
            }
            () if pending.iter().any(|(_, end)| end.lease.slot == slot) => later.push(release),
            () => pending.push((release.token.clone(), release.end())),
        }
    }
    (pending, later)
}

fn is_of_one_cost(pending: &Pending) -> bool {
    pending.windows(2).all(|two| matches!(two, [(_, a), (_, b)] if a.lease.cost == b.lease.cost))
}

pub(crate) fn by_group(releases: Vec<Release>) -> BTreeMap<GroupKey, Vec<Release>> {
    let mut groups: BTreeMap<GroupKey, Vec<Release>> = BTreeMap::new();
    for release in releases {
        groups.entry(release.token.group.clone()).or_default().push(release);
    }
    groups
}

/// Why a lease is not the present one of its slot. A fencing number that was never given is nobody's token.
pub(crate) fn why_gone(group: &SlotGroup, lease: &LeaseId) -> Released {
    let present = group.leases.get(&lease.slot);
    // The slot's present lease has this number, for another event: nobody was given such a token.
    let is_forged = present.is_some_and(|held| held.id.fence == lease.fence);
    // The same event under a later number: it was delivered again.
    let is_renewed = |held: &Lease| {
        (held.id.pack_number, held.id.index) == (lease.pack_number, lease.index)
            && held.id.fence > lease.fence
    };
    match () {
        () if lease.fence >= group.next_fence || is_forged => Released::Unknown,
        () if group.reclaimed.contains(&lease.fence) => Released::Reclaimed,
        () if present.is_some_and(is_renewed) => Released::Reclaimed,
        () => Released::AlreadyReleased,
    }
}
