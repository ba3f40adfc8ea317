//! The time index: children by zone, LaunchExpression and shard; instants by minute and shard; the outbox.
//!
//! A row says everything that the emitter needs, so emission reads no job. Invariant: a job that launches at an instant
//! has a row under a key that is eligible for that instant (the index over-selects at most).

mod row;
mod shard;

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{Job, Terms, Trigger};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::rules::Rules;
use tidegate_domain::time::{AtMinute, Cadence, ChildKey, Window, clamped};

use crate::doc::read_tags;
use crate::item::{Attributes, Item, Key, number};
use crate::rows::Query;
use crate::tables::Table;
use crate::{Create, Page, Result, Spread, Store, Write};

use row::Void;
pub(crate) use row::{keys_of, outbox_row, remains_of, rows_of};
pub(crate) use shard::place_in_minute;
pub use shard::{Shard, at_shard};

/// Writes under way at once.
const WRITES_AT_ONCE: usize = 16;

/// A row of the time index, as the emitter reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// The client whose job it is.
    pub client: ClientId,
    /// The job's name within the client.
    pub job: JobId,
    /// The revision of the job that wrote the row.
    pub revision: u32,
    /// When it launches.
    pub cadence: Cadence,
    /// Which of these launches the row stands for.
    pub part: Part,
    /// What the job says about its launches beside that.
    pub rules: Rules,
    /// Its launches are recorded as not made.
    pub paused: bool,
    /// Launches before it are not the emitter's: the master emitted them. In whole seconds.
    pub emit_from: DateTime<Utc>,
    /// What it delivers; a large payload is left in the job.
    pub terms: Terms,
}

/// A row of the time index with its sort key, which names its job whatever else of it can be read.
#[derive(Debug)]
pub struct IndexRow {
    /// Its sort key, `<minute>|<client>|<job>`: its place in the partition.
    pub sort_key: String,
    /// What it says; a [`StoreError::Corrupt`](crate::StoreError::Corrupt) when it cannot be read.
    pub child: Result<Child>,
}

/// Names a row of the index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Its partition key.
    pub partition: Arc<str>,
    /// Its sort key: its place in the partition.
    pub sort_key: Arc<str>,
}

impl IndexRow {
    /// Whose job it belongs to, by its key; `None` when the key does not end in a client and a job.
    pub fn owner(&self) -> Option<(ClientId, JobId)> {
        owner_of(&self.sort_key)
    }
}

/// Whose job a row of the index, or of the outbox, belongs to, by its sort key; `None` when that does not end in a
/// client and a job.
///
/// ```
/// use tidegate_store::launch::owner_of;
///
/// let (client, job) = owner_of("15|acme|nightly").unwrap();
/// assert_eq!((client.as_str(), job.as_str()), ("acme", "nightly"));
/// assert_eq!(owner_of("15"), None);
/// ```
pub fn owner_of(sort_key: &str) -> Option<(ClientId, JobId)> {
    let mut name = sort_key.rsplit('|');
    let (job, client) = (name.next()?, name.next()?);
    Some((client.parse().ok()?, job.parse().ok()?))
}

/// Which launches of its job a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of them: of a row of the outbox, and of a job whose rows are not looked at one by one.
    All,
    /// Those at the local times of a child.
    Key(ChildKey),
    /// Those in a minute of UTC: of a job for instants.
    Minute(AtMinute),
    /// One that somebody triggered, beside what the job's trigger says: of a row of the outbox.
    Triggered,
    /// Some that are made after all, of a revision for which that was asked: of a row of the outbox.
    Backfilled,
}

/// Launches that the master must emit itself: those between the arrival of a job and its `emit_from`. The row stays
/// until they are emitted, so that the emitter can publish what a dead master left.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxEntry {
    /// The job's part of it: all of its launches.
    pub child: Child,
    /// Which launches: from the arrival of the job up to its `emit_from`.
    pub window: Window,
    /// When the row was written, to the millisecond. It is kept for `HISTORY_DAYS` from then on.
    pub written_at: DateTime<Utc>,
}

