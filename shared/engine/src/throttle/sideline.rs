//! What is sidelined, as the throttle sees it: a policy whose client was goes at its own pace again once nothing is left of what
//! waited when it began to drain; events of a job that were set aside too late are drained.

use std::collections::BTreeSet;

use tidegate_domain::ids::JobId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_domain::sideline::SidelineOf;
use tidegate_store::Write;
use tidegate_store::line::LineEntry;
use tracing::info;

use super::Throttle;
use crate::EngineError;
use crate::queues::Outgoing;

/// Pages of a line that are looked at for what still drains: what is behind them is more than enough.
const PAGES: usize = 10;

impl Throttle {
    /// Drains events of a page of a line whose jobs are not sidelined any more: whoever set them aside saw a job that had drained
    /// by then, and died before it could tell.
    pub(super) async fn drain_forgotten(
        &self,
        policy: &PolicyRef,
        page: &[LineEntry],
    ) -> Result<(), EngineError> {
        let jobs: BTreeSet<JobId> = page.iter().filter_map(LineEntry::sidelined_job).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let sidelines = self.store.recheck(&policy.client).await?.sidelines;
        let forgotten = jobs.into_iter().filter(|job| !sidelines.jobs.contains_key(job));
        let drains = forgotten.map(|job| Outgoing::drain(&policy.client, &SidelineOf::Job(job)));
        self.queues.dispatch(&drains.collect::<Vec<_>>()).await
    }

    /// A policy without its drain, when that is over.
    pub(crate) async fn drained(&self, policy: Policy) -> Result<Policy, EngineError> {
        let Some(drain) = policy.sidelined.as_ref().and_then(|sidelined| sidelined.drain) else {
            return Ok(policy);
        };
        let mut after = None;
        for _ in 0..PAGES {
            let page = self.store.line(&policy.client, &policy.id, after).await?;
            if page.rows.iter().any(|entry| entry.launch_at <= drain.since && !entry.is_exhausted()) {
                return Ok(policy);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut next = Policy { sidelined: None, ..policy.clone() };
        next.plan = policy.plan.changed(policy.limit(), next.limit());
        // On the list first: should we die half way, the next tick brings the shares into step.
        self.store.touch_active(&policy.client, &policy.id, self.clock.now()).await?;
        if self.store.replace_policy(&next, &policy, None).await? == Write::Refused {
            // It was changed at the same time: the next look sees to it.
            return Ok(policy);
        }
        self.memory.keep_snapshot(&next.client, &next.id, self.clock.now(), (&next).into());
        info!(policy = ?PolicyRef::new(&next.client, &next.id), "what was sidelined has drained");
        Ok(next)
    }
}
