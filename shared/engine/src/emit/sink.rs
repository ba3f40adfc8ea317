//! From occurrences to messages and rows: chunks of events where nothing throttles, entries of a line where a policy does, and
//! messages that arrive at a line for single events that have little company.
//!
//! Occurrences go in one by one; what follows from them is gathered and written with many requests under way at once. What is
//! gathered is bounded: when [`Emission::is_full`], whoever feeds it flushes it and then keeps how far it came, so that a call
//! that is killed has lost no more than that. A write that fails stops no other: the row of the index that it follows from
//! is told, and is read again later.
//!
//! What no queue takes is set aside under its job, with a reason that its client sees; the rest of the window goes on (I9).
//!
//! Invariant (I3): an occurrence yields exactly the events 0 to n-1, whoever emits it and however often: chunks are cut
//! by fixed rules, runs and marks are written under the occurrence's own key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future;
use futures::stream::{self, StreamExt};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::occurrence::{Occurrence, SkipReason};
use tidegate_domain::pack::SinglesKind;
use tidegate_domain::usage::Tally;
use tidegate_store::Create;
use tidegate_store::launch::{Child, IndexRow, RowKey};
use tidegate_store::runs::Skipped;
use tidegate_store::scans::{Part, Task};
use tracing::{error, warn};

use super::Emission;
use super::chunks::{self, Chunks};
use crate::queues::Outgoing;
use crate::queues::message::{Chunk, ChunkItem, Message};
use crate::scan::Sink;
use crate::scan::evaluate::Decision;
use crate::throttle::lines::{Failure, Joined, Joining, Lines, WRITES_AT_ONCE};
use crate::{EngineError, contain};

/// Writes that are gathered before they are begun.
const WRITES_GATHERED: usize = 320;
/// Messages that are gathered before they are sent.
const MESSAGES_GATHERED: usize = 160;
/// Events of a run that are sent by whoever finds it. Those of a larger run are a part of their own, with a cursor.
const EVENTS_INLINE: u32 = 1_000;
/// What an emission takes before it is full: a row of the index, a kilobyte and a single event count 1, a write 10. That is
/// some 450 throttled runs, or 2,500 single events: a few hundred requests.
const FULL_LOAD: usize = 5_000;
/// What a write adds to the load.
const WRITE_LOAD: usize = 10;
/// A load that is written in one round of writes: an emission always has room for it.
const LEAST_LOAD: usize = WRITES_AT_ONCE * (WRITE_LOAD + 1);
/// After how long an emission is full, whatever it took, in seconds: requests are slow.
const FULL_SECONDS: i64 = 5;
/// How long it should take at the most to write down what an emission took, in milliseconds: a tick and a worker have less
/// than a minute for everything.
const FLUSH_MS: i64 = 15_000;
/// When the first row comes later than this, in milliseconds, a full load takes longer than [`FLUSH_MS`]: some 45 calls one
/// after the other, where the first row took two.
const PROMPT_MS: i64 = 667;

/// Occurrences on their way into queues and lines.
pub(crate) struct EmitSink<'e> {
    emission: &'e Emission,
    as_of: DateTime<Utc>,
    repeat: bool,
    partition: Arc<str>,
    row: Option<RowKey>,
    writes: Vec<Pending>,
    /// Single events that are to be packed: the more are packed at once, the fewer packs they get into.
    singles: Vec<Joining>,
    chunks: Chunks,
    lines: Lines,
    flushed: Flushed,
    /// What was emitted for each client since the last flush, where that is counted.
    emitted: BTreeMap<ClientId, Tally>,
    load: usize,
    /// The load at which it is full: less than a full one while the tables are slow.
    room: usize,
    /// When it was begun, or flushed last.
    began_at: DateTime<Utc>,
    pub(crate) counts: Counts,
}

