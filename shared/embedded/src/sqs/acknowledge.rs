//! What a consumer does with a message it has received: delete it, or change when it becomes visible again.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, params};

use super::batch;
use super::error::{Code, Failure, Refused};
use super::fifo;
use super::limits;
use super::receipt::Receipt;
use super::schema::{IN_LINE, WAITING};
use super::store::Desk;
use super::wire::{BatchOutcome, DeleteEntry, Done, VisibilityEntry};

/// A received message, as it stands now.
struct Standing {
    state: i64,
    visible_at_ms: i64,
    receive_count: i64,
    received_at_ms: i64,
    group_id: Option<String>,
}

fn standing(desk: &Desk<'_>, receipt: Receipt) -> rusqlite::Result<Option<Standing>> {
    desk.conn
        .prepare_cached(
            "SELECT state, visible_at_ms, receive_count, received_at_ms, group_id FROM messages
             WHERE seq = ?1 AND queue_id = ?2",
        )?
        .query_row(params![receipt.seq, receipt.queue_id], |row| {
            Ok(Standing {
                state: row.get(0)?,
                visible_at_ms: row.get(1)?,
                receive_count: row.get(2)?,
                received_at_ms: row.get(3)?,
                group_id: row.get(4)?,
            })
        })
        .optional()
}

/// Deletes one message. A message that is gone already counts as deleted; so does, on a standard queue, one that has been
/// received again since, which stays.
pub(super) fn delete(desk: &mut Desk<'_>, handle: &str) -> Result<(), Failure> {
    let groups = &mut BTreeSet::new();
    delete_one(desk, handle, groups)?;
    free(desk, groups)
}

/// Deletes the messages of a batch.
pub(super) fn delete_many(
    desk: &mut Desk<'_>,
    entries: &[DeleteEntry],
) -> Result<BatchOutcome<Done>, Failure> {
    batch::check(entries.iter().map(|entry| entry.id.as_str()))?;
    let mut groups = BTreeSet::new();
    let outcome = batch::each(
        entries,
        |entry| &entry.id,
        |entry| {
            delete_one(desk, &entry.receipt_handle, &mut groups).map_err(as_batch_entry)?;
            Ok(Done { id: entry.id.clone() })
        },
    )?;
    free(desk, &groups)?;
    Ok(outcome)
}

/// AWS gives an expired receipt another code in a batch than alone.
fn as_batch_entry(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(Refused { code: Code::InvalidParameterValue, message }) => {
            Refused::new(Code::ReceiptHandleIsInvalid, message).into()
        }
        other => other,
    }
}

fn delete_one(desk: &mut Desk<'_>, handle: &str, groups: &mut BTreeSet<String>) -> Result<(), Failure> {
    let receipt = Receipt::decode(handle, desk.queue.id)?;
    if !desk.queue.is_fifo() {
        return delete_from_standard(desk, receipt);
    }
    let Some(message) = standing(desk, receipt)? else { return Ok(()) };
    if message.receive_count != receipt.receive_count || message.visible_at_ms <= desk.now_ms {
        return Err(Refused::value(handle, "ReceiptHandle", "The receipt handle has expired.").into());
    }
    groups.extend(message.group_id);
    desk.conn.prepare_cached("DELETE FROM messages WHERE seq = ?1")?.execute([receipt.seq])?;
    Ok(())
}

fn delete_from_standard(desk: &mut Desk<'_>, receipt: Receipt) -> Result<(), Failure> {
    let state: Option<i64> = desk
        .conn
        .prepare_cached(
            "DELETE FROM messages WHERE seq = ?1 AND queue_id = ?2 AND receive_count = ?3 RETURNING state",
        )?
        .query_row(params![receipt.seq, receipt.queue_id, receipt.receive_count], |row| row.get(0))
        .optional()?;
    desk.queue.in_flight -= i64::from(state == Some(WAITING));
    Ok(())
}

/// Lets the next messages of `groups` go.
fn free(desk: &mut Desk<'_>, groups: &BTreeSet<String>) -> Result<(), Failure> {
    for group in groups {
        fifo::refresh(desk, group)?;
        desk.wake = true;
    }
    Ok(())
}

/// Makes one message visible `seconds` from now.
pub(super) fn change(desk: &mut Desk<'_>, handle: &str, seconds: Option<i64>) -> Result<(), Failure> {
    let receipt = Receipt::decode(handle, desk.queue.id)?;
    let seconds = limits::visibility(seconds.ok_or_else(|| Refused::missing("VisibilityTimeout"))?)?;
    let gone = "Message does not exist or is not available for visibility timeout change.";
    let message = standing(desk, receipt)?
        .filter(|message| message.receive_count == receipt.receive_count)
        .ok_or_else(|| Refused::value(handle, "ReceiptHandle", gone))?;
    let in_flight = matches!(message.state, WAITING | IN_LINE) && message.visible_at_ms > desk.now_ms;
    if !in_flight {
        let message = format!("Value {handle} for parameter ReceiptHandle is invalid. Reason: {gone}");
        return Err(Refused::new(Code::MessageNotInflight, message).into());
    }
    let visible_at_ms = desk.now_ms + seconds * 1000;
    if visible_at_ms - message.received_at_ms > limits::VISIBILITY_S * 1000 {
        let reason = format!(
            "Total VisibilityTimeout for the message is beyond the limit [{} seconds]",
            limits::VISIBILITY_S
        );
        return Err(Refused::value(seconds, "VisibilityTimeout", &reason).into());
    }
    desk.conn
        .prepare_cached("UPDATE messages SET visible_at_ms = ?2 WHERE seq = ?1")?
        .execute(params![receipt.seq, visible_at_ms])?;
    match &message.group_id {
        Some(group) if message.state == IN_LINE => fifo::refresh(desk, group)?,
        _ => desk.queue.note_due(visible_at_ms),
    }
    desk.wake = true;
    Ok(())
}

/// Changes the visibility of the messages of a batch.
pub(super) fn change_many(
    desk: &mut Desk<'_>,
    entries: &[VisibilityEntry],
) -> Result<BatchOutcome<Done>, Failure> {
    batch::check(entries.iter().map(|entry| entry.id.as_str()))?;
    batch::each(
        entries,
        |entry| &entry.id,
        |entry| {
            change(desk, &entry.receipt_handle, entry.visibility_timeout)?;
            Ok(Done { id: entry.id.clone() })
        },
    )
}
