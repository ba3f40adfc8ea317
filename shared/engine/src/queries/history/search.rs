//! Events of a run by where they stand: those that did not succeed are found by rows of their own, the others by looking at
//! a bounded number of events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::slots::Ended;
use tidegate_store::events::{EVENTS_PER_BLOCK, HistoryOf, HistoryRow, OwnRow};
use tidegate_store::runs::RunRow;
use tidegate_store::{Page, PageOf};

use super::records::{Place, Records, blank, end, fill, hold, stop};
use super::{EventRecord, EventStatus};
use crate::EngineError;
use crate::queries::Queries;

/// Blocks that are looked at together, and how often, for one page of events that have to be looked at one by one.
const BLOCKS_TOGETHER: u32 = 2;
const LOOKS: usize = 4;
/// Pages of rows in which an event did not succeed that are read for one page. Of those rows none may be of the status that is
/// asked for: expired events, say, of a run most of whose events failed.
const ROW_PAGES: usize = 8;
/// Events whose parts are looked at together, and how often, for one page of events that could not be delivered.
const EVENTS_OF_PARTS: u32 = 16_384;
const PART_LOOKS: usize = 8;
/// Blocks of such events that are read at once.
const BLOCKS_AT_ONCE: usize = 8;

/// What was found from an event on.
struct Found {
    records: Records,
    /// Everything before this event was looked at.
    to: u32,
    /// The events of a page.
    most: usize,
}

/// How events are looked for.
enum Way {
    /// None of the run's can be what is asked for.
    Nowhere,
    /// By rows that say what did not succeed, and by the slot groups.
    Unsuccessful,
    /// By the parts of a run that nothing throttles.
    Parts,
    /// One by one.
    Forward,
}

impl Way {
    fn of(run: &RunRow, statuses: &BTreeSet<EventStatus>) -> Self {
        use EventStatus::{Dead, Delivered, Expired, Failed, InFlight, Stopped, Succeeded, Waiting};
        let is_throttled = run.terms.policy.is_some();
        let undelivered = if run.stopped.is_some() { Stopped } else { Waiting };
        let possible: &[EventStatus] = match is_throttled {
            true => &[InFlight, Succeeded, Failed, Expired, Dead, undelivered],
            false => &[Delivered, Dead, undelivered],
        };
        let is_small = run.terms.count.get() <= EVENTS_PER_BLOCK;
        let are_all_of = |some: &[EventStatus]| {
            statuses.iter().filter(|status| possible.contains(status)).all(|status| some.contains(status))
        };
        match () {
            () if are_all_of(&[]) => Self::Nowhere,
            () if is_small => Self::Forward,
            () if is_throttled && are_all_of(&[InFlight, Failed, Expired, Dead]) => Self::Unsuccessful,
            () if !is_throttled && are_all_of(&[Dead]) => Self::Parts,
            () => Self::Forward,
        }
    }
}

