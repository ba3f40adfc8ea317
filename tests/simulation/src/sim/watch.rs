//! What is looked at after every step: the slot groups that were written.
//!
//! I1: the entries of a policy's groups never outnumber the largest limit in force since the oldest of them was
//! granted, nor that in force now after a further grant; an event that is delivered again keeps its token. I3: an event is
//! granted for the first time once, and is one of its run's. I4: an entry goes only by its own release, after its lease,
//! or with its run; fencing numbers only rise. I5: a group holds as many tokens as it says. I7: a token is held by an event of
//! its own policy's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, PolicyId, RunId};
use tidegate_domain::token::Token;
use tidegate_store::Store;
use tidegate_store::slots::{GroupKey, Held, Outcome, Range, SlotGroup};

use super::Violation;
use super::bites::Bite;
use super::chaos::Chaos;
use super::model::{Model, PolicyModel};
use super::setup::is_poison;

/// What was seen of the slot groups, and what consumers asked for.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Where to count what is seen of the faults.
    chaos: Arc<Chaos>,
    groups: BTreeMap<GroupKey, SlotGroup>,
    /// At which step a lease was first seen, by its group and fencing number.
    granted_in: BTreeMap<(GroupKey, u64), u64>,
    first_grants: BTreeSet<(ClientId, EventId)>,
    /// Tokens that consumers have asked to release.
    asked: BTreeSet<Token>,
    /// What to tell of the groups.
    notes: Vec<String>,
}

fn group_key(pk: &str) -> Option<GroupKey> {
    let mut parts = pk.split('|');
    let (client, policy, group) = (parts.next()?, parts.next()?, parts.next()?);
    Some(GroupKey { client: client.parse().ok()?, policy: policy.parse().ok()?, group: group.parse().ok()? })
}

