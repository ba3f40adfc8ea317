//! Reading what is known of some events of a run: the rows of their blocks, and what the slot groups know beyond that.

use std::collections::BTreeMap;
use std::ops::Range;

use futures::future::{try_join, try_join_all};
use tidegate_domain::ids::{ClientId, EventId};
use tidegate_domain::limits::PACK_EVENTS;
use tidegate_domain::slots::{Ended, Lease, Outcome};
use tidegate_store::events::{EVENTS_PER_BLOCK, EventRow, HistoryOf, HistoryRow, OwnRow, PartRow};
use tidegate_store::runs::RunRow;
use tidegate_store::{Page, Unreadable};

use super::live::{Live, row_in};
use super::{EventRecord, EventStatus};
use crate::EngineError;
use crate::queries::Queries;

/// Records of events by their numbers, and which rows that say something of them cannot be read.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) by_index: BTreeMap<u32, EventRecord>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Where the history of a run's events is: whose it is, how many events it has, and which one is the run's own when there
/// are others' too.
pub(super) struct Place {
    pub(super) of: HistoryOf,
    pub(super) count: u32,
    own: Option<u32>,
}

impl Place {
    pub(super) fn of(run: &RunRow) -> Self {
        match &run.member {
            Some(member) => Self {
                of: HistoryOf::Singles(member.policy.clone(), member.pack),
                count: PACK_EVENTS as u32,
                own: Some(member.index),
            },
            None => Self { of: HistoryOf::Run(run.id.clone()), count: run.terms.count.get(), own: None },
        }
    }

    /// The number in the history of an event of the run.
    fn number(&self, index: u32) -> u32 {
        self.own.unwrap_or(index)
    }

    fn numbers(&self, events: Range<u32>) -> Range<u32> {
        self.own.map_or(events, |own| own..own.saturating_add(1))
    }

    /// What rows of the history say of the run.
    pub(super) fn rows(&self, rows: Vec<HistoryRow>) -> impl Iterator<Item = HistoryRow> {
        rows.into_iter().filter_map(|row| row_in(self.own, row))
    }

    /// How events of the run have ended, as rows of the history say.
    pub(super) fn ends(&self, rows: Vec<HistoryRow>) -> impl Iterator<Item = Ended> {
        let ends = |row| match row {
            HistoryRow::Packed(ends) => ends,
            HistoryRow::Event(_) | HistoryRow::Part(_) | HistoryRow::ReleaseNote(_) => Vec::new(),
        };
        self.rows(rows).flat_map(ends)
    }
}

impl Queries {
    /// What is known of some of the events of a run, and which rows of its history cannot be read.
    pub(crate) async fn records(
        &self,
        client: &ClientId,
        run: &RunRow,
        live: &Live,
        indexes: Range<u32>,
    ) -> Result<Page<EventRecord>, EngineError> {
        let outlines = self.outlines(client, run, live, indexes).await?;
        self.in_full(client, run, outlines).await
    }

    /// Where some of the events of a run stand: all that is known of them but for the rows that throttled ones have of their
    /// own. A run of many events costs what the blocks of these cost.
    pub(super) async fn outlines(
        &self,
        client: &ClientId,
        run: &RunRow,
        live: &Live,
        indexes: Range<u32>,
    ) -> Result<Records, EngineError> {
        let blanks = indexes.clone().map(|index| (index, blank(run, index)));
        let mut records = Records { by_index: blanks.collect(), unreadable: Vec::new() };
        let are_in_flight = || indexes.clone().all(|index| live.held.contains_key(&index));
        match () {
            () if run.single.is_some() => {
                if let (Some(record), Some(single)) = (records.by_index.get_mut(&0), &run.single) {
                    fill(record, single);
                }
            }
            () if run.terms.policy.is_none() => self.add_what_was_sent(client, run, &mut records).await?,
            () if are_in_flight() => {}
            () => {
                let place = Place::of(run);
                let rows = self.store.ends(client, &place.of, place.count, place.numbers(indexes)).await?;
                records.unreadable = rows.unreadable;
                let mut ends: Vec<Ended> = place.ends(rows.rows).collect();
                // One that was redriven has ended more than once: the last delivery says how. After a restore the same one may
                // have ended twice. Whoever looks for what did not succeed finds it, so that is what a page says too.
                ends.sort_by_key(|ended| (ended.attempts, ended.outcome != Outcome::Succeeded));
                for ended in ends.into_iter().chain(live.ends()) {
                    records.by_index.entry(ended.index).and_modify(|record| end(record, ended));
                }
            }
        }
        for (index, record) in &mut records.by_index {
            if let Some(held) = live.held.get(index) {
                hold(record, held);
            }
            stop(record, run);
        }
        Ok(records)
    }

