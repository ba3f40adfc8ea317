//! FIFO queues: groups in the order of their oldest message, messages of a group in line, and no second receive of a group
//! while one of its messages is in flight.
//!
//! A group's row says from when its head can be received: until then its delay runs or one of its messages is in flight.

use rusqlite::{OptionalExtension, params};

use super::error::Failure;
use super::redrive;
use super::schema::IN_LINE;
use super::store::Desk;
use super::taken::{self, Taken};

/// Takes up to `most` messages, invisible until `visible_at_ms`: as many of one group as there are, then the next group.
pub(super) fn take(desk: &mut Desk<'_>, most: i64, visible_at_ms: i64) -> Result<Vec<Taken>, Failure> {
    let mut taken = Vec::new();
    let mut ready_groups = ready(desk, most)?;
    while !ready_groups.is_empty() {
        for group in &ready_groups {
            take_from_group(desk, group, most, visible_at_ms, &mut taken)?;
            refresh(desk, group)?;
            if taken.len() as i64 == most {
                return Ok(taken);
            }
        }
        // Receives without a timeout leave their group ready: it is not taken from twice.
        if !taken.is_empty() {
            return Ok(taken);
        }
        ready_groups = ready(desk, most)?;
    }
    Ok(taken)
}

fn ready(desk: &Desk<'_>, most: i64) -> rusqlite::Result<Vec<String>> {
    desk.conn
        .prepare_cached(
            "SELECT group_id FROM groups WHERE queue_id = ?1 AND ready_at_ms <= ?2 ORDER BY ready_at_ms, group_id LIMIT ?3",
        )?
        .query_map(params![desk.queue.id, desk.now_ms, most], |row| row.get(0))?
        .collect()
}

fn take_from_group(
    desk: &mut Desk<'_>,
    group: &str,
    most: i64,
    visible_at_ms: i64,
    taken: &mut Vec<Taken>,
) -> Result<(), Failure> {
    let expired_before_ms = desk.queue.expired_before_ms(desk.now_ms);
    let mut after = i64::MIN;
    loop {
        let missing = most - taken.len() as i64;
        let sql =
            taken::select("queue_id = ?1 AND group_id = ?2 AND state = 2 AND seq > ?3 ORDER BY seq LIMIT ?4");
        let found: Vec<Taken> = desk
            .conn
            .prepare_cached(&sql)?
            .query_map(params![desk.queue.id, group, after, missing], Taken::read)?
            .collect::<Result<_, _>>()?;
        if found.is_empty() {
            return Ok(());
        }
        for mut message in found {
            if message.visible_at_ms > desk.now_ms {
                return Ok(());
            }
            after = message.seq;
            if message.sent_at_ms <= expired_before_ms {
                desk.delete(message.seq)?;
            } else if !redrive::away(desk, &message)? {
                message.receive(desk, visible_at_ms, IN_LINE)?;
                taken.push(message);
            }
        }
        if taken.len() as i64 == most {
            return Ok(());
        }
    }
}

/// Computes anew from when `group` can be received; a group without messages is forgotten.
pub(super) fn refresh(desk: &Desk<'_>, group: &str) -> Result<(), Failure> {
    let key = params![desk.queue.id, group];
    let head: Option<i64> = desk
        .conn
        .prepare_cached(
            "SELECT visible_at_ms FROM messages WHERE queue_id = ?1 AND group_id = ?2 AND state = 2 ORDER BY seq LIMIT 1",
        )?
        .query_row(key, |row| row.get(0))
        .optional()?;
    let Some(head_ready_at_ms) = head else {
        desk.conn.prepare_cached("DELETE FROM groups WHERE queue_id = ?1 AND group_id = ?2")?.execute(key)?;
        return Ok(());
    };
    let taken_until_ms: Option<i64> = desk
        .conn
        .prepare_cached(
            "SELECT max(visible_at_ms) FROM messages
             WHERE queue_id = ?1 AND group_id = ?2 AND state = 2 AND receive_count > 0",
        )?
        .query_row(key, |row| row.get(0))?;
    let ready_at_ms = taken_until_ms.filter(|until_ms| *until_ms > desk.now_ms).unwrap_or(head_ready_at_ms);
    desk.conn
        .prepare_cached("UPDATE groups SET ready_at_ms = ?3 WHERE queue_id = ?1 AND group_id = ?2")?
        .execute(params![desk.queue.id, group, ready_at_ms])?;
    Ok(())
}

/// The instant from which the first group can be received.
pub(super) fn next_ready_at_ms(desk: &Desk<'_>) -> rusqlite::Result<i64> {
    let next = desk
        .conn
        .prepare_cached("SELECT ready_at_ms FROM groups WHERE queue_id = ?1 ORDER BY ready_at_ms LIMIT 1")?
        .query_row([desk.queue.id], |row| row.get(0))
        .optional()?;
    Ok(next.unwrap_or(i64::MAX))
}

/// Forgets the groups whose messages are gone.
pub(super) fn forget_empty_groups(desk: &Desk<'_>) -> rusqlite::Result<()> {
    desk.conn
        .prepare_cached(
            "DELETE FROM groups WHERE queue_id = ?1 AND NOT EXISTS (SELECT 1 FROM messages
             WHERE messages.queue_id = groups.queue_id AND messages.group_id = groups.group_id AND state = 2)",
        )?
        .execute([desk.queue.id])?;
    Ok(())
}
