//! The one place where the queues are changed: a lock, the queue of the request, and a transaction around it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use rusqlite::Connection;

use super::error::{Failure, Refused};
use super::name::{self, QueueName};
use super::queue::{self, Queue};
use super::schema;
use crate::folder::Durability;

/// Bits of a sequence number that count within a millisecond.
const COUNTER_BITS: u32 = 20;

/// The rows, and all queues in memory.
pub(super) struct Store {
    pub(super) conn: Connection,
    pub(super) queues: HashMap<String, Queue>,
    pub(super) sequence: Sequence,
}

/// Numbers messages in the order in which they are sent; never gives a number twice, restarts included, as long as the
/// clock does not run backwards across a restart.
pub(super) struct Sequence {
    last: i64,
    /// Makes message ids of one store unlike those of another.
    seed: u64,
}

/// What a request on one queue works with.
pub(super) struct Desk<'a> {
    pub(super) conn: &'a Connection,
    pub(super) queue: &'a mut Queue,
    pub(super) sequence: &'a mut Sequence,
    pub(super) now_ms: i64,
    /// No other process sends to it.
    pub(super) is_own: bool,
    /// The queue's dead-letter queue, when it has one and that exists: its id and name.
    pub(super) dead_letter: Option<(i64, QueueName)>,
    /// Set when a receiver that waits should look again.
    pub(super) wake: bool,
    /// Set when a message went to the dead-letter queue.
    pub(super) dead_lettered: bool,
}

impl Store {
    /// The store in `file`, or an empty one in memory. Equal seeds give equal message ids.
    pub(super) fn open(file: Option<(&Path, Durability)>, seed: u64) -> rusqlite::Result<Self> {
        let conn = schema::connect(file)?;
        let queues = queue::load_all(&conn)?;
        let last = conn.query_row(
            "SELECT max(coalesce((SELECT max(seq) FROM messages), 0), coalesce((SELECT max(seq) FROM deduplication), 0))",
            [],
            |row| row.get(0),
        )?;
        Ok(Self { conn, queues, sequence: Sequence { last, seed } })
    }

    /// Runs `work` on the queue at `url`, which may be one of `own`, in one transaction; nothing of it stays when it fails.
    pub(super) fn on_queue<R>(
        &mut self,
        url: &str,
        (now_ms, own): (i64, &BTreeSet<String>),
        work: impl FnOnce(&mut Desk<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let name = name::in_url(url)?;
        let dead_letter = self.dead_letter_of(name);
        let queue = self.queues.get_mut(name).ok_or_else(Refused::no_such_queue)?;
        let transaction = self.conn.transaction()?;
        let sequence = &mut self.sequence;
        let mut desk = Desk {
            conn: &transaction,
            queue: &mut *queue,
            sequence,
            now_ms,
            is_own: own.contains(name),
            dead_letter,
            wake: false,
            dead_lettered: false,
        };
        let worked = work(&mut desk);
        let Desk { dead_letter, wake, dead_lettered, .. } = desk;
        let done = match worked {
            Ok(result) => transaction.commit().map(|()| result).map_err(Failure::from),
            Err(failure) => transaction.rollback().map_err(Failure::from).and(Err(failure)),
        };
        if done.is_err() {
            queue.recall(&self.conn)?;
            return done;
        }
        if wake {
            queue.wake.notify_one();
        }
        if let (true, Some((_, name))) = (dead_lettered, dead_letter)
            && let Some(queue) = self.queues.get_mut(name.as_str())
        {
            queue.note_due(now_ms);
            queue.wake.notify_one();
        }
        done
    }

    fn dead_letter_of(&self, name: &str) -> Option<(i64, QueueName)> {
        let redrive = self.queues.get(name)?.attributes.redrive.as_ref()?;
        Some((self.queues.get(redrive.target.as_str())?.id, redrive.target.clone()))
    }
}

impl Sequence {
    /// The number of a message sent at `now_ms`.
    pub(super) fn next(&mut self, now_ms: i64) -> i64 {
        self.last = (self.last + 1).max(now_ms << COUNTER_BITS);
        self.last
    }

    /// The id of the message with number `seq`: a UUID that follows from it.
    pub(super) fn message_id(&self, seq: i64) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&scramble(self.seed ^ seq.cast_unsigned()).to_be_bytes());
        id[8..].copy_from_slice(
            &scramble(self.seed.rotate_left(32).wrapping_add(seq.cast_unsigned())).to_be_bytes(),
        );
        id[6] = (id[6] & 0x0f) | 0x40;
        id[8] = (id[8] & 0x3f) | 0x80;
        id
    }
}

/// The finaliser of SplitMix64: spreads near numbers apart.
fn scramble(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A message id as text.
pub(super) fn uuid_text(id: &[u8]) -> String {
    let hex = super::message::hex(id);
    match (hex.get(..8), hex.get(8..12), hex.get(12..16), hex.get(16..20), hex.get(20..)) {
        (Some(a), Some(b), Some(c), Some(d), Some(e)) => format!("{a}-{b}-{c}-{d}-{e}"),
        _ => hex,
    }
}

/// A sequence number as AWS shows it: 20 digits that compare as text.
pub(super) fn sequence_text(seq: i64) -> String {
    format!("{:020}", 10_000_000_000_000_000_000_u64 + seq.unsigned_abs())
}
