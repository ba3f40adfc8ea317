//! Standard queues: messages that become ready, and the ready ones in fair turns.

use rusqlite::{OptionalExtension, params};

use super::error::Failure;
use super::redrive;
use super::schema::{READY, WAITING};
use super::store::Desk;
use super::taken::{COLUMNS, Taken};

/// Messages made ready in one go: bounds the time of one receive when many become due at one instant.
const PROMOTED_AT_ONCE: i64 = 1000;

/// Makes waiting messages ready whose delay or visibility timeout has ended.
pub(super) fn promote(desk: &mut Desk<'_>) -> Result<(), Failure> {
    if desk.queue.next_due_at_ms > desk.now_ms {
        return Ok(());
    }
    let due: Vec<(i64, i64, i64, Option<String>)> = desk
        .conn
        .prepare_cached(
            "SELECT seq, rank, receive_count, group_id FROM messages
             WHERE queue_id = ?1 AND state = 1 AND visible_at_ms <= ?2 ORDER BY visible_at_ms, seq LIMIT ?3",
        )?
        .query_map(params![desk.queue.id, desk.now_ms, PROMOTED_AT_ONCE], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut ready = desk.conn.prepare_cached("UPDATE messages SET state = ?2, rank = ?3 WHERE seq = ?1")?;
    for (seq, rank, receive_count, group) in due {
        // A message that was received before keeps its turn, so that it comes back first.
        let rank = if receive_count > 0 { rank } else { desk.queue.turns.next(group.as_deref()) };
        desk.queue.in_flight -= i64::from(receive_count > 0);
        ready.execute(params![seq, READY, rank])?;
    }
    desk.queue.next_due_at_ms = desk
        .conn
        .prepare_cached("SELECT visible_at_ms FROM messages WHERE queue_id = ?1 AND state = 1 ORDER BY visible_at_ms LIMIT 1")?
        .query_row([desk.queue.id], |row| row.get(0))
        .optional()?
        .unwrap_or(i64::MAX);
    Ok(())
}

/// Takes up to `most` ready messages, invisible until `visible_at_ms`; and whether others are ready.
pub(super) fn take(
    desk: &mut Desk<'_>,
    most: i64,
    visible_at_ms: i64,
) -> Result<(Vec<Taken>, bool), Failure> {
    let expired_before_ms = desk.queue.expired_before_ms(desk.now_ms);
    let mut taken: Vec<Taken> = Vec::new();
    loop {
        let missing = most - taken.len() as i64;
        let sql = format!(
            "SELECT {COLUMNS} FROM messages WHERE queue_id = ?1 AND state = 0 ORDER BY rank, seq LIMIT ?2"
        );
        let mut found: Vec<Taken> = desk
            .conn
            .prepare_cached(&sql)?
            .query_map(params![desk.queue.id, missing + 1], Taken::read)?
            .collect::<Result<_, _>>()?;
        let more = found.len() as i64 > missing;
        found.truncate(usize::try_from(missing).unwrap_or_default());
        for mut message in found {
            desk.queue.turns.serve(message.rank);
            if message.sent_at_ms <= expired_before_ms {
                desk.conn.prepare_cached("DELETE FROM messages WHERE seq = ?1")?.execute([message.seq])?;
            } else if !redrive::away(desk, &message)? {
                message.receive(desk, visible_at_ms, WAITING)?;
                desk.queue.in_flight += 1;
                desk.queue.note_due(visible_at_ms);
                taken.push(message);
            }
        }
        if !more || taken.len() as i64 == most {
            return Ok((taken, more));
        }
    }
}
