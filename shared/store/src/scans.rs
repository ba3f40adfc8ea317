//! Parts of an emission that was too large for its call: each is a row until it is done, so that no crash loses it.
//!
//! A part is worked on under a lease, and its fencing number rises with each worker: one that was taken over moves no
//! cursor any more. A part that cannot be read is set aside with the reason, where operators find it.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::RunId;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::time::{Window, clamped};

use crate::doc::TermsDoc;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::journal::Entry;
use crate::rows::{Query, Sorted, Update, Updated};
use crate::runs::{Tally, row as run_row, terms_json};
use crate::tables::Table;
use crate::{Create, Page, Result, Store, Write};

const PARTITION: &str = "scan";
const SET_ASIDE: &str = "set_aside";
/// What the ids of the parts of runs begin with: they sort behind those of windows, which begin with a digit.
const RUN: &str = "run|";
/// How long a message of the scan queue may take, in seconds, before a tick sends another.
const TOLD_SECONDS: i64 = 30;
/// Parts on one page: a row may hold a payload.
const PARTS_PER_PAGE: i32 = 200;

/// Work that a call of the emitter left to others.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is known by, the row's sort key. What the work was when it was left is in it, so that no two works share
    /// an id.
    pub id: String,
    /// What is to be done, from the cursor on.
    pub task: Task,
    /// Rises with each worker that takes it: one with a lower number was taken over and moves it no more. 0 before the
    /// first.
    pub fence: u64,
    /// Until when its worker has it, to the millisecond; the epoch before the first.
    pub lease_end: DateTime<Utc>,
    /// When a worker was last told of it, beside those whom ticks tell; to the millisecond.
    pub told_at: DateTime<Utc>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Shards of a window, in the order of their names.
    Shards {
        /// Which launches, and how they are evaluated.
        plan: PartPlan,
        /// Shards up to this name are done; `None`: none is.
        after: Option<String>,
        /// The name of the last of the shards.
        last: String,
    },
    /// The rows of a shard in a window.
    Rows {
        /// Which launches, and how they are evaluated.
        plan: PartPlan,
        /// The partition key in the index.
        partition: String,
        /// The first and the last sort key; `None`: all of the partition.
        range: Option<(String, String)>,
        /// How far the work came.
        cursor: Cursor,
    },
    /// The events of a run that nothing throttles.
    Events {
        /// The run, as its occurrence.
        occurrence: Box<Occurrence>,
        /// When the row of the index may have been read that it follows from: a change of its job after that is looked
        /// up.
        as_of: DateTime<Utc>,
        /// The number of the next event. Those before it may have been sent by a worker that died.
        next: u32,
    },
}

/// How far a shard was read: everything before it is emitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Rows up to this sort key are done; `None`: none is.
    pub after: Option<String>,
    /// A row of which a part is done: its sort key, and up to which of its launches, before jitter. `None`: no row is
    /// half done.
    pub within: Option<(String, DateTime<Utc>)>,
}

/// Which launches of a window a part is about, and how they are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartPlan {
    /// The window that the launches lie in, before jitter.
    pub window: Window,
    /// They may have been emitted before: what is recorded of them is looked up.
    pub repeat: bool,
    /// Launches before it were missed by an outage, and are subject to their jobs' misfire rules.
    pub missed_before: DateTime<Utc>,
    /// When the first of the rows may have been read: a change of a job after that is looked up.
    pub as_of: DateTime<Utc>,
}

/// What came of the attempt to take a part.
#[derive(Debug, Clone, PartialEq)]
pub enum TakePart {
    /// It is ours until its lease ends.
    Taken(Box<Part>),
    /// Somebody else works on it.
    Busy,
    /// There is no such part: it is done, or was set aside.
    Gone,
}

impl Part {
    /// A part that nobody works on yet. Whoever writes it down tells a worker, or leaves that to a later tick.
    pub fn new(task: Task, now: DateTime<Utc>) -> Self {
        Self { id: task.id(), task, fence: 0, lease_end: DateTime::<Utc>::UNIX_EPOCH, told_at: now }
    }

