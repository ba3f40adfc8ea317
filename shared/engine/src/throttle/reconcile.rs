//! Reconciling a policy: the tick brings all of its slot groups in order, some at a time.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::occurrence::StopReason;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::policy::{OnExpiry, Policy};
use tidegate_domain::slots::{Refill, SlotGroup};
use tidegate_store::line::LineEntry;
use tidegate_store::policies::ActivePolicy;

use super::Throttle;
use super::parts::Supply;
use super::serve::{Served, sending};
use super::shares::GROUPS_AT_ONCE;
use crate::effect::{Effect, Granted, Reconciliation, WaitingRun};
use crate::error::readable;
use crate::{EngineError, figures};

/// How long a policy stays on the list of active ones after something last joined its line, in seconds.
const RETIRE_AFTER_SECONDS: i64 = 120;

impl Throttle {
    /// Brings the next groups in order. What they grant is sent before the ones behind them are looked at.
    pub(crate) async fn reconcile(&self, mut open: Reconciliation) -> Result<Vec<Effect>, EngineError> {
        let behind = open.groups.split_off(open.groups.len().saturating_sub(GROUPS_AT_ONCE));
        if behind.is_empty() {
            return match open.is_idle {
                true => self.retire(&open.policy).await,
                false => self.even_out(open).await,
            };
        }
        let each = behind.into_iter().rev().map(|group| self.reconcile_group(&open.policy, group));
        let (mut granted, mut follow) = (Vec::new(), Vec::new());
        let mut failure = None;
        for done in join_all(each).await {
            match done {
                Ok((some, more, group)) => {
                    open.is_idle &= group.is_idle();
                    granted.extend(some);
                    follow.extend(more);
                    if group.range().is_some() && group.grantable().is_empty() {
                        open.full.push(group);
                    } else if group.refill == Refill::Idle {
                        open.rooms.push(group.slots_for(u32::MAX, 1).len() as u32);
                    }
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // What the others granted is sent first: nobody else would send it before its lease ends.
        let mut effects: Vec<Effect> = sending(granted).into_iter().chain(follow).collect();
        effects.push(failure.map_or_else(|| Effect::Reconcile(Box::new(open)), Effect::Fail));
        Ok(effects)
    }

    async fn reconcile_group(
        &self,
        policy: &Policy,
        seen: SlotGroup,
    ) -> Result<(Vec<Granted>, Vec<Effect>, SlotGroup), EngineError> {
        let (seen, again) = match policy.terms.on_expiry() {
            OnExpiry::Reclaim => self.reclaim(policy, seen).await?,
            OnExpiry::Hold => (seen, Vec::new()),
        };
        let served = self.serve(Served::new(seen, again), (policy.into(), Supply::Room), None).await?;
        if let Some(due_from) = served.group.serving().and_then(PackId::launches_from) {
            figures::line_age(self.clock.now() - due_from);
        }
        let returned = self.return_what_does_not_fit(policy, &served.group).await;
        let (granted, mut effects, group) = served.into_parts();
        effects.push(Effect::Compact(Box::new(group.clone())));
        effects.extend(returned.err().map(Effect::Fail));
        Ok((granted, effects, group))
    }

    /// Groups that have no token free give the events that they have left back to the line, as far as others have room for
    /// them: those would wait for a release here, while tokens are free there. Not under a rate, for which room may wait.
    async fn even_out(&self, open: Reconciliation) -> Result<Vec<Effect>, EngineError> {
        let Reconciliation { policy, mut rooms, full, .. } = open;
        if policy.rate().is_some() {
            return Ok(Vec::new());
        }
        let finds_room = |group: &&SlotGroup| {
            let range = group.range();
            range.is_some_and(|range| take_room(&mut rooms, range.left, group.weight(range.cost)))
        };
        let returns: Vec<_> =
            full.iter().filter(finds_room).map(|group| self.return_range_of(&policy, group)).collect();
        let returned = stream::iter(returns).buffer_unordered(GROUPS_AT_ONCE);
        let given_back: Vec<()> = returned.try_collect().await?;
        let name = PolicyRef::new(&policy.client, &policy.id);
        Ok(if given_back.is_empty() { Vec::new() } else { vec![Effect::WakeNow(name)] })
    }

    /// A group that will never grant what it has, since the limit was lowered, gives it back to the line.
    async fn return_what_does_not_fit(&self, policy: &Policy, seen: &SlotGroup) -> Result<(), EngineError> {
        let Some(range) = seen.range() else { return Ok(()) };
        let limit = policy.open_limit();
        if tidegate_domain::shares::target(limit, seen.key.group) >= range.cost.min(limit) {
            return Ok(());
        }
        self.return_range_of(policy, seen).await
    }

    /// Gives what a group has left to grant back to the line.
    async fn return_range_of(&self, policy: &Policy, seen: &SlotGroup) -> Result<(), EngineError> {
        let Some(range) = seen.range().copied() else { return Ok(()) };
        let Some(pack) = seen.packs.get(&range.pack_number) else { return Ok(()) };
        let place = match &pack.pack {
            PackId::Run(run) => match readable(self.contents.run_terms(&policy.client, run).await)? {
                Some(terms) => (pack, terms.terms.flow.rank(), run.launch_at()),
                None => return Ok(self.store.drop_range(seen, range, run).await.map(drop)?),
            },
            PackId::Singles(id) => match readable(self.contents.pack(&PolicyRef::of(seen), *id).await)? {
                Some(found) => (pack, id.kind.rank, found.launch_at()),
                None => return Ok(self.store.drop_uncounted(seen, range).await.map(drop)?),
            },
        };
        Ok(self.store.return_range(seen, range, place).await.map(drop)?)
    }

    /// Takes an idle policy off the list of active ones, unless something joins its line.
    async fn retire(&self, policy: &Policy) -> Result<Vec<Effect>, EngineError> {
        let active = self.store.active_policy(&policy.client, &policy.id).await?;
        let Some(active) = active.filter(|active| is_retirable(active, self.clock.now())) else {
            return Ok(Vec::new());
        };
        let name = PolicyRef::new(&policy.client, &policy.id);
        let line = self.line_page(&name).await?;
        self.drain_forgotten(&name, &line).await?;
        // What was taken out of the line since the groups were looked at is in one of them.
        if line.is_empty() && self.groups_in_step(policy).await?.iter().all(SlotGroup::is_idle) {
            self.store.retire_active(&active).await?;
        }
        // Whoever stopped a run and died may have left its entry, due or not.
        let mut effects = Vec::new();
        for entry in line.iter().filter(|entry| entry.is_exhausted()) {
            effects.extend(self.exhausted(&name, entry).await?);
        }
        Ok(effects)
    }

    /// The policy is gone: what waits for it never gets a token, and that is recorded.
    pub(crate) async fn abandon_line(&self, policy: &PolicyRef) -> Result<Vec<Effect>, EngineError> {
        let line = self.line_page(policy).await?;
        if line.is_empty()
            && let Some(active) = self.store.active_policy(&policy.client, &policy.policy).await?
            && is_retirable(&active, self.clock.now())
        {
            self.store.retire_active(&active).await?;
        }
        let reason = StopReason::PolicyDeleted.as_str();
        let stop = |entry: LineEntry| match entry.pack.clone() {
            PackId::Run(run) => {
                let (policy, rank) = (policy.clone(), entry.rank());
                Effect::Stop(WaitingRun { policy, run, rank }, reason)
            }
            PackId::Singles(_) => Effect::StopSingles(policy.clone(), Box::new(entry), reason),
        };
        Ok(line.into_iter().map(stop).collect())
    }
}

fn is_retirable(active: &ActivePolicy, now: DateTime<Utc>) -> bool {
    (now - active.touched_at).num_seconds() > RETIRE_AFTER_SECONDS
}

/// Takes the room of so many events of a weight, or of fewer; whether there was any.
fn take_room(rooms: &mut [u32], events: u32, weight: u32) -> bool {
    let mut left = events;
    for room in rooms.iter_mut() {
        let fitting = room.checked_div(weight).unwrap_or_default().min(left);
        *room = room.saturating_sub(fitting.saturating_mul(weight));
        left = left.saturating_sub(fitting);
    }
    left < events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_once() {
        let mut rooms = [2, 0, 5];
        assert!(take_room(&mut rooms, 3, 2));
        assert_eq!(rooms, [0, 0, 1]);
        assert!(!take_room(&mut rooms, 1, 2));
        assert!(take_room(&mut rooms, 60, 1) && !take_room(&mut rooms, 1, 1));
    }
}