/// What was emitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) occurrences: u64,
    pub(crate) events: u64,
    pub(crate) chunks: u64,
    pub(crate) runs: u64,
    pub(crate) skipped: u64,
    /// Launches that no queue takes.
    pub(crate) set_aside: u64,
    /// The oldest launch that was emitted.
    pub(crate) oldest_launch: Option<DateTime<Utc>>,
}

/// What came of a flush. All else is written and sent.
#[derive(Debug, Default)]
pub(crate) struct Flushed {
    /// What could not be written for a reason that may pass, with the row of the index that it follows from.
    pub(crate) failed: Vec<(Option<RowKey>, EngineError)>,
    /// Rows that failed together with one in `failed`.
    pub(crate) failed_with: Vec<Option<RowKey>>,
    /// The parts that runs were left in, whose workers have to be told.
    pub(crate) parts: Vec<String>,
}

/// A write that follows from a row of the index.
struct Pending {
    row: Option<RowKey>,
    write: Write,
}

enum Write {
    /// An occurrence joins the line of its policy.
    Join(Occurrence),
    /// An occurrence of several events that nothing throttles.
    Batch(Occurrence),
    /// Launches of the occurrence's job, of which it is the first, are skipped.
    Skip { first: Occurrence, launches: Vec<DateTime<Utc>>, reason: SkipReason },
    /// A row of a job cannot be read.
    Unreadable { client: ClientId, job: JobId, at: DateTime<Utc> },
}

/// What a write leaves to be done.
enum AfterWrite {
    Nothing,
    /// The events of a batch are to be sent.
    SendEvents,
    /// The events of a batch are in a part of their own: its workers are to be told.
    TellWorkers(String),
}

impl Sink for EmitSink<'_> {
    fn enter(&mut self, partition: &str) {
        self.partition = Arc::from(partition);
    }

    fn begin_row(&mut self, row: &IndexRow) {
        if self.load == 0 {
            self.room = self.room.min(load_in(FULL_LOAD, PROMPT_MS, self.passed_ms()));
        }
        self.load += 1;
        self.row =
            Some(RowKey { partition: Arc::clone(&self.partition), sort_key: Arc::from(&*row.sort_key) });
    }

    fn is_full(&self) -> bool {
        self.load >= self.room || (self.load > 0 && self.is_late())
    }

    async fn launch(&mut self, row: &Child, launch: &Decision) -> Result<(), EngineError> {
        let count = row.terms.count.get();
        self.counts.occurrences += 1;
        self.counts.events += u64::from(count);
        self.count(&row.client, Tally::of_launch(count, row.terms.policy.is_some()));
        let oldest =
            self.counts.oldest_launch.map_or(launch.launch_at, |oldest| oldest.min(launch.launch_at));
        self.counts.oldest_launch = Some(oldest);
        if row.terms.policy.is_none() && count == 1 {
            let occurrence = row.occurrence(launch.launch_at);
            let bytes = self.chunks.add_single(&occurrence);
            self.load += 1 + bytes / 1_024;
            return self.send_if_many().await;
        }
        let occurrence = row.occurrence(launch.launch_at);
        self.load += row.terms.payload.text().map_or(0, str::len) / 1_024;
        if SinglesKind::of(&occurrence).is_some() {
            self.load += 1;
            self.singles.push(Joining { row: self.row.clone(), occurrence });
            return Ok(());
        }
        self.write(match row.terms.policy {
            Some(_) => Write::Join(occurrence),
            None => Write::Batch(occurrence),
        })
        .await
    }

    async fn skip(
        &mut self,
        row: &Child,
        skipped: &[Decision],
        reason: SkipReason,
    ) -> Result<(), EngineError> {
        let Some(first) = skipped.first() else { return Ok(()) };
        self.counts.skipped += skipped.len() as u64;
        self.count(&row.client, Tally { skipped: skipped.len() as u64, ..Tally::default() });
        let launches = skipped.iter().map(|launch| launch.launch_at).collect();
        self.write(Write::Skip { first: row.occurrence(first.launch_at), launches, reason }).await
    }

    async fn unreadable(&mut self, row: &IndexRow, at: DateTime<Utc>) -> Result<(), EngineError> {
        // One record a day says enough.
        let second = at.timestamp().div_euclid(86_400) * 86_400;
        let at = DateTime::from_timestamp(second, 0).unwrap_or(at);
        match row.owner() {
            Some((client, job)) => self.write(Write::Unreadable { client, job, at }).await,
            None => Ok(()),
        }
    }
}

