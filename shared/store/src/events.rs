//! What happened to single events: a record each, or packed outcomes of throttled runs; and the marks of sent chunks.

mod ends;

use std::ops::Range;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, EventId, PolicyId, RunId};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::limits::{EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK, PACK_EVENTS, PAGE_ROWS};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, SinglesId};
use tidegate_domain::slots::{Ended, Outcome};
use tidegate_domain::time::{days, shifted};

use crate::dead_letters::{self, DeadLetter};
use crate::failures::{self, FailedDelivery};
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted};
pub use crate::runs::EventRow;
use crate::runs::{self, Tally};
use crate::slots::outcomes;
use crate::tables::Table;
use crate::{Page, Result, Store};
pub use ends::EVENTS_PER_BLOCK;

/// Events with numbers beside each other whose own rows, and what consumers said of them, lie under one key. A key takes 1,000
/// write units a second, and of a large run more come to an end.
const EVENTS_PER_KEY: u32 = 256;
/// Events with numbers beside each other whose parts lie under one key: that is 820 rows at the most, and who counts the
/// events of a run reads all of its parts.
const EVENTS_OF_PARTS_PER_KEY: u32 = 16_384;
const _: () = assert!(PACK_EVENTS <= EVENTS_PER_KEY as usize);
const _: () = assert!(EVENTS_OF_PARTS_PER_KEY / HTTP_EVENTS_PER_CHUNK < 1_000);

/// Words of consumers, failed events and dead letters that are written at once.
const ONE_BY_ONE_AT_ONCE: usize = 8;
/// Rounds in which records are written. Who keeps them can keep them later, and is paid for while it waits.
const KEEP_ROUNDS: u32 = 2;
/// Keys of one history that are read at once.
const KEYS_AT_ONCE: usize = 8;

/// A record to be kept. Writing one twice leaves one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// What happened to one event of a run of several, or of a pack of single ones.
    Event {
        /// The client whose event it is.
        client: ClientId,
        /// Whose history it belongs to.
        of: HistoryOf,
        /// What happened, with the event's number in that history.
        event: EventRow,
        /// How long it is kept.
        kept: HistoryDays,
    },
    /// A run of one event, which has come to its end: run and event in one row.
    SingleRun {
        /// The occurrence that it was.
        occurrence: Box<Occurrence>,
        /// What its event came to: `delivered` or `dead` is 1, the rest 0.
        tally: Tally,
        /// How often delivery was tried, from 1.
        attempts: u8,
        /// Why it was not delivered; `None` when it was.
        reason: Option<String>,
        /// When the last attempt ended, kept to the millisecond.
        at: DateTime<Utc>,
    },
    /// An event did not succeed, and nothing sends it again. One of the same end that is settled stays so.
    DeadLetter {
        /// The client whose event it is.
        client: ClientId,
        /// What came of it.
        letter: DeadLetter,
        /// How long it is kept.
        kept: HistoryDays,
    },
    /// A target did not take an event.
    FailedDelivery {
        /// The client whose event it is.
        client: ClientId,
        /// The event.
        event: EventId,
        /// What happened.
        failed: FailedDelivery,
        /// How long it is kept.
        kept: HistoryDays,
    },
    /// A part of an unthrottled run was sent.
    Part {
        /// The client whose run it is.
        client: ClientId,
        /// The run that it is a part of.
        run: RunId,
        /// Which events, and what became of them.
        part: PartRow,
        /// The present instant.
        at: DateTime<Utc>,
        /// How long it is kept from then on, and at least [`HISTORY_DAYS`](tidegate_domain::limits::HISTORY_DAYS): a repair goes by
        /// it.
        kept: HistoryDays,
    },
    /// What a consumer said about an event when it released its token. The word of the latest lease stays.
    ReleaseNote {
        /// The client whose event it is.
        client: ClientId,
        /// Whose history it belongs to.
        of: HistoryOf,
        /// The event's number in that history, from 0.
        index: u32,
        /// The fencing number of the lease that was released: a note of an earlier lease does not replace this one.
        fence: u64,
        /// What came of the event.
        outcome: Outcome,
        /// What the consumer said: a result or an error, at most
        /// [`RESULT_BYTES`](tidegate_domain::limits::RESULT_BYTES).
        text: String,
        /// When the release arrived, kept to the millisecond.
        at: DateTime<Utc>,
        /// How long it is kept.
        kept: HistoryDays,
    },
    /// A chunk was sent: when its message comes again, nothing is left to do. Kept for a day: the dispatch queue
    /// delivers a message again within minutes.
    Mark {
        /// The chunk's id, as its message has it.
        chunk: String,
        /// When it was sent: the mark expires a day later.
        at: DateTime<Utc>,
    },
}

