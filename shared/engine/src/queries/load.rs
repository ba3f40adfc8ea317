//! What goes on in a policy.

use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_store::line::WaitingRuns;

use super::Queries;
use crate::EngineError;
use crate::error::readable;

/// A policy, and what goes on in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyStatus {
    /// The policy.
    pub policy: Policy,
    /// What goes on.
    pub load: Load,
}

/// What goes on in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Tokens that events hold.
    pub in_flight: u32,
    /// Events that were launched and wait for one.
    pub waiting: u32,
    /// Runs in its line, due or not.
    pub waiting_runs: u32,
}

impl Queries {
    /// A policy, and what goes on in it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn policy(
        &self,
        client: &ClientId,
        id: &PolicyId,
    ) -> Result<Option<PolicyStatus>, EngineError> {
        let Some(policy) = self.store.policy(client, id).await? else { return Ok(None) };
        let load = self.load(&policy).await?;
        Ok(Some(PolicyStatus { policy, load }))
    }

    pub(crate) async fn load(&self, policy: &Policy) -> Result<Load, EngineError> {
        let mut load = Load::default();
        for group in self.throttle.groups_as_they_are(policy).await? {
            load.in_flight += group.held;
            load.waiting += group.range().map_or(0, |range| range.left);
        }
        let now = self.clock.now();
        let (mut waiting, mut after) = (WaitingRuns::default(), None);
        loop {
            let page = self.store.line(&policy.client, &policy.id, after).await?;
            for entry in page.rows {
                waiting.add(&entry);
                let due = match entry.pack {
                    _ if entry.launch_at > now => 0,
                    PackId::Run(_) => entry.count,
                    PackId::Singles(id) => {
                        let pack = self.contents.pack(&PolicyRef::new(&policy.client, &policy.id), id).await;
                        readable(pack)?.map_or(entry.count, |pack| pack.due(now))
                    }
                };
                load.waiting += due.saturating_sub(entry.cursor);
            }
            after = page.next;
            if after.is_none() {
                return Ok(Load { waiting_runs: waiting.count(), ..load });
            }
        }
    }
}