    /// Whether at `now` nobody works on it, and its message seems to be lost: it was sent 30 seconds ago or more.
    pub fn is_forgotten(&self, now: DateTime<Utc>) -> bool {
        self.lease_end <= now && (now - self.told_at).num_seconds() >= TOLD_SECONDS
    }

    fn row(&self) -> Result<Row> {
        let row = Row::new(&key(&self.id))
            .with("fence", number(self.fence))
            .with("lease_end", number(self.lease_end.timestamp_millis()))
            .with("told_at", number(self.told_at.timestamp_millis()))
            .with_some("cursor", self.task.cursor().map(text));
        Ok(match &self.task {
            Task::Shards { plan, last, .. } => {
                plan.write(row).with("kind", text("shards")).with("last", text(&**last))
            }
            Task::Rows { plan, partition, range, .. } => plan
                .write(row)
                .with("kind", text("rows"))
                .with("partition_key", text(&**partition))
                .with_some("first", range.as_ref().map(|(first, _)| text(&**first)))
                .with_some("last", range.as_ref().map(|(_, last)| text(&**last))),
            Task::Events { occurrence, as_of, .. } => row
                .with("kind", text("events"))
                .with("client", text(occurrence.client.as_str()))
                .with("run", text(occurrence.run_id().to_string()))
                .with("terms", text(terms_json(&occurrence.terms)?))
                .with("as_of", number(as_of.timestamp_millis())),
        })
    }
}

impl Task {
    /// The whole work is in the id. A tick that repeats one that died may plan another window, or cut this one elsewhere: what
    /// it leaves then must not be taken for the part that is there.
    fn id(&self) -> String {
        let of_window = |plan: &PartPlan| {
            let (from_s, to_s) = (plan.window.from().timestamp(), plan.window.to().timestamp());
            format!("{from_s:012}|{to_s:012}")
        };
        match self {
            Self::Shards { plan, after, last } => {
                format!("{}|{} to {last}", of_window(plan), after.as_deref().unwrap_or_default())
            }
            Self::Rows { plan, partition, range, .. } => {
                let first = range.as_ref().map_or("", |(first, _)| first);
                format!("{}|{partition}|{first}", of_window(plan))
            }
            Self::Events { occurrence, .. } => {
                let launch_s = occurrence.launch_at.timestamp();
                format!("{RUN}{launch_s:012}|{}|{}", occurrence.client, occurrence.run_id())
            }
        }
    }

    /// How far the work came, as it is stored.
    fn cursor(&self) -> Option<String> {
        match self {
            Self::Shards { after, .. } => after.clone(),
            Self::Rows { cursor, .. } => (*cursor != Cursor::default()).then(|| cursor.encode()),
            Self::Events { next, .. } => (*next > 0).then(|| next.to_string()),
        }
    }
}

impl PartPlan {
    fn write(&self, row: Row) -> Row {
        row.with("from_s", number(self.window.from().timestamp()))
            .with("to_s", number(self.window.to().timestamp()))
            .with_some("repeat", self.repeat.then(|| number(1)))
            .with("missed_s", number(self.missed_before.timestamp()))
            .with("as_of", number(self.as_of.timestamp_millis()))
    }

    fn read(item: Item<'_>) -> Result<Self> {
        let window = Window::new(item.instant_s("from_s")?, item.instant_s("to_s")?);
        Ok(Self {
            window: window.map_err(|e| item.corrupt(e.to_string()))?,
            repeat: item.number_or("repeat", 0)? == 1,
            missed_before: item.instant_s("missed_s")?,
            as_of: item.instant_ms("as_of")?,
        })
    }
}

impl Cursor {
    fn encode(&self) -> String {
        let within = self.within.as_ref().map(|(row, to)| (row, to.timestamp()));
        // A pair of texts and a number has no way to fail.
        serde_json::to_string(&(&self.after, within)).unwrap_or_default()
    }

    fn decode(encoded: &str) -> Option<Self> {
        let (after, within): (Option<String>, Option<(String, i64)>) = serde_json::from_str(encoded).ok()?;
        let within = match within {
            Some((row, to_s)) => Some((row, clamped(DateTime::from_timestamp(to_s, 0)?))),
            None => None,
        };
        Some(Self { after, within })
    }
}