impl<'e> EmitSink<'e> {
    /// An emission of what was read at `as_of` or later. With `repeat`, it may have been emitted before.
    pub(crate) fn new(emission: &'e Emission, as_of: DateTime<Utc>, repeat: bool) -> Self {
        Self {
            emission,
            as_of,
            repeat,
            partition: Arc::from(""),
            row: None,
            writes: Vec::new(),
            singles: Vec::new(),
            chunks: Chunks::new(as_of, repeat),
            lines: Lines::default(),
            flushed: Flushed::default(),
            emitted: BTreeMap::new(),
            load: 0,
            room: FULL_LOAD,
            began_at: emission.clock.now(),
            counts: Counts::default(),
        }
    }

    fn count(&mut self, client: &ClientId, tally: Tally) {
        if self.emission.usage.is_none() {
            return;
        }
        match self.emitted.get_mut(client) {
            Some(known) => known.include(tally),
            None => drop(self.emitted.insert(client.clone(), tally)),
        }
    }

    /// Whether it is time to keep how far things came, though nothing was found.
    pub(crate) fn is_late(&self) -> bool {
        self.passed_ms() >= FULL_SECONDS * 1_000
    }

    fn passed_ms(&self) -> i64 {
        (self.emission.clock.now() - self.began_at).num_milliseconds()
    }

    /// Sends some events of a run that nothing throttles.
    pub(crate) async fn send_events(
        &mut self,
        run: &Occurrence,
        events: std::ops::Range<u32>,
    ) -> Result<(), EngineError> {
        let mut from = events.start;
        while from < events.end {
            let to = events.end.min(from.saturating_add(chunks::events_per_chunk(&run.terms)));
            self.chunks.add_part(run, from, to);
            self.send_if_many().await?;
            from = to;
        }
        Ok(())
    }

    /// Writes and sends all that was taken. Afterwards there is room again.
    ///
    /// # Errors
    /// When the dispatch queue does not take messages: the same occurrences must come again.
    pub(crate) async fn flush(&mut self) -> Result<Flushed, EngineError> {
        self.began_at = self.emission.clock.now();
        self.write_gathered().await?;
        let singles = std::mem::take(&mut self.singles);
        let singles = self.leave_few(singles);
        self.write_packs(singles).await;
        self.chunks.close_all();
        self.chunks.wake(self.lines.take_wakes());
        self.send_ready().await?;
        let took_ms = self.passed_ms();
        let fits = load_in(self.load, FLUSH_MS, took_ms);
        // A small load says little: it may have been quick because it was small.
        if took_ms > FLUSH_MS || fits > self.room {
            self.room = fits;
        }
        (self.load, self.began_at) = (0, self.emission.clock.now());
        self.counts.chunks = self.chunks.count;
        if let Some(usage) = &self.emission.usage {
            std::mem::take(&mut self.emitted).iter().for_each(|(client, tally)| usage.count(client, tally));
            usage.tell().await;
        }
        if let Some(bus) = &self.emission.bus {
            bus.publish_many().await;
        }
        Ok(std::mem::take(&mut self.flushed))
    }

    async fn write(&mut self, write: Write) -> Result<(), EngineError> {
        self.load += WRITE_LOAD;
        self.writes.push(Pending { row: self.row.clone(), write });
        if self.writes.len() < WRITES_GATHERED { Ok(()) } else { self.write_gathered().await }
    }

