//! Chunks of a client or a job that is sidelined: they are set aside, a row each, and sent at a pace when it drains.
//!
//! Whoever sets a chunk aside looks once more whether it is still to be; whoever ends a drain has seen that nothing is left. So no
//! chunk stays aside that nobody drains. What is set aside was not sent: no delivery is counted.

use std::collections::BTreeMap;

use chrono::DateTime;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::sideline::{Drain, Sideline, SidelineOf, Sidelines};
use tidegate_domain::time::shifted;
use tidegate_store::Write;
use tidegate_store::sidelines::SidelinedChunk;
use tracing::{error, info};

use super::Delivery;
use super::chunk::{Part, ROWS_AT_ONCE, whole};
use crate::EngineError;
use crate::figures::ROWS_SET_ASIDE;
use crate::queues::Outgoing;
use crate::queues::message::{Chunk, ChunkItem, Message};

/// Bytes of the events of one row: a row has less than 400 KB.
const ROW_BYTES: usize = 200_000;
/// Rows that one message of a drain sends at the most.
const ROWS_AT_A_TIME: i32 = 100;
/// For how long the events last that one message of a drain sends, in seconds; those of a row are sent together.
const SECONDS_AT_A_TIME: u32 = 10;

impl Delivery {
    /// The parts that are not sidelined. The others are set aside.
    pub(super) async fn without_sidelined(
        &self,
        chunk: &Chunk,
        parts: Vec<Part>,
        sidelines: &Sidelines,
    ) -> Result<Vec<Part>, EngineError> {
        if !sidelines.holds_anything() {
            return Ok(parts);
        }
        let (mut open, mut held) = (Vec::new(), BTreeMap::<SidelineOf, Vec<ChunkItem>>::new());
        for part in parts {
            match sidelines.held(&part.occurrence.job) {
                Some(of) => held.entry(of).or_default().push(whole(&part)),
                None => open.push(part),
            }
        }
        let (client, _) = chunk.head()?;
        for (of, items) in held {
            for items in by_size(items) {
                self.set_chunk_aside(&client, &of, Chunk { items, ..chunk.clone() }).await?;
            }
            self.drain_unless_held(&client, &of).await?;
        }
        Ok(open)
    }

    /// After something was set aside: what drains since a moment ago drains once more, since whoever ends that may not have seen it.
    pub(super) async fn drain_unless_held(
        &self,
        client: &ClientId,
        of: &SidelineOf,
    ) -> Result<(), EngineError> {
        if self.store.recheck(client).await?.sidelines.get(of).is_some_and(Sideline::is_held) {
            return Ok(());
        }
        self.queues.dispatch(&[Outgoing::drain(client, of)]).await
    }

    async fn set_chunk_aside(
        &self,
        client: &ClientId,
        of: &SidelineOf,
        chunk: Chunk,
    ) -> Result<(), EngineError> {
        // Its jobs are known to be stored, and whoever drains it may send it twice.
        let chunk = Chunk { repeat: true, ahead: false, ..chunk };
        let row = SidelinedChunk {
            place: format!("{:012}|{}", chunk.launch_s, chunk.id()),
            events: events_of(&chunk.items),
            draw: self.random.next_u64(),
            body: Message::Chunk(chunk).encode(),
        };
        Ok(self.store.set_chunk_aside(client, of, &row).await?)
    }

