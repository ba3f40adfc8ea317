//! Looking after a policy: all of it when it is woken by the tick, a few of its groups when something joined its line.
//!
//! Whoever frees a slot looks at the line *after* that write; whoever joins the line looks at the slots *after* that
//! write. So one of the two sees the other, and no slot stays idle beside a waiting event.

use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::policy::{OnExpiry, Policy};
use tidegate_store::policies::ActivePolicy;
use tidegate_store::slots::SlotGroup;

use super::serve::{Line, Served};
use super::shares::{Facts, GROUPS_AT_ONCE};
use crate::{Engine, EngineError};

/// How long a policy stays on the list of active ones after something last joined its line, in seconds.
const RETIRE_AFTER_SECONDS: i64 = 120;
/// Full groups that are looked at in a row before the rest is left to those who release.
const FULL_GROUPS: usize = 16;

impl Engine {
    /// Looks after all of a policy: repairs its shares, takes back what nobody released in time, grants what is free.
    ///
    /// Repeating it changes nothing that is in order.
    pub(crate) async fn attend(&self, client: &ClientId, policy: &PolicyId) -> Result<(), EngineError> {
        let Some(policy) = self.store().policy(client, policy).await? else {
            return self.abandon_line(client, policy).await;
        };
        self.judge_overlaps(client, &policy.id).await?;
        let (policy, groups) = self.settle(policy).await?;
        let groups: Vec<_> = groups.into_iter().map(|group| self.attend_group(&policy, group)).collect();
        let idle: Vec<bool> = stream::iter(groups).buffer_unordered(GROUPS_AT_ONCE).try_collect().await?;
        if idle.into_iter().all(|idle| idle) {
            self.retire(&policy).await?;
        }
        Ok(())
    }

    /// Looks for free slots after something joined the line, or its time came: a few groups at a time, until the line has
    /// nothing more or the slots are full. What it does not find, whoever releases does, and the tick. Says whether it
    /// granted any.
    pub(crate) async fn attend_line(
        &self,
        client: &ClientId,
        policy: &PolicyId,
    ) -> Result<bool, EngineError> {
        let Some(policy) = self.store().policy(client, policy).await? else {
            return self.abandon_line(client, policy).await.map(|()| false);
        };
        self.judge_overlaps(client, &policy.id).await?;
        let facts = Facts::from(&policy);
        let groups = policy.plan.groups();
        // Where to begin makes no difference, so it should not always be the same.
        let first =
            u32::try_from(self.now().timestamp_millis().rem_euclid(groups.max(1).into())).unwrap_or(0);
        let numbers: Vec<u32> = (0..groups).map(|step| (first + step) % groups).collect();
        let (mut full, mut any) = (0, false);
        for some in numbers.chunks(GROUPS_AT_ONCE) {
            let look = |number: &u32| self.serve_number(&policy, *number, facts);
            let served = try_join_all(some.iter().map(look)).await?;
            let granted = served.iter().any(|(_, granted)| *granted > 0);
            any |= granted;
            if !granted && served.iter().any(|(line, _)| *line == Line::Nothing) {
                return Ok(any);
            }
            full = if granted { 0 } else { full + some.len() };
            if full >= FULL_GROUPS {
                return Ok(any);
            }
        }
        Ok(any)
    }

    /// Serves one group; says how many events it granted.
    async fn serve_number(
        &self,
        policy: &Policy,
        number: u32,
        facts: Facts,
    ) -> Result<(Line, usize), EngineError> {
        let seen = self.group_in_step(policy, number).await?;
        let Served { group, granted, line } = self.serve(seen, facts).await?;
        let count = granted.len();
        self.send_granted(granted).await?;
        self.flush_if_due(group).await?;
        Ok((line, count))
    }

    async fn attend_group(&self, policy: &Policy, seen: SlotGroup) -> Result<bool, EngineError> {
        let (seen, mut granted) = match policy.terms.on_expiry() {
            OnExpiry::Reclaim => self.take_back(policy, seen).await?,
            OnExpiry::Hold => (seen, Vec::new()),
        };
        let served = self.serve(seen, policy.into()).await?;
        granted.extend(served.granted);
        self.send_granted(granted).await?;
        self.return_what_does_not_fit(policy, &served.group).await?;
        let seen = self.flush(served.group, 1).await?;
        Ok(seen.is_idle())
    }

    /// A group that will never grant what it has, since the limit was lowered, gives it back to the line.
    async fn return_what_does_not_fit(&self, policy: &Policy, seen: &SlotGroup) -> Result<(), EngineError> {
        let goal = tidegate_domain::shares::target(policy.terms.max_in_flight(), seen.key.group);
        let fits = goal >= seen.range.cost.min(policy.terms.max_in_flight());
        let Some(run) = seen.run(seen.range.run_number).filter(|_| seen.range.left > 0 && !fits) else {
            return Ok(());
        };
        let Some(terms) = self.run_terms(&policy.client, run).await? else {
            return self.drop_range(seen, run).await.map(drop);
        };
        self.store().return_range(seen, run, terms.terms.flow.priority).await?;
        Ok(())
    }

    /// Takes an idle policy off the list of active ones, unless something joins its line.
    async fn retire(&self, policy: &Policy) -> Result<(), EngineError> {
        let now = self.now();
        let Some(active) = self.store().active_policy(&policy.client, &policy.id).await? else {
            return Ok(());
        };
        if !is_retirable(&active, now) {
            return Ok(());
        }
        let line = self.store().line(&policy.client, &policy.id, None).await?;
        // Whoever stopped a run and died may have left its entry, due or not.
        for entry in line.rows.iter().filter(|entry| entry.is_exhausted()) {
            self.remove_finished(&policy.client, &policy.id, entry).await?;
        }
        if line.rows.is_empty() {
            self.store().retire_active(&active).await?;
        }
        Ok(())
    }

    /// The policy is gone: what waits for it never gets a token, and that is recorded.
    async fn abandon_line(&self, client: &ClientId, policy: &PolicyId) -> Result<(), EngineError> {
        for entry in self.store().line(client, policy, None).await?.rows {
            self.stop_rest(client, policy, (&entry.run, entry.priority()), "policy deleted").await?;
        }
        if let Some(active) = self.store().active_policy(client, policy).await?
            && is_retirable(&active, self.now())
        {
            self.store().retire_active(&active).await?;
        }
        Ok(())
    }
}

fn is_retirable(active: &ActivePolicy, now: DateTime<Utc>) -> bool {
    (now - active.touched_at).num_seconds() > RETIRE_AFTER_SECONDS
}
