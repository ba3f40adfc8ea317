//! What no AWS call does: giving back at once what a receiver took that is known to be gone.

use rusqlite::params;

use super::Sqs;
use super::error::Failure;

impl Sqs {
    /// Makes the messages of a standard queue that were received and not deleted visible now; returns how many. Their
    /// receive counts stay, so that a message which ends its receiver each time still ends in the dead-letter queue.
    pub(crate) fn release_in_flight(&self, url: &str) -> Result<usize, Failure> {
        self.on_queue(url, |desk| {
            let released = desk
                .conn
                .prepare_cached(
                    "UPDATE messages SET visible_at_ms = ?2
                     WHERE queue_id = ?1 AND state = 1 AND receive_count > 0 AND visible_at_ms > ?2 RETURNING count",
                )?
                .query_map(params![desk.queue.id, desk.now_ms], |row| row.get::<_, usize>(0))?
                .sum::<rusqlite::Result<usize>>()?;
            if released > 0 {
                desk.queue.note_due(desk.now_ms);
                desk.wake = true;
            }
            Ok(released)
        })
    }
}
