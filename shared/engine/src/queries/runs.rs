//! A job's runs: where each stands, how fast it goes, and when it will be done.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, JobId, PolicyId, RunId};
use tidegate_domain::slots::SlotGroup;
use tidegate_store::events::HistoryRow;
use tidegate_store::runs::{RunRow, Tally};
use tidegate_store::{Page, PageOf};

use super::Queries;
use crate::EngineError;
use crate::queries::forecast::{Forecast, ForecastBasis, Progress};
use crate::queries::history::Live;
use crate::queries::run_state::{RunState, RunSummary};

/// A run with how it gets on.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDetail {
    /// Where it stands.
    pub summary: RunSummary,
    /// Its events that are with their consumers and hold tokens.
    pub in_flight: u32,
    /// Its events that wait for a token, or, where nothing throttles, for delivery.
    pub waiting: u32,
    /// When its first event was granted a token.
    pub started_at: Option<DateTime<Utc>>,
    /// When its window ends.
    pub deadline: Option<DateTime<Utc>>,
    /// Events that ended per second, until now or until the last one ended.
    pub rate_per_second: Option<f64>,
    /// When the last of its events is expected to end.
    pub predicted_finish_at: Option<DateTime<Utc>>,
    /// What rate and prediction follow from.
    pub basis: Vec<ForecastBasis>,
    /// The instant that rate and prediction are of.
    pub as_of: DateTime<Utc>,
}

impl Queries {
    /// A page of a job's runs, the latest launch first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn runs<'a>(
        &'a self,
        client: &'a ClientId,
        job: &'a JobId,
        page: impl Into<PageOf>,
    ) -> BoxFuture<'a, Result<Page<RunSummary>, EngineError>> {
        let asked = page.into();
        Box::pin(async move {
            let page = self.runs_listed(client, job, asked).await?;
            let mut rows = Vec::with_capacity(page.rows.len());
            let mut known: BTreeMap<Option<PolicyId>, Vec<SlotGroup>> = BTreeMap::new();
            for run in page.rows {
                let policy = run.terms.policy.clone();
                if !says_all(&run) && !known.contains_key(&policy) {
                    known.insert(policy.clone(), self.groups_of(client, &run).await?);
                }
                let live = known.get(&policy).map(|groups| Live::of(&run, groups)).unwrap_or_default();
                rows.push(self.summary(client, run, &live).await?);
            }
            Ok(Page { rows, next: page.next, unreadable: page.unreadable })
        })
    }

    /// Where a run stands; `None` when there is no such run.
    pub(crate) async fn run_summary(
        &self,
        client: &ClientId,
        run: &RunId,
    ) -> Result<Option<RunSummary>, EngineError> {
        let Some(row) = self.find_run(client, run).await? else { return Ok(None) };
        let groups = if says_all(&row) { Vec::new() } else { self.groups_of(client, &row).await? };
        let live = Live::of(&row, &groups);
        Ok(Some(self.summary(client, row, &live).await?))
    }

    /// A run with how it gets on; `None` when there is no such run.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn run_detail<'a>(
        &'a self,
        client: &'a ClientId,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunDetail>, EngineError>> {
        Box::pin(async move {
            let Some(row) = self.find_run(client, run).await? else { return Ok(None) };
            let status = match &row.terms.policy {
                Some(policy) if !says_all(&row) => self.policy(client, policy).await?,
                _ => None,
            };
            let groups = match &status {
                Some(status) => self.throttle.groups_as_they_are(&status.policy).await?,
                None => Vec::new(),
            };
            let live = Live::of(&row, &groups);
            let summary = self.summary(client, row.clone(), &live).await?;
            let in_flight = u32::try_from(live.held.len()).unwrap_or(u32::MAX);
            let waiting = match summary.state {
                RunState::Stopped => 0,
                _ => summary.count.saturating_sub(summary.tally.total()).saturating_sub(in_flight),
            };
            let now = self.clock.now();
            let progress = Progress::new(&row, &summary, (in_flight, waiting), status.as_ref(), now);
            let forecast = Forecast::of(&progress);
            Ok(Some(RunDetail {
                summary,
                in_flight,
                waiting,
                started_at: row.started_at,
                deadline: row.terms.flow.window.map(|window| window.ends_at(run.launch_at())),
                rate_per_second: forecast.rate_per_second,
                predicted_finish_at: forecast.finish_at,
                basis: forecast.basis,
                as_of: now,
            }))
        })
    }

    /// Where a run stands, given what the slot groups of its policy know of it.
    pub(crate) async fn summary(
        &self,
        client: &ClientId,
        run: RunRow,
        live: &Live,
    ) -> Result<RunSummary, EngineError> {
        let count = run.terms.count.get();
        let (more, more_at) = match &run.terms.policy {
            _ if says_all(&run) => (Tally::default(), run.single.as_ref().map(|single| single.at)),
            Some(_) if run.member.is_some() => self.single_tally(client, &run, live).await?,
            // When those ended is not known before they are compacted, which is soon.
            Some(_) => {
                let outcomes = live.outcomes.values().map(|ended| ended.outcome);
                (Tally::of(outcomes), (!live.outcomes.is_empty()).then(|| self.clock.now()))
            }
            None => self.parts_tally(client, &run).await?,
        };
        let tally = run.tally.plus(more);
        let has_begun = run.started_at.is_some() || !live.held.is_empty();
        let state = RunState::of(run.stopped.is_some(), has_begun, tally.total(), count);
        Ok(RunSummary {
            id: run.id,
            count,
            state,
            tally,
            reason: run.stopped,
            skipped: run.skipped,
            last_outcome_at: run.last_outcome_at.max(more_at),
        })
    }

    /// What came of a single event that waited in a pack, and when its consumer said so.
    async fn single_tally(
        &self,
        client: &ClientId,
        run: &RunRow,
        live: &Live,
    ) -> Result<(Tally, Option<DateTime<Utc>>), EngineError> {
        let records = self.records(client, run, live, 0..1).await?.rows;
        let outcome = records.first().and_then(|record| Some((record.status.outcome()?, record.at)));
        Ok(outcome.map_or((Tally::default(), None), |(outcome, at)| (Tally::of([outcome]), at)))
    }

    /// How far an unthrottled run has come, and when its last part was sent: the sum of its parts.
    async fn parts_tally(
        &self,
        client: &ClientId,
        run: &RunRow,
    ) -> Result<(Tally, Option<DateTime<Utc>>), EngineError> {
        let (mut tally, mut sent_at) = (Tally::default(), None);
        for row in self.store.parts_with(client, &run.id, 0..run.terms.count.get()).await?.rows {
            if let HistoryRow::Part(part) = row {
                tally.dead += part.dead;
                tally.delivered += (part.to - part.from).saturating_sub(part.dead + part.retried);
                sent_at = sent_at.max(part.at);
            }
        }
        Ok((tally.without(run.redriven), sent_at))
    }
}

/// Whether the row alone says how the run's events ended: no slot group or history row adds to it.
fn says_all(run: &RunRow) -> bool {
    run.single.is_some() || run.has_ended()
}
