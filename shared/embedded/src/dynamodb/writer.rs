//! The writes to tables in a file: those that come while others are made are made next, together, and share one commit.
//!
//! Most of a small write is its commit, and the library commits every item of a batch by itself. While a shared transaction
//! is open its own `BEGIN` and `COMMIT` come to nothing here (SQLite asks whether it may prepare them, and is told to
//! ignore them), and a savepoint stands in for them: a write that fails takes nothing from its neighbours. Nobody is answered
//! before the commit.

use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dynoxide::DynoxideError;
use dynoxide::storage::Storage;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::direct;
use crate::disk;
use crate::folder::{self, Durability};

/// Writes that share a commit at the most: the first is answered no later than the last.
const TOGETHER: usize = 16;

/// One connection that writes, and those who wait for it.
pub(super) struct Writer {
    line: Mutex<Line>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Line {
    waiting: Vec<Box<dyn Waiting>>,
    /// Somebody makes writes now, and looks again afterwards.
    is_led: bool,
}

struct Tables {
    storage: Storage,
    /// A shared transaction is open: those of the library are ignored.
    is_shared: Arc<AtomicBool>,
}

/// One write, its answer, and who waits for it.
trait Waiting: Send {
    /// Whether it succeeded.
    fn write(&mut self, storage: &Storage) -> bool;
    /// Gives the answer, unless the commit failed.
    fn answer(self: Box<Self>, failure: Option<&str>);
}

struct Write<W, R> {
    work: Option<W>,
    done: Option<dynoxide::Result<R>>,
    to: oneshot::Sender<dynoxide::Result<R>>,
}

impl<W, R> Waiting for Write<W, R>
where
    W: FnOnce(&Storage) -> dynoxide::Result<R> + Send,
    R: Send,
{
    fn write(&mut self, storage: &Storage) -> bool {
        self.done = self.work.take().map(|work| work(storage));
        matches!(self.done, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, failure: Option<&str>) {
        let answer = match (failure, self.done) {
            (None, Some(done)) => done,
            (failure, _) => Err(cut_short(failure.unwrap_or("it was never begun"))),
        };
        // Who no longer waits has no use for it.
        let _ = self.to.send(answer);
    }
}

fn cut_short(why: &str) -> DynoxideError {
    DynoxideError::InternalServerError(format!("the write was not committed: {why}"))
}

impl Writer {
    /// A connection to the tables in `file`, beside the one that reads.
    pub(super) fn open(file: &Path, durability: Durability) -> dynoxide::Result<Arc<Self>> {
        let storage = Storage::new(&folder::address(file))?;
        direct::keep_statements(&storage);
        disk::keep(storage.conn(), (file, durability))?;
        // Savepoints keep pages aside: in memory.
        storage.conn().pragma_update(None, "temp_store", "MEMORY")?;
        let is_shared = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_shared);
        storage.conn().authorizer(Some(move |context: AuthContext<'_>| match context.action {
            AuthAction::Transaction { .. } if asked.load(Ordering::Relaxed) => Authorization::Ignore,
            _ => Authorization::Allow,
        }));
        Ok(Arc::new(Self { line: Mutex::default(), tables: Mutex::new(Tables { storage, is_shared }) }))
    }

    /// Makes a write, on this thread or on that of another who writes now; returns once it is committed.
    pub(super) async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Storage) -> dynoxide::Result<R> + Send + 'static,
    ) -> dynoxide::Result<R> {
        self.led_by(Lead::make_writes, work).await
    }

    /// Makes a write of which there are more: on a task of its own, so that those of the same caller join it.
    pub(super) async fn run_among_others<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Storage) -> dynoxide::Result<R> + Send + 'static,
    ) -> dynoxide::Result<R> {
        self.led_by(Lead::make_writes_soon, work).await
    }

    /// Makes a write; where nobody leads, `make` sees to it.
    async fn led_by<R: Send + 'static>(
        self: &Arc<Self>,
        make: fn(Lead),
        work: impl FnOnce(&Storage) -> dynoxide::Result<R> + Send + 'static,
    ) -> dynoxide::Result<R> {
        let (to, answer) = oneshot::channel();
        let leads = {
            let mut line = self.line();
            line.waiting.push(Box::new(Write { work: Some(work), done: None, to }));
            !mem::replace(&mut line.is_led, true)
        };
        if leads {
            make(Lead::of(self));
        }
        answer.await.unwrap_or_else(|_| Err(cut_short("who was to make it was stopped")))
    }

    /// Does `work` while nobody writes to the tables, past this writer neither: SQLite lets one connection write at a time.
    pub(super) fn while_held<R>(&self, work: impl FnOnce() -> rusqlite::Result<R>) -> rusqlite::Result<R> {
        let tables = self.tables();
        tables.begin()?;
        let worked = work();
        tables.storage.conn().execute_batch("ROLLBACK")?;
        worked
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by the one who makes the writes. Whatever ends it, the next to come can lead, and nobody waits for one who is gone.
struct Lead {
    writer: Arc<Writer>,
    is_over: bool,
}

impl Lead {
    /// The caller has set `is_led`.
    fn of(writer: &Arc<Writer>) -> Self {
        Self { writer: Arc::clone(writer), is_over: false }
    }

    /// Makes the writes that wait. Those that came meanwhile are left to a task of their own: who leads has an answer to
    /// carry home.
    fn make_writes(mut self) {
        loop {
            let mut writes = {
                let mut line = self.writer.line();
                let count = line.waiting.len().min(TOGETHER);
                line.waiting.drain(..count).collect::<Vec<_>>()
            };
            let failure = self.writer.tables().commit(&mut writes).err().map(|error| error.to_string());
            for write in writes {
                write.answer(failure.as_deref());
            }
            if self.ends() {
                return;
            }
            if Handle::try_current().is_ok() {
                return self.make_writes_soon();
            }
        }
    }

    /// Leaves the writes to a task of their own, where there is a runtime.
    fn make_writes_soon(self) {
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { self.make_writes() })),
            Err(_) => self.make_writes(),
        }
    }

    /// Ends the lead when nobody waits.
    fn ends(&mut self) -> bool {
        let mut line = self.writer.line();
        self.is_over = line.waiting.is_empty();
        line.is_led = !self.is_over;
        self.is_over
    }
}