    /// Events that nothing throttles: those of a part were delivered, but for those that are dead or are tried again.
    async fn add_what_was_sent(
        &self,
        client: &ClientId,
        run: &RunRow,
        records: &mut Records,
    ) -> Result<(), EngineError> {
        let mut numbers = records.by_index.keys();
        let (Some(first), last) = (numbers.next().copied(), numbers.next_back().copied()) else {
            return Ok(());
        };
        let events = first..last.unwrap_or(first).saturating_add(1);
        let of = HistoryOf::Run(run.id.clone());
        let parts = self.store.parts_with(client, &run.id, events.clone());
        let dead = self.store.own_rows(client, &of, OwnRow::Event, events);
        let (parts, dead) = try_join(parts, dead).await?;
        for row in parts.rows.into_iter().chain(dead.rows) {
            match row {
                HistoryRow::Part(part) => deliver(&mut records.by_index, &part),
                // A later delivery, when it was redriven, says more.
                HistoryRow::Event(event) => {
                    let record = records.by_index.get_mut(&event.index);
                    let is_later =
                        |record: &&mut EventRecord| record.attempts.is_none_or(|n| n <= event.attempts);
                    if let Some(record) = record.filter(is_later) {
                        fill(record, &event);
                    }
                }
                HistoryRow::Packed(_) | HistoryRow::ReleaseNote(_) => {}
            }
        }
        records.unreadable.extend(parts.unreadable.into_iter().chain(dead.unreadable));
        Ok(())
    }

    /// The same records with what is said in rows of their own: why a throttled event could not be delivered, and what its
    /// consumer said. Read for those that may have such a row.
    pub(super) async fn in_full(
        &self,
        client: &ClientId,
        run: &RunRow,
        mut records: Records,
    ) -> Result<Page<EventRecord>, EngineError> {
        let place = Place::of(run);
        let may_have = |record: &EventRecord| match record.status {
            EventStatus::Dead => Some(OwnRow::Event),
            EventStatus::Succeeded | EventStatus::Failed => Some(OwnRow::Note),
            _ => None,
        };
        let mut wanted: BTreeMap<(OwnRow, u32), Vec<u32>> = BTreeMap::new();
        if run.terms.policy.is_some() && run.single.is_none() {
            for (index, record) in &records.by_index {
                if let Some(kind) = may_have(record) {
                    let number = place.number(*index);
                    wanted.entry((kind, number / EVENTS_PER_BLOCK)).or_default().push(number);
                }
            }
        }
        for row in self.own_rows_of(client, &place, wanted, &mut records.unreadable).await? {
            add_own_row(&mut records.by_index, row);
        }
        let Records { by_index, unreadable } = records;
        Ok(Page { rows: by_index.into_values().collect(), next: None, unreadable })
    }