/// Whose history a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryOf {
    /// That of a run of several events.
    Run(RunId),
    /// That of a policy's pack of single events.
    Singles(PolicyId, SinglesId),
}

impl HistoryOf {
    /// The history of a pack of a policy.
    pub fn pack(policy: &PolicyId, pack: &PackId) -> Self {
        match pack {
            PackId::Run(run) => Self::Run(run.clone()),
            PackId::Singles(id) => Self::Singles(policy.clone(), *id),
        }
    }
}

/// A part of an unthrottled run: events `from..to`. All of them were delivered but for those that are dead, which have rows
/// of their own, and those that are tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRow {
    /// Index of its first event.
    pub from: u32,
    /// Index behind its last event.
    pub to: u32,
    /// How many could not be delivered.
    pub dead: u32,
    /// How many are tried again: what becomes of them is in the rows of later attempts.
    pub retried: u32,
    /// Which those are, as half-open ranges in their order; empty in rows that do not say.
    pub retried_ranges: Vec<(u32, u32)>,
    /// Which attempt of delivery it was, from 1.
    pub attempt: u8,
    /// When it was sent, to the millisecond; `None` in rows that do not say.
    pub at: Option<DateTime<Utc>>,
}

/// A kind of row that an event has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnRow {
    /// What happened to it: a [`HistoryRow::Event`].
    Event,
    /// What its consumer said: a [`HistoryRow::ReleaseNote`].
    Note,
}

impl OwnRow {
    fn sort_key(self, index: u32) -> String {
        match self {
            Self::Event => event_sort_key(index),
            Self::Note => note_sort_key(index),
        }
    }
}

/// A row of a run's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryRow {
    /// What happened to one event.
    Event(EventRow),
    /// A part that was sent.
    Part(PartRow),
    /// How throttled events ended: what one compaction of a slot group wrote of a block of events, or of all.
    Packed(Vec<Ended>),
    /// What a consumer said about an event.
    ReleaseNote(ReleaseNoteRow),
}

/// What a consumer said about an event when it released its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseNoteRow {
    /// The event's number in the run or pack, from 0.
    pub index: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// What the consumer said.
    pub text: String,
    /// When the release arrived, to the millisecond.
    pub at: DateTime<Utc>,
}

pub(crate) fn partition(client: &ClientId, of: &HistoryOf) -> String {
    match of {
        HistoryOf::Run(run) => format!("{client}|{run}"),
        HistoryOf::Singles(policy, pack) => format!("{client}|{pack}|{policy}"),
    }
}

/// Where rows of an event lie, by its number. The first ones lie with the outcomes: so small runs and packs have one key.
fn event_partition(client: &ClientId, of: &HistoryOf, index: u32) -> String {
    match index / EVENTS_PER_KEY {
        0 => partition(client, of),
        block => format!("{}|events|{block}", partition(client, of)),
    }
}

/// Where a part lies, by the number of its first event.
fn part_partition(client: &ClientId, of: &HistoryOf, from: u32) -> String {
    match from / EVENTS_OF_PARTS_PER_KEY {
        0 => partition(client, of),
        block => format!("{}|parts|{block}", partition(client, of)),
    }
}

fn part_sort_key(from: u32) -> String {
    format!("c{from:07}")
}

fn event_sort_key(index: u32) -> String {
    format!("e{index:07}")
}

fn mark_key(chunk: &str) -> Key {
    Key::new(format!("mark|{chunk}"), "-")
}

/// The key of what says that the jobs of a chunk are all stored.
fn stored_key(chunk: &str) -> Key {
    Key::new(format!("mark|{chunk}"), "stored")
}

fn note_sort_key(index: u32) -> String {
    format!("t{index:07}")
}

/// The key of a part: later attempts have rows of their own, or one of them would take the place of the first.
pub(crate) fn part_key(client: &ClientId, run: &RunId, from: u32, attempt: u8) -> Key {
    let later = if attempt > 1 { format!(".{attempt}") } else { String::new() };
    let of = HistoryOf::Run(run.clone());
    Key::new(part_partition(client, &of, from), format!("{}{later}", part_sort_key(from)))
}

