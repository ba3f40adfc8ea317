//! Sending: one message or a batch of them, in one transaction. Messages of a batch to a standard queue that differ in nothing but
//! their texts share a row.

use std::ops::Deref;

use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};
use tidegate_domain::limits::DUE_MS_ATTRIBUTE;

use super::batch;
use super::bundle::Texts;
use super::error::{Code, Failure, Refused};
use super::limits;
use super::message;
use super::schema::{IN_LINE, READY, WAITING};
use super::store::{self, Desk};
use super::wire::{BatchOutcome, SendEntry, Sent};

/// The message attribute that callers set for the service: the only system attribute there is to send.
const TRACE: &str = "AWSTraceHeader";

/// A message that is in its queue.
pub(super) struct Stored<'e> {
    entry: &'e SendEntry<'e>,
    message_id: [u8; 16],
    seq: i64,
    /// Its sender learns its number.
    is_in_line: bool,
}

impl Stored<'_> {
    /// What its sender learns, digests included.
    pub(super) fn told(&self) -> Sent {
        let entry = self.entry;
        Sent {
            id: entry.id.to_string(),
            message_id: store::uuid_text(&self.message_id),
            md5_of_body: message::md5_of_body(entry.message_body.as_deref().unwrap_or_default()),
            md5_of_attributes: message::md5_of_attributes(&entry.message_attributes),
            md5_of_system_attributes: message::md5_of_attributes(&entry.message_system_attributes),
            sequence_number: self.is_in_line.then(|| store::sequence_text(self.seq)),
        }
    }
}

/// Sends one message.
pub(super) fn one<'e>(desk: &mut Desk<'_>, entry: &'e SendEntry<'_>) -> Result<Stored<'e>, Failure> {
    if message::size(entry) > limits::MESSAGE_BYTES {
        return Err(too_long(limits::MESSAGE_BYTES).into());
    }
    match desk.queue.is_fifo() {
        true => to_fifo(desk, entry),
        false => {
            let message = accept(desk, entry)?;
            let stored = message.numbered(desk);
            to_standard(desk, &[(&message, &stored)])?;
            Ok(stored)
        }
    }
}

/// Sends the entries that can be sent; the others are reported one by one.
///
/// # Errors
/// Those of the batch as a whole, then nothing was sent.
pub(super) fn many<'e>(
    desk: &mut Desk<'_>,
    entries: &'e [SendEntry<'_>],
) -> Result<BatchOutcome<Stored<'e>>, Failure> {
    batch::check(entries.iter().map(|entry| &*entry.id))?;
    let size: usize = entries.iter().map(message::size).sum();
    if size > limits::MESSAGE_BYTES {
        let message = format!(
            "Batch requests cannot be longer than {} bytes. You have sent {size} bytes.",
            limits::MESSAGE_BYTES
        );
        return Err(Refused::new(Code::BatchRequestTooLong, message).into());
    }
    if desk.queue.is_fifo() {
        return batch::each(entries, |entry| &entry.id, |entry| to_fifo(desk, entry));
    }
    let accepted = batch::each(entries, |entry| &entry.id, |entry| accept(desk, entry))?;
    let stored: Vec<_> = accepted.successful.iter().map(|message| message.numbered(desk)).collect();
    let messages: Vec<_> = accepted.successful.iter().zip(&stored).collect();
    let may_share = |(one, _): &(&Accepted<'_>, _), (other, _): &(&Accepted<'_>, _)| one.goes_with(other);
    for row in messages.chunk_by(may_share) {
        to_standard(desk, row)?;
    }
    Ok(BatchOutcome { successful: stored, failed: accepted.failed })
}

/// Checks what every message needs; its body.
fn check<'e>(desk: &Desk<'_>, entry: &'e SendEntry<'_>) -> Result<&'e str, Failure> {
    let body = message::check(entry)?;
    if message::size(entry) > desk.queue.attributes.message_bytes {
        return Err(too_long(desk.queue.attributes.message_bytes).into());
    }
    Ok(body)
}

