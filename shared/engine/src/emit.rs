//! From occurrences to messages: chunks of events where nothing throttles, runs and wake-ups where a policy does.
//!
//! Invariant (I3): an occurrence yields exactly the events 0 to n-1, whoever emits it and however often: chunks are cut
//! by fixed rules, runs and marks are written under the occurrence's own key.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::{CHUNK_BYTES, EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK};
use tidegate_domain::occurrence::Occurrence;
use tidegate_store::doc::TermsDoc;

use crate::message::{Chunk, ChunkItem, Message};
use crate::queue::Outgoing;
use crate::{Engine, EngineError};

/// Messages that are gathered before they are sent: eight calls of ten.
const MESSAGES_PER_FLUSH: usize = 80;
/// What an item adds to its chunk beside its terms, in bytes, at the most.
const ITEM_BYTES: usize = 120;

/// Occurrences on their way into the dispatch queue. Holds a bounded number of them, however many are pushed.
pub(crate) struct Emission<'e> {
    engine: &'e Engine,
    as_of: DateTime<Utc>,
    open: BTreeMap<ChunkKey, OpenChunk>,
    ready: Vec<Outgoing>,
    wakes: BTreeSet<(DateTime<Utc>, ClientId, PolicyId)>,
    touched: BTreeSet<(ClientId, PolicyId)>,
    pub(crate) counts: Counts,
}

/// What was emitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) occurrences: u64,
    pub(crate) events: u64,
    pub(crate) chunks: u64,
    pub(crate) runs: u64,
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
            counts: Counts::default(),
        }
    }

    /// Emits an occurrence. `repeat` when it may have been emitted before.
    pub(crate) async fn push(&mut self, occurrence: Occurrence, repeat: bool) -> Result<(), EngineError> {
        self.counts.occurrences += 1;
        self.counts.events += u64::from(occurrence.terms.count.get());
        match occurrence.terms.policy.clone() {
            Some(policy) => self.enqueue(&occurrence, policy).await,
            None => self.cut(&occurrence, repeat).await,
        }
    }

    async fn enqueue(&mut self, occurrence: &Occurrence, policy: PolicyId) -> Result<(), EngineError> {
        let (store, now) = (self.engine.store(), self.engine.now());
        let client = &occurrence.client;
        if self.touched.insert((client.clone(), policy.clone())) {
            store.touch_active(client, &policy, now).await?;
        }
        store.enqueue_run(occurrence, &policy, now).await?;
        self.counts.runs += 1;
        self.wakes.insert((occurrence.launch_at, client.clone(), policy));
        Ok(())
    }

    async fn cut(&mut self, occurrence: &Occurrence, repeat: bool) -> Result<(), EngineError> {
        let count = occurrence.terms.count.get();
        if count > 1 {
            self.engine.store().create_run(occurrence, self.engine.now()).await?;
            self.counts.runs += 1;
        }
        let http = occurrence.terms.target.is_http();
        let per_chunk = if http { HTTP_EVENTS_PER_CHUNK } else { EVENTS_PER_CHUNK };
        let terms = TermsDoc::from(&occurrence.terms);
        let bytes = ITEM_BYTES + terms.size();
        let key =
            ChunkKey { client: occurrence.client.clone(), launch_at: occurrence.launch_at, http, repeat };
        for from in (0..count).step_by(per_chunk as usize) {
            let to = count.min(from.saturating_add(per_chunk));
            let item = ChunkItem {
                job: occurrence.job.to_string(),
                revision: occurrence.revision,
                from,
                to,
                terms: terms.clone(),
            };
            if count > 1 {
                // A part of a batch is a chunk of its own, so that its mark is the batch's progress.
                self.close(&key, OpenChunk { items: vec![item], events: to - from, bytes });
            } else {
                self.add_single(&key, item, bytes, per_chunk);
            }
            if self.ready.len() >= MESSAGES_PER_FLUSH {
                self.send_ready().await?;
            }
        }
        Ok(())
    }

    fn add_single(&mut self, key: &ChunkKey, item: ChunkItem, bytes: usize, per_chunk: u32) {
        let open = self.open.entry(key.clone()).or_default();
        if open.bytes + bytes > CHUNK_BYTES && !open.items.is_empty() {
            let full = std::mem::take(open);
            self.close(key, full);
        }
        let open = self.open.entry(key.clone()).or_default();
        open.items.push(item);
        open.events += 1;
        open.bytes += bytes;
        if open.events >= per_chunk {
            let full = std::mem::take(open);
            self.close(key, full);
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
        self.engine.dispatch(&self.ready).await?;
        self.ready.clear();
        Ok(())
    }

    /// Sends what is left: open chunks, and a wake-up for each policy and instant at which something joins its line.
    pub(crate) async fn finish(mut self) -> Result<Counts, EngineError> {
        for (key, open) in std::mem::take(&mut self.open) {
            self.close(&key, open);
            if self.ready.len() >= MESSAGES_PER_FLUSH {
                self.send_ready().await?;
            }
        }
        for (launch_at, client, policy) in std::mem::take(&mut self.wakes) {
            let wake = Message::Wake { client: client.to_string(), policy: policy.to_string() };
            self.ready.push(Outgoing::at(&client, wake, launch_at));
        }
        self.send_ready().await?;
        Ok(self.counts)
    }
}