    /// Sends the next of what is set aside under a client or a job, and has itself called again for the rest.
    ///
    /// The pace stands in the state, which is moved on before anything is sent: however many such messages there are, no more is
    /// sent. Whoever dies in between leaves the rows for the next.
    pub(crate) async fn drain(&self, client: &ClientId, of: &SidelineOf) -> Result<(), EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let (seen, now) = (self.store.recheck(client).await?, self.clock.now());
            let sideline = seen.sidelines.get(of).cloned();
            let drain = sideline.as_ref().and_then(|sideline| sideline.drain);
            if sideline.is_some() && drain.is_none() {
                // It is sidelined again: whoever drains it then sends such a message.
                return Ok(());
            }
            if let Some(drain) = drain.filter(|drain| drain.next_at > now) {
                let again = Outgoing::at(client, Message::drain(client, of), drain.next_at);
                return self.queues.dispatch(&[again]).await;
            }
            let page = self.store.chunks_set_aside(client, of, None, ROWS_AT_A_TIME).await?;
            for row in &page.unreadable {
                error!(%client, place = row.sort_key, reason = row.reason, { ROWS_SET_ASIDE } = 1_u64, "a sidelined chunk cannot be read");
            }
            let chunks = next_of(page.rows, drain);
            let in_chunks = chunks.iter().map(|row| row.events).sum();
            let in_lines = match of {
                // Those that are set aside by chunks come first: no policy keeps them in order.
                SidelineOf::Job(job) if page.next.is_none() => {
                    let room = enough(drain).saturating_sub(in_chunks).min(ROWS_AT_A_TIME.unsigned_abs());
                    self.sidelined_in_lines(client, job, room as usize).await?
                }
                _ => Vec::new(),
            };
            let taken = in_chunks.saturating_add(u32::try_from(in_lines.len()).unwrap_or(u32::MAX));
            let moved = match (&sideline, drain) {
                _ if taken == 0 => None,
                (Some(sideline), Some(drain)) => {
                    let drain = drain.after(now, taken);
                    Some(Sideline { drain: Some(drain), ..sideline.clone() })
                }
                _ => None,
            };
            if sideline.is_some() {
                let next = seen.sidelines.clone().with(of, moved.clone());
                if self.store.replace_sidelines(client, &next, &seen, None).await? == Write::Refused {
                    continue;
                }
            }
            if taken == 0 {
                info!(%client, ?of, "what was sidelined has drained");
                return Ok(());
            }
            self.send_sidelined(client, of, (chunks, drain)).await?;
            let due_at = |before: u32| {
                let before = in_chunks.saturating_add(before);
                shifted(now, drain.map(|drain| drain.takes(before)).unwrap_or_default())
            };
            let due = in_lines.into_iter().zip(0..).map(|((policy, entry), n)| (policy, entry, due_at(n)));
            self.rejoin(due.collect()).await?;
            let next_at = moved.and_then(|moved| moved.drain).map_or(now, |drain| drain.next_at);
            return self.queues.dispatch(&[Outgoing::at(client, Message::drain(client, of), next_at)]).await;
        }
        Err(EngineError::Contended { what: "what is sidelined", rounds: WRITE_ROUNDS })
    }

    /// Sends chunks that were set aside, each event when the pace lets it, and forgets them.
    async fn send_sidelined(
        &self,
        client: &ClientId,
        of: &SidelineOf,
        (rows, drain): (Vec<SidelinedChunk>, Option<Drain>),
    ) -> Result<(), EngineError> {
        let (now, mut before, mut sent) = (self.clock.now(), 0_u32, Vec::new());
        for row in &rows {
            match Message::decode(&row.body) {
                Ok(Message::Chunk(chunk)) => {
                    let most = drain.map_or(u32::MAX, |drain| drain.pace.get());
                    for piece in pieces(chunk, most) {
                        let wait = drain.map(|drain| drain.takes(before)).unwrap_or_default();
                        before = before.saturating_add(events_of(&piece.items));
                        sent.push(at(client, piece, shifted(now, wait))?);
                    }
                }
                Ok(_) => self.queues.set_aside(&row.body, "a sidelined chunk is none").await?,
                Err(error) => self.queues.set_aside(&row.body, &error.to_string()).await?,
            }
        }
        self.queues.dispatch(&sent).await?;
        let forget: Vec<_> = rows.iter().map(|row| self.store.forget_chunk(client, of, row)).collect();
        let mut forgotten = stream::iter(forget).buffer_unordered(ROWS_AT_ONCE);
        while forgotten.try_next().await?.is_some() {}
        Ok(())
    }
}

fn at(client: &ClientId, piece: Chunk, not_before: DateTime<chrono::Utc>) -> Result<Outgoing, EngineError> {
    let (_, launch_at) = piece.head()?;
    let not_before = not_before.max(piece.due_at(launch_at));
    let piece = Chunk { not_before_ms: Some(not_before.timestamp_millis()), ..piece };
    Ok(Outgoing::at(client, Message::Chunk(piece), not_before))
}

fn events_of(items: &[ChunkItem]) -> u32 {
    items.iter().map(|item| item.to.saturating_sub(item.from)).sum()
}

/// As many events as one message sends.
fn enough(drain: Option<Drain>) -> u32 {
    drain.map_or(u32::MAX, |drain| drain.pace.get().saturating_mul(SECONDS_AT_A_TIME))
}

/// The first rows, of as many events as one message sends.
fn next_of(rows: Vec<SidelinedChunk>, drain: Option<Drain>) -> Vec<SidelinedChunk> {
    let enough = enough(drain);
    let (mut taken, mut events) = (Vec::new(), 0_u32);
    for row in rows {
        if events >= enough {
            break;
        }
        events = events.saturating_add(row.events);
        taken.push(row);
    }
    taken
}

/// Events as they fit into rows.
fn by_size(items: Vec<ChunkItem>) -> Vec<Vec<ChunkItem>> {
    let (mut rows, mut bytes) = (vec![Vec::new()], 0_usize);
    for item in items {
        let more = serde_json::to_string(&item).map_or(0, |text| text.len());
        if bytes > 0 && bytes.saturating_add(more) > ROW_BYTES {
            rows.push(Vec::new());
            bytes = 0;
        }
        bytes = bytes.saturating_add(more);
        if let Some(row) = rows.last_mut() {
            row.push(item);
        }
    }
    rows
}

/// A chunk in pieces of at most so many events: the same ones each time.
fn pieces(chunk: Chunk, most: u32) -> Vec<Chunk> {
    let (mut pieces, mut open, mut room) = (Vec::new(), Vec::new(), most);
    for item in &chunk.items {
        let mut from = item.from;
        while from < item.to {
            let to = item.to.min(from.saturating_add(room));
            open.push(ChunkItem { from, to, ..item.clone() });
            room = room.saturating_sub(to.saturating_sub(from));
            from = to;
            if room == 0 {
                pieces.push(std::mem::take(&mut open));
                room = most;
            }
        }
    }
    pieces.push(open);
    let pieces = pieces.into_iter().filter(|items| !items.is_empty());
    pieces.map(|items| Chunk { items, ..chunk.clone() }).collect()
}
