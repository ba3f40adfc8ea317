//! What happened: a job's runs, and the events of a run.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, JobId, RunId};
use tidegate_domain::limits::PAGE_ROWS;
use tidegate_store::Page;
use tidegate_store::events::HistoryRow;
use tidegate_store::runs::{RunRow, Skipped, Tally};
use tidegate_store::slots::{Held, Outcome};

use crate::admit::group_key;
use crate::{Engine, EngineError};

/// Rows of packed outcomes that are read for one page of events: the history of 36 thousand events.
const HISTORY_PAGES: usize = 1_000;

/// A run, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Which run.
    pub id: RunId,
    /// How many events it has.
    pub count: u32,
    /// Where it stands.
    pub state: RunState,
    /// How many of its events have come to which end.
    pub tally: Tally,
    /// Why nothing (more) of it is delivered.
    pub reason: Option<String>,
    /// Further occurrences of the job that were left out with it, for the same reason.
    pub skipped: Option<Skipped>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// None of its events has come to an end yet.
    Waiting,
    /// Some have.
    Running,
    /// All have.
    Finished,
    /// Nothing (more) of it is delivered.
    Stopped,
}

impl RunState {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
        }
    }

    fn of(stopped: bool, done: u32, count: u32) -> Self {
        match done {
            _ if stopped => Self::Stopped,
            0 => Self::Waiting,
            _ if done >= count => Self::Finished,
            _ => Self::Running,
        }
    }
}

/// An event, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Which event.
    pub id: EventId,
    /// Where it stands.
    pub status: EventStatus,
    /// How often it was delivered, where that is known.
    pub attempts: Option<u8>,
    /// When it came to its end, or when its lease ends.
    pub at: Option<DateTime<Utc>>,
    /// Why it was not delivered.
    pub reason: Option<String>,
}

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventStatus {
    /// It was not delivered yet.
    Waiting,
    /// Its consumer has it and its token.
    InFlight,
    /// Its consumer has it; nothing throttles it.
    Delivered,
    /// Released as succeeded.
    Succeeded,
    /// Released as failed.
    Failed,
    /// Never released.
    Expired,
    /// It could not be delivered.
    Dead,
}

impl EventStatus {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::InFlight => "in_flight",
            Self::Delivered => "delivered",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Dead => "dead",
        }
    }
}

impl From<Outcome> for EventStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Failed => Self::Failed,
            Outcome::Expired => Self::Expired,
            Outcome::Dead => Self::Dead,
        }
    }
}

/// What the slot groups of a run's policy know of it.
#[derive(Default)]
struct Live {
    held: BTreeMap<u32, Held>,
    outcomes: BTreeMap<u32, Outcome>,
}