impl Watch {
    pub(crate) fn new(chaos: &Arc<Chaos>) -> Self {
        Self {
            chaos: Arc::clone(chaos),
            groups: BTreeMap::new(),
            granted_in: BTreeMap::new(),
            first_grants: BTreeSet::new(),
            asked: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// A consumer asks for the release of a token.
    pub(crate) fn asks(&mut self, token: &Token) {
        self.asked.insert(token.clone());
    }

    /// Whether a consumer has asked for the release of the lease that has this slot and fencing number.
    pub(crate) fn is_asked(&self, token: &Token) -> bool {
        let lease = |t: &Token| (t.client.clone(), t.policy.clone(), t.group, t.slot, t.fence);
        self.asked.iter().any(|asked| lease(asked) == lease(token))
    }

    /// Whether the slot of a token is another lease's now.
    pub(crate) fn is_anothers(&self, token: &Token) -> bool {
        let key = |t: &Token| (t.client.clone(), t.policy.clone(), t.group);
        let group = self
            .groups
            .values()
            .find(|g| (g.key.client.clone(), g.key.policy.clone(), g.key.group) == key(token));
        group.and_then(|group| group.slots.get(&token.slot)).is_some_and(|held| held.fence != token.fence)
    }

    /// The tokens that are the only ones held of their policies, while nothing waits, and that consumers have received.
    pub(crate) fn last_tokens(&self, model: &Model) -> Vec<Token> {
        let mut by_policy: BTreeMap<(&ClientId, &PolicyId), Vec<&SlotGroup>> = BTreeMap::new();
        for group in self.groups.values() {
            by_policy.entry((&group.key.client, &group.key.policy)).or_default().push(group);
        }
        let mut tokens = Vec::new();
        for groups in by_policy.into_values() {
            let waits = groups.iter().any(|group| group.range.left > 0 || group.wanted.is_some());
            let mut held = groups
                .iter()
                .flat_map(|group| group.slots.iter().map(move |(slot, held)| (group, slot, held)));
            if let (false, Some((group, slot, last)), None) = (waits, held.next(), held.next())
                && let Some(run) = group.run(last.run_number)
                && model.has_received(&group.key.client, &run.event(last.index))
            {
                tokens.push(token(group, *slot, last));
            }
        }
        tokens
    }

    /// Looks at the groups that were written since the last look. `latest` is the latest instant that any process may go by.
    pub(crate) async fn look(
        &mut self,
        store: &Store,
        model: &Model,
        touched: BTreeSet<String>,
        step: u64,
        latest: DateTime<Utc>,
    ) -> anyhow::Result<Result<(), Violation>> {
        // Whether something was granted, by policy.
        let mut policies: BTreeMap<(ClientId, PolicyId), bool> = BTreeMap::new();
        for key in touched.iter().filter_map(|pk| group_key(pk)) {
            let granted = policies.entry((key.client.clone(), key.policy.clone())).or_default();
            let seen = store.slot_group(&key).await?;
            let before = self.groups.remove(&key);
            if let Some(before) = &before
                && let Err(violation) = self.left(store, model, before, seen.as_ref(), latest).await?
            {
                return Ok(Err(violation));
            }
            let Some(seen) = seen else { continue };
            self.notes.push(told(&seen));
            match self.joined(model, before.as_ref(), &seen, step) {
                Ok(joined) => *granted |= joined,
                Err(violation) => return Ok(Err(violation)),
            }
            self.groups.insert(key, seen);
        }
        Ok(policies.iter().try_for_each(|((client, policy), granted)| {
            self.bounded(model, (client, policy), granted.then_some(step))
        }))
    }

    /// Entries that are gone, or belong to another lease now.
    async fn left(
        &self,
        store: &Store,
        model: &Model,
        before: &SlotGroup,
        seen: Option<&SlotGroup>,
        latest: DateTime<Utc>,
    ) -> anyhow::Result<Result<(), Violation>> {
        for (slot, held) in &before.slots {
            let stays = seen
                .and_then(|seen| seen.slots.get(slot))
                .is_some_and(|held_now| held_now.fence == held.fence);
            if stays || self.asked.contains(&token(before, *slot, held)) {
                continue;
            }
            let policy = model.policy(&before.key.client, &before.key.policy);
            if held.lease_end <= latest && !policy.is_some_and(PolicyModel::holds) {
                self.chaos.count(Bite::Reclaimed);
                continue;
            }
            let run = match before.run(held.run_number) {
                Some(run) => store.run(&before.key.client, run).await?,
                None => None,
            };
            let is_poison = run.as_ref().is_some_and(|run| is_poison(&run.terms.target));
            let stopped = run.is_some_and(|run| run.stopped.is_some() || run.tally.dead > 0);
            let dead = |entry: &tidegate_store::slots::OutcomeEntry| {
                (entry.run_number, entry.ended.index, entry.ended.outcome)
                    == (held.run_number, held.index, Outcome::Dead)
            };
            let undeliverable = seen.is_some_and(|seen| seen.outcomes.iter().chain(&seen.packing).any(dead));
            if undeliverable && is_poison {
                self.chaos.count(Bite::PoisonFreed);
            }
            if !stopped && !undeliverable {
                return Ok(Err(Violation::new(
                    "I4",
                    format!(
                        "slot {slot} of {:?} lost its live lease {held:?}, and nobody released it",
                        before.key
                    ),
                )));
            }
        }
        Ok(Ok(()))
    }

    /// Entries that are new. Whether one of them was granted for the first time.
    fn joined(
        &mut self,
        model: &Model,
        before: Option<&SlotGroup>,
        seen: &SlotGroup,
        step: u64,
    ) -> Result<bool, Violation> {
        let mut granted = false;
        let next_before = before.map_or(1, |before| before.next_fence);
        if seen.next_fence < next_before {
            return Err(Violation::new("I4", format!("the fencing number of {:?} fell", seen.key)));
        }
        let tokens: u32 = seen.slots.values().map(|held| held.cost).sum();
        if seen.held != tokens {
            let message = format!("{:?} says {} held and has entries of {tokens}", seen.key, seen.held);
            return Err(Violation::new("I5", message));
        }
        for (slot, held) in &seen.slots {
            let known =
                before.and_then(|before| before.slots.get(slot)).is_some_and(|old| old.fence == held.fence);
            if known {
                continue;
            }
            if held.fence < next_before {
                let message = format!("slot {slot} of {:?} has an old fencing number: {held:?}", seen.key);
                return Err(Violation::new("I4", message));
            }
            let since = self.holds_since(before, seen, *slot, held).unwrap_or(step);
            self.granted_in.insert((seen.key.clone(), held.fence), since);
            let Some(run) = seen.run(held.run_number) else {
                let message = format!("slot {slot} of {:?} names an unknown run: {held:?}", seen.key);
                return Err(Violation::new("I3", message));
            };
            belongs(model, &seen.key, run, held.index)?;
            granted |= held.attempt == 1;
            let event = run.event(held.index);
            if held.attempt == 1 && !self.first_grants.insert((seen.key.client.clone(), event.clone())) {
                return Err(Violation::new(
                    "I3",
                    format!("event {event} was granted anew in {:?}", seen.key),
                ));
            }
        }
        Ok(granted)
    }

    /// An event that is delivered again keeps the token that it was granted at first.
    fn holds_since(
        &self,
        before: Option<&SlotGroup>,
        seen: &SlotGroup,
        slot: u32,
        held: &Held,
    ) -> Option<u64> {
        let old = before?.slots.get(&slot)?;
        let same = held.attempt > 1 && (old.run_number, old.index) == (held.run_number, held.index);
        same.then(|| self.granted_in.get(&(seen.key.clone(), old.fence)).copied())?
    }

    /// `granted` is the step in which something was just granted, if anything was.
    fn bounded(
        &self,
        model: &Model,
        (client, policy): (&ClientId, &PolicyId),
        granted: Option<u64>,
    ) -> Result<(), Violation> {
        let groups = self.groups.values().filter(|g| g.key.client == *client && g.key.policy == *policy);
        let entries: Vec<(&GroupKey, &Held)> =
            groups.flat_map(|g| g.slots.values().map(|held| (&g.key, held))).collect();
        let granted_in =
            |(key, held): &(&GroupKey, &Held)| self.granted_in.get(&((*key).clone(), held.fence)).copied();
        let tokens: u32 = entries.iter().map(|(_, held)| held.cost).sum();
        let oldest = entries.iter().filter_map(granted_in).min().unwrap_or(u64::MAX);
        let limit = model.policy(client, policy).map_or(0, |policy| policy.largest_since(oldest));
        if tokens > limit {
            let message = format!("policy {client}/{policy}: {tokens} tokens are held, {limit} is the limit");
            return Err(Violation::new("I1", message));
        }
        let Some(step) = granted else { return Ok(()) };
        let limit = model.policy(client, policy).map_or(0, |policy| policy.largest_since(step));
        if tokens > limit {
            let message = format!(
                "policy {client}/{policy}: {tokens} tokens are held after a grant, {limit} is the limit by now"
            );
            return Err(Violation::new("I1", message));
        }
        Ok(())
    }

    /// The groups as they were last seen.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &SlotGroup> {
        self.groups.values()
    }
}

/// I3, I7: an event is one of its run's, and holds a token of its own client's policy.
fn belongs(model: &Model, key: &GroupKey, run: &RunId, index: u32) -> Result<(), Violation> {
    let of_client = model.jobs.iter().filter(|job| job.client == key.client);
    let mut revisions = of_client.flat_map(|job| &job.revisions);
    // Its writer may not have been told of the newest yet.
    let Some(revision) = revisions.find(|r| r.job.id == *run.job() && r.job.revision == run.revision())
    else {
        return Ok(());
    };
    let terms = &revision.job.terms;
    if terms.policy.as_ref() != Some(&key.policy) {
        return Err(Violation::new("I7", format!("an event of {run} holds a token of {key:?}")));
    }
    if index >= terms.count.get() {
        return Err(Violation::new(
            "I3",
            format!("event {index} of {run} was granted in {key:?}, and is none"),
        ));
    }
    Ok(())
}

pub(crate) fn token(group: &SlotGroup, slot: u32, held: &Held) -> Token {
    Token {
        client: group.key.client.clone(),
        policy: group.key.policy.clone(),
        group: group.key.group,
        slot,
        fence: held.fence,
        run_number: held.run_number,
        index: held.index,
        cost: held.cost,
    }
}

fn told(group: &SlotGroup) -> String {
    let slots: Vec<String> = group
        .slots
        .iter()
        .map(|(slot, h)| format!("{slot}:{}.{}f{}c{}", h.run_number, h.index, h.fence, h.cost))
        .collect();
    let Range { run_number, next, left, .. } = group.range;
    format!(
        "{}/{}/{}: plan {}, cap {}, held {} [{}], range {run_number}.{next}+{left}, grant {}, wants {:?}, {}+{} outcomes",
        group.key.client,
        group.key.policy,
        group.key.group,
        group.plan,
        group.cap,
        group.held,
        slots.join(" "),
        group.grant,
        group.wanted,
        group.outcomes.len(),
        group.packing.len()
    )
}