impl Queries {
    /// A page of those events of a run that are of one of some statuses, by their number. `None` when there is no such run.
    /// `after` is a number.
    ///
    /// What did not succeed, and what is in flight, is found without reading what succeeded. For other statuses a bounded
    /// number of events is looked at: a page may have fewer events than others that follow it, or none.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn events_that_are<'a>(
        &'a self,
        client: &'a ClientId,
        run: &'a RunId,
        statuses: &'a BTreeSet<EventStatus>,
        page: impl Into<PageOf<u32>>,
    ) -> BoxFuture<'a, Result<Option<Page<EventRecord>>, EngineError>> {
        let PageOf { after, rows } = page.into();
        Box::pin(async move {
            let Some(row) = self.find_run(client, run).await? else { return Ok(None) };
            let count = row.terms.count.get();
            let from = after.map_or(0, |index| index.saturating_add(1));
            let way = if from < count { Way::of(&row, statuses) } else { Way::Nowhere };
            let nothing = Found { records: Records::default(), to: from, most: rows.get().into() };
            let mut found = match &way {
                Way::Nowhere => Found { to: count, ..nothing },
                Way::Unsuccessful => self.unsuccessful(client, &row, statuses, nothing).await?,
                Way::Parts => self.undeliverable(client, &row, nothing).await?,
                Way::Forward => self.looked_for(client, &row, statuses, nothing).await?,
            };
            let next = found.cut(count);
            if row.redriven.total() > 0 && matches!(way, Way::Unsuccessful | Way::Parts) {
                found.records = self.as_they_are(client, &row, statuses, found.records).await?;
            }
            let page = self.in_full(client, &row, found.records).await?;
            Ok(Some(Page { next, ..page }))
        })
    }

    /// What was found of a run of which events were redriven: those that have come to another end since are not what they were
    /// found by.
    async fn as_they_are(
        &self,
        client: &ClientId,
        run: &RunRow,
        statuses: &BTreeSet<EventStatus>,
        found: Records,
    ) -> Result<Records, EngineError> {
        let live = self.live(client, run).await?;
        let mut records = Records { by_index: BTreeMap::new(), unreadable: found.unreadable };
        let blocks: BTreeSet<u32> = found.by_index.keys().map(|index| index / EVENTS_PER_BLOCK).collect();
        for block in blocks {
            let first = block.saturating_mul(EVENTS_PER_BLOCK);
            let events = first..behind(first, EVENTS_PER_BLOCK).min(run.terms.count.get());
            let looked_at = self.outlines(client, run, &live, events).await?.by_index.into_iter();
            let is_it = |(index, record): &(u32, EventRecord)| {
                found.by_index.contains_key(index) && statuses.contains(&record.status)
            };
            records.by_index.extend(looked_at.filter(is_it));
        }
        Ok(records)
    }

    /// Events that are in flight or did not succeed, of a run that is throttled.
    async fn unsuccessful(
        &self,
        client: &ClientId,
        run: &RunRow,
        statuses: &BTreeSet<EventStatus>,
        mut found: Found,
    ) -> Result<Found, EngineError> {
        let live = self.live(client, run).await?;
        let (place, count, from) = (Place::of(run), run.terms.count.get(), found.to);
        if statuses.contains(&EventStatus::InFlight) {
            for (index, lease) in live.held.range(from..) {
                let record = found.records.by_index.entry(*index).or_insert_with(|| blank(run, *index));
                hold(record, lease);
            }
        }
        let is_sought = |ended: &Ended| ended.index >= from && statuses.contains(&ended.outcome.into());
        let is_found = |ended: &Ended| is_sought(ended) && !live.knows(ended.index);
        let is_in_flight = |ended: &Ended| live.held.contains_key(&ended.index);
        found.add(run, live.ends().filter(|ended| is_sought(ended) && !is_in_flight(ended)));
        let earlier = self.store.ends_of_earlier_versions(client, &place.of).await?;
        found.add(run, place.ends(earlier.rows).filter(is_found));
        found.records.unreadable = earlier.unreadable;
        let mut after = None;
        for pages in 1.. {
            let (page, read_to) = self.store.unsuccessful(client, &place.of, from, after).await?;
            found.add(run, place.ends(page.rows).filter(is_found));
            found.records.unreadable.extend(page.unreadable);
            found.to = read_to.clamp(from, count);
            after = page.next;
            let is_enough = found.records.by_index.range(..found.to).count() >= found.most;
            if after.is_none() || is_enough || (pages >= ROW_PAGES && found.to > from) {
                break;
            }
        }
        Ok(found)
    }

    /// Events that could not be delivered, of a run that nothing throttles: those of parts that have some.
    async fn undeliverable(
        &self,
        client: &ClientId,
        run: &RunRow,
        mut found: Found,
    ) -> Result<Found, EngineError> {
        let (of, count) = (HistoryOf::Run(run.id.clone()), run.terms.count.get());
        for _ in 0..PART_LOOKS {
            let events = found.to..behind(found.to, EVENTS_OF_PARTS).min(count);
            let parts = self.store.parts_with(client, &run.id, events.clone()).await?;
            found.records.unreadable.extend(parts.unreadable);
            let of_blocks = blocks_with_dead(&parts.rows, &events).into_iter().map(|block| {
                let first = block.saturating_mul(EVENTS_PER_BLOCK);
                let some = first.max(events.start)..behind(first, EVENTS_PER_BLOCK).min(events.end);
                let of = &of;
                async move {
                    let to = some.end;
                    Ok::<_, EngineError>((to, self.store.own_rows(client, of, OwnRow::Event, some).await?))
                }
            });
            let of_blocks: Vec<_> = of_blocks.collect();
            let mut of_blocks = stream::iter(of_blocks).buffered(BLOCKS_AT_ONCE);
            while let Some((to, page)) = of_blocks.try_next().await? {
                found.records.unreadable.extend(page.unreadable);
                found.add_dead(run, page.rows);
                if found.records.by_index.len() >= found.most {
                    found.to = to;
                    return Ok(found);
                }
            }
            found.to = events.end;
            if found.to >= count {
                break;
            }
        }
        Ok(found)
    }

    /// Events of any statuses, among the next few.
    async fn looked_for(
        &self,
        client: &ClientId,
        run: &RunRow,
        statuses: &BTreeSet<EventStatus>,
        mut found: Found,
    ) -> Result<Found, EngineError> {
        let live = self.live(client, run).await?;
        let count = run.terms.count.get();
        for _ in 0..LOOKS {
            let events = found.to..behind(found.to, EVENTS_PER_BLOCK * BLOCKS_TOGETHER).min(count);
            found.to = events.end;
            let looked_at = self.outlines(client, run, &live, events).await?;
            let sought =
                looked_at.by_index.into_iter().filter(|(_, record)| statuses.contains(&record.status));
            found.records.by_index.extend(sought);
            found.records.unreadable.extend(looked_at.unreadable);
            if found.records.by_index.len() >= found.most || found.to >= count {
                break;
            }
        }
        Ok(found)
    }
}