impl Engine {
    /// A page of a job's runs, the latest launch first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn runs(
        &self,
        client: &ClientId,
        job: &JobId,
        after: Option<String>,
    ) -> Result<Page<RunSummary>, EngineError> {
        let page = self.store().runs(client, job, after).await?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for run in page.rows {
            rows.push(self.summary(client, run).await?);
        }
        Ok(Page { rows, next: page.next })
    }

    async fn summary(&self, client: &ClientId, run: RunRow) -> Result<RunSummary, EngineError> {
        let count = run.terms.count.get();
        let mut tally = run.tally;
        let settled = run.stopped.is_some() || run.single.is_some() || tally.total() >= count;
        if !settled {
            let more = match &run.terms.policy {
                Some(_) => Tally::of(self.live(client, &run).await?.outcomes.into_values()),
                None => self.parts_tally(client, &run.id).await?,
            };
            tally = tally.plus(more);
        }
        let state = RunState::of(run.stopped.is_some(), tally.total(), count);
        Ok(RunSummary { id: run.id, count, state, tally, reason: run.stopped, skipped: run.skipped })
    }

    /// How far an unthrottled run has come: the sum of its parts.
    async fn parts_tally(&self, client: &ClientId, run: &RunId) -> Result<Tally, EngineError> {
        let mut tally = Tally::default();
        for row in self.history_rows(client, run).await? {
            if let HistoryRow::Part(part) = row {
                tally.dead += part.dead;
                tally.delivered += (part.to - part.from).saturating_sub(part.dead);
            }
        }
        Ok(tally)
    }

    async fn history_rows(&self, client: &ClientId, run: &RunId) -> Result<Vec<HistoryRow>, EngineError> {
        let (mut rows, mut after) = (Vec::new(), None);
        for _ in 0..HISTORY_PAGES {
            let page = self.store().history(client, run, after).await?;
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(rows)
    }

    async fn live(&self, client: &ClientId, run: &RunRow) -> Result<Live, EngineError> {
        let mut live = Live::default();
        let Some(policy) = &run.terms.policy else { return Ok(live) };
        let Some(policy) = self.store().policy(client, policy).await? else { return Ok(live) };
        let surplus = self.surplus_groups(&policy).await?;
        for number in policy.terms.group_numbers().chain(surplus) {
            let Some(group) = self.store().slot_group(&group_key(&policy, number)).await? else { continue };
            let ours = |number: u32| group.run(number) == Some(&run.id);
            let held = group.slots.values().filter(|held| ours(held.run_number));
            live.held.extend(held.map(|held| (held.index, *held)));
            let outcomes = group.outcomes.iter().filter(|entry| ours(entry.run_number));
            live.outcomes.extend(outcomes.map(|entry| (entry.index, entry.outcome)));
            // What is being packed may be in the run's tally already: it counts once it is there.
        }
        Ok(live)
    }

    /// A page of the events of a run, by their number. `None` when there is no such run. `after` is a number.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn events(
        &self,
        client: &ClientId,
        run: &RunId,
        after: Option<u32>,
    ) -> Result<Option<Page<EventRecord>>, EngineError> {
        let Some(row) = self.store().run(client, run).await? else { return Ok(None) };
        let count = row.terms.count.get();
        let first = after.map_or(0, |index| index.saturating_add(1));
        let end = count.min(first.saturating_add(PAGE_ROWS as u32));
        let blank = |index: u32| EventRecord {
            id: run.event(index),
            status: EventStatus::Waiting,
            attempts: None,
            at: None,
            reason: None,
        };
        let mut page: BTreeMap<u32, EventRecord> = (first..end).map(|index| (index, blank(index))).collect();
        if let Some(single) = &row.single
            && let Some(record) = page.get_mut(&0)
        {
            fill(record, single);
        } else {
            self.fill_from_history(client, &row, &mut page).await?;
        }
        let next = (end < count).then(|| end.saturating_sub(1).to_string());
        Ok(Some(Page { rows: page.into_values().collect(), next }))
    }

    async fn fill_from_history(
        &self,
        client: &ClientId,
        run: &RunRow,
        page: &mut BTreeMap<u32, EventRecord>,
    ) -> Result<(), EngineError> {
        let live = self.live(client, run).await?;
        for (index, held) in &live.held {
            if let Some(record) = page.get_mut(index) {
                record.status = EventStatus::InFlight;
                record.attempts = Some(held.attempt);
                record.at = Some(held.lease_end);
            }
        }
        let mut outcomes = live.outcomes;
        let mut single_rows = Vec::new();
        for row in self.history_rows(client, &run.id).await? {
            match row {
                HistoryRow::Packed(packed) => outcomes.extend(packed),
                HistoryRow::Event(event) => single_rows.push(event),
                HistoryRow::Part(part) => {
                    for (_, record) in page.range_mut(part.from..part.to) {
                        record.status = EventStatus::Delivered;
                    }
                }
            }
        }
        for (index, outcome) in outcomes {
            if let Some(record) = page.get_mut(&index) {
                record.status = outcome.into();
            }
        }
        for event in single_rows {
            if let Some(record) = page.get_mut(&event.index) {
                fill(record, &event);
            }
        }
        Ok(())
    }
}

fn fill(record: &mut EventRecord, event: &tidegate_store::events::EventRow) {
    record.status = if event.delivered { EventStatus::Delivered } else { EventStatus::Dead };
    record.attempts = Some(event.attempts);
    record.at = Some(event.at);
    record.reason.clone_from(&event.reason);
}