impl Child {
    /// What a job's rows say, for all of its launches.
    pub fn of(job: &Job) -> Self {
        Self {
            client: job.client.clone(),
            job: job.id.clone(),
            revision: job.revision,
            cadence: job.trigger.cadence(),
            part: Part::All,
            rules: job.rules.clone(),
            paused: job.paused,
            emit_from: job.emit_from,
            terms: job.terms.to_travel(),
        }
    }

    /// What launches at all instants at which its job may, whatever the calendars say that its rules name.
    pub fn candidates(&self) -> Cow<'_, Cadence> {
        self.cadence.candidates(self.rules.on_closed_day)
    }

    /// Its occurrence that is due at an instant.
    pub fn occurrence(&self, launch_at: DateTime<Utc>) -> Occurrence {
        Occurrence {
            client: self.client.clone(),
            job: self.job.clone(),
            revision: self.revision,
            launch_at,
            terms: self.terms.clone(),
        }
    }
}

/// The one-time job that a row is the whole of; `None` where the row says that no job may be there.
pub(crate) fn job_of(row: &Attributes) -> Result<Option<Job>> {
    if row::is_void(row) {
        return Ok(None);
    }
    let child = row::read_indexed(row)?;
    let Cadence::At(instants) = child.cadence else { return Ok(None) };
    Ok(Some(Job {
        client: child.client,
        id: child.job,
        revision: child.revision,
        trigger: Trigger::At(instants),
        rules: child.rules,
        paused: child.paused,
        paused_because: Item::new(Table::Launch, row).find_text("paused_because").map(str::to_owned),
        terms: child.terms,
        tags: read_tags(Item::new(Table::Launch, row))?,
        // One that is watched has a row of its own.
        expect: None,
        children: Vec::new(),
        emit_from: child.emit_from,
        changed_at: Item::new(Table::Launch, row).instant_ms("changed_at")?,
    }))
}

impl Store {
    /// A page of the rows of a shard; the first when `after` is `None`, else what follows a page whose `next` it was.
    /// Read eventually: a row is older than its `emit_from` by more than any replica lags.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: its
    /// [`IndexRow::child`] says why.
    pub async fn children(&self, shard: &Shard, after: Option<String>) -> Result<Page<IndexRow>> {
        self.children_between(shard.partition(), shard.range(), after).await
    }

    /// The same as [`Store::children`], by partition key and by the first and last sort key; `None`: all of the
    /// partition.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: its
    /// [`IndexRow::child`] says why.
    pub async fn children_between(
        &self,
        partition: String,
        range: Option<(String, String)>,
        after: Option<String>,
    ) -> Result<Page<IndexRow>> {
        let mut page = self.query(shard::query(partition, range, after)).await?;
        page.rows.retain(|row| !row::is_void(row));
        Ok(page.map(|row| IndexRow {
            sort_key: Item::new(Table::Launch, &row).find_text("sk").unwrap_or_default().to_owned(),
            child: row::read_indexed(&row),
        }))
    }

    /// Stores a one-time job whose id says where it lies: one row is the whole job. `Exists` when the id is taken, or
    /// was made void by [`Store::were_stored`].
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn create_one_time(&self, job: &Job) -> Result<Create> {
        let mut created = Create::Done;
        for row in rows_of(job, self.spread)? {
            created = self.put_new(Table::Launch, row).await?;
        }
        Ok(created)
    }

    /// Which one-time jobs were stored that were to be, though they may be gone again; by their ids, all different, in
    /// their order. The id of one that was not is made void: whoever was to store it cannot any more. `false` for an id
    /// that names no place.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. Some ids may be void then; the call may be
    /// repeated.
    pub async fn were_stored(&self, client: &ClientId, ids: &[&JobId]) -> Result<Vec<bool>> {
        let places: Vec<_> = ids.iter().map(|id| one_time_key(client, id, self.spread)).collect();
        let keys: Vec<&Key> = places.iter().flatten().map(|(key, _)| key).collect();
        // What any replica has is stored.
        let rows = self.get_all(Table::Launch, &keys, false).await?;
        let looks = places.iter().map(|place| async {
            let Some((key, minute)) = place else { return Ok(false) };
            match rows.get(key) {
                Some(row) => Ok(row::was_stored(row)),
                None => self.was_stored_after_all(key, *minute).await,
            }
        });
        let looks: Vec<_> = looks.collect();
        stream::iter(looks).buffered(WRITES_AT_ONCE).try_collect().await
    }

