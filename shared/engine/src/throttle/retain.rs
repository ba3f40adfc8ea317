//! Rows of runs and packs expire some days after their launch. Those of what still waits then, since its policy is paused or
//! slow, are kept for longer: once a day, from long before they would expire.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::HISTORY_DAYS;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::time::days;

use super::Throttle;
use crate::{EngineError, deadline};

/// Rows that are kept for longer at once.
const RETAINED_AT_ONCE: usize = 32;
/// Entries of a line that are looked at between two looks at the clock.
const RETAINED_BETWEEN_LOOKS: usize = 128;
/// What launched so long ago is kept for longer: half of the time that its rows are kept anyway. It is looked at each day.
const RETAIN_AFTER_DAYS: i64 = HISTORY_DAYS / 2;

impl Throttle {
    /// Keeps the rows of what has waited for long in a page of a policy's line; on the first page also those of what is with
    /// its slot groups. Returns where to go on; `None` at the end. When the time of the call is over, that is within the page.
    /// Repeating it changes nothing.
    pub(crate) async fn retain_waiting(
        &self,
        policy: &PolicyRef,
        after: Option<String>,
    ) -> Result<Option<String>, EngineError> {
        let mut seen = BTreeSet::new();
        if after.is_none()
            && let Some(found) = self.store.policy(&policy.client, &policy.policy).await?
        {
            let groups = self.groups_as_they_are(&found).await?;
            let packs: Vec<PackId> = groups
                .into_iter()
                .flat_map(|group| group.packs.into_values().map(|known| known.pack))
                .collect();
            self.retain_old(policy, packs, &mut seen).await?;
        }
        let page = self.store.line(&policy.client, &policy.policy, after).await?;
        self.drain_forgotten(policy, &page.rows).await?;
        for entries in page.rows.chunks(RETAINED_BETWEEN_LOOKS) {
            let packs = entries.iter().map(|entry| entry.pack.clone()).collect();
            self.retain_old(policy, packs, &mut seen).await?;
            let last = entries.last().map(|entry| entry.line_key.clone());
            if deadline::is_over(&*self.clock) && last.is_some() {
                return Ok(last);
            }
        }
        Ok(page.next)
    }

    /// Keeps the rows of those packs for longer that launched long ago, each once.
    async fn retain_old(
        &self,
        policy: &PolicyRef,
        packs: Vec<PackId>,
        seen: &mut BTreeSet<PackId>,
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        let is_old =
            |pack: &PackId| pack.launches_from().is_none_or(|at| now - at >= days(RETAIN_AFTER_DAYS));
        let old = packs.into_iter().filter(is_old).filter(|pack| seen.insert(pack.clone()));
        let retain: Vec<_> = old.map(|pack| self.retain_pack(policy, pack, now)).collect();
        stream::iter(retain).buffer_unordered(RETAINED_AT_ONCE).try_collect().await
    }

    async fn retain_pack(
        &self,
        policy: &PolicyRef,
        pack: PackId,
        now: DateTime<Utc>,
    ) -> Result<(), EngineError> {
        let client: &ClientId = &policy.client;
        match pack {
            PackId::Run(run) => self.store.retain_run(client, &run, now).await?,
            PackId::Singles(id) => self.store.retain_pack(client, &policy.policy, id, now).await?,
        };
        Ok(())
    }
}
