//! From occurrences to messages: chunks of events where nothing throttles, runs and wake-ups where a policy does.
//!
//! What no queue takes is set aside under its job, with a reason that its client sees; the rest of the window goes on (I9).
//!
//! Invariant (I3): an occurrence yields exactly the events 0 to n-1, whoever emits it and however often: chunks are cut
//! by fixed rules, runs and marks are written under the occurrence's own key.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::{CHUNK_BYTES, EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK};
use tidegate_domain::occurrence::{NonRun, Occurrence};
use tidegate_store::Create;
use tidegate_store::doc::TermsDoc;
use tidegate_store::launch::Child;
use tidegate_store::runs::Skipped;
use tracing::error;

use crate::message::{Chunk, ChunkItem, Message};
use crate::queue::Outgoing;
use crate::scan::Sink;
use crate::scan::judge::Verdict;
use crate::{Engine, EngineError};

/// Messages that are gathered before they are sent: eight calls of ten.
const MESSAGES_PER_FLUSH: usize = 80;
/// What an item adds to its chunk beside its terms, in bytes, at the most, with a job id of up to [`SHORT_ID_BYTES`].
const ITEM_BYTES: usize = 120;
/// What of a job's id is counted in [`ITEM_BYTES`].
const SHORT_ID_BYTES: usize = 48;

/// Occurrences on their way into the dispatch queue. Holds a bounded number of them, however many are pushed.
pub(crate) struct Emission<'e> {
    engine: &'e Engine,
    as_of: DateTime<Utc>,
    open: BTreeMap<ChunkKey, OpenChunk>,
    ready: Vec<Outgoing>,
    wakes: BTreeSet<(DateTime<Utc>, ClientId, PolicyId)>,
    touched: BTreeSet<(ClientId, PolicyId)>,
    /// How many more runs the lines of policies take; `None` for any number.
    places: BTreeMap<(ClientId, PolicyId), Option<u32>>,
    pub(crate) counts: Counts,
}

/// What was emitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) occurrences: u64,
    pub(crate) events: u64,
    pub(crate) chunks: u64,
    pub(crate) runs: u64,
    pub(crate) left_out: u64,
    /// Launches that no queue takes.
    pub(crate) set_aside: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ChunkKey {
    client: ClientId,
    launch_at: DateTime<Utc>,
    http: bool,
    repeat: bool,
}

#[derive(Default)]
struct OpenChunk {
    items: Vec<ChunkItem>,
    events: u32,
    bytes: usize,
}

impl Sink for Emission<'_> {
    async fn launch(&mut self, row: &Child, launch: &Verdict, repeat: bool) -> Result<(), EngineError> {
        self.counts.occurrences += 1;
        self.counts.events += u64::from(row.terms.count.get());
        match &row.terms.policy {
            Some(policy) => self.enqueue(row, launch.launch_at, policy).await,
            None => self.cut(row, launch.launch_at, repeat).await,
        }
    }

    async fn leave_out(
        &mut self,
        row: &Child,
        left_out: &[Verdict],
        reason: NonRun,
    ) -> Result<(), EngineError> {
        let (store, now) = (self.engine.store(), self.engine.now());
        self.counts.left_out += left_out.len() as u64;
        let mut open = left_out;
        while let [first, rest @ ..] = open {
            let occurrence = row.occurrence(first.launch_at);
            let recorded = match rest.last() {
                Some(last) => {
                    let skipped = Skipped { until: last.launch_at, count: open.len() as u32 };
                    store.record_skipped(&occurrence, reason, skipped, now).await?
                }
                None => store.record_non_run(&occurrence, reason.as_str(), now).await?,
            };
            if recorded == Create::Done {
                break;
            }
            // Something else became of the first one before.
            open = rest;
        }
        Ok(())
    }
}