impl Found {
    /// Throttled events that have ended.
    fn add(&mut self, run: &RunRow, ends: impl Iterator<Item = Ended>) {
        for ended in ends {
            let mut record = blank(run, ended.index);
            end(&mut record, ended);
            stop(&mut record, run);
            self.records.by_index.insert(ended.index, record);
        }
    }

    /// Events that nothing throttles, and that were not delivered.
    fn add_dead(&mut self, run: &RunRow, rows: Vec<HistoryRow>) {
        for row in rows {
            let HistoryRow::Event(event) = row else { continue };
            let mut record = blank(run, event.index);
            fill(&mut record, &event);
            if record.status == EventStatus::Dead {
                self.records.by_index.insert(event.index, record);
            }
        }
    }

    /// Leaves what fits in a page; where the next one begins, if there is one.
    fn cut(&mut self, count: u32) -> Option<String> {
        drop(self.records.by_index.split_off(&self.to));
        let first_left_out = self.records.by_index.keys().nth(self.most).copied();
        if let Some(index) = first_left_out {
            drop(self.records.by_index.split_off(&index));
            self.to = index;
        }
        (self.to < count).then(|| self.to.saturating_sub(1).to_string())
    }
}

/// The end of the stretch of so many events that an event is in.
fn behind(index: u32, events: u32) -> u32 {
    index.checked_div(events).unwrap_or(0).saturating_add(1).saturating_mul(events)
}

/// The blocks of some events in which parts have events that could not be delivered.
fn blocks_with_dead(parts: &[HistoryRow], events: &Range<u32>) -> BTreeSet<u32> {
    let mut blocks = BTreeSet::new();
    for row in parts {
        let HistoryRow::Part(part) = row else { continue };
        let (first, last) = (part.from.max(events.start), part.to.min(events.end).saturating_sub(1));
        if part.dead > 0 && first <= last {
            blocks.extend(first / EVENTS_PER_BLOCK..=last / EVENTS_PER_BLOCK);
        }
    }
    blocks
}
