//! What happened to the events of a run: what its rows say, and what the slot groups of its policy know beyond that.

use std::collections::BTreeMap;
use std::ops::Range;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, EventId, RunId};
use tidegate_domain::limits::PAGE_ROWS;
use tidegate_domain::pack::PackId;
use tidegate_domain::slots::{Ended, Lease, Outcome, SlotGroup};
use tidegate_store::Page;
use tidegate_store::events::{EventRow, HistoryOf, HistoryRow, ReleaseNoteRow};
use tidegate_store::runs::RunRow;

use super::Queries;
use crate::EngineError;

/// Rows of packed outcomes that are read for one page of events: the history of 36 thousand events.
const HISTORY_PAGES: usize = 1_000;

/// An event, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Which event.
    pub id: EventId,
    /// Where it stands.
    pub status: EventStatus,
    /// How often delivery was tried; `None` while it waits, and where that is not known.
    pub attempts: Option<u8>,
    /// When it came to its end, or when its lease ends.
    pub at: Option<DateTime<Utc>>,
    /// Why it was not delivered: what the target answered, or why its run was stopped.
    pub reason: Option<String>,
    /// What its consumer said when it released it.
    pub text: Option<String>,
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
    /// It was not delivered, and will not be: its run was stopped first.
    Stopped,
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
            Self::Stopped => "stopped",
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
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Its events that are in flight, by their number, with all their deliveries counted.
    pub(crate) held: BTreeMap<u32, Lease>,
    /// Outcomes that are not in its history yet. Those that are being packed are not among them: they count when they are
    /// in the history.
    pub(crate) outcomes: BTreeMap<u32, Ended>,
}

impl Live {
    /// What groups know of a run.
    pub(crate) fn of(run: &RunRow, groups: &[SlotGroup]) -> Self {
        let mut live = Self::default();
        let (pack, own) = home(run);
        for group in groups {
            let ours = |number: u32| group.pack(number) == Some(&pack);
            let held = group.leases.values().filter(|lease| ours(lease.id.pack_number));
            let counted = |lease: &Lease| Lease { attempt: group.delivery_at(lease), ..*lease };
            live.held
                .extend(held.filter_map(|lease| Some((number_in(own, lease.id.index)?, counted(lease)))));
            let outcomes = group.outcomes.iter().filter(|entry| ours(entry.pack_number));
            let outcomes = outcomes.filter_map(|entry| ended_in(own, group.ended(entry)));
            live.outcomes.extend(outcomes.map(|ended| (ended.index, ended)));
        }
        live
    }
}

/// The pack that the events of a run wait in, and which one of it is the run's own, when there are others' too.
pub(crate) fn home(run: &RunRow) -> (PackId, Option<u32>) {
    match &run.member {
        Some(member) => (PackId::Singles(member.pack), Some(member.index)),
        None => (PackId::Run(run.id.clone()), None),
    }
}

/// The number in its run of an event of a pack; `None` when it is another run's.
fn number_in(own: Option<u32>, index: u32) -> Option<u32> {
    match own {
        None => Some(index),
        Some(own) => (own == index).then_some(0),
    }
}

fn ended_in(own: Option<u32>, ended: Ended) -> Option<Ended> {
    Some(Ended { index: number_in(own, ended.index)?, ..ended })
}

/// What a row of a pack's history says of a run.
fn row_in(own: Option<u32>, row: HistoryRow) -> Option<HistoryRow> {
    Some(match row {
        HistoryRow::Event(event) => {
            HistoryRow::Event(EventRow { index: number_in(own, event.index)?, ..event })
        }
        HistoryRow::Part(part) => HistoryRow::Part(part),
        HistoryRow::Packed(ends) => {
            HistoryRow::Packed(ends.into_iter().filter_map(|ended| ended_in(own, ended)).collect())
        }
        HistoryRow::ReleaseNote(said) => {
            HistoryRow::ReleaseNote(ReleaseNoteRow { index: number_in(own, said.index)?, ..said })
        }
    })
}

impl Queries {
    /// The slot groups of a run's policy; none where nothing throttles it, or its policy is gone.
    pub(crate) async fn groups_of(
        &self,
        client: &ClientId,
        run: &RunRow,
    ) -> Result<Vec<SlotGroup>, EngineError> {
        let Some(policy) = &run.terms.policy else { return Ok(Vec::new()) };
        match self.store.policy(client, policy).await? {
            Some(policy) => self.throttle.groups_as_they_are(&policy).await,
            None => Ok(Vec::new()),
        }
    }

