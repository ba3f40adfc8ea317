//! What a consumer does with a message it has received: delete it, or change when it becomes visible again.

use std::collections::BTreeSet;

use rusqlite::params;

use super::batch;
use super::bundle::{self, Standing};
use super::error::{Code, Failure, Refused};
use super::fifo;
use super::limits;
use super::receipt::Receipt;
use super::schema::{IN_LINE, WAITING};
use super::store::Desk;
use super::wire::{BatchOutcome, DeleteEntry, Done, VisibilityEntry};

/// Deletes one message. A message that is gone already counts as deleted; so does, on a standard queue, one that has been
/// received again since, which stays.
pub(super) fn delete(desk: &mut Desk<'_>, handle: &str) -> Result<(), Failure> {
    let receipt = Receipt::decode(handle, desk.queue.id)?;
    if !desk.queue.is_fifo() {
        return delete_from_standard(desk, &mut [receipt]);
    }
    let groups = &mut BTreeSet::new();
    delete_from_line(desk, (handle, receipt), groups)?;
    free(desk, groups)
}

/// Deletes the messages of a batch.
pub(super) fn delete_many(
    desk: &mut Desk<'_>,
    entries: &[DeleteEntry],
) -> Result<BatchOutcome<Done>, Failure> {
    batch::check(entries.iter().map(|entry| entry.id.as_str()))?;
    if !desk.queue.is_fifo() {
        let mut receipts = Vec::with_capacity(entries.len());
        let outcome = each_receipt(desk.queue.id, entries, |_, receipt| {
            receipts.push(receipt);
            Ok(())
        })?;
        delete_from_standard(desk, &mut receipts)?;
        return Ok(outcome);
    }
    let mut groups = BTreeSet::new();
    let outcome = each_receipt(desk.queue.id, entries, |handle, receipt| {
        delete_from_line(desk, (handle, receipt), &mut groups).map_err(as_batch_entry)
    })?;
    free(desk, &groups)?;
    Ok(outcome)
}

fn each_receipt(
    queue_id: i64,
    entries: &[DeleteEntry],
    mut work: impl FnMut(&str, Receipt) -> Result<(), Failure>,
) -> Result<BatchOutcome<Done>, Failure> {
    batch::each(
        entries,
        |entry| &entry.id,
        |entry| {
            work(&entry.receipt_handle, Receipt::decode(&entry.receipt_handle, queue_id)?)?;
            Ok(Done { id: entry.id.clone() })
        },
    )
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

fn delete_from_line(
    desk: &Desk<'_>,
    (handle, receipt): (&str, Receipt),
    groups: &mut BTreeSet<String>,
) -> Result<(), Failure> {
    let Some(message) = Standing::of(desk.conn, receipt)? else { return Ok(()) };
    if message.receive_count != receipt.receive_count || message.visible_at_ms <= desk.now_ms {
        return Err(Refused::value(handle, "ReceiptHandle", "The receipt handle has expired.").into());
    }
    groups.extend(message.group_id);
    Ok(desk.delete(receipt.seq)?)
}

/// Deletes messages of a standard queue that were not received again since.
fn delete_from_standard(desk: &mut Desk<'_>, receipts: &mut [Receipt]) -> Result<(), Failure> {
    receipts.sort_unstable_by_key(|receipt| receipt.seq);
    let mut rest = &*receipts;
    while let [first, later @ ..] = rest {
        let Some(row) = Standing::of(desk.conn, *first)? else {
            rest = later;
            continue;
        };
        let of_row = rest.partition_point(|receipt| row.has(*receipt));
        let valid = rest.iter().take(of_row).filter(|receipt| receipt.receive_count == row.receive_count);
        let gone: BTreeSet<i64> = valid.map(|receipt| receipt.seq).collect();
        rest = rest.get(of_row..).unwrap_or_default();
        if gone.len() as i64 == row.count {
            desk.delete(row.seq)?;
        } else if !gone.is_empty() {
            bundle::split(desk.conn, row.seq)?;
            gone.iter().try_for_each(|seq| desk.delete(*seq))?;
        }
        if row.state == WAITING {
            desk.queue.in_flight -= gone.len() as i64;
        }
    }
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
    let message = Standing::of(desk.conn, receipt)?
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
    if message.count > 1 {
        bundle::split(desk.conn, message.seq)?;
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
