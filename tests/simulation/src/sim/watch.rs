//! What is looked at after every step: the slot groups that were written.
//!
//! A group is read after each write that was sent to it, and the checkers of I1, I3, I4, I5 and I7 are told how it changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, PolicyId};
use tidegate_domain::pack::{PackId, Singles, SinglesId};
use tidegate_domain::slots::{GroupKey, Lease, Refill, SlotGroup};
use tidegate_domain::token::Token;
use tidegate_store::Store;
use tidegate_store::line::is_part;

use super::chaos::Chaos;
use super::checkers::i1_in_flight::InFlight;
use super::checkers::i3_exact_ids::Grants;
use super::checkers::i4_release_once::{self, Releases};
use super::checkers::{Verdict, i5_tokens_return, i7_no_waiting};
use super::coverage::CoveredFault;
use super::model::Model;

/// What was seen of the slot groups, and what the checkers keep of it.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Where to count what is seen of the faults.
    chaos: Arc<Chaos>,
    groups: BTreeMap<GroupKey, SlotGroup>,
    packs: Packs,
    in_flight: InFlight,
    grants: Grants,
    pub(crate) releases: Releases,
    /// What to tell of the groups.
    notes: Vec<String>,
}

/// The packs of single events that groups have named. They never change.
#[derive(Debug, Default)]
pub(crate) struct Packs(BTreeMap<(ClientId, PolicyId, SinglesId), Singles>);

impl Packs {
    async fn learn(&mut self, store: &Store, chaos: &Chaos, group: &SlotGroup) -> anyhow::Result<()> {
        let GroupKey { client, policy, .. } = &group.key;
        if group.refilling().is_some_and(is_part) {
            chaos.count(CoveredFault::InParts);
        }
        for known in group.packs.values() {
            let PackId::Singles(id) = known.pack else { continue };
            let key = (client.clone(), policy.clone(), id);
            if !self.0.contains_key(&key)
                && let Some(pack) = store.pack(client, policy, id).await?
            {
                if pack.members.len() > 1 {
                    chaos.count(CoveredFault::SharedPack);
                }
                if pack.straight.is_some() {
                    chaos.count(CoveredFault::Straight);
                }
                self.0.insert(key, pack);
            }
        }
        Ok(())
    }

    /// The event of a group's lease.
    fn event(&self, group: &SlotGroup, lease: &Lease) -> Option<EventId> {
        let GroupKey { client, policy, .. } = &group.key;
        match group.pack(lease.id.pack_number)? {
            PackId::Run(run) => Some(run.event(lease.id.index)),
            PackId::Singles(id) => {
                let pack = self.0.get(&(client.clone(), policy.clone(), *id))?;
                Some(pack.member(lease.id.index)?.run_id().event(0))
            }
        }
    }
}

/// A slot group as it was seen twice, one time after the other.
pub(crate) struct Change<'a> {
    packs: &'a Packs,
    pub(crate) key: &'a GroupKey,
    pub(crate) before: Option<&'a SlotGroup>,
    pub(crate) after: Option<&'a SlotGroup>,
}

impl<'a> Change<'a> {
    /// The leases that are new.
    pub(crate) fn began(&self) -> impl Iterator<Item = &'a Lease> + use<'a> {
        leases_without(self.after, self.before)
    }

    /// The leases that are gone.
    pub(crate) fn ended(&self) -> impl Iterator<Item = &'a Lease> + use<'a> {
        leases_without(self.before, self.after)
    }

    /// The event of a new lease.
    pub(crate) fn event_of(&self, lease: &Lease) -> Option<EventId> {
        self.after.and_then(|after| self.packs.event(after, lease))
    }

    /// Whether the event of a new lease may not be wanted any more.
    fn is_looked_up(&self, lease: &Lease) -> bool {
        let known = self.after.and_then(|after| after.packs.get(&lease.id.pack_number));
        known.is_some_and(|known| known.recheck)
    }

    /// Whether the event of a new lease was delivered before, and its target did not take it.
    pub(crate) fn is_sent_again(&self, lease: &Lease) -> bool {
        self.after.is_some_and(|after| after.tries_before(&lease.id).is_some())
    }

    /// The event of a lease that ended.
    pub(crate) fn ended_event_of(&self, lease: &Lease) -> Option<EventId> {
        self.before.and_then(|before| self.packs.event(before, lease))
    }
}