fn too_long(bytes: usize) -> Refused {
    let message =
        format!("One or more parameters are invalid. Reason: Message must be shorter than {bytes} bytes.");
    Refused::new(Code::InvalidParameterValue, message)
}

/// A message for a standard queue that can be sent.
struct Accepted<'e> {
    entry: &'e SendEntry<'e>,
    body: &'e str,
    trace: Option<&'e str>,
    visible_at_ms: i64,
}

fn accept<'e>(desk: &Desk<'_>, entry: &'e SendEntry<'_>) -> Result<Accepted<'e>, Failure> {
    let body = check(desk, entry)?;
    if entry.message_deduplication_id.is_some() {
        return Err(
            not_for_this_type(entry.message_deduplication_id.as_deref(), "MessageDeduplicationId").into()
        );
    }
    let delay_s = entry.delay_seconds.map_or(Ok(desk.queue.attributes.delay_s), limits::delay)?;
    let visible_at_ms = desk.now_ms + delay_s * 1000;
    let visible_at_ms = match due_ms(entry) {
        Some(due_ms) if desk.is_own => due_ms.clamp(desk.now_ms, visible_at_ms),
        _ => visible_at_ms,
    };
    Ok(Accepted { entry, body, trace: trace(entry)?, visible_at_ms })
}

impl<'e> Accepted<'e> {
    fn numbered(&self, desk: &mut Desk<'_>) -> Stored<'e> {
        let seq = desk.sequence.next(desk.now_ms);
        Stored { entry: self.entry, message_id: desk.sequence.message_id(seq), seq, is_in_line: false }
    }

    /// Whether they can share a row. Those of a group take their turns with other groups, one by one.
    fn goes_with(&self, other: &Self) -> bool {
        let is_plain = |message: &Self| message.entry.message_group_id.is_none() && message.trace.is_none();
        self.visible_at_ms == other.visible_at_ms && is_plain(self) && is_plain(other)
    }
}

/// Puts messages with consecutive numbers into one row.
fn to_standard(desk: &mut Desk<'_>, row: &[(&Accepted<'_>, &Stored<'_>)]) -> Result<(), Failure> {
    let [(first, Stored { seq, message_id, .. }), others @ ..] = row else { return Ok(()) };
    let group = first.entry.message_group_id.as_deref();
    let (state, rank) = if first.visible_at_ms > desk.now_ms {
        desk.queue.note_due(first.visible_at_ms);
        (WAITING, desk.queue.turns.served())
    } else {
        (READY, desk.queue.turns.next(group, row.len() as i64))
    };
    let mut texts = Texts::of_one(message_id, attributes(first.entry), first.body);
    for (message, stored) in others {
        texts.add(&stored.message_id, attributes(message.entry).as_deref(), message.body);
    }
    let place = Place { state, rank, visible_at_ms: first.visible_at_ms, group, dedup_id: None };
    insert(desk, *seq, &place, first.trace, &texts)
}

/// The instant that a message is due at, if it says so: whoever delays it knows seconds only.
fn due_ms(entry: &SendEntry<'_>) -> Option<i64> {
    entry.message_attributes.get(DUE_MS_ATTRIBUTE)?.string_value.as_deref()?.parse().ok()
}

fn to_fifo<'e>(desk: &mut Desk<'_>, entry: &'e SendEntry<'_>) -> Result<Stored<'e>, Failure> {
    let body = check(desk, entry)?;
    let Some(group) = &entry.message_group_id else { return Err(Refused::missing("MessageGroupId").into()) };
    if entry.delay_seconds.is_some_and(|seconds| seconds != 0) {
        return Err(not_for_this_type(entry.delay_seconds, "DelaySeconds").into());
    }
    let attributes = &desk.queue.attributes;
    let dedup_id = match &entry.message_deduplication_id {
        Some(id) => id.to_string(),
        None if attributes.content_based_deduplication => message::hex(&Sha256::digest(body.as_bytes())),
        None => {
            let message = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId \
                           provided explicitly";
            return Err(Refused::new(Code::InvalidParameterValue, message).into());
        }
    };
    let scope = if attributes.deduplication_by_group { &**group } else { "" };
    if let Some((seq, message_id)) = sent_before(desk, scope, &dedup_id)? {
        return Ok(Stored { entry, message_id, seq, is_in_line: true });
    }
    let visible_at_ms = desk.now_ms + attributes.delay_s * 1000;
    let trace = trace(entry)?;
    let seq = desk.sequence.next(desk.now_ms);
    let message_id = desk.sequence.message_id(seq);
    let place =
        Place { state: IN_LINE, rank: 0, visible_at_ms, group: Some(group), dedup_id: Some(&dedup_id) };
    insert(desk, seq, &place, trace, &Texts::of_one(&message_id, self::attributes(entry), body))?;
    desk.conn
        .prepare_cached("INSERT OR IGNORE INTO groups (queue_id, group_id, ready_at_ms) VALUES (?1, ?2, ?3)")?
        .execute(params![desk.queue.id, &**group, visible_at_ms])?;
    desk.conn.prepare_cached("INSERT INTO deduplication VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
        params![desk.queue.id, scope, dedup_id, desk.now_ms + limits::DEDUPLICATION_MS, seq, message_id],
    )?;
    Ok(Stored { entry, message_id, seq, is_in_line: true })
}