impl Record {
    fn row(&self) -> Result<(Table, Row)> {
        Ok(match self {
            Self::Event { client, of, event, kept } => {
                let partition = event_partition(client, of, event.index);
                let row = Row::new(&Key::new(partition, event_sort_key(event.index)))
                    .with("delivered", aws_sdk_dynamodb::types::AttributeValue::Bool(event.delivered))
                    .with("tries", number(event.attempts))
                    .with("done_at", number(event.at.timestamp_millis()))
                    .with_some("reason", event.reason.as_deref().map(text));
                (Table::Events, row.expiring(kept.from(event.at)))
            }
            Self::SingleRun { occurrence, tally, attempts, reason, at } => {
                let row = runs::record_row(occurrence, *tally, *at)?
                    .with("tries", number(*attempts))
                    .with("done_at", number(at.timestamp_millis()))
                    .with_some("reason", reason.as_deref().map(text));
                (Table::Runs, row)
            }
            Self::DeadLetter { client, letter, kept } => {
                (Table::Events, dead_letters::row(client, letter, *kept))
            }
            Self::FailedDelivery { client, event, failed, kept } => {
                (Table::Events, failures::row(client, event, failed, kept.from(failed.at)))
            }
            Self::Part { client, run, part, at, kept } => {
                let row = Row::new(&part_key(client, run, part.from, part.attempt))
                    .with("upto", number(part.to))
                    .with("dead", number(part.dead))
                    .with_some("retried", (part.retried > 0).then(|| number(part.retried)))
                    .with_some(
                        "retried_ranges",
                        (!part.retried_ranges.is_empty()).then(|| text(ranges_text(&part.retried_ranges))),
                    )
                    .with_some("done_at", part.at.map(|at| number(at.timestamp_millis())));
                (Table::Events, row.expiring(kept.at_least_default().from(*at)))
            }
            Self::ReleaseNote { client, of, index, fence, outcome, text: said, at, kept } => {
                let row = Row::new(&Key::new(event_partition(client, of, *index), note_sort_key(*index)))
                    .with("fence", number(*fence))
                    .with("outcome", text(outcomes::code(*outcome)))
                    .with("said", text(&**said))
                    .with("done_at", number(at.timestamp_millis()));
                (Table::Events, row.expiring(kept.from(*at)))
            }
            Self::Mark { chunk, at } => {
                (Table::Events, Row::new(&mark_key(chunk)).expiring(shifted(*at, days(1))))
            }
        })
    }
}

