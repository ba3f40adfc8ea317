//! Shares: the slot groups of a policy follow its plan, and the plan moves towards the policy's limit.
//!
//! A plan is written in the policy's row before any group follows it, and the next one only when all of them do: so
//! what is read of the groups then bounds what they may ever hold under that plan.

use std::ops::Range;

use chrono::Duration;
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::policy::Policy;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::rate_limit::RateLimit;
use tidegate_domain::slots::{Epoch, GroupKey, Share, SlotGroup, Transition};
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::Write;
use tidegate_store::slots::Written;

use super::Throttle;
use crate::EngineError;
use crate::effect::Effect;
use crate::error::readable;

/// Slot groups looked after at once.
pub(crate) const GROUPS_AT_ONCE: usize = 8;
/// Groups of a draining policy that a release looks at, to hand out shares at once; larger policies are woken instead.
const GROUPS_SETTLED_AT_ONCE: u32 = 8;
/// After how long a larger policy is woken whose shares may move, in seconds.
const SETTLE_AFTER_SECONDS: i64 = 2;

/// What of a policy is believed for half a minute, or until a group follows a later plan. No limit depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicySnapshot {
    /// The number of the plan at which it was read.
    pub(crate) plan: u64,
    /// How many tokens it has, or would have if it were not paused.
    pub(crate) max_in_flight: u32,
    /// How long a new lease lasts.
    pub(crate) lease: Duration,
    /// How fast events may begin.
    pub(crate) rate: Option<RateLimit>,
    /// How many runs may wait.
    pub(crate) max_waiting_runs: Option<u32>,
}

impl From<&Policy> for PolicySnapshot {
    fn from(policy: &Policy) -> Self {
        Self {
            plan: policy.plan.number,
            max_in_flight: policy.terms.max_in_flight(),
            lease: lease_of(policy),
            rate: policy.rate(),
            max_waiting_runs: policy.terms.max_waiting_runs(),
        }
    }
}

