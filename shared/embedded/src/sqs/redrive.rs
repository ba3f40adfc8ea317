//! Dead letters: a message that was received too often leaves for its queue's dead-letter queue.

use rusqlite::params;

use super::error::Failure;
use super::schema::{IN_LINE, WAITING};
use super::store::Desk;
use super::taken::Taken;

/// Moves `message` to the dead-letter queue, if it has been received as often as its queue allows; tells whether it did.
/// Its age goes on counting from when it was first sent, except that a FIFO queue starts it anew.
pub(super) fn away(desk: &mut Desk<'_>, message: &Taken) -> Result<bool, Failure> {
    let Some(redrive) = &desk.queue.attributes.redrive else { return Ok(false) };
    let Some((target_id, target)) = &desk.dead_letter else { return Ok(false) };
    if message.receive_count < redrive.max_receive_count {
        return Ok(false);
    }
    let fifo = target.is_fifo();
    let (state, sent_at_ms) = if fifo { (IN_LINE, desk.now_ms) } else { (WAITING, message.sent_at_ms) };
    desk.conn
        .prepare_cached(
            "UPDATE messages SET queue_id = ?2, state = ?3, sent_at_ms = ?4, visible_at_ms = ?5, source_arn = ?6,
                receive_count = 0 WHERE seq = ?1",
        )?
        .execute(params![message.seq, target_id, state, sent_at_ms, desk.now_ms, desk.queue.name.arn()])?;
    if fifo {
        desk.conn
            .prepare_cached(
                "INSERT OR IGNORE INTO groups (queue_id, group_id, ready_at_ms)
                 SELECT queue_id, group_id, visible_at_ms FROM messages WHERE seq = ?1",
            )?
            .execute([message.seq])?;
    }
    desk.dead_lettered = true;
    Ok(true)
}
