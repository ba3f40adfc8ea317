//! The one place where the queues are changed: a lock, the queue of the request, and a transaction around it.
//!
//! What was sent is committed before it is answered, with what others send to standard queues until then. That a message of a
//! standard queue was received by a consumer, or deleted, may wait for the next commit, and waits [`KEPT_WITHIN`] at the most:
//! where the process is killed in between, the message comes once more.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rusqlite::{Connection, ffi};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tracing::error;

use super::error::{Failure, Refused};
use super::name::{self, QueueName};
use super::queue::{self, Queue};
use super::schema;
use crate::folder::Durability;

/// How long what may wait for a commit waits at the most.
const KEPT_WITHIN: Duration = Duration::from_millis(10);

/// Bits of a sequence number that count within a millisecond.
const COUNTER_BITS: u32 = 20;

/// The rows, and all queues in memory.
pub(super) struct Store {
    pub(super) conn: Connection,
    pub(super) queues: HashMap<String, Queue>,
    pub(super) sequence: Sequence,
    /// How what is in a file is kept. In memory no commit is worth waiting for.
    durability: Option<Durability>,
    /// Of the transaction that is open. Between requests it has changes of those that ended.
    open: Option<Fate>,
    /// Somebody is about to commit it.
    is_promised: bool,
    /// A request is at work, or ended in a panic.
    is_at_work: bool,
}

/// When a change is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Before the request ends.
    Now,
    /// Before it is answered, with what others change until then: as its [`Fate`] says.
    Together,
    /// Soon: it costs nothing but a repeat when it is lost.
    Soon,
}

/// What becomes of the changes in one transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate(Arc<OnceLock<bool>>);

impl Fate {
    pub(super) fn is_open(&self) -> bool {
        self.0.get().is_none()
    }

    /// # Errors
    /// When they were taken back.
    pub(super) fn kept(&self) -> Result<(), Failure> {
        match self.0.get() {
            Some(true) => Ok(()),
            _ => {
                let why = "it was taken back with others of its transaction".to_owned();
                Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ABORT), Some(why)).into())
            }
        }
    }

    fn decide(&self, is_kept: bool) {
        // It is decided once: the transaction is no longer open.
        let _ = self.0.set(is_kept);
    }
}

