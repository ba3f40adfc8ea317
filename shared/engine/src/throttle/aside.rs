//! What cannot be read in a policy's line is set aside with its reason, so that what waits behind it goes on.
//!
//! The entry leaves the line as it is: an operator may put it back for a version that can read it. What can be told of the
//! events that it stood for is recorded under their jobs.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::fair::Rank;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::pack::{PackId, SinglesId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::OutcomeEntry;
use tidegate_store::events::{HistoryOf, HistoryRow};
use tidegate_store::line::{LineEntry, pack_of_line_key};
use tidegate_store::{Page, Unreadable};
use tracing::error;

use super::Throttle;
use crate::error::readable;
use crate::figures::ROWS_SET_ASIDE;
use crate::{EngineError, deadline};

/// Records of events that are written at once.
const RECORDS_AT_ONCE: usize = 16;
/// Entries of a line that are set aside at once.
const ENTRIES_AT_ONCE: usize = 8;

impl Throttle {
    /// The first entries of a line that are due. Those that cannot be read are set aside.
    pub(super) async fn line_head(
        &self,
        policy: &PolicyRef,
        limit: i32,
    ) -> Result<Vec<LineEntry>, EngineError> {
        let head = self.store.line_head(&policy.client, &policy.policy, self.clock.now(), limit).await?;
        self.without_unreadable(policy, head).await
    }

    /// The first entries that are due behind a rank, of its priority. Those that cannot be read are set aside.
    pub(super) async fn line_after(
        &self,
        policy: &PolicyRef,
        rank: Rank,
        limit: i32,
    ) -> Result<Vec<LineEntry>, EngineError> {
        let line = (&policy.client, &policy.policy);
        let after = self.store.line_after(line, rank, self.clock.now(), limit).await?;
        self.without_unreadable(policy, after).await
    }

    /// The first entries of a line, due or not. Those that cannot be read are set aside.
    pub(super) async fn line_page(&self, policy: &PolicyRef) -> Result<Vec<LineEntry>, EngineError> {
        let page = self.store.line(&policy.client, &policy.policy, None).await?;
        self.without_unreadable(policy, page).await
    }

    async fn without_unreadable(
        &self,
        policy: &PolicyRef,
        page: Page<LineEntry>,
    ) -> Result<Vec<LineEntry>, EngineError> {
        let unreadable = page.unreadable.iter();
        let asides: Vec<_> = unreadable
            .map(async |Unreadable { sort_key, reason }| {
                // Those that there is no time for are at the head of the line for whoever comes next.
                deadline::check(&*self.clock)?;
                self.set_entry_aside(policy, sort_key, reason).await
            })
            .collect();
        stream::iter(asides).buffer_unordered(ENTRIES_AT_ONCE).try_collect::<()>().await?;
        Ok(page.rows)
    }

    /// Takes an entry out of the line of its policy that cannot be read, or whose pack cannot be. Repeating it changes
    /// nothing.
    pub(super) async fn set_entry_aside(
        &self,
        policy: &PolicyRef,
        line_key: &str,
        reason: &str,
    ) -> Result<(), EngineError> {
        let PolicyRef { client, policy: id } = policy;
        error!(%client, policy = %id, line_key, reason, { ROWS_SET_ASIDE } = 1_u64, "an entry of a line is set aside");
        // Records first: whoever dies in between finds the entry again.
        match pack_of_line_key(line_key) {
            Ok(PackId::Run(run)) => self.set_run_aside(client, &run).await?,
            Ok(PackId::Singles(pack)) => self.set_members_aside(policy, line_key, pack).await?,
            Err(_) => {}
        }
        Ok(self.store.set_entry_aside((client, id), line_key, (reason, self.clock.now())).await?)
    }

    /// A run that can be read is stopped. One that cannot is left as it is: the list of its job's runs says why.
    async fn set_run_aside(&self, client: &ClientId, run: &RunId) -> Result<(), EngineError> {
        let row = readable(self.store.run(client, run).await.map_err(EngineError::from))?;
        match row {
            Some(_) => drop(self.store.stop_run(client, run, SkipReason::NotEmittable.as_str()).await?),
            None => drop(self.store.record_unreadable_run(client, run, self.clock.now()).await?),
        }
        self.contents.forget_run(client, run);
        Ok(())
    }

    /// Records of the single events of a pack that they are not delivered: of those that only the entry at `line_key` stood for.
    async fn set_members_aside(
        &self,
        policy: &PolicyRef,
        line_key: &str,
        pack: SinglesId,
    ) -> Result<(), EngineError> {
        let named = self.store.runs_named_in(&policy.client, &policy.policy, pack).await?;
        let elsewhere = self.found_elsewhere(policy, line_key, pack).await?;
        let now = self.clock.now();
        let left = named.iter().filter(|(index, _)| !elsewhere.contains(index));
        let record = async |run: &RunId| {
            deadline::check(&*self.clock)?;
            self.store.record_unreadable_run(&policy.client, run, now).await?;
            Ok(())
        };
        let records: Vec<_> = left.map(|(_, run)| record(run)).collect();
        stream::iter(records).buffer_unordered(RECORDS_AT_ONCE).try_collect().await
    }

    /// The events of a pack that slot groups, other entries of the line or its history know of.
    async fn found_elsewhere(
        &self,
        policy: &PolicyRef,
        line_key: &str,
        id: SinglesId,
    ) -> Result<BTreeSet<u32>, EngineError> {
        let PolicyRef { client, policy: name } = policy;
        let (pack, mut found) = (PackId::Singles(id), BTreeSet::new());
        if let Some(policy) = self.store.policy(client, name).await? {
            for group in self.groups_as_they_are(&policy).await? {
                let is_ours = |number: u32| group.pack(number) == Some(&pack);
                if let Some(range) = group.range().filter(|range| is_ours(range.pack_number)) {
                    found.extend(range.next..range.next.saturating_add(range.left));
                }
                let held = group.leases.values().filter(|lease| is_ours(lease.id.pack_number));
                found.extend(held.map(|lease| lease.id.index));
                let ended = group.outcomes.iter().chain(group.compacting());
                let ended = ended.filter(|entry| is_ours(entry.pack_number));
                found.extend(ended.flat_map(OutcomeEntry::numbers));
            }
        }
        let mut after = None;
        loop {
            deadline::check(&*self.clock)?;
            let page = self.store.line(client, name, after).await?;
            let others = page.rows.iter().filter(|entry| entry.pack == pack && entry.line_key != line_key);
            found.extend(others.flat_map(|entry| entry.cursor..entry.count));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let of = HistoryOf::Singles(name.clone(), id);
        loop {
            deadline::check(&*self.clock)?;
            let page = self.store.history(client, &of, after).await?;
            for row in page.rows {
                match row {
                    HistoryRow::Packed(ends) => found.extend(ends.iter().map(|ended| ended.index)),
                    HistoryRow::Event(event) => drop(found.insert(event.index)),
                    HistoryRow::ReleaseNote(_) | HistoryRow::Part(_) => {}
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }
}