    pub(crate) async fn history_rows(
        &self,
        client: &ClientId,
        run: &RunRow,
    ) -> Result<Page<HistoryRow>, EngineError> {
        let (mut all, mut after) = (Page::new(Vec::new(), None), None);
        let (of, own) = match &run.member {
            Some(member) => (HistoryOf::Singles(member.policy.clone(), member.pack), Some(member.index)),
            None => (HistoryOf::Run(run.id.clone()), None),
        };
        for _ in 0..HISTORY_PAGES {
            let page = self.store.history(client, &of, after).await?;
            all.rows.extend(page.rows.into_iter().filter_map(|row| row_in(own, row)));
            all.unreadable.extend(page.unreadable);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(all)
    }

    /// A page of the events of a run, by their number. `None` when there is no such run. `after` is a number.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn events<'a>(
        &'a self,
        client: &'a ClientId,
        run: &'a RunId,
        after: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<Page<EventRecord>>, EngineError>> {
        Box::pin(async move {
            let Some(row) = self.find_run(client, run).await? else { return Ok(None) };
            let count = row.terms.count.get();
            let first = after.map_or(0, |index| index.saturating_add(1));
            let end = count.min(first.saturating_add(PAGE_ROWS as u32));
            let live = Live::of(&row, &self.groups_of(client, &row).await?);
            let page = self.records(client, &row, &live, first..end).await?;
            let next = (end < count).then(|| end.saturating_sub(1).to_string());
            Ok(Some(Page { next, ..page }))
        })
    }

    /// What is known of some of the events of a run, and which rows of its history cannot be read.
    pub(crate) async fn records(
        &self,
        client: &ClientId,
        run: &RunRow,
        live: &Live,
        indexes: Range<u32>,
    ) -> Result<Page<EventRecord>, EngineError> {
        let mut unreadable = Vec::new();
        let mut records: BTreeMap<u32, EventRecord> =
            indexes.clone().map(|index| (index, blank(run.id.event(index)))).collect();
        if let Some(single) = &run.single {
            if let Some(record) = records.get_mut(&0) {
                fill(record, single);
            }
        } else if records.values().any(|record| !live.held.contains_key(&record.id.index())) {
            let mut history = self.history_rows(client, run).await?;
            if run.member.is_none() {
                let parts = self.store.parts_with(client, &run.id, indexes.clone()).await?;
                let events = self.store.rows_of_events(client, &run.id, indexes).await?;
                for page in [parts, events] {
                    history.rows.extend(page.rows);
                    history.unreadable.extend(page.unreadable);
                }
            }
            fill_from_history(&mut records, live, history.rows);
            unreadable = history.unreadable;
        }
        for (index, held) in &live.held {
            if let Some(record) = records.get_mut(index) {
                record.status = EventStatus::InFlight;
                record.attempts = Some(held.attempt);
                record.at = Some(held.ends_at);
            }
        }
        if let Some(reason) = &run.stopped {
            let is_throttled = run.terms.policy.is_some();
            records.values_mut().for_each(|record| stop(record, reason, is_throttled));
        }
        Ok(Page { rows: records.into_values().collect(), next: None, unreadable })
    }
}

fn blank(id: EventId) -> EventRecord {
    EventRecord { id, status: EventStatus::Waiting, attempts: None, at: None, reason: None, text: None }
}

fn fill_from_history(records: &mut BTreeMap<u32, EventRecord>, live: &Live, history: Vec<HistoryRow>) {
    let mut outcomes = live.outcomes.clone();
    let (mut single_rows, mut said) = (Vec::new(), Vec::new());
    for row in history {
        match row {
            HistoryRow::Packed(packed) => {
                packed.into_iter().for_each(|ended| add_later(&mut outcomes, ended))
            }
            HistoryRow::Event(event) => single_rows.push(event),
            HistoryRow::ReleaseNote(words) => said.push(words),
            HistoryRow::Part(part) => {
                let is_retried =
                    |index: u32| part.retried_ranges.iter().any(|(from, to)| (*from..*to).contains(&index));
                for (index, record) in records.range_mut(part.from..part.to) {
                    if !is_retried(*index) {
                        record.status = EventStatus::Delivered;
                        record.attempts = Some(part.attempt);
                        record.at = part.at;
                    }
                }
            }
        }
    }
    for (index, ended) in outcomes {
        if let Some(record) = records.get_mut(&index) {
            record.status = ended.outcome.into();
            record.attempts = Some(match ended.outcome {
                // Given back before its last delivery was made, since its run was stopped. One that could not be delivered
                // has a row of its own.
                Outcome::Dead => ended.attempts.saturating_sub(1),
                _ => ended.attempts,
            });
        }
    }
    for event in single_rows {
        if let Some(record) = records.get_mut(&event.index)
            && record.attempts.is_none_or(|attempts| attempts <= event.attempts)
        {
            fill(record, &event);
        }
    }
    for words in said {
        // A text is kept before its release is applied: if the release was refused, or another one ended the event, the
        // text is not the event's.
        if let Some(record) = records.get_mut(&words.index)
            && record.status == words.outcome.into()
        {
            record.at = Some(words.at);
            record.text = Some(words.text);
        }
    }
}

/// Adds an outcome of an event, unless one of a later delivery is known: it was redriven.
pub(crate) fn add_later(outcomes: &mut BTreeMap<u32, Ended>, ended: Ended) {
    let known = outcomes.entry(ended.index).or_insert(ended);
    if known.attempts < ended.attempts {
        *known = ended;
    }
}

/// Says of an event that it is not delivered, or was given back undelivered, because its run was stopped.
fn stop(record: &mut EventRecord, reason: &str, is_throttled: bool) {
    match record.status {
        EventStatus::Waiting => {
            record.status = EventStatus::Stopped;
            // It never held a token. Where nothing throttles, a delivery may have failed before.
            record.attempts = is_throttled.then_some(0);
        }
        EventStatus::Dead if record.reason.is_none() => {}
        _ => return,
    }
    record.reason = Some(reason.to_owned());
}

fn fill(record: &mut EventRecord, event: &EventRow) {
    record.status = if event.delivered { EventStatus::Delivered } else { EventStatus::Dead };
    record.attempts = Some(event.attempts);
    record.at = Some(event.at);
    record.reason.clone_from(&event.reason);
}