impl Drop for Lead {
    /// After a panic, or with a runtime that shuts down.
    fn drop(&mut self) {
        if !self.is_over {
            drop(mem::take(&mut *self.writer.line()));
        }
    }
}

impl Tables {
    fn commit(&self, writes: &mut [Box<dyn Waiting>]) -> rusqlite::Result<()> {
        let conn = self.storage.conn();
        self.begin()?;
        self.is_shared.store(true, Ordering::Relaxed);
        let is_kept = match writes {
            [alone] => Ok(alone.write(&self.storage)),
            many => many.iter_mut().try_for_each(|write| self.in_a_savepoint(write.as_mut())).map(|()| true),
        };
        self.is_shared.store(false, Ordering::Relaxed);
        let ended = is_kept.and_then(|kept| self.run(if kept { "COMMIT" } else { "ROLLBACK" }));
        if ended.is_err() && !conn.is_autocommit() {
            conn.execute_batch("ROLLBACK")?;
        }
        ended
    }

    /// Begins a transaction that no other connection writes beside.
    fn begin(&self) -> rusqlite::Result<()> {
        let conn = self.storage.conn();
        self.is_shared.store(false, Ordering::Relaxed);
        if !conn.is_autocommit() {
            // A write before ended in a panic.
            conn.execute_batch("ROLLBACK")?;
        }
        self.run("BEGIN IMMEDIATE")
    }