    async fn was_stored_after_all(&self, key: &Key, minute: DateTime<Utc>) -> Result<bool> {
        match self.put_new(Table::Launch, row::void_row(key, minute, Void::NeverStored)).await? {
            Create::Done => Ok(false),
            Create::Exists => {
                Ok(self.get(Table::Launch, key, true).await?.is_none_or(|row| row::was_stored(&row)))
            }
        }
    }

    /// Stores one-time jobs whose ids are new and say where they lie, 25 rows to a call (what `BatchWriteItem` takes).
    /// Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or leaves some rows unwritten in each of
    /// `WRITE_ROUNDS` rounds. Some rows may be written then; the call may be repeated.
    pub async fn create_one_times(&self, jobs: &[Job]) -> Result<()> {
        let mut rows = Vec::with_capacity(jobs.len());
        for job in jobs {
            rows.extend(rows_of(job, self.spread)?.into_iter().map(|row| (Table::Launch, row)));
        }
        self.put_all(rows).await
    }

    /// A one-time job, by the place that its id names; `None` when the id names none, or no job lies there. Its trigger
    /// is the instant. Read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn one_time(&self, client: &ClientId, id: &JobId) -> Result<Option<Job>> {
        let Some((key, _)) = one_time_key(client, id, self.spread) else { return Ok(None) };
        match self.get(Table::Launch, &key, true).await? {
            Some(row) => job_of(&row),
            None => Ok(None),
        }
    }

    /// Writes the outbox row of a new job that is not written in a transaction. Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn put_outbox(&self, outbox: &OutboxEntry) -> Result<()> {
        self.put(Table::Launch, outbox_row(outbox)?).await
    }

    /// A page of the outbox, of one shard (0 to `OUTBOX_SHARDS`): as many rows as DynamoDB gives in one answer (1 MB).
    /// The first when `after` is `None`, else what follows a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn outbox(&self, shard: u32, after: Option<String>) -> Result<Page<OutboxEntry>> {
        let query = Query { after, ..Query::of(Table::Launch, format!("OUTBOX|{shard}")) };
        Ok(self.query(query).await?.read(Table::Launch, row::read_owed))
    }

    /// The outbox row of a job, read consistently; `None` when the master owes no launch of it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn outbox_of(&self, client: &ClientId, job: &JobId) -> Result<Option<OutboxEntry>> {
        let row = self.get(Table::Launch, &shard::outbox_key(client, job), true).await?;
        row.as_ref().map(row::read_owed).transpose()
    }

    /// Removes the outbox row of a revision of a job, or of its triggered launch: what it tells of is emitted. `Refused` when the row is of another
    /// revision, or gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn ack_outbox(&self, child: &Child) -> Result<Write> {
        let values = Attributes::from([(":rev".to_owned(), number(child.revision))]);
        let key = shard::owed_key(child);
        self.remove_when(Table::Launch, &key, "rev = :rev", values).await
    }
}

/// The key of a one-time job whose id says where it lies, and the minute that it is of.
fn one_time_key(client: &ClientId, id: &JobId, spread: Spread) -> Option<(Key, DateTime<Utc>)> {
    let minute = DateTime::from_timestamp(id.one_time_shard()?.minute.saturating_mul(60), 0)?;
    Some((shard::at_key(client, id, minute, spread), clamped(minute)))
}

pub(crate) fn owed_key_of(job: &Job) -> Key {
    shard::outbox_key(&job.client, &job.id)
}