    async fn write_gathered(&mut self) -> Result<(), EngineError> {
        let (mut joining, mut others) = (Vec::new(), Vec::new());
        for Pending { row, write } in std::mem::take(&mut self.writes) {
            match write {
                Write::Join(occurrence) => joining.push(Joining { row, occurrence }),
                write => others.push(Pending { row, write }),
            }
        }
        let (emission, as_of) = (self.emission, self.as_of);
        let writes = others.into_iter().map(|pending| async move {
            let written = contain(|| pending.write.describe(), emission.write(&pending.write, as_of)).await;
            (pending, written.map_err(EngineError::from).flatten())
        });
        let writes = stream::iter(writes.collect::<Vec<_>>()).buffer_unordered(WRITES_AT_ONCE);
        let (joined, written) =
            future::join(self.lines.join(&emission.throttle, joining), writes.collect::<Vec<_>>()).await;
        self.joined(joined).await;
        for (pending, written) in written {
            match written {
                Ok(AfterWrite::Nothing) => {}
                Ok(AfterWrite::TellWorkers(id)) => self.flushed.parts.push(id),
                Ok(AfterWrite::SendEvents) => {
                    self.counts.runs += 1;
                    if let Write::Batch(run) = &pending.write {
                        self.send_events(run, 0..run.terms.count.get()).await?;
                    }
                }
                Err(error) => self.failed_to_write(pending, error).await,
            }
        }
        Ok(())
    }

    async fn write_packs(&mut self, singles: Vec<Joining>) {
        let joined =
            self.lines.join_packed(&self.emission.throttle, (self.as_of, self.repeat), singles).await;
        self.joined(joined).await;
    }

    /// Single events that few others join in their line and minute travel in messages until they are due: mostly they find
    /// a free slot then, and never wait in the line. Returns the others.
    fn leave_few(&mut self, singles: Vec<Joining>) -> Vec<Joining> {
        let kind = |Joining { occurrence, .. }: &Joining| {
            let Occurrence { client, terms, .. } = occurrence;
            (client.clone(), terms.policy.clone(), SinglesKind::of(occurrence))
        };
        let mut counts = BTreeMap::<_, usize>::new();
        singles.iter().for_each(|single| *counts.entry(kind(single)).or_default() += 1);
        let is_few =
            |single: &Joining| counts.get(&kind(single)).is_none_or(|count| *count <= self.emission.few);
        let (few, many): (Vec<_>, Vec<_>) = singles.into_iter().partition(is_few);
        for single in few {
            self.chunks.add_single(&single.occurrence);
        }
        many
    }

    async fn joined(&mut self, joined: Joined) {
        self.counts.runs += joined.runs;
        self.counts.skipped += joined.line_full;
        for Failure { runs, error } in joined.failed {
            self.failed_to_join(runs, error).await;
        }
    }

    async fn failed_to_join(&mut self, runs: Vec<Joining>, error: EngineError) {
        let mut failed = runs.into_iter();
        if error.is_of_one_row() {
            let reason = error.to_string();
            let (rows, occurrences): (Vec<_>, Vec<_>) =
                failed.map(|Joining { row, occurrence }| (row, (occurrence, reason.clone()))).unzip();
            for (row, set_aside) in rows.into_iter().zip(self.set_all_aside(occurrences).await) {
                self.flushed.failed.extend(set_aside.err().map(|error| (row, error)));
            }
            return;
        }
        self.flushed.failed.extend(failed.next().map(|first| (first.row, error)));
        self.flushed.failed_with.extend(failed.map(|other| other.row));
    }

    async fn failed_to_write(&mut self, Pending { row, write }: Pending, error: EngineError) {
        let error = match (&write, error.is_of_one_row()) {
            (_, false) => Err(error),
            (Write::Batch(occurrence), true) => self.set_aside(occurrence, &error.to_string()).await,
            (_, true) => {
                error!(what = write.describe(), %error, "launches are set aside without a record");
                Ok(())
            }
        };
        self.flushed.failed.extend(error.err().map(|error| (row, error)));
    }

