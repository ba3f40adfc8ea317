//! Throttled runs and packs of single events, against what waits, is in flight and has ended.
//!
//! Of each event of a run exactly one is true: it is open (it waits, is in flight, or its outcome is not compacted), it has
//! ended and its history says how, or nobody knows. The first are left alone, the second are what the run's row must count,
//! the third are put into the line again. Of a run that was stopped the third count as left out.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::fair::Rank;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::HISTORY_DAYS;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::pack::{PackId, Singles, SinglesKind};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::Outcome;
use tidegate_domain::time::{days, seconds, shifted};
use tidegate_store::events::{HistoryOf, HistoryRow};
use tidegate_store::line::Pending;
use tidegate_store::repair::{PutBack, StoredRun};
use tidegate_store::runs::{RunRow, Tally};

use super::RepairError;
use super::known::Known;
use super::report::FindingKind;
use super::session::{Session, done};
use super::spans::Spans;

/// How long before the snapshots a run may have ended whose client was not told, in seconds.
const TOLD_SECONDS: i64 = 3_600;

impl Session<'_> {
    /// Looks at every run and pack. `parts` are the ids of the parts of emissions that are there.
    pub(super) async fn look_at_runs(
        &self,
        known: &Known,
        parts: &BTreeSet<String>,
    ) -> Result<(), RepairError> {
        let mut after = None;
        loop {
            let page = self.store.all_of_runs(after).await?;
            let (rows, next) = self.readable(page);
            self.look_at_each(rows.into_iter().map(|row| self.look_at_stored(known, row, parts))).await?;
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn look_at_stored(
        &self,
        known: &Known,
        row: StoredRun,
        parts: &BTreeSet<String>,
    ) -> Result<(), RepairError> {
        match row {
            StoredRun::Run { client, row, since } => match row.terms.policy.clone() {
                Some(policy) => self.look_at_run(known, &client, policy, &row, since).await,
                None => self.look_at_sent(&client, &row, since, parts).await,
            },
            StoredRun::Pack { client, policy, pack, since } => {
                let policy = PolicyRef { client, policy };
                self.look_at_pack(known, &policy, &pack, since).await
            }
            StoredRun::Other => Ok(()),
        }
    }

    /// A run of a policy. Single events that wait in packs have rows only when something became of them, and are their
    /// packs'.
    pub(super) async fn look_at_run(
        &self,
        known: &Known,
        client: &ClientId,
        policy: PolicyId,
        row: &RunRow,
        since: DateTime<Utc>,
    ) -> Result<(), RepairError> {
        let is_aside = row.stopped.as_deref() == Some(SkipReason::NotEmittable.as_str());
        let (policy, pack) = (PolicyRef::new(client, &policy), PackId::Run(row.id.clone()));
        let open = known.take(&policy, &pack).unwrap_or_default();
        // A record of what became of an event that is in a pack with others.
        if SinglesKind::fits(&row.terms) && row.stopped.is_some() && open.is_empty() {
            return Ok(());
        }
        // How much is left of a run that was set aside is not known, and a record of several skips has no events.
        if is_aside || row.skipped.is_some() {
            return Ok(());
        }
        let count = row.terms.count.get();
        let ended = count.saturating_sub(open.count());
        if open.is_empty() && row.tally.total() == ended {
            return self.see_that_its_end_is_told(known, &policy, row).await;
        }
        // A row is kept for as long as its run waits, and its history is not.
        if since.min(row.id.launch_at()) < shifted(self.now, -days(HISTORY_DAYS - 1)) {
            if row.tally.total() != ended {
                let detail =
                    format!("{} of {count} events have ended, {} are counted", ended, row.tally.total());
                self.found(FindingKind::RunTooOld, client, &row.id, detail);
            }
            return Ok(());
        }
        let outcomes = self.outcomes_of(client, &HistoryOf::Run(row.id.clone())).await?;
        let (tally, unknown) = split(&open, count, &outcomes);
        let tally = match row.stopped {
            Some(_) => Tally { left_out: unknown.count(), ..tally },
            None => {
                let flow = &row.terms.flow;
                let is_whole = unknown.count() == count;
                let overlap = Pending::of(flow.overlap).filter(|_| is_whole);
                let place = (flow.rank(), row.id.launch_at());
                self.put_back(&policy, &pack, place, (&unknown, overlap)).await?;
                tally
            }
        };
        if tally != row.tally {
            let detail = format!(
                "{} of {count} events had been counted, {} have ended",
                row.tally.total(),
                tally.total()
            );
            self.found(FindingKind::RunCounted, client, &row.id, detail);
            if self.apply {
                let written = self.store.set_tally(client, row, tally).await?;
                done(written, || format!("the counts of run {} of {client}", row.id))?;
            }
        }
        let counted = RunRow { tally, ..row.clone() };
        self.see_that_its_end_is_told(known, &policy, &counted).await
    }

    /// A run that has ended, and whose client waits for that: an entry without events has somebody look at it.
    async fn see_that_its_end_is_told(
        &self,
        known: &Known,
        policy: &PolicyRef,
        row: &RunRow,
    ) -> Result<(), RepairError> {
        let is_recent =
            row.last_outcome_at.is_some_and(|at| at >= shifted(self.first_cut, -seconds(TOLD_SECONDS)));
        let is_to_be_told = row.terms.flow.tells_of_the_end() && row.announced.is_none();
        let pack = PackId::Run(row.id.clone());
        if !(row.has_ended() && is_recent && is_to_be_told) || known.is_looked_after(policy, &pack) {
            return Ok(());
        }
        self.found(FindingKind::CompletionChecked, &policy.client, &row.id, "");
        if self.apply {
            let count = row.terms.count.get();
            let (rank, launch_at) = (row.terms.flow.rank(), row.id.launch_at());
            let look = PutBack { pack: &pack, rank, launch_at, events: (count, count), overlap: None };
            self.store.touch_active(&policy.client, &policy.policy, self.now).await?;
            self.store.put_back(policy, &look, self.epoch).await?;
        }
        Ok(())
    }

    /// A pack of single events. One that was written before the first snapshot was in the line or in a group by then, so
    /// what none of them has of it has ended.
    async fn look_at_pack(
        &self,
        known: &Known,
        policy: &PolicyRef,
        pack: &Singles,
        since: DateTime<Utc>,
    ) -> Result<(), RepairError> {
        let id = PackId::Singles(pack.id);
        let is_in_a_group = known.is_in_a_group(policy, &id);
        let open = known.take(policy, &id).unwrap_or_default();
        // One that goes straight is halfway until its group has it.
        let is_halfway = pack.straight.is_some() && !is_in_a_group && since >= self.back_to;
        let is_too_old = pack.launch_at() < shifted(self.now, -days(HISTORY_DAYS - 1));
        if is_too_old || (since < self.first_cut && !is_halfway) {
            return Ok(());
        }
        let of = HistoryOf::Singles(policy.policy.clone(), pack.id);
        let outcomes = self.outcomes_of(&policy.client, &of).await?;
        let (_, unknown) = split(&open, pack.count(), &outcomes);
        let place = (pack.id.kind.rank, pack.launch_at());
        self.put_back(policy, &id, place, (&unknown, None)).await?;
        if self.apply && pack.straight.is_some() && !is_in_a_group {
            self.store.forget_straight(&policy.client, &policy.policy, pack).await?;
        }
        Ok(())
    }

    async fn put_back(
        &self,
        policy: &PolicyRef,
        pack: &PackId,
        (rank, launch_at): (Rank, DateTime<Utc>),
        (unknown, overlap): (&Spans, Option<Pending>),
    ) -> Result<(), RepairError> {
        if unknown.is_empty() {
            return Ok(());
        }
        let detail = format!("{} events wait again for policy {}", unknown.count(), policy.policy);
        self.found(FindingKind::EventsPutBack, &policy.client, pack, detail);
        if !self.apply {
            return Ok(());
        }
        self.store.touch_active(&policy.client, &policy.policy, self.now).await?;
        let (store, epoch) = (self.store, self.epoch);
        let put_back = async |events: &(u32, u32)| {
            let events = PutBack { pack, rank, launch_at, events: *events, overlap };
            store.put_back(policy, &events, epoch).await
        };
        self.write_all(unknown.ranges().iter().map(put_back)).await
    }

    /// How events have ended, by their numbers.
    async fn outcomes_of(
        &self,
        client: &ClientId,
        of: &HistoryOf,
    ) -> Result<BTreeMap<u32, Outcome>, RepairError> {
        let (mut outcomes, mut after) = (BTreeMap::new(), None);
        loop {
            let page = self.store.history(client, of, after).await?;
            let (rows, next) = self.readable(page);
            for row in rows {
                if let HistoryRow::Packed(ends) = row {
                    outcomes.extend(ends.into_iter().map(|ended| (ended.index, ended.outcome)));
                }
            }
            after = next;
            if after.is_none() {
                return Ok(outcomes);
            }
        }
    }
}

/// The counts of those events that have ended and are not open, and those of whose end nothing is known.
fn split(open: &Spans, count: u32, outcomes: &BTreeMap<u32, Outcome>) -> (Tally, Spans) {
    let ended = outcomes.iter().filter(|(index, _)| **index < count && !open.has(**index));
    let (mut found, mut kinds) = (open.clone(), Vec::new());
    for (index, outcome) in ended {
        found.add(*index, index.saturating_add(1));
        kinds.push(*outcome);
    }
    (Tally::of(kinds), found.missing_below(count))
}