    /// Rows of single events. Where most of those between the first and the last of a block are wanted, they are read
    /// together; the others one by one.
    async fn own_rows_of(
        &self,
        client: &ClientId,
        place: &Place,
        wanted: BTreeMap<(OwnRow, u32), Vec<u32>>,
        unreadable: &mut Vec<Unreadable>,
    ) -> Result<Vec<HistoryRow>, EngineError> {
        let (mut together, mut each) = (Vec::new(), Vec::new());
        for ((kind, _), numbers) in wanted {
            let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { continue };
            let events = *first..last.saturating_add(1);
            if numbers.len() >= events.len().div_ceil(2) {
                together.push(self.store.own_rows(client, &place.of, kind, events));
            } else {
                each.extend(numbers.into_iter().map(|number| (kind, number)));
            }
        }
        let together = try_join_all(together);
        let each = self.store.own_rows_each(client, &place.of, &each);
        let (mut pages, each) = try_join(together, each).await?;
        pages.push(each);
        let mut rows = Vec::new();
        for page in pages {
            rows.extend(place.rows(page.rows));
            unreadable.extend(page.unreadable);
        }
        Ok(rows)
    }
}

/// An event of which nothing is known but that it is one of its run.
pub(super) fn blank(run: &RunRow, index: u32) -> EventRecord {
    let id: EventId = run.id.event(index);
    EventRecord { id, status: EventStatus::Waiting, attempts: None, at: None, reason: None, text: None }
}

/// Says that an event is in flight.
pub(super) fn hold(record: &mut EventRecord, lease: &Lease) {
    record.status = EventStatus::InFlight;
    record.attempts = Some(lease.attempt);
    record.at = Some(lease.ends_at);
}

/// Says how a throttled event has ended.
pub(super) fn end(record: &mut EventRecord, ended: Ended) {
    record.status = ended.outcome.into();
    record.attempts = Some(match ended.outcome {
        // Given back before its last delivery was made, since its run was stopped. One that could not be delivered has a row
        // of its own.
        Outcome::Dead => ended.attempts.saturating_sub(1),
        _ => ended.attempts,
    });
}

/// Says of the events of a part that they were delivered.
fn deliver(records: &mut BTreeMap<u32, EventRecord>, part: &PartRow) {
    let is_retried = |index: u32| part.retried_ranges.iter().any(|(from, to)| (*from..*to).contains(&index));
    for (index, record) in records.range_mut(part.from..part.to.max(part.from)) {
        if !is_retried(*index) {
            record.status = EventStatus::Delivered;
            record.attempts = Some(part.attempt);
            record.at = part.at;
        }
    }
}

/// Says of an event that it is not delivered, or was given back undelivered, because its run was stopped.
pub(super) fn stop(record: &mut EventRecord, run: &RunRow) {
    let Some(reason) = &run.stopped else { return };
    match record.status {
        EventStatus::Waiting => {
            record.status = EventStatus::Stopped;
            // It never held a token. Where nothing throttles, a delivery may have failed before.
            record.attempts = run.terms.policy.is_some().then_some(0);
        }
        EventStatus::Dead if record.reason.is_none() => {}
        _ => return,
    }
    record.reason = Some(reason.to_owned());
}

/// Says what the row says that an event has of its own.
pub(super) fn fill(record: &mut EventRecord, event: &EventRow) {
    record.status = if event.delivered { EventStatus::Delivered } else { EventStatus::Dead };
    record.attempts = Some(event.attempts);
    record.at = Some(event.at);
    record.reason.clone_from(&event.reason);
}

fn add_own_row(records: &mut BTreeMap<u32, EventRecord>, row: HistoryRow) {
    match row {
        HistoryRow::Event(event) => {
            let record = records.get_mut(&event.index).filter(|record| record.status == EventStatus::Dead);
            if let Some(record) = record {
                fill(record, &event);
            }
        }
        HistoryRow::ReleaseNote(said) => {
            // A text is kept before its release is applied: if the release was refused, or another one ended the event, the
            // text is not the event's.
            let record = records.get_mut(&said.index).filter(|record| record.status == said.outcome.into());
            if let Some(record) = record {
                record.at = Some(said.at);
                record.text = Some(said.text);
            }
        }
        HistoryRow::Packed(_) | HistoryRow::Part(_) => {}
    }
}