impl Throttle {
    /// Brings the groups of a policy in step with its plan, and the plan as near to its limit as what is held allows.
    ///
    /// Repeating it changes nothing that is in order.
    pub(crate) async fn converge(&self, mut policy: Policy) -> Result<(Policy, Vec<SlotGroup>), EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let groups = self.groups_in_step(&policy).await?;
            // How much a group holds that cannot be read nobody knows, so no share moves: the limit holds.
            let is_whole = groups.len() == policy.plan.groups() as usize;
            if policy.plan.is_reached(policy.limit()) || !is_whole {
                return Ok((policy, groups));
            }
            let is_current = groups.iter().all(|group| group.share.plan == policy.plan.number);
            let held: Vec<u32> = groups.iter().map(|group| group.held).collect();
            let next = policy.plan.advanced(policy.limit(), &held);
            let moved = match next {
                _ if !is_current => Write::Refused,
                None => return Ok((policy, groups)),
                Some(plan) => {
                    let written = self.store.replace_plan(&policy, &plan).await?;
                    policy.plan = plan;
                    written
                }
            };
            if moved == Write::Refused {
                // Somebody else moves them, or the policy was changed.
                let seen = self.store.policy(&policy.client, &policy.id).await?;
                policy = seen.ok_or(EngineError::Contended { what: "a policy that goes", rounds: 1 })?;
            }
        }
        Err(EngineError::Contended { what: "a policy's shares", rounds: WRITE_ROUNDS })
    }

    /// All slot groups of a policy, in step with its plan, in their order; without those that cannot be read. Those that are
    /// in step already cost their share of a few reads.
    pub(crate) async fn groups_in_step(&self, policy: &Policy) -> Result<Vec<SlotGroup>, EngineError> {
        let seen = self.all_groups(policy).await?;
        let in_step = async |(number, seen): (u32, Option<SlotGroup>)| match seen {
            Some(seen) if seen.share.plan >= policy.plan.number => Ok(Some(seen)),
            _ => readable(self.group_in_step(policy, number).await.map(Some)),
        };
        let groups: Vec<_> = (0..).zip(seen).map(in_step).collect();
        let groups: Vec<Option<SlotGroup>> =
            stream::iter(groups).buffered(GROUPS_AT_ONCE).try_collect().await?;
        Ok(groups.into_iter().flatten().collect())
    }

    /// A slot group with the share that the policy's plan gives it, or a later one.
    pub(crate) async fn group_in_step(&self, policy: &Policy, group: u32) -> Result<SlotGroup, EngineError> {
        let key = group_key(policy, group);
        for _ in 0..WRITE_ROUNDS {
            match self.store.slot_group(&key).await? {
                None => {
                    // After a repair, numbers of groups that nobody knows any more must not be given again.
                    let epoch = self.store.epoch().await?.unwrap_or(Epoch::from_millis(0));
                    let new = SlotGroup::new(key.clone(), Share::of(policy, group)).in_epoch(epoch);
                    self.store.create_slot_group(&new).await?;
                }
                Some(seen) if seen.share.plan >= policy.plan.number => return Ok(seen),
                Some(_) => {
                    let follow = Transition::set_share(Share::of(policy, group));
                    if let Written::Done(seen) = self.store.perform(&key, &follow).await? {
                        return Ok(seen);
                    }
                }
            }
        }
        Err(EngineError::Contended { what: "a slot group's share", rounds: WRITE_ROUNDS })
    }

    /// All slot groups of a policy as they are, in their order; those that nothing was ever put into are missing, and those
    /// that cannot be read.
    pub(crate) async fn groups_as_they_are(&self, policy: &Policy) -> Result<Vec<SlotGroup>, EngineError> {
        Ok(self.all_groups(policy).await?.into_iter().flatten().collect())
    }

    /// What there is of each of a policy's slot groups, by their numbers. One that cannot be read is as good as none.
    async fn all_groups(&self, policy: &Policy) -> Result<Vec<Option<SlotGroup>>, EngineError> {
        self.groups_of_numbers(policy, 0..policy.plan.groups()).await
    }

    /// What there is of some of a policy's slot groups, by their numbers. One that cannot be read is as good as none.
    pub(crate) async fn groups_of_numbers(
        &self,
        policy: &Policy,
        numbers: Range<u32>,
    ) -> Result<Vec<Option<SlotGroup>>, EngineError> {
        let keys: Vec<GroupKey> = numbers.map(|group| group_key(policy, group)).collect();
        let groups = self.store.slot_groups(&keys).await?;
        groups.into_iter().map(|group| readable(group.map_err(EngineError::from))).collect()
    }

    /// After a release in a group that holds less than its share, or as much as a lowered limit leaves it: what drained
    /// may be handed to others.
    pub(crate) async fn reshare(&self, group: &SlotGroup) -> Result<Vec<Effect>, EngineError> {
        let GroupKey { client, policy, .. } = &group.key;
        if group.share.groups > GROUPS_SETTLED_AT_ONCE {
            let due_at = shifted(self.clock.now(), seconds(SETTLE_AFTER_SECONDS));
            return Ok(vec![Effect::Wake(PolicyRef::of(group), due_at)]);
        }
        let Some(found) = self.store.policy(client, policy).await? else { return Ok(Vec::new()) };
        let (found, _) = self.eased(found).await?;
        if found.paused || found.plan.is_reached(found.limit()) {
            return Ok(Vec::new());
        }
        let before = found.plan.number;
        let (converged, _) = self.converge(found).await?;
        match converged.plan.number > before {
            true => self.admission(client, policy).await,
            false => Ok(Vec::new()),
        }
    }

    /// What is believed of a policy; read anew when `plan` is later than what is believed. `None`: there is no such policy.
    pub(crate) async fn snapshot(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        plan: u64,
    ) -> Result<Option<PolicySnapshot>, EngineError> {
        let now = self.clock.now();
        if let Some(known) = self.memory.snapshot(client, policy, now).filter(|known| known.plan >= plan) {
            return Ok(Some(known));
        }
        let Some(found) = self.store.policy(client, policy).await? else { return Ok(None) };
        let snapshot = PolicySnapshot::from(&found);
        self.memory.keep_snapshot(client, policy, now, snapshot);
        Ok(Some(snapshot))
    }
}

pub(crate) fn lease_of(policy: &Policy) -> Duration {
    seconds(policy.terms.lease_seconds().into())
}

pub(crate) fn group_key(policy: &Policy, group: u32) -> GroupKey {
    GroupKey { client: policy.client.clone(), policy: policy.id.clone(), group }
}
