//! A policy whose client was sidelined: once nothing is left of what waited when it began to drain, its pace is its client's again.

use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_store::Write;
use tracing::info;

use super::Throttle;
use crate::EngineError;

/// Pages of a line that are looked at for what still drains: what is behind them is more than enough.
const PAGES: usize = 10;

impl Throttle {
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
        if self.store.replace_policy(&next, &policy).await? == Write::Refused {
            // It was changed at the same time: the next look sees to it.
            return Ok(policy);
        }
        self.memory.keep_snapshot(&next.client, &next.id, self.clock.now(), (&next).into());
        info!(policy = ?PolicyRef::new(&next.client, &next.id), "what was sidelined has drained");
        Ok(next)
    }
}