    async fn send_if_many(&mut self) -> Result<(), EngineError> {
        if self.chunks.ready.len() >= MESSAGES_GATHERED { self.send_ready().await } else { Ok(()) }
    }

    async fn send_ready(&mut self) -> Result<(), EngineError> {
        let ready = std::mem::take(&mut self.chunks.ready);
        let (mut apart, mut asides) = (Vec::new(), Vec::new());
        for refusal in self.emission.queues.dispatch_each(&ready).await? {
            if let Some(message @ (Message::Chunk(chunk) | Message::Arrival(chunk))) =
                ready.get(refusal.index).map(Outgoing::message)
            {
                let (client, launch_at) = chunk.head()?;
                if let [item] = chunk.items.as_slice() {
                    asides.push((item.occurrence(&client, launch_at)?, refusal.reason));
                    continue;
                }
                let alone = |item: &ChunkItem| Chunk { items: vec![item.clone()], ..chunk.clone() };
                let sent = |item| (item, Outgoing::at(&client, message.with(alone(item)), launch_at));
                apart.extend(chunk.items.iter().map(sent));
            }
        }
        asides.extend(self.send_apart(apart).await?);
        self.set_all_aside(asides).await.into_iter().collect()
    }

    /// Sends the events of chunks that were refused, each job's by themselves. Returns those that are refused again, with the
    /// reason.
    async fn send_apart(
        &self,
        apart: Vec<(&ChunkItem, Outgoing)>,
    ) -> Result<Vec<(Occurrence, String)>, EngineError> {
        let (items, apart): (Vec<&ChunkItem>, Vec<Outgoing>) = apart.into_iter().unzip();
        let mut refused = Vec::new();
        for refusal in self.emission.queues.dispatch_each(&apart).await? {
            let chunk = apart.get(refusal.index).map(Outgoing::message);
            if let (Some(item), Some(Message::Chunk(chunk) | Message::Arrival(chunk))) =
                (items.get(refusal.index), chunk)
            {
                let (client, launch_at) = chunk.head()?;
                refused.push((item.occurrence(&client, launch_at)?, refusal.reason));
            }
        }
        Ok(refused)
    }

    /// Records that occurrences cannot be emitted, many at once, each for its reason. The answers are in their order.
    async fn set_all_aside(
        &mut self,
        occurrences: Vec<(Occurrence, String)>,
    ) -> Vec<Result<(), EngineError>> {
        self.counts.set_aside += occurrences.len() as u64;
        let contents = &self.emission.contents;
        let asides: Vec<_> =
            occurrences.iter().map(|(occurrence, reason)| contents.set_aside(occurrence, reason)).collect();
        stream::iter(asides).buffered(WRITES_AT_ONCE).collect().await
    }

    /// Records that an occurrence cannot be emitted. The window goes on.
    async fn set_aside(&mut self, occurrence: &Occurrence, reason: &str) -> Result<(), EngineError> {
        self.counts.set_aside += 1;
        self.emission.contents.set_aside(occurrence, reason).await
    }
}

impl Write {
    /// Whose it is, for the log.
    fn describe(&self) -> String {
        match self {
            Self::Join(of) | Self::Batch(of) | Self::Skip { first: of, .. } => {
                format!("client {}, job {}", of.client, of.job)
            }
            Self::Unreadable { client, job, .. } => format!("client {client}, job {job}"),
        }
    }
}

impl Emission {
    /// Sends a single event before its job is written, with those of other calls that came meanwhile. `false`: nobody knows
    /// whether it was sent.
    ///
    /// # Errors
    /// When it was alone, and the queue did not take it.
    pub(crate) async fn send_ahead_gathered(&self, event: Occurrence) -> Result<bool, EngineError> {
        let send = |events: Vec<Occurrence>| async move { self.send_ahead(&events).await.map(drop) };
        Ok(self.gathered.with_others(event, send).await?.is_some())
    }

