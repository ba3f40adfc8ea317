//! Admitting what waits: a few groups of a policy at a time are looked at for free slots.
//!
//! Whoever frees a slot looks at the line *after* that write; whoever joins the line looks at the slots *after* that
//! write. So one of the two sees the other, and no slot stays idle beside a waiting event.

use futures::future::join_all;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::policy::Policy;
use tidegate_domain::policy::PolicyRef;
use tidegate_store::line::LineEntry;
use tracing::warn;

use super::Throttle;
use super::parts::Supply;
use super::serve::{Line, Served, sending};
use super::shares::{GROUPS_AT_ONCE, PolicySnapshot};
use crate::EngineError;
use crate::effect::{Admission, Effect};

/// Full groups that are looked at in a row before the rest is left to those who release.
const FULL_GROUPS: usize = 16;

impl Throttle {
    /// Looks for free slots after something joined the line, or its time came: until the line has nothing more or the
    /// slots are full. What it does not find, whoever releases does, and the tick.
    pub(crate) async fn admission(
        &self,
        client: &ClientId,
        policy: &PolicyId,
    ) -> Result<Vec<Effect>, EngineError> {
        let name = PolicyRef::new(client, policy);
        let Some(policy) = self.store.policy(client, policy).await? else {
            return self.abandon_line(&name).await;
        };
        let (policy, wake) = self.eased(policy).await?;
        let (mut effects, head) = self.decide_overlaps(&name).await?;
        effects.extend(wake);
        let mut groups: Vec<u32> = self.group_numbers(&policy).collect();
        groups.reverse();
        effects.push(Effect::Admit(Box::new(Admission { policy, groups, full: 0, head: Some(head) })));
        Ok(effects)
    }

    /// The numbers of a policy's slot groups. Where to begin makes no difference, so it should not always be the same.
    pub(crate) fn group_numbers(&self, policy: &Policy) -> impl Iterator<Item = u32> + use<> {
        let count = policy.plan.groups();
        let first =
            u32::try_from(self.clock.now().timestamp_millis().rem_euclid(count.max(1).into())).unwrap_or(0);
        (0..count).map(move |step| (first + step) % count)
    }

    /// Looks at the next groups. What they grant is sent before the ones behind them are looked at.
    pub(crate) async fn admit(&self, mut open: Admission) -> Result<Vec<Effect>, EngineError> {
        let some = open.groups.split_off(open.groups.len().saturating_sub(GROUPS_AT_ONCE));
        let snapshot = PolicySnapshot::from(&open.policy);
        let head = open.head.take();
        let look = |number: &u32| self.serve_number(&open.policy, *number, snapshot, head.as_deref());
        let (mut served, mut failure) = (Vec::<Served>::new(), None);
        for look in join_all(some.iter().rev().map(look)).await {
            match look {
                Ok(one) => served.push(one),
                Err(error) if error.is_of_one_row() => warn!(%error, "a slot group is passed over"),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let is_granted = served.iter().any(|served| !served.granted.is_empty());
        let is_drained = served.iter().any(|served| served.line == Line::Nothing);
        open.full = if is_granted { 0 } else { open.full + some.len() };
        let is_over = open.groups.is_empty() || open.full >= FULL_GROUPS || (is_drained && !is_granted);
        let mut granted = Vec::new();
        served.iter_mut().for_each(|served| granted.append(&mut served.granted));
        let mut effects: Vec<Effect> = sending(granted).into_iter().collect();
        effects.extend(served.into_iter().flat_map(Served::effects));
        match failure {
            // What the others granted is sent first: nobody else would send it before its lease ends.
            Some(error) => effects.push(Effect::Fail(error)),
            None if is_over => {}
            None => effects.push(Effect::Admit(Box::new(open))),
        }
        Ok(effects)
    }

    async fn serve_number(
        &self,
        policy: &Policy,
        number: u32,
        snapshot: PolicySnapshot,
        head: Option<&[LineEntry]>,
    ) -> Result<Served, EngineError> {
        let seen = self.group_in_step(policy, number).await?;
        self.serve(Served::new(seen, Vec::new()), (snapshot, Supply::Room), head).await
    }
}