/// Commits what waits, whatever becomes of the task that holds it.
struct Promise(Weak<Mutex<Store>>);

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
            "SELECT max(coalesce((SELECT seq + count - 1 FROM messages ORDER BY seq DESC LIMIT 1), 0),
                coalesce((SELECT max(seq) FROM deduplication), 0))",
            [],
            |row| row.get(0),
        )?;
        let durability = file.map(|(_, durability)| durability);
        let sequence = Sequence { last, seed };
        Ok(Self { conn, queues, sequence, durability, open: None, is_promised: false, is_at_work: false })
    }

    /// Runs `work` on the queue at `url`, which may be one of `own`, in one transaction; nothing of it stays when it fails, and
    /// nothing of what shares the transaction when the store fails.
    pub(super) fn on_queue<R>(
        &mut self,
        url: &str,
        (now_ms, own): (i64, &BTreeSet<String>),
        keep: Keep,
        work: impl FnOnce(&mut Desk<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let name = name::in_url(url)?;
        self.sweep_up()?;
        let dead_letter = self.dead_letter_of(name);
        // A FIFO queue may refuse what has changed rows, and promises that a message does not come again: it shares nothing.
        if self.queues.get(name).is_some_and(Queue::is_fifo) {
            self.commit()?;
        }
        let queue = self.queues.get_mut(name).ok_or_else(Refused::no_such_queue)?;
        let was_open = self.open.is_some();
        if !was_open {
            run(&self.conn, "BEGIN")?;
            self.open = Some(Fate::default());
        }
        let changes = self.conn.total_changes();
        let sequence = &mut self.sequence;
        let mut desk = Desk {
            conn: &self.conn,
            queue: &mut *queue,
            sequence,
            now_ms,
            is_own: own.contains(name),
            dead_letter,
            wake: false,
            dead_lettered: false,
        };
        self.is_at_work = true;
        let worked = work(&mut desk);
        self.is_at_work = false;
        let Desk { dead_letter, wake, dead_lettered, .. } = desk;
        let is_changed = self.conn.total_changes() != changes;
        let may_wait = match keep {
            Keep::Now => false,
            Keep::Together => self.durability.is_some(),
            Keep::Soon => self.durability == Some(Durability::Process),
        };
        let waits = may_wait && !queue.is_fifo() && (is_changed || was_open);
        let result = match worked {
            Ok(result) => result,
            // It refused before it changed a row: what others changed stays.
            Err(failure @ Failure::Refused(_)) if !is_changed => {
                queue.recall(&self.conn)?;
                if !waits {
                    self.commit()?;
                }
                return Err(failure);
            }
            Err(failure) => {
                self.roll_back()?;
                return Err(failure);
            }
        };
        if wake {
            queue.wake.notify_one();
        }
        if !waits {
            self.commit()?;
        }
        if let (true, Some((_, name))) = (dead_lettered, dead_letter)
            && let Some(queue) = self.queues.get_mut(name.as_str())
        {
            queue.note_due(now_ms);
            queue.wake.notify_one();
        }
        Ok(result)
    }

    /// Commits what waits for it. When that fails, senders learn of it by the [`Fate`]; receives and deletes were answered, and their
    /// messages come again.
    pub(super) fn settle(&mut self) {
        let swept = self.sweep_up();
        if let Err(failure) = swept.and_then(|()| self.commit()) {
            error!(
                ?failure,
                "sends, receives and deletes are taken back: senders are told, the other messages come again"
            );
        }
    }

    /// Takes back what a request left that ended in a panic.
    fn sweep_up(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_at_work) { self.roll_back() } else { Ok(()) }
    }

    /// Whether changes wait that nobody is about to commit.
    pub(super) fn needs_a_promise(&self) -> bool {
        self.open.is_some() && !self.is_promised
    }

    /// The fate of changes that wait for a commit.
    pub(super) fn fate(&self) -> Option<Fate> {
        self.open.clone()
    }

    /// Sees to it that what waits in `store`, which is `held`, is committed.
    pub(super) fn promise(held: &mut Self, store: Weak<Mutex<Self>>) -> Result<(), Failure> {
        let Ok(runtime) = Handle::try_current() else { return held.commit() };
        held.is_promised = true;
        let promise = Promise(store);
        runtime.spawn(async move {
            sleep(KEPT_WITHIN).await;
            drop(promise);
        });
        Ok(())
    }

    /// Commits what waits. What cannot be committed is taken back.
    fn commit(&mut self) -> Result<(), Failure> {
        let Some(fate) = &self.open else { return Ok(()) };
        match run(&self.conn, "COMMIT") {
            Ok(()) => {
                fate.decide(true);
                self.open = None;
                Ok(())
            }
            Err(error) => {
                self.roll_back()?;
                Err(error.into())
            }
        }
    }

    /// Takes back all that was not committed.
    fn roll_back(&mut self) -> Result<(), Failure> {
        if let Some(fate) = self.open.take() {
            fate.decide(false);
        }
        // SQLite may have done so itself.
        if !self.conn.is_autocommit() {
            run(&self.conn, "ROLLBACK")?;
        }
        for queue in self.queues.values_mut() {
            queue.recall(&self.conn)?;
        }
        Ok(())
    }

    fn dead_letter_of(&self, name: &str) -> Option<(i64, QueueName)> {
        let redrive = self.queues.get(name)?.attributes.redrive.as_ref()?;
        Some((self.queues.get(redrive.target.as_str())?.id, redrive.target.clone()))
    }
}

impl Desk<'_> {
    /// Deletes a row of messages.
    pub(super) fn delete(&self, seq: i64) -> rusqlite::Result<()> {
        self.conn.prepare_cached("DELETE FROM messages WHERE seq = ?1")?.execute([seq]).map(drop)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let Some(store) = self.0.upgrade() else { return };
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        store.is_promised = false;
        store.settle();
    }
}

fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
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