    /// Sends single events before their jobs are written. Answers the messages.
    pub(crate) async fn send_ahead(&self, singles: &[Occurrence]) -> Result<Vec<Outgoing>, EngineError> {
        let mut chunks = Chunks::ahead(self.clock.now());
        for single in singles {
            chunks.add_single(single);
        }
        chunks.close_all();
        self.queues.dispatch(&chunks.ready).await?;
        Ok(chunks.ready)
    }

    /// Notes of messages that went ahead that all their jobs are `stored`, by their ids, where that was in time. Without a note, who
    /// receives a message looks for each of its jobs.
    pub(crate) async fn note_stored(
        &self,
        ahead: &[Outgoing],
        stored: &BTreeSet<&str>,
        is_in_time: impl Fn(DateTime<Utc>) -> bool,
    ) {
        let chunks = ahead.iter().filter_map(|sent| match sent.message() {
            Message::Chunk(chunk) => Some(chunk),
            _ => None,
        });
        let is_safe = |chunk: &&Chunk| {
            chunk.head().is_ok_and(|(_, launch_at)| is_in_time(launch_at))
                && chunk.items.iter().all(|item| stored.contains(item.job.as_str()))
        };
        let noted: Vec<_> = chunks.filter(|chunk| chunk.is_noted()).filter(is_safe).map(Chunk::id).collect();
        if let Err(error) = self.store.note_all_stored(&noted, self.clock.now()).await {
            warn!(%error, "it is not noted that the jobs of some messages are stored: each will be looked for");
        }
    }

    async fn write(&self, write: &Write, as_of: DateTime<Utc>) -> Result<AfterWrite, EngineError> {
        let (store, now) = (&self.store, self.clock.now());
        match write {
            Write::Batch(run) if run.terms.count.get() > EVENTS_INLINE => {
                let part = Part::new(Task::Events { occurrence: Box::new(run.clone()), as_of, next: 0 }, now);
                return Ok(match store.create_run_in_part(run, &part, now).await? {
                    Create::Done => AfterWrite::TellWorkers(part.id),
                    // Its part is there, or done.
                    Create::Exists => AfterWrite::Nothing,
                });
            }
            Write::Batch(run) => {
                store.create_run(run, now).await?;
                return Ok(AfterWrite::SendEvents);
            }
            Write::Skip { first, launches, reason } => {
                self.record_skips_of(first, launches, *reason).await?;
            }
            Write::Unreadable { client, job, at } => {
                store.record_unreadable(client, job, *at, now).await?;
            }
            // Lines write them.
            Write::Join(_) => {}
        }
        Ok(AfterWrite::Nothing)
    }

    /// One record for all of them, or for those from the first on of which nothing else became before.
    async fn record_skips_of(
        &self,
        first: &Occurrence,
        launches: &[DateTime<Utc>],
        reason: SkipReason,
    ) -> Result<(), EngineError> {
        let (store, now) = (&self.store, self.clock.now());
        let mut open = launches;
        while let [launch_at, rest @ ..] = open {
            let occurrence = Occurrence { launch_at: *launch_at, ..first.clone() };
            let recorded = match rest.last() {
                Some(last) => {
                    let skipped = Skipped { until: *last, count: open.len() as u32 };
                    store.record_skips(&occurrence, reason, skipped, now).await?
                }
                None => store.record_skip(&occurrence, reason.as_str(), now).await?,
            };
            if recorded == Create::Done {
                break;
            }
            open = rest;
        }
        Ok(())
    }
}

/// The load that is written within so long, where another one took a time; never more than a full one.
fn load_in(load: usize, within_ms: i64, took_ms: i64) -> usize {
    let part = i64::try_from(load).unwrap_or(i64::MAX).saturating_mul(within_ms) / took_ms.max(1);
    usize::try_from(part).unwrap_or(0).clamp(LEAST_LOAD, FULL_LOAD)
}
