//! Standard queues: messages that become ready, and the ready ones in fair turns.

use rusqlite::{OptionalExtension, params};

use super::bundle;
use super::error::Failure;
use super::redrive;
use super::schema::{READY, WAITING};
use super::store::Desk;
use super::taken::{self, Taken};

/// Rows made ready in one go: bounds the time of one receive when many become due at one instant.
const PROMOTED_AT_ONCE: i64 = 1000;

/// Makes waiting messages ready whose delay or visibility timeout has ended.
pub(super) fn promote(desk: &mut Desk<'_>) -> Result<(), Failure> {
    if desk.queue.next_due_at_ms > desk.now_ms {
        return Ok(());
    }
    let due: Vec<(i64, i64, i64, i64, Option<String>)> = desk
        .conn
        .prepare_cached(
            "SELECT seq, count, rank, receive_count, group_id FROM messages
             WHERE queue_id = ?1 AND state = 1 AND visible_at_ms <= ?2 ORDER BY visible_at_ms, seq LIMIT ?3",
        )?
        .query_map(params![desk.queue.id, desk.now_ms, PROMOTED_AT_ONCE], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut ready = desk.conn.prepare_cached("UPDATE messages SET state = ?2, rank = ?3 WHERE seq = ?1")?;
    for (seq, count, rank, receive_count, group) in due {
        // A message that was received before keeps its turn, so that it comes back first.
        let rank = if receive_count > 0 { rank } else { desk.queue.turns.next(group.as_deref(), count) };
        if receive_count > 0 {
            desk.queue.in_flight -= count;
        }
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
    let (mut taken, mut count): (Vec<Taken>, i64) = (Vec::new(), 0);
    loop {
        let (found, next) = ready(desk, most - count)?;
        for mut row in found {
            desk.queue.turns.serve(row.rank + row.count - 1);
            if row.sent_at_ms <= expired_before_ms {
                desk.delete(row.seq)?;
            } else if !redrive::away(desk, &row)? {
                row.receive(desk, visible_at_ms, WAITING)?;
                desk.queue.in_flight += row.count;
                desk.queue.note_due(visible_at_ms);
                count += row.count;
                taken.push(row);
            }
        }
        match next {
            None => return Ok((taken, false)),
            Some(next) if count > 0 && count + next.count > most => return Ok((taken, true)),
            // Nobody who wants fewer is given all that lie in a row.
            Some(next) if next.count > most => bundle::split(desk.conn, next.seq)?,
            Some(_) => {}
        }
    }
}

/// A row that is ready and was not taken.
struct Next {
    seq: i64,
    count: i64,
}

/// The next rows that are ready, with `most` messages at the most, and the one behind them.
fn ready(desk: &Desk<'_>, most: i64) -> rusqlite::Result<(Vec<Taken>, Option<Next>)> {
    let sql = taken::select("queue_id = ?1 AND state = 0 ORDER BY rank, seq LIMIT ?2");
    let mut statement = desk.conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![desk.queue.id, most + 1])?;
    let (mut found, mut free) = (Vec::new(), most);
    while let Some(row) = rows.next()? {
        let count = taken::count_in(row)?;
        if count > free {
            return Ok((found, Some(Next { seq: row.get(0)?, count })));
        }
        free -= count;
        found.push(Taken::read(row)?);
    }
    Ok((found, None))
}
