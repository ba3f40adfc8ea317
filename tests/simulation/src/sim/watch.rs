//! What is looked at after every step: the slot groups that were written.
//!
//! A group is read after each write that was sent to it, and the checkers of I1, I3, I4, I5 and I7 are told how it changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::token::Token;
use tidegate_store::Store;
use tidegate_store::slots::{GroupKey, Held, Range, SlotGroup};

use super::chaos::Chaos;
use super::checkers::i1_in_flight::InFlight;
use super::checkers::i3_exact_ids::Grants;
use super::checkers::i4_release_once::{self, Releases};
use super::checkers::{Verdict, i5_tokens_return, i7_no_waiting};
use super::model::Model;

/// What was seen of the slot groups, and what the checkers keep of it.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Where to count what is seen of the faults.
    chaos: Arc<Chaos>,
    groups: BTreeMap<GroupKey, SlotGroup>,
    in_flight: InFlight,
    grants: Grants,
    pub(crate) releases: Releases,
    /// What to tell of the groups.
    notes: Vec<String>,
}

/// A slot group as it was seen twice, one time after the other.
pub(crate) struct Change<'a> {
    pub(crate) key: &'a GroupKey,
    pub(crate) before: Option<&'a SlotGroup>,
    pub(crate) after: Option<&'a SlotGroup>,
}

impl<'a> Change<'a> {
    /// The leases that are new, by slot.
    pub(crate) fn began(&self) -> impl Iterator<Item = (u32, &'a Held)> + use<'a> {
        leases_without(self.after, self.before)
    }

    /// The leases that are gone, by slot.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (u32, &'a Held)> + use<'a> {
        leases_without(self.before, self.after)
    }

    /// The run of a new lease, as the group knows it.
    pub(crate) fn run_of(&self, held: &Held) -> Option<&'a RunId> {
        self.after.and_then(|after| after.run(held.run_number))
    }
}

/// The leases of a group that another view of it has not.
fn leases_without<'a>(
    of: Option<&'a SlotGroup>,
    without: Option<&'a SlotGroup>,
) -> impl Iterator<Item = (u32, &'a Held)> + use<'a> {
    let leases = of.into_iter().flat_map(|group| &group.slots);
    let is_in = move |slot: &u32, held: &Held| {
        without.and_then(|group| group.slots.get(slot)).is_some_and(|other| other.fence == held.fence)
    };
    leases.filter(move |(slot, held)| !is_in(slot, held)).map(|(slot, held)| (*slot, held))
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
            in_flight: InFlight::default(),
            grants: Grants::default(),
            releases: Releases::default(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
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
    ) -> anyhow::Result<Verdict> {
        // Whether something was granted, by policy.
        let mut policies: BTreeMap<(ClientId, PolicyId), bool> = BTreeMap::new();
        for key in touched.iter().filter_map(|pk| group_key(pk)) {
            let (before, after) = (self.groups.remove(&key), store.slot_group(&key).await?);
            let change = Change { key: &key, before: before.as_ref(), after: after.as_ref() };
            if let Err(violation) = self.releases.ended(store, model, &self.chaos, &change, latest).await? {
                return Ok(Err(violation));
            }
            if let Err(violation) = self.changed(model, &change, step) {
                return Ok(Err(violation));
            }
            let granted = policies.entry((key.client.clone(), key.policy.clone())).or_default();
            *granted |= change.began().any(|(_, held)| held.attempt == 1);
            if let Some(after) = after {
                self.notes.push(told(&after));
                self.groups.insert(key, after);
            }
        }
        Ok(policies.iter().try_for_each(|((client, policy), granted)| {
            self.in_flight.check(&self.groups, model, (client, policy), granted.then_some(step))
        }))
    }

    fn changed(&mut self, model: &Model, change: &Change<'_>, step: u64) -> Verdict {
        i5_tokens_return::adds_up(change)?;
        i4_release_once::fences(change)?;
        i7_no_waiting::own_policy(model, change)?;
        self.in_flight.note(change, step);
        self.grants.check(model, change)
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