/// The leases of a group that another view of it has not.
fn leases_without<'a>(
    of: Option<&'a SlotGroup>,
    without: Option<&'a SlotGroup>,
) -> impl Iterator<Item = &'a Lease> + use<'a> {
    let is_in = move |lease: &Lease| {
        let other = without.and_then(|group| group.leases.get(&lease.id.slot));
        other.is_some_and(|other| other.id.fence == lease.id.fence)
    };
    of.into_iter().flat_map(|group| group.leases.values()).filter(move |lease| !is_in(lease))
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
            packs: Packs::default(),
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
        let lease = self.groups.get(&token.group).and_then(|group| group.leases.get(&token.lease.slot));
        lease.is_some_and(|lease| lease.id.fence != token.lease.fence)
    }

    /// The tokens that are the only ones held of their policies, while nothing waits, and that consumers have received.
    pub(crate) fn last_tokens(&self, model: &Model) -> Vec<Token> {
        let mut by_policy: BTreeMap<(&ClientId, &PolicyId), Vec<&SlotGroup>> = BTreeMap::new();
        for group in self.groups.values() {
            by_policy.entry((&group.key.client, &group.key.policy)).or_default().push(group);
        }
        let mut tokens = Vec::new();
        for groups in by_policy.into_values() {
            let waits = groups.iter().any(|group| group.refill != Refill::Idle);
            let mut held =
                groups.iter().flat_map(|group| group.leases.values().map(move |lease| (group, lease)));
            if let (false, Some((group, last)), None) = (waits, held.next(), held.next())
                && let Some(event) = self.packs.event(group, last)
                && model.has_received(&group.key.client, &event)
            {
                tokens.extend(group.token(last.id.slot));
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
    ) -> anyhow::Result<()> {
        // Whether something was granted, by policy.
        let mut policies: BTreeMap<(ClientId, PolicyId), bool> = BTreeMap::new();
        for key in touched.iter().filter_map(|pk| group_key(pk)) {
            let (before, after) = (self.groups.remove(&key), store.slot_group(&key).await?);
            if let Some(after) = &after {
                self.packs.learn(store, &self.chaos, after).await?;
            }
            let packs = &self.packs;
            let change = Change { packs, key: &key, before: before.as_ref(), after: after.as_ref() };
            self.releases.ended(store, model, &self.chaos, &change, latest).await?;
            changed(&mut self.in_flight, &mut self.grants, model, &change, step)?;
            for lease in change.began() {
                if change.is_looked_up(lease) {
                    self.chaos.count(CoveredFault::LookedUp);
                }
            }
            let granted = policies.entry((key.client.clone(), key.policy.clone())).or_default();
            *granted |= change.began().any(|lease| lease.attempt == 1);
            if let Some(after) = after {
                self.notes.push(told(&after));
                self.groups.insert(key, after);
            }
        }
        for ((client, policy), granted) in &policies {
            self.in_flight.check(&self.groups, model, (client, policy), granted.then_some(step))?;
        }
        Ok(())
    }

    /// The groups as they were last seen.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &SlotGroup> {
        self.groups.values()
    }
}

fn changed(
    in_flight: &mut InFlight,
    grants: &mut Grants,
    model: &Model,
    change: &Change<'_>,
    step: u64,
) -> Verdict {
    i5_tokens_return::adds_up(change)?;
    i4_release_once::fences(change)?;
    i7_no_waiting::own_policy(model, change)?;
    in_flight.note(change, step);
    grants.check(model, change)
}

fn told(group: &SlotGroup) -> String {
    let lease = |lease: &Lease| {
        let id = lease.id;
        format!("{}:{}.{}f{}c{}", id.slot, id.pack_number, id.index, id.fence, id.cost)
    };
    let leases: Vec<String> = group.leases.values().map(lease).collect();
    format!(
        "{}/{}/{}: plan {}, cap {}, held {} [{}], refill {} {:?}, {}+{} outcomes",
        group.key.client,
        group.key.policy,
        group.key.group,
        group.share.plan,
        group.share.cap,
        group.held,
        leases.join(" "),
        group.refills,
        group.refill,
        group.outcomes.len(),
        group.compacting().len()
    )
}
