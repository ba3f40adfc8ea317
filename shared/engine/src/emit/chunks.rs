//! Chunks: messages that hold events, cut by fixed rules, so that who repeats an emission from the same place
//! cuts the same chunks, whose marks are then found.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::job::Terms;
use tidegate_domain::limits::CHUNK_BYTES;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::SinglesKind;
use tidegate_store::doc::TermsDoc;

use crate::queues::Outgoing;
use crate::queues::message::{Chunk, ChunkItem, Message};

/// What an item adds to its chunk beside its terms, in bytes, at the most, with a job id of up to [`SHORT_ID_BYTES`].
const ITEM_BYTES: usize = 120;
/// What of a job's id is counted in [`ITEM_BYTES`].
const SHORT_ID_BYTES: usize = 48;

/// Messages that are gathered: chunks that are not full yet, and messages that are ready to be sent.
pub(super) struct Chunks {
    as_of: DateTime<Utc>,
    repeat: bool,
    /// The rows that they follow from are still to be written.
    ahead: bool,
    open: BTreeMap<ChunkKey, OpenChunk>,
    pub(super) ready: Vec<Outgoing>,
    /// Chunks that were made ready so far.
    pub(super) count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ChunkKey {
    client: ClientId,
    launch_at: DateTime<Utc>,
    /// Events that a chunk of their kind of target holds: queues, which take the most, come first.
    most: Reverse<u32>,
    /// The line that its events are for, and their kind; `None` where nothing throttles them.
    line: Option<(PolicyId, SinglesKind)>,
}

#[derive(Default)]
struct OpenChunk {
    items: Vec<ChunkItem>,
    bytes: usize,
}

impl Chunks {
    pub(super) fn new(as_of: DateTime<Utc>, repeat: bool) -> Self {
        Self { as_of, repeat, ahead: false, open: BTreeMap::new(), ready: Vec::new(), count: 0 }
    }

    /// The same, of an occurrence whose job is still to be written.
    pub(super) fn ahead(as_of: DateTime<Utc>) -> Self {
        Self { ahead: true, ..Self::new(as_of, false) }
    }

    /// Adds an occurrence of one event to the chunk of its client and instant, and of its line, if it is throttled. Returns how many bytes it is.
    pub(super) fn add_single(&mut self, single: &Occurrence) -> usize {
        let key = key_of(single);
        let item = item(single, 0, 1);
        let id_bytes = single.job.as_str().len().saturating_sub(SHORT_ID_BYTES);
        let bytes = ITEM_BYTES + id_bytes + item.terms.size();
        let open = self.open.entry(key.clone()).or_default();
        let full = (open.bytes + bytes > CHUNK_BYTES && !open.items.is_empty()).then(|| std::mem::take(open));
        open.items.push(item);
        open.bytes += bytes;
        let complete =
            (open.items.len() >= events_per_chunk(&single.terms) as usize).then(|| std::mem::take(open));
        for chunk in full.into_iter().chain(complete) {
            self.close(&key, chunk.items);
        }
        bytes
    }

    /// Adds a part of a batch. It is a chunk of its own, so that its mark is the batch's progress.
    pub(super) fn add_part(&mut self, batch: &Occurrence, from: u32, to: u32) {
        self.close(&key_of(batch), vec![item(batch, from, to)]);
    }

    /// Makes the chunks ready that are not full.
    pub(super) fn close_all(&mut self) {
        for (key, open) in std::mem::take(&mut self.open) {
            self.close(&key, open.items);
        }
    }

    /// Adds a wake-up for each policy and instant at which something joins its line.
    pub(super) fn wake(&mut self, wakes: impl IntoIterator<Item = (DateTime<Utc>, ClientId, PolicyId)>) {
        for (launch_at, client, policy) in wakes {
            let wake = Message::wake(&client, &policy, launch_at);
            self.ready.push(Outgoing::at(&client, wake, launch_at));
        }
    }

    fn close(&mut self, key: &ChunkKey, items: Vec<ChunkItem>) {
        if items.is_empty() {
            return;
        }
        self.count += 1;
        let chunk = Chunk {
            failing_since_s: None,
            not_before_ms: None,
            client: key.client.to_string(),
            launch_s: key.launch_at.timestamp(),
            as_of_ms: self.as_of.timestamp_millis(),
            repeat: self.repeat,
            ahead: self.ahead,
            placed: false,
            attempt: 1,
            items,
            rest: Default::default(),
        };
        let message = if key.line.is_some() { Message::Arrival(chunk) } else { Message::Chunk(chunk) };
        self.ready.push(Outgoing::at(&key.client, message, key.launch_at));
    }
}

/// How many events of such terms a chunk holds.
pub(super) fn events_per_chunk(terms: &Terms) -> u32 {
    terms.target.transport().events_per_chunk
}

fn key_of(occurrence: &Occurrence) -> ChunkKey {
    let Occurrence { client, launch_at, terms, .. } = occurrence;
    let line = terms.policy.clone().zip(SinglesKind::of(occurrence));
    ChunkKey { client: client.clone(), launch_at: *launch_at, most: Reverse(events_per_chunk(terms)), line }
}

fn item(of: &Occurrence, from: u32, to: u32) -> ChunkItem {
    ChunkItem {
        job: of.job.to_string(),
        revision: of.revision,
        from,
        to,
        terms: TermsDoc::from(&of.terms),
        rest: Default::default(),
    }
}