    fn in_a_savepoint(&self, write: &mut dyn Waiting) -> rusqlite::Result<()> {
        self.run("SAVEPOINT one")?;
        if !write.write(&self.storage) {
            self.run("ROLLBACK TO one")?;
        }
        self.run("RELEASE one")
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.storage.conn().prepare_cached(sql)?.execute([]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use dynoxide::Database;
    use futures::FutureExt as _;
    use futures::future::join_all;
    use serde_json::json;

    use super::*;

    /// A writer on a table in a file, a reader beside it, and what counts commits.
    struct Bench {
        writer: Arc<Writer>,
        reader: Database,
        commits: Arc<AtomicU32>,
        _folder: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("tables.db");
            let reader = Database::new(&folder::address(&file)).unwrap();
            let table = json!({
                "TableName": "jobs", "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            });
            reader.create_table(serde_json::from_value(table).unwrap()).unwrap();
            let writer = Writer::open(&file, Durability::Process).unwrap();
            let commits = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&commits);
            writer.tables().storage.conn().commit_hook(Some(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                false
            }));
            Self { writer, reader, commits, _folder: folder }
        }

        fn commits(&self) -> u32 {
            self.commits.load(Ordering::Relaxed)
        }

        /// Puts rows that must not be there, all of them or none.
        async fn put(&self, keys: &[&str]) -> dynoxide::Result<()> {
            let puts: Vec<_> = keys
                .iter()
                .map(|key| {
                    let condition = "attribute_not_exists(pk)";
                    json!({"Put": {"TableName": "jobs", "Item": {"pk": {"S": key}}, "ConditionExpression": condition}})
                })
                .collect();
            let request = serde_json::from_value(json!({ "TransactItems": puts })).unwrap();
            let put = dynoxide::actions::transact_write_items::execute;
            self.writer.run(move |on| put(on, request).now_or_never().unwrap().map(drop)).await
        }

        fn has(&self, key: &str) -> bool {
            let request = json!({"TableName": "jobs", "Key": {"pk": {"S": key}}});
            self.reader.get_item(serde_json::from_value(request).unwrap()).unwrap().item.is_some()
        }

        /// Lets those who wait be led by somebody, once all of them wait.
        fn hold(&self) -> Lead {
            self.writer.line().is_led = true;
            Lead::of(&self.writer)
        }
    }

    #[tokio::test]
    async fn writes_that_wait_share_a_commit_and_one_that_fails_takes_nothing_from_them() {
        let bench = Bench::new();
        bench.put(&["old"]).await.unwrap();
        assert_eq!(bench.commits(), 1);
        let lead = bench.hold();
        let waiting = [&["a"][..], &["b", "old"], &["c", "d"], &["old"], &["e"]];
        let (answers, ()) =
            tokio::join!(join_all(waiting.map(|keys| bench.put(keys))), async { lead.make_writes() });
        let kept: Vec<_> = answers.iter().map(Result::is_ok).collect();
        assert_eq!(kept, [true, false, true, false, true]);
        assert_eq!(["a", "b", "c", "d", "e"].map(|key| bench.has(key)), [true, false, true, true, true]);
        assert_eq!(bench.commits(), 2, "five writes share one");
    }

    #[tokio::test]
    async fn writes_that_one_caller_makes_beside_each_other_share_a_commit() {
        let bench = Bench::new();
        let put = |number: u32| {
            let request = json!({"TableName": "jobs", "Item": {"pk": {"S": number.to_string()}}});
            let request = serde_json::from_value(request).unwrap();
            let put = dynoxide::actions::put_item::execute;
            bench.writer.run_among_others(move |on| put(on, request).now_or_never().unwrap().map(drop))
        };
        assert!(join_all((0..5).map(put)).await.iter().all(Result::is_ok));
        assert!(bench.has("0") && bench.has("4"));
        assert_eq!(bench.commits(), 1);
        assert!(!bench.writer.line().is_led);
    }

    #[tokio::test]
    async fn more_than_go_together_are_made_one_after_the_other() {
        let bench = Bench::new();
        let keys: Vec<_> = (0..2 * TOGETHER + 1).map(|number| number.to_string()).collect();
        let lead = bench.hold();
        let puts = join_all(keys.iter().map(|key| async { bench.put(&[key]).await }));
        let (answers, ()) = tokio::join!(puts, async { lead.make_writes() });
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(bench.commits(), 3);
        assert!(!bench.writer.line().is_led);
    }

    #[tokio::test]
    async fn a_write_that_fails_alone_leaves_nothing() {
        let bench = Bench::new();
        bench.put(&["old"]).await.unwrap();
        assert!(bench.put(&["new", "old"]).await.is_err());
        assert!(!bench.has("new"));
        bench.put(&["new"]).await.unwrap();
    }

    #[tokio::test]
    async fn a_batch_is_committed_once() {
        let bench = Bench::new();
        let puts: Vec<_> =
            (0..25).map(|n| json!({"PutRequest": {"Item": {"pk": {"S": n.to_string()}}}})).collect();
        let request = serde_json::from_value(json!({ "RequestItems": { "jobs": puts } })).unwrap();
        let write = dynoxide::actions::batch_write_item::execute;
        bench.writer.run(move |on| write(on, request).now_or_never().unwrap().map(drop)).await.unwrap();
        assert!(bench.has("24"));
        assert_eq!(bench.commits(), 1);
    }

    #[tokio::test]
    async fn a_panic_loses_its_own_commit_and_no_later_one() {
        let bench = Bench::new();
        let lead = bench.hold();
        let panics = bench.writer.run(|_| -> dynoxide::Result<()> { panic!("as told") });
        let led = std::panic::AssertUnwindSafe(async { lead.make_writes() }).catch_unwind();
        let (beside, told, led) = tokio::join!(bench.put(&["beside"]), panics, led);
        assert!(beside.is_err() && told.is_err() && led.is_err());
        bench.put(&["later"]).await.unwrap();
        assert_eq!(["beside", "later"].map(|key| bench.has(key)), [false, true]);
    }

    #[test]
    fn nothing_is_written_while_it_is_held() {
        let bench = Bench::new();
        std::thread::scope(|threads| {
            let held = bench.writer.while_held(|| {
                let write = threads.spawn(|| bench.put(&["late"]).now_or_never().unwrap());
                while !bench.writer.line().is_led && !write.is_finished() {
                    std::thread::yield_now();
                }
                // A write that nothing holds is made long before so many looks are.
                assert!((0..1_000).all(|_| !bench.has("late")), "a write was made");
                Ok(write)
            });
            held.unwrap().join().unwrap().unwrap();
        });
        assert!(bench.has("late"));
    }

    #[tokio::test]
    async fn nobody_waits_for_one_who_was_stopped() {
        let bench = Bench::new();
        let lead = bench.hold();
        let (waiting, ()) = tokio::join!(bench.put(&["waiting"]), async { drop(lead) });
        assert!(waiting.is_err());
        bench.put(&["later"]).await.unwrap();
        assert_eq!(["waiting", "later"].map(|key| bench.has(key)), [false, true]);
    }

    #[tokio::test]
    async fn nobody_is_told_that_a_write_was_made_whose_commit_failed() {
        let bench = Bench::new();
        bench.writer.tables().storage.conn().commit_hook(Some(|| true));
        let lead = bench.hold();
        let (one, other, ()) =
            tokio::join!(bench.put(&["a"]), bench.put(&["b"]), async { lead.make_writes() });
        assert!(one.is_err() && other.is_err());
        assert_eq!(["a", "b"].map(|key| bench.has(key)), [false, false]);
    }
}