/// The message that was accepted under this deduplication id within the last five minutes.
fn sent_before(desk: &Desk<'_>, scope: &str, dedup_id: &str) -> rusqlite::Result<Option<(i64, [u8; 16])>> {
    desk.conn.prepare_cached("DELETE FROM deduplication WHERE until_ms <= ?1")?.execute([desk.now_ms])?;
    desk.conn
        .prepare_cached(
            "SELECT seq, message_id FROM deduplication WHERE queue_id = ?1 AND scope = ?2 AND dedup_id = ?3",
        )?
        .query_row(params![desk.queue.id, scope, dedup_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Where new messages of a row stand.
struct Place<'a> {
    state: i64,
    rank: i64,
    visible_at_ms: i64,
    group: Option<&'a str>,
    dedup_id: Option<&'a str>,
}

/// Adds a row, its first message numbered `seq`.
fn insert(
    desk: &mut Desk<'_>,
    seq: i64,
    place: &Place<'_>,
    trace: Option<&str>,
    texts: &Texts<'_>,
) -> Result<(), Failure> {
    // Columns that a receive fills hold values of their later size: SQLite then rewrites only what changes, not the body.
    desk.conn
        .prepare_cached(
            "INSERT INTO messages (seq, queue_id, state, rank, visible_at_ms, receive_count, received_at_ms,
                first_received_at_ms, sent_at_ms, message_id, group_id, dedup_id, trace, attributes, body, count, cuts)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            seq,
            desk.queue.id,
            place.state,
            place.rank,
            place.visible_at_ms,
            desk.now_ms,
            texts.message_ids,
            place.group,
            place.dedup_id,
            trace,
            texts.attributes,
            texts.body,
            texts.count(),
            texts.cuts(),
        ])?;
    desk.wake = true;
    Ok(())
}

fn attributes(entry: &SendEntry<'_>) -> Option<String> {
    (!entry.message_attributes.is_empty())
        .then(|| serde_json::to_string(&entry.message_attributes).unwrap_or_default())
}

fn trace<'e>(entry: &'e SendEntry<'_>) -> Result<Option<&'e str>, Refused> {
    match entry.message_system_attributes.keys().map(Deref::deref).find(|name| *name != TRACE) {
        Some(name) => {
            let message = format!("Message system attribute name '{name}' is invalid.");
            Err(Refused::new(Code::InvalidParameterValue, message))
        }
        None => {
            Ok(entry.message_system_attributes.get(TRACE).and_then(|trace| trace.string_value.as_deref()))
        }
    }
}

fn not_for_this_type<T: std::fmt::Display>(value: Option<T>, parameter: &str) -> Refused {
    let value = value.map(|value| value.to_string()).unwrap_or_default();
    Refused::value(value, parameter, "The request include parameter that is not valid for this queue type")
}