pub(crate) fn key(id: &str) -> Key {
    Key::new(PARTITION, id)
}

fn read(row: &Attributes) -> Result<Part> {
    let item = Item::read(Table::Ticker, row)?;
    let own = |name| item.find_text(name).map(str::to_owned);
    let cursor = item.find_text("cursor").filter(|cursor| !cursor.is_empty());
    let task = match item.text("kind")? {
        "shards" => Task::Shards {
            plan: PartPlan::read(item)?,
            after: cursor.map(str::to_owned),
            last: item.text("last")?.to_owned(),
        },
        "rows" => Task::Rows {
            plan: PartPlan::read(item)?,
            partition: item.text("partition_key")?.to_owned(),
            range: own("first").zip(own("last")),
            cursor: match cursor {
                Some(cursor) => {
                    Cursor::decode(cursor).ok_or_else(|| item.corrupt("'cursor' cannot be read"))?
                }
                None => Cursor::default(),
            },
        },
        "events" => read_events(item, cursor)?,
        other => return Err(item.corrupt(format!("'kind' is {other}, which this version does not know"))),
    };
    Ok(Part {
        id: item.text("sk")?.to_owned(),
        task,
        fence: item.number("fence")?,
        lease_end: item.instant_ms("lease_end")?,
        told_at: item.instant_ms("told_at")?,
    })
}

fn read_events(item: Item<'_>, cursor: Option<&str>) -> Result<Task> {
    let run: RunId = item.id("run")?;
    let terms: TermsDoc =
        serde_json::from_str(item.text("terms")?).map_err(|e| item.corrupt(format!("'terms': {e}")))?;
    let occurrence = Occurrence {
        client: item.id("client")?,
        job: run.job().clone(),
        revision: run.revision(),
        launch_at: run.launch_at(),
        terms: terms.read().map_err(|e| item.corrupt(format!("'terms': {e}")))?,
    };
    let next = cursor.map_or(Ok(0), |next| item.parsed("cursor", next))?;
    Ok(Task::Events { occurrence: Box::new(occurrence), as_of: item.instant_ms("as_of")?, next })
}