impl Store {
    /// Keeps records: in batches; release notes, failed events and dead letters one by one, since a later one must stay. What says
    /// that events were sent comes last: whoever finds it finds the rest. The record of a run of one event says so of that event, a
    /// mark of all the chunk's. Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, or leaves some rows unwritten in each of
    /// `KEEP_ROUNDS` rounds. Some rows may be written then; the call may be repeated.
    pub async fn keep(&self, records: &[Record]) -> Result<()> {
        let (mut said, mut letters, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let (mut runs, mut marks) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::ReleaseNote { .. } | Record::Event { .. } => said.push(record),
                Record::DeadLetter { .. } => letters.push(record),
                Record::FailedDelivery { .. } => others.push(record),
                Record::SingleRun { .. } => runs.push(record),
                Record::Part { .. } | Record::Mark { .. } => marks.push(record),
            }
        }
        // Letters come second: what can be redriven has a record of its own.
        for records in [said, letters] {
            let puts: Vec<_> = records.into_iter().map(|record| self.keep_unless_later(record)).collect();
            stream::iter(puts).buffer_unordered(ONE_BY_ONE_AT_ONCE).try_collect::<()>().await?;
        }
        for records in [others, runs, marks] {
            let rows = records.into_iter().map(Record::row).collect::<Result<_>>()?;
            self.put_all_within(KEEP_ROUNDS, rows).await?;
        }
        Ok(())
    }

    /// Keeps one record, unless one of a later delivery or lease has its place.
    async fn keep_unless_later(&self, record: &Record) -> Result<()> {
        let (table, row) = record.row()?;
        let (condition, name, value) = match record {
            Record::ReleaseNote { fence, .. } => {
                ("attribute_not_exists(fence) OR fence <= :fence", ":fence", number(*fence))
            }
            Record::Event { event, .. } => {
                ("attribute_not_exists(pk) OR tries <= :tries", ":tries", number(event.attempts))
            }
            // Refused by one of the same end as well, settled or not. Beyond the last number nobody counts further: a later end
            // looks like this one.
            Record::DeadLetter { letter, .. } if letter.attempts < u8::MAX => {
                ("attribute_not_exists(pk) OR tries < :tries", ":tries", number(letter.attempts))
            }
            _ => return self.put(table, row).await,
        };
        let values = Attributes::from([(name.to_owned(), value)]);
        self.put_when(table, row, condition, values).await.map(drop)
    }

    /// Whether the chunk of this id was sent already, by its [`Record::Mark`], read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn was_sent(&self, chunk: &str) -> Result<bool> {
        Ok(self.get(Table::Events, &mark_key(chunk), true).await?.is_some())
    }

    /// Notes that the jobs of some chunks are all stored, whose events went ahead of them. Kept for a day, as marks are.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or leaves some rows unwritten in each of
    /// `WRITE_ROUNDS` rounds. Some may be noted then; the call may be repeated.
    pub async fn note_all_stored(&self, chunks: &[String], at: DateTime<Utc>) -> Result<()> {
        let row =
            |chunk: &String| (Table::Events, Row::new(&stored_key(chunk)).expiring(shifted(at, days(1))));
        self.put_all(chunks.iter().map(row).collect()).await
    }

    /// Whether it was noted that the jobs of the chunk of this id are all stored. What any replica has is noted.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn are_all_stored(&self, chunk: &str) -> Result<bool> {
        Ok(self.get(Table::Events, &stored_key(chunk), false).await?.is_some())
    }

    /// Whether the part of a run that begins at event `from` was sent in a first attempt, read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn was_part_sent(&self, client: &ClientId, run: &RunId, from: u32) -> Result<bool> {
        let key = part_key(client, run, from, 1);
        Ok(self.get(Table::Events, &key, true).await?.is_some())
    }

    /// The parts that have some events of a run, by their first event. Read consistently. Rows that cannot be read are among
    /// the `unreadable` ones.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn parts_with(
        &self,
        client: &ClientId,
        run: &RunId,
        events: Range<u32>,
    ) -> Result<Page<HistoryRow>> {
        let (of, last) = (HistoryOf::Run(run.clone()), events.end.saturating_sub(1));
        // A part lies where its first event does.
        let first = events.start.saturating_sub(EVENTS_PER_CHUNK - 1);
        let sorted = Sorted::Between(part_sort_key(first), part_sort_key(last.saturating_add(1)));
        let blocks = first / EVENTS_OF_PARTS_PER_KEY..=last / EVENTS_OF_PARTS_PER_KEY;
        let places = blocks.map(|block| part_partition(client, &of, block * EVENTS_OF_PARTS_PER_KEY));
        self.all_in(places.map(|place| (place, sorted.clone()))).await
    }

    /// The rows of one kind that some events of a history have of their own, by the events' numbers. Read consistently. Rows
    /// that cannot be read are among the `unreadable` ones.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn own_rows(
        &self,
        client: &ClientId,
        of: &HistoryOf,
        kind: OwnRow,
        events: Range<u32>,
    ) -> Result<Page<HistoryRow>> {
        let last = events.end.saturating_sub(1);
        let sorted = Sorted::Between(kind.sort_key(events.start), kind.sort_key(last));
        let blocks = events.start / EVENTS_PER_KEY..=last / EVENTS_PER_KEY;
        let places = blocks.map(|block| event_partition(client, of, block * EVENTS_PER_KEY));
        self.all_in(places.map(|place| (place, sorted.clone()))).await
    }

    /// The same of events that lie apart, all different: a read unit each, or more where a row is larger than 4 KB.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn own_rows_each(
        &self,
        client: &ClientId,
        of: &HistoryOf,
        wanted: &[(OwnRow, u32)],
    ) -> Result<Page<HistoryRow>> {
        let key = |(kind, index): &(OwnRow, u32)| {
            Key::new(event_partition(client, of, *index), kind.sort_key(*index))
        };
        let keys: Vec<Key> = wanted.iter().map(key).collect();
        let found = self.get_all(Table::Events, &keys.iter().collect::<Vec<_>>(), true).await?;
        Ok(Page::new(found.into_values().collect(), None).read(Table::Events, read))
    }

    /// All rows of some keys.
    async fn all_in(&self, places: impl Iterator<Item = (String, Sorted)>) -> Result<Page<HistoryRow>> {
        let reads: Vec<_> = places.map(|(partition, sorted)| self.all_of_key(partition, sorted)).collect();
        let (mut all, mut pages) = (Page::new(Vec::new(), None), stream::iter(reads).buffered(KEYS_AT_ONCE));
        while let Some(page) = pages.try_next().await? {
            all.rows.extend(page.rows);
            all.unreadable.extend(page.unreadable);
        }
        Ok(all)
    }

    async fn all_of_key(&self, partition: String, sorted: Sorted) -> Result<Page<HistoryRow>> {
        let (mut all, mut after) = (Page::new(Vec::new(), None), None);
        loop {
            let query = Query {
                sorted: sorted.clone(),
                consistent: true,
                after,
                ..Query::of(Table::Events, &*partition)
            };
            let page = self.query(query).await?.read(Table::Events, read);
            all.rows.extend(page.rows);
            all.unreadable.extend(page.unreadable);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// A page of up to [`PAGE_ROWS`] rows of a history, read consistently: the packed outcomes of all events, and of the first
    /// ones their parts, their own rows and what consumers said. For those who want all outcomes; who wants some events asks
    /// [`Store::ends`], [`Store::parts_with`] and [`Store::own_rows`]. The first page when `after` is `None`, else what follows
    /// a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn history(
        &self,
        client: &ClientId,
        of: &HistoryOf,
        after: Option<String>,
    ) -> Result<Page<HistoryRow>> {
        let query = Query {
            limit: Some(PAGE_ROWS),
            consistent: true,
            after,
            ..Query::of(Table::Events, partition(client, of))
        };
        Ok(self.query(query).await?.read(Table::Events, read))
    }
}

