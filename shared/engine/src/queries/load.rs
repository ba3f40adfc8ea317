//! What goes on in a policy.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_store::line::{LineEntry, WaitingRuns};

use super::Queries;
use crate::error::readable;
use crate::{EngineError, deadline};

/// Packs of a line that are read at once.
const PACKS_AT_ONCE: usize = 16;

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
    /// When the store does not answer, and [`EngineError::OutOfTime`] when its line is too long for the time of the call.
    pub fn policy<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a PolicyId,
    ) -> BoxFuture<'a, Result<Option<PolicyStatus>, EngineError>> {
        Box::pin(async move {
            let Some(policy) = self.store.policy(client, id).await? else { return Ok(None) };
            let load = self.load(&policy).await?;
            Ok(Some(PolicyStatus { policy: policy.at(self.clock.now()), load }))
        })
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
            page.rows.iter().for_each(|entry| waiting.add(entry));
            let due: Vec<_> = page.rows.iter().map(|entry| self.due_of(policy, entry, now)).collect();
            let due: Vec<u32> = stream::iter(due).buffer_unordered(PACKS_AT_ONCE).try_collect().await?;
            load.waiting = due.into_iter().fold(load.waiting, u32::saturating_add);
            after = page.next;
            if after.is_none() {
                return Ok(Load { waiting_runs: waiting.count(), ..load });
            }
        }
    }

    /// How many events of an entry of a line were launched and wait.
    async fn due_of(
        &self,
        policy: &Policy,
        entry: &LineEntry,
        now: DateTime<Utc>,
    ) -> Result<u32, EngineError> {
        deadline::check(&*self.clock)?;
        let due = match entry.pack {
            _ if entry.launch_at > now => 0,
            PackId::Run(_) => entry.count,
            PackId::Singles(id) => {
                let pack = self.contents.pack(&PolicyRef::new(&policy.client, &policy.id), id).await;
                readable(pack)?.map_or(entry.count, |pack| pack.due(now))
            }
        };
        Ok(due.saturating_sub(entry.cursor))
    }
}