impl<'e> Emission<'e> {
    /// An emission of what was read at `as_of` or later.
    pub(crate) fn new(engine: &'e Engine, as_of: DateTime<Utc>) -> Self {
        Self {
            engine,
            as_of,
            open: BTreeMap::new(),
            ready: Vec::new(),
            wakes: BTreeSet::new(),
            touched: BTreeSet::new(),
            places: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    async fn enqueue(
        &mut self,
        row: &Child,
        launch_at: DateTime<Utc>,
        policy: &PolicyId,
    ) -> Result<(), EngineError> {
        let (store, now) = (self.engine.store(), self.engine.now());
        let client = &row.client;
        if self.touched.insert((client.clone(), policy.clone())) {
            store.touch_active(client, policy, now).await?;
        }
        let occurrence = row.occurrence(launch_at);
        if !self.has_place(client, policy).await? {
            let recorded = store.record_non_run(&occurrence, NonRun::LineFull.as_str(), now).await?;
            self.counts.left_out += u64::from(recorded == Create::Done);
            return Ok(());
        }
        if store.enqueue_run(&occurrence, policy, now).await? == Create::Done
            && let Some(Some(places)) = self.places.get_mut(&(client.clone(), policy.clone()))
        {
            *places = places.saturating_sub(1);
        }
        self.counts.runs += 1;
        self.wakes.insert((launch_at, client.clone(), policy.clone()));
        Ok(())
    }

    /// Whether the line of a policy takes another run. Its runs are counted once, and then what is added here: those whom
    /// others add at the same time come on top of the bound.
    async fn has_place(&mut self, client: &ClientId, policy: &PolicyId) -> Result<bool, EngineError> {
        let key = (client.clone(), policy.clone());
        if let Some(places) = self.places.get(&key) {
            return Ok(places.is_none_or(|places| places > 0));
        }
        let places = self.engine.free_places(client, policy).await?;
        self.places.insert(key, places);
        Ok(places.is_none_or(|places| places > 0))
    }

    async fn cut(&mut self, row: &Child, launch_at: DateTime<Utc>, repeat: bool) -> Result<(), EngineError> {
        let count = row.terms.count.get();
        let http = row.terms.target.is_http();
        let per_chunk = if http { HTTP_EVENTS_PER_CHUNK } else { EVENTS_PER_CHUNK };
        let terms = TermsDoc::from(&row.terms);
        let bytes = ITEM_BYTES + row.job.as_str().len().saturating_sub(SHORT_ID_BYTES) + terms.size();
        let key = ChunkKey { client: row.client.clone(), launch_at, http, repeat };
        let item = |from, to, terms| {
            let (job, revision) = (row.job.to_string(), row.revision);
            ChunkItem { job, revision, from, to, terms }
        };
        if count == 1 {
            self.add_single(key, item(0, 1, terms), bytes, per_chunk);
            return self.send_if_many().await;
        }
        self.engine.store().create_run(&row.occurrence(launch_at), self.engine.now()).await?;
        self.counts.runs += 1;
        let mut from = 0;
        while from < count {
            let to = count.min(from.saturating_add(per_chunk));
            // A part of a batch is a chunk of its own, so that its mark is the batch's progress.
            let items = vec![item(from, to, terms.clone())];
            self.close(&key, OpenChunk { items, events: to - from, bytes });
            self.send_if_many().await?;
            from = to;
        }
        Ok(())
    }

    async fn send_if_many(&mut self) -> Result<(), EngineError> {
        if self.ready.len() >= MESSAGES_PER_FLUSH { self.send_ready().await } else { Ok(()) }
    }

    fn add_single(&mut self, key: ChunkKey, item: ChunkItem, bytes: usize, per_chunk: u32) {
        let open = self.open.entry(key.clone()).or_default();
        let full = (open.bytes + bytes > CHUNK_BYTES && !open.items.is_empty()).then(|| std::mem::take(open));
        open.items.push(item);
        open.events += 1;
        open.bytes += bytes;
        let complete = (open.events >= per_chunk).then(|| std::mem::take(open));
        for chunk in full.into_iter().chain(complete) {
            self.close(&key, chunk);
        }
    }

    fn close(&mut self, key: &ChunkKey, chunk: OpenChunk) {
        if chunk.items.is_empty() {
            return;
        }
        self.counts.chunks += 1;
        let message = Message::Chunk(Chunk {
            client: key.client.to_string(),
            launch_s: key.launch_at.timestamp(),
            as_of_ms: self.as_of.timestamp_millis(),
            repeat: key.repeat,
            attempt: 1,
            items: chunk.items,
        });
        self.ready.push(Outgoing::at(&key.client, message, key.launch_at));
    }

    async fn send_ready(&mut self) -> Result<(), EngineError> {
        let ready = std::mem::take(&mut self.ready);
        for refusal in self.engine.dispatch_each(&ready).await? {
            if let Some(Message::Chunk(chunk)) = ready.get(refusal.index).map(Outgoing::message) {
                self.send_apart(chunk, &refusal.reason).await?;
            }
        }
        Ok(())
    }

    /// Sends the events of a chunk that was refused, each job's by themselves, and sets aside those that are refused again.
    async fn send_apart(&mut self, chunk: &Chunk, reason: &str) -> Result<(), EngineError> {
        let (client, launch_at) = chunk.head()?;
        if let [item] = chunk.items.as_slice() {
            return self.set_aside(&item.occurrence(&client, launch_at)?, reason).await;
        }
        let alone = |item: &ChunkItem| Chunk { items: vec![item.clone()], ..chunk.clone() };
        let apart: Vec<Outgoing> = chunk
            .items
            .iter()
            .map(|item| Outgoing::at(&client, Message::Chunk(alone(item)), launch_at))
            .collect();
        for refusal in self.engine.dispatch_each(&apart).await? {
            if let Some(item) = chunk.items.get(refusal.index) {
                self.set_aside(&item.occurrence(&client, launch_at)?, &refusal.reason).await?;
            }
        }
        Ok(())
    }

    /// Records that an occurrence cannot be emitted. The window goes on.
    async fn set_aside(&mut self, occurrence: &Occurrence, reason: &str) -> Result<(), EngineError> {
        let Occurrence { client, job, launch_at, .. } = occurrence;
        let (store, word) = (self.engine.store(), NonRun::NotEmittable.as_str());
        self.counts.set_aside += 1;
        error!(%client, %job, %launch_at, reason, "a launch is set aside: no queue takes its message");
        store.record_non_run(occurrence, word, self.engine.now()).await?;
        // A batch has its run already.
        Ok(store.stop_run(client, &occurrence.run_id(), word).await.map(drop)?)
    }

    /// Sends what is left: open chunks, and a wake-up for each policy and instant at which something joins its line.
    pub(crate) async fn finish(mut self) -> Result<Counts, EngineError> {
        for (key, open) in std::mem::take(&mut self.open) {
            self.close(&key, open);
            self.send_if_many().await?;
        }
        for (launch_at, client, policy) in std::mem::take(&mut self.wakes) {
            let wake = Message::wake(&client, &policy, launch_at);
            self.ready.push(Outgoing::at(&client, wake, launch_at));
        }
        self.send_ready().await?;
        Ok(self.counts)
    }
}
