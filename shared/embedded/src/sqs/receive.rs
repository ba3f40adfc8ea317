//! Receiving: which messages a receive takes.

use rusqlite::params;

use super::error::{Code, Failure, Refused};
use super::fifo;
use super::limits;
use super::standard;
use super::store::Desk;
use super::taken::{Taken, Wanted};

/// What one look at the queue brought.
pub(super) enum Look {
    Found(Vec<Taken>),
    Empty,
    /// The in-flight limit is reached.
    OverLimit,
}

/// One look at the queue: takes what can be received now.
pub(super) fn look(desk: &mut Desk<'_>, wanted: &Wanted) -> Result<Look, Failure> {
    sweep(desk)?;
    let visibility_s = wanted.visibility_s.unwrap_or(desk.queue.attributes.visibility_s);
    let visible_at_ms = desk.now_ms + visibility_s * 1000;
    let (taken, more) = if desk.queue.is_fifo() {
        let taken = fifo::take(desk, wanted.most, visible_at_ms)?;
        let full = taken.len() as i64 == wanted.most;
        (taken, full)
    } else {
        standard::promote(desk)?;
        if desk.queue.in_flight >= limits::IN_FLIGHT {
            return Ok(Look::OverLimit);
        }
        standard::take(desk, wanted.most, visible_at_ms)?
    };
    if taken.is_empty() {
        return Ok(Look::Empty);
    }
    // Each receiver that leaves something wakes the next.
    desk.wake = more;
    Ok(Look::Found(taken))
}

pub(super) fn over_limit() -> Refused {
    let message = format!("Too many messages in flight: the limit is {}.", limits::IN_FLIGHT);
    Refused::new(Code::OverLimit, message)
}

/// How often messages that nobody receives are checked for their age.
const SWEEP_MS: i64 = 60_000;

/// Deletes messages past their retention, now and then: those that are received are checked one by one anyway.
pub(super) fn sweep(desk: &mut Desk<'_>) -> Result<(), Failure> {
    if desk.now_ms - desk.queue.swept_at_ms < SWEEP_MS {
        return Ok(());
    }
    desk.queue.swept_at_ms = desk.now_ms;
    let expired = params![desk.queue.id, desk.queue.expired_before_ms(desk.now_ms)];
    let mut deleted = 0;
    for state in ["0", "1", "2"] {
        // A state as a literal lets SQLite use its partial index.
        let sql =
            format!("DELETE FROM messages WHERE queue_id = ?1 AND state = {state} AND sent_at_ms <= ?2");
        deleted += desk.conn.prepare_cached(&sql)?.execute(expired)?;
    }
    if deleted > 0 {
        fifo::forget_empty_groups(desk)?;
        desk.queue.recall(desk.conn)?;
    }
    Ok(())
}