impl Store {
    /// Writes a part down. One that is there already stays as it is: `Exists`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn put_part(&self, part: &Part) -> Result<Create> {
        self.put_new(Table::Ticker, part.row()?).await
    }

    /// Materialises a run whose events are sent by workers, with the part that says so: both or neither. Repeating it
    /// changes nothing, also when all of them are sent: `Exists`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_run_in_part(
        &self,
        occurrence: &Occurrence,
        part: &Part,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let run = self.put_new_item_of(Table::Runs, run_row(occurrence, Tally::default(), now)?)?;
        let part = self.put_item_of(Table::Ticker, part.row()?)?;
        Ok(match self.transact(Table::Runs, vec![run, part]).await? {
            Write::Done => self.noting(Create::Done, || Entry::launched(occurrence, now)),
            Write::Refused => Create::Exists,
        })
    }

    /// A page of up to 200 parts that are not done, those of windows first, the oldest first, each by its id; read
    /// consistently. One that cannot be read stands there as its [`StoreError::Corrupt`](crate::StoreError::Corrupt).
    /// The first page when `after` is `None`, else what follows a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn parts(&self, after: Option<String>) -> Result<Page<(String, Result<Part>)>> {
        let limit = Some(PARTS_PER_PAGE);
        let query = Query { after, limit, consistent: true, ..Query::of(Table::Ticker, PARTITION) };
        let page = self.query(query).await?;
        Ok(page.map(|row| (id_of(&row), read(&row))))
    }

    /// From when on launches may not have been found yet because a part of a window is not done; `None` when every part
    /// of a window is done. Read consistently, from the id alone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn oldest_window_part(&self) -> Result<Option<DateTime<Utc>>> {
        self.oldest_part(Sorted::Between("0".to_owned(), "9~".to_owned())).await
    }

    /// The launch of the oldest run whose events are not all sent; `None` when those of all runs are. Read
    /// consistently, from the id alone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn oldest_run_part(&self) -> Result<Option<DateTime<Utc>>> {
        self.oldest_part(Sorted::Prefix(RUN.to_owned())).await
    }

    /// The instant at the beginning of the first id: it is told without reading the rest of a row, which may be unreadable.
    async fn oldest_part(&self, sorted: Sorted) -> Result<Option<DateTime<Utc>>> {
        let query = Query { sorted, limit: Some(1), consistent: true, ..Query::of(Table::Ticker, PARTITION) };
        let page = self.query(query).await?;
        Ok(page.rows.first().and_then(|row| launches_from(&id_of(row))))
    }

    /// Takes a part until `lease_end`, if nobody has it at `now`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read. The caller has the lease then, and sets the part aside.
    pub async fn take_part(
        &self,
        id: &str,
        now: DateTime<Utc>,
        lease_end: DateTime<Utc>,
    ) -> Result<TakePart> {
        let update = Update::new(Table::Ticker, key(id), "SET lease_end = :lease ADD fence :one")
            .when("lease_end <= :now")
            .value(":lease", number(lease_end.timestamp_millis()))
            .value(":now", number(now.timestamp_millis()))
            .value(":one", number(1));
        Ok(match self.update(update).await? {
            Updated::Done(row) => TakePart::Taken(Box::new(read(&row)?)),
            Updated::Refused(Some(_)) => TakePart::Busy,
            Updated::Refused(None) => TakePart::Gone,
        })
    }

    /// Says how far a worker came, and until when it has the part. `Refused` when it was taken over or set aside.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn move_part(&self, part: &Part, lease_end: DateTime<Utc>) -> Result<Write> {
        let changes = "SET #cursor = :cursor, lease_end = :lease, told_at = :told";
        let update = Update::new(Table::Ticker, key(&part.id), changes)
            .when("fence = :fence")
            .value(":told", number(part.told_at.timestamp_millis()))
            .name("#cursor", "cursor")
            .value(":cursor", text(part.task.cursor().unwrap_or_default()))
            .value(":lease", number(lease_end.timestamp_millis()))
            .value(":fence", number(part.fence));
        Ok(self.update(update).await?.into())
    }

    /// Removes a part: all of it is emitted. `Refused` when it was taken over, or is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn finish_part(&self, part: &Part) -> Result<Write> {
        let values = Attributes::from([(":fence".to_owned(), number(part.fence))]);
        self.remove_when(Table::Ticker, &key(&part.id), "fence = :fence", values).await
    }

    /// Takes a part that cannot be read out of the way, and keeps it with the reason and `now`: nobody works on it any
    /// more. Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. The part may then be in both places; the
    /// next call removes it.
    pub async fn set_part_aside(&self, id: &str, reason: &str, now: DateTime<Utc>) -> Result<()> {
        self.move_aside(Table::Ticker, &key(id), SET_ASIDE, (reason, now)).await
    }

    /// The ids of the first 100 parts that were set aside (`PAGE_ROWS`), each with the reason.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. Rows are not read beyond key and reason, so
    /// none is unreadable.
    pub async fn parts_set_aside(&self) -> Result<Vec<(String, String)>> {
        let aside = self.set_aside_in(Table::Ticker, SET_ASIDE).await?;
        Ok(aside.into_iter().map(|row| (row.sort_key, row.reason)).collect())
    }

    /// Ends the leases of all parts. Only for a process that knows that no other one is alive.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. Some leases may be ended then; the call may
    /// be repeated.
    pub async fn break_part_leases(&self) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.parts(after).await?;
            for (id, _) in page.rows {
                let update = Update::new(Table::Ticker, key(&id), "SET lease_end = :zero, told_at = :zero")
                    .when("attribute_exists(pk)")
                    .value(":zero", number(0));
                self.update(update).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}

/// The first launches that a part stands for, by its id alone: the rest of its row may be unreadable. `None` for what is no id of
/// a part.
pub fn launches_from(id: &str) -> Option<DateTime<Utc>> {
    let second = id.strip_prefix(RUN).unwrap_or(id).split('|').next()?.parse().ok()?;
    DateTime::from_timestamp(second, 0).map(clamped)
}

fn id_of(row: &Attributes) -> String {
    Item::new(Table::Ticker, row).find_text("sk").unwrap_or_default().to_owned()
}
