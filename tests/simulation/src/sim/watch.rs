//! What is looked at after every step: the slot groups that were written.
//!
//! I1: the entries of a policy's groups never outnumber the largest limit in force since the oldest of them was
//! granted; an event that is delivered again keeps its token. I3: an event is granted for the first time once. I4: an entry goes only by its own release, after its lease,
//! or with its run; fencing numbers only rise.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, PolicyId};
use tidegate_domain::token::Token;
use tidegate_store::Store;
use tidegate_store::slots::{GroupKey, Held, Outcome, Range, SlotGroup};

use super::Violation;
use super::model::Model;

/// What was seen of the slot groups, and what consumers asked for.
#[derive(Debug, Default)]
pub(crate) struct Watch {
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

    /// Looks at the groups that were written in a step.
    pub(crate) async fn look(
        &mut self,
        store: &Store,
        model: &Model,
        touched: BTreeSet<String>,
        step: u64,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Result<(), Violation>> {
        let mut policies: BTreeSet<(ClientId, PolicyId)> = BTreeSet::new();
        for key in touched.iter().filter_map(|pk| group_key(pk)) {
            policies.insert((key.client.clone(), key.policy.clone()));
            let seen = store.slot_group(&key).await?;
            let before = self.groups.remove(&key);
            if let Some(before) = &before
                && let Err(violation) = self.left(store, before, seen.as_ref(), now).await?
            {
                return Ok(Err(violation));
            }
            let Some(seen) = seen else { continue };
            self.notes.push(told(&seen));
            if let Err(violation) = self.joined(before.as_ref(), &seen, step) {
                return Ok(Err(violation));
            }
            self.groups.insert(key, seen);
        }
        Ok(policies.iter().try_for_each(|(client, policy)| self.bounded(model, client, policy)))
    }

    /// Entries that are gone, or belong to another lease now.
    async fn left(
        &self,
        store: &Store,
        before: &SlotGroup,
        seen: Option<&SlotGroup>,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Result<(), Violation>> {
        for (slot, held) in &before.slots {
            let stays = seen
                .and_then(|seen| seen.slots.get(slot))
                .is_some_and(|held_now| held_now.fence == held.fence);
            if stays || held.lease_end <= now || self.asked.contains(&token(before, *slot, held)) {
                continue;
            }
            let run = match before.run(held.run_number) {
                Some(run) => store.run(&before.key.client, run).await?,
                None => None,
            };
            let stopped = run.is_some_and(|run| run.stopped.is_some() || run.tally.dead > 0);
            let dead = |entry: &tidegate_store::slots::OutcomeEntry| {
                (entry.run_number, entry.index, entry.outcome) == (held.run_number, held.index, Outcome::Dead)
            };
            let undeliverable = seen.is_some_and(|seen| seen.outcomes.iter().chain(&seen.packing).any(dead));
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

    fn joined(&mut self, before: Option<&SlotGroup>, seen: &SlotGroup, step: u64) -> Result<(), Violation> {
        let next_before = before.map_or(1, |before| before.next_fence);
        if seen.next_fence < next_before {
            return Err(Violation::new("I4", format!("the fencing number of {:?} fell", seen.key)));
        }
        if seen.held as usize != seen.slots.len() {
            let message =
                format!("{:?} says {} held and has {} entries", seen.key, seen.held, seen.slots.len());
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
            let event = run.event(held.index);
            if held.attempt == 1 && !self.first_grants.insert((seen.key.client.clone(), event.clone())) {
                return Err(Violation::new(
                    "I3",
                    format!("event {event} was granted anew in {:?}", seen.key),
                ));
            }
        }
        Ok(())
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

    fn bounded(&self, model: &Model, client: &ClientId, policy: &PolicyId) -> Result<(), Violation> {
        let groups = self.groups.values().filter(|g| g.key.client == *client && g.key.policy == *policy);
        let entries: Vec<(&GroupKey, u64)> =
            groups.flat_map(|g| g.slots.values().map(|held| (&g.key, held.fence))).collect();
        let granted_in =
            |(key, fence): &(&GroupKey, u64)| self.granted_in.get(&((*key).clone(), *fence)).copied();
        let oldest = entries.iter().filter_map(granted_in).min().unwrap_or(u64::MAX);
        let limit = model.policy(client, policy).map_or(0, |policy| policy.largest_since(oldest));
        if entries.len() > limit as usize {
            let message =
                format!("policy {client}/{policy}: {} tokens are held, {limit} is the limit", entries.len());
            return Err(Violation::new("I1", message));
        }
        Ok(())
    }

    /// The groups as they were last seen.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &SlotGroup> {
        self.groups.values()
    }
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
    }
}

fn told(group: &SlotGroup) -> String {
    let slots: Vec<String> = group
        .slots
        .iter()
        .map(|(slot, h)| format!("{slot}:{}.{}f{}", h.run_number, h.index, h.fence))
        .collect();
    let Range { run_number, next, left } = group.range;
    format!(
        "{}/{}/{}: cap {}, held {} [{}], range {run_number}.{next}+{left}, grant {}, wants {:?}, {}+{} outcomes",
        group.key.client,
        group.key.policy,
        group.key.group,
        group.cap,
        group.held,
        slots.join(" "),
        group.grant,
        group.wanted,
        group.outcomes.len(),
        group.packing.len()
    )
}