pub(crate) fn read(row: &Attributes) -> Result<HistoryRow> {
    let item = Item::read(Table::Events, row)?;
    let (kind, place) = item.text("sk")?.split_at_checked(1).unwrap_or_default();
    Ok(match kind {
        "e" => HistoryRow::Event(EventRow {
            index: item.parsed("sk", place)?,
            delivered: row.get("delivered").and_then(|v| v.as_bool().ok()).copied().unwrap_or_default(),
            attempts: item.number("tries")?,
            at: item.instant_ms("done_at")?,
            reason: item.find_text("reason").map(str::to_owned),
        }),
        "c" => {
            let (from, attempt) = place.split_once('.').unwrap_or((place, "1"));
            HistoryRow::Part(PartRow {
                from: item.parsed("sk", from)?,
                to: item.number("upto")?,
                dead: item.number("dead")?,
                retried: item.number_or("retried", 0)?,
                retried_ranges: match item.find_text("retried_ranges") {
                    Some(text) => {
                        read_ranges(text).ok_or_else(|| item.corrupt("'retried_ranges' has none"))?
                    }
                    None => Vec::new(),
                },
                attempt: item.parsed("sk", attempt)?,
                at: item.find_instant_ms("done_at")?,
            })
        }
        "t" => HistoryRow::ReleaseNote(ReleaseNoteRow {
            index: item.parsed("sk", place)?,
            outcome: outcomes::from_code(item.text("outcome")?)
                .ok_or_else(|| item.corrupt("'outcome' is none"))?,
            text: item.text("said")?.to_owned(),
            at: item.instant_ms("done_at")?,
        }),
        _ => HistoryRow::Packed(unpack(item)?),
    })
}

/// Half-open ranges as `3-5,9-10`.
fn ranges_text(ranges: &[(u32, u32)]) -> String {
    let texts: Vec<String> = ranges.iter().map(|(from, to)| format!("{from}-{to}")).collect();
    texts.join(",")
}

fn read_ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let range = |text: &str| {
        let (from, to) = text.split_once('-')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    text.split(',').map(range).collect()
}

fn unpack(item: Item<'_>) -> Result<Vec<Ended>> {
    outcomes::decode_all(item.text("packed")?).map_err(|part| item.corrupt(format!("'packed' has '{part}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_were_written() {
        for ranges in [vec![(0, 1)], vec![(3, 5), (9, 10)]] {
            assert_eq!(read_ranges(&ranges_text(&ranges)), Some(ranges));
        }
        for text in ["", "3", "3-", "a-b", "1-2;3-4"] {
            assert_eq!(read_ranges(text), None, "{text}");
        }
    }
}
