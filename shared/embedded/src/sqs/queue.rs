//! One queue as the service keeps it in memory: what its owner set, and what can be told from its rows but is asked too
//! often to ask SQLite.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rusqlite::{Connection, params};
use tokio::sync::Notify;

use super::attributes::Attributes;
use super::name::QueueName;
use super::schema::{READY, WAITING, unreadable};
use super::turns::Turns;

/// A queue. The fields of the second half follow from the rows; [`Queue::recall`] reads them again.
pub(super) struct Queue {
    pub(super) id: i64,
    pub(super) name: QueueName,
    pub(super) attributes: Attributes,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) created_at_ms: i64,
    pub(super) modified_at_ms: i64,
    pub(super) purged_at_ms: i64,
    /// When expired messages were last looked for.
    pub(super) swept_at_ms: i64,
    /// Wakes one waiting receiver, or the next one to wait.
    pub(super) wake: Arc<Notify>,
    /// Messages of a standard queue that were received and are not yet visible again.
    pub(super) in_flight: i64,
    /// No waiting message of a standard queue becomes ready before this instant.
    pub(super) next_due_at_ms: i64,
    pub(super) turns: Turns,
}

impl Queue {
    /// A queue without messages.
    pub(super) fn new(id: i64, name: QueueName, attributes: Attributes, created_at_ms: i64) -> Self {
        Self {
            id,
            name,
            attributes,
            tags: BTreeMap::new(),
            created_at_ms,
            modified_at_ms: created_at_ms,
            purged_at_ms: 0,
            swept_at_ms: 0,
            wake: Arc::new(Notify::new()),
            in_flight: 0,
            next_due_at_ms: i64::MAX,
            turns: Turns::default(),
        }
    }

    pub(super) fn is_fifo(&self) -> bool {
        self.name.is_fifo()
    }

    /// Reads again what follows from the rows: after a restart, and after a transaction that failed.
    pub(super) fn recall(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        (self.in_flight, self.next_due_at_ms) = conn.query_row(
            "SELECT coalesce(sum(count) FILTER (WHERE receive_count > 0), 0), coalesce(min(visible_at_ms), ?2)
             FROM messages WHERE queue_id = ?1 AND state = 1",
            params![self.id, i64::MAX],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let served = conn.query_row(
            "SELECT coalesce(min(rank) FILTER (WHERE state = ?2) - 1, max(rank + count - 1), 0)
             FROM messages WHERE queue_id = ?1 AND state IN (?2, ?3)",
            params![self.id, READY, WAITING],
            |row| row.get(0),
        )?;
        let mut statement = conn.prepare(
            "SELECT coalesce(group_id, ''), max(rank + count - 1) FROM messages WHERE queue_id = ?1 AND state = 0 GROUP BY 1",
        )?;
        let groups = statement.query_map([self.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.turns = Turns::restored(served, groups.collect::<rusqlite::Result<HashMap<_, _>>>()?);
        Ok(())
    }

    /// Notes that a message of a standard queue waits until `due_at_ms`.
    pub(super) fn note_due(&mut self, due_at_ms: i64) {
        self.next_due_at_ms = self.next_due_at_ms.min(due_at_ms);
    }

    /// The instant after which a message sent before it has expired.
    pub(super) fn expired_before_ms(&self, now_ms: i64) -> i64 {
        now_ms - self.attributes.retention_s * 1000
    }
}

/// All queues in the store.
pub(super) fn load_all(conn: &Connection) -> rusqlite::Result<HashMap<String, Queue>> {
    let mut statement = conn.prepare(
        "SELECT id, name, attributes, tags, created_at_ms, modified_at_ms, purged_at_ms FROM queues",
    )?;
    let rows = statement.query_map([], |row| {
        let (id, name): (i64, String) = (row.get(0)?, row.get(1)?);
        let (given, tags): (String, String) = (row.get(2)?, row.get(3)?);
        let name = QueueName::parse(&name).map_err(|_| unreadable(1))?;
        let given: BTreeMap<String, String> = serde_json::from_str(&given).map_err(|_| unreadable(2))?;
        let attributes = Attributes::default().with(&given, name.is_fifo()).map_err(|_| unreadable(2))?;
        let mut queue = Queue::new(id, name, attributes, row.get(4)?);
        queue.tags = serde_json::from_str(&tags).map_err(|_| unreadable(3))?;
        queue.modified_at_ms = row.get(5)?;
        queue.purged_at_ms = row.get(6)?;
        Ok(queue)
    })?;
    let mut queues = HashMap::new();
    for queue in rows {
        let mut queue = queue?;
        queue.recall(conn)?;
        queues.insert(queue.name.as_str().to_owned(), queue);
    }
    Ok(queues)
}
