//! I1: at no instant do more than `max_in_flight` live leases exist for a policy.
//!
//! The tokens that a policy's groups hold never exceed the largest limit in force since the oldest of their leases was
//! granted, nor, after a further grant, the limit in force now. An event that is delivered again keeps its token.

use std::collections::BTreeMap;

use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::slots::{GroupKey, Lease, SlotGroup};

use super::{Verdict, Violation};
use crate::sim::model::Model;
use crate::sim::watch::Change;

/// When leases were granted.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// At which step a lease was first seen, by its group and fencing number.
    granted_in: BTreeMap<(GroupKey, u64), u64>,
}

impl InFlight {
    /// Takes note of the leases that began.
    pub(crate) fn note(&mut self, change: &Change<'_>, step: u64) {
        for lease in change.began() {
            let since = self.held_since(change, lease).unwrap_or(step);
            self.granted_in.insert((change.key.clone(), lease.id.fence), since);
        }
    }

    /// An event that is delivered again keeps the token that it was granted at first.
    fn held_since(&self, change: &Change<'_>, lease: &Lease) -> Option<u64> {
        let (new, old) = (lease.id, change.before?.leases.get(&lease.id.slot)?.id);
        let same = lease.attempt > 1 && (old.pack_number, old.index) == (new.pack_number, new.index);
        same.then(|| self.granted_in.get(&(change.key.clone(), old.fence)).copied())?
    }

    /// `granted_in` is the step in which something was just granted, if anything was.
    pub(crate) fn check(
        &self,
        groups: &BTreeMap<GroupKey, SlotGroup>,
        model: &Model,
        (client, policy): (&ClientId, &PolicyId),
        granted_in: Option<u64>,
    ) -> Verdict {
        let of_policy = groups.values().filter(|g| g.key.client == *client && g.key.policy == *policy);
        let leases: Vec<(&GroupKey, &Lease)> =
            of_policy.flat_map(|g| g.leases.values().map(|lease| (&g.key, lease))).collect();
        let tokens: u32 = leases.iter().map(|(_, lease)| lease.id.cost).sum();
        let began =
            |(key, lease): &(&GroupKey, &Lease)| self.granted_in.get(&((*key).clone(), lease.id.fence));
        let oldest = leases.iter().filter_map(began).min().copied().unwrap_or(u64::MAX);
        let largest_since =
            |step| model.policy(client, policy).map_or(0, |policy| policy.largest_since(step));
        let limit = largest_since(oldest);
        if tokens > limit {
            let message = format!("policy {client}/{policy}: {tokens} tokens are held, {limit} is the limit");
            return Err(Violation::new("I1", "more tokens are held than any limit allowed", message));
        }
        let limit = granted_in.map_or(u32::MAX, largest_since);
        if tokens > limit {
            let message = format!(
                "policy {client}/{policy}: {tokens} tokens are held after a grant, {limit} is the limit now"
            );
            return Err(Violation::new("I1", "a token was granted over a lowered limit", message));
        }
        Ok(())
    }
}
