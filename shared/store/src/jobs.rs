//! Jobs, by client. A job and its rows in the time index are written in one transaction, so neither is ever half there.
//!
//! A deleted job leaves a tombstone for a while: its revision goes on if the id is used again, so that no occurrence of
//! the new job has the identity of one of the old.

use std::collections::{HashMap, HashSet};
use tidegate_domain::time::{days, shifted};

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::change::{Change, Kind, fields_that_differ};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{ExpectedSeconds, Job, Trigger};
use tidegate_domain::limits::{AT_ROW_DAYS, TRANSACTION_ROWS, ZONE_SHARDS};
use tidegate_domain::shard::shard_of;

use crate::changes::{ChangeRow, Changed, Told, change_row};
use crate::doc::{RulesDoc, TermsDoc, TriggerDoc, read_tags, tags_attribute};
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::launch::{OutboxEntry, keys_of, outbox_row, owed_key_of, remains_of, rows_of};
use crate::rows::{Query, Sorted, Update};
use crate::tables::{EXPIRES_AT, Table};
use crate::{Create, Page, PageOf, Result, Store, StoreError, Write};

/// What lies under a job's id.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and nearly always the large one")]
pub enum JobRow {
    /// A job that was not deleted.
    Live(Job),
    /// The tombstone of one: its id is free, and revisions go on from here. Kept twice as long as its history.
    Deleted {
        /// The revision that its deletion was.
        revision: u32,
        /// When it was deleted, to the millisecond.
        changed_at: DateTime<Utc>,
    },
}

impl JobRow {
    /// The revision of the row, from 1: a job's own, or that of its deletion.
    pub fn revision(&self) -> u32 {
        match self {
            Self::Live(job) => job.revision,
            Self::Deleted { revision, .. } => *revision,
        }
    }

    /// When that was written, to the millisecond.
    pub fn changed_at(&self) -> DateTime<Utc> {
        match self {
            Self::Live(job) => job.changed_at,
            Self::Deleted { changed_at, .. } => *changed_at,
        }
    }
}

/// The attribute with the trigger: what has none is a tombstone.
pub(crate) const WHEN: &str = "when";

pub(crate) fn key(client: &ClientId, job: &JobId) -> Key {
    Key::new(client.as_str(), job.as_str())
}

fn json<T: serde::Serialize>(doc: &T) -> Result<String> {
    serde_json::to_string(doc).map_err(|e| StoreError::Corrupt {
        table: Table::Jobs,
        key: String::new(),
        reason: e.to_string(),
    })
}

fn row(job: &Job) -> Result<Row> {
    let rules = RulesDoc::from(&job.rules);
    let rules = (rules != RulesDoc::default()).then(|| json(&rules).map(text)).transpose()?;
    let places: Vec<String> = job.children.iter().map(ToString::to_string).collect();
    Ok(Row::new(&key(&job.client, &job.id))
        .with("rev", number(job.revision))
        .with(WHEN, text(json(&TriggerDoc::from(&job.trigger))?))
        .with("terms", text(json(&TermsDoc::from(&job.terms))?))
        .with_some("rules", rules)
        .with_some("paused", job.paused.then(|| number(1)))
        .with_some("paused_because", job.paused_because.as_deref().map(text))
        .with_some("tags", tags_attribute(&job.tags))
        .with_some("expect", job.expect.map(|within| number(within.get())))
        .with_some("children", (!places.is_empty()).then(|| text(places.join(","))))
        .with("since", number(job.emit_from.timestamp()))
        .with("changed_at", number(job.changed_at.timestamp_millis()))
        .with_some(EXPIRES_AT, expires_at(job).map(|at| number(at.timestamp()))))
}

/// When a job is over for good: long after the last of its instants. Others never are.
fn expires_at(job: &Job) -> Option<DateTime<Utc>> {
    let Trigger::At(instants) = &job.trigger else { return None };
    let last = instants.iter().max()?;
    Some(shifted(last.max(job.changed_at), days(AT_ROW_DAYS)))
}

pub(crate) fn read(row: &Attributes) -> Result<JobRow> {
    let item = Item::read(Table::Jobs, row)?;
    let revision = item.number("rev")?;
    let Some(when) = item.find_text(WHEN) else {
        let changed_at = item.find_instant_ms("changed_at")?.unwrap_or_default();
        return Ok(JobRow::Deleted { revision, changed_at });
    };
    let trigger: TriggerDoc = serde_json::from_str(when).map_err(|e| item.corrupt(e.to_string()))?;
    let terms: TermsDoc =
        serde_json::from_str(item.text("terms")?).map_err(|e| item.corrupt(e.to_string()))?;
    let rules: RulesDoc = match item.find_text("rules") {
        None => RulesDoc::default(),
        Some(rules) => serde_json::from_str(rules).map_err(|e| item.corrupt(e.to_string()))?,
    };
    let places = item.find_text("children").into_iter().flat_map(|places| places.split(','));
    Ok(JobRow::Live(Job {
        client: item.id("pk")?,
        id: item.id("sk")?,
        revision,
        trigger: trigger.read().map_err(|e| item.corrupt(format!("'when': {e}")))?,
        terms: terms.read().map_err(|e| item.corrupt(format!("'terms': {e}")))?,
        rules: rules.read().map_err(|e| item.corrupt(format!("'rules': {e}")))?,
        paused: item.number_or("paused", 0)? == 1,
        paused_because: item.find_text("paused_because").map(str::to_owned),
        tags: read_tags(item)?,
        expect: read_expect(item)?,
        children: places.map(|place| item.parsed("children", place)).collect::<Result<_>>()?,
        emit_from: item.instant_s("since")?,
        changed_at: item.instant_ms("changed_at")?,
    }))
}

fn read_expect(item: Item<'_>) -> Result<Option<ExpectedSeconds>> {
    let within = item.find_number::<u32>("expect")?;
    let within = within.map(|within| ExpectedSeconds::new(within.into())).transpose();
    within.map_err(|e| item.corrupt(format!("'expect': {e}")))
}

fn tombstone(key: &Key, revision: u32, deleted_at: DateTime<Utc>) -> Row {
    Row::new(key).with("rev", number(revision)).with("changed_at", number(deleted_at.timestamp_millis()))
}

/// What is recorded of a change of a job, before which something was `seen`; `new`: what it says then, unless it is gone.
pub(crate) fn change_of_job(
    (client, id, revision): (&ClientId, &JobId, u32),
    seen: Option<&JobRow>,
    new: Option<&Job>,
    change: &Change,
) -> Result<Row> {
    let before = match seen {
        Some(JobRow::Live(old)) => Some(row(old)?),
        Some(JobRow::Deleted { revision, changed_at }) => {
            Some(tombstone(&key(client, id), *revision, *changed_at))
        }
        None => None,
    };
    let fields = match (seen, new) {
        (Some(JobRow::Live(old)), Some(new)) => fields_that_differ(old, new),
        _ => Vec::new(),
    };
    let told = Told { before_revision: seen.map(JobRow::revision), fields, before, ..Told::default() };
    let changed = Changed { client, kind: Kind::Job, id: id.as_str(), revision: Some(revision) };
    Ok(change_row(changed, change, told))
}

impl ChangeRow {
    /// What lay under the job's id before the change; `None`: nothing, or it is no change of a job.
    ///
    /// # Errors
    /// `StoreError::Corrupt` when it cannot be read.
    pub fn job_before(&self) -> Result<Option<JobRow>> {
        self.before.as_ref().filter(|_| self.kind == Kind::Job.as_str()).map(read).transpose()
    }
}

impl Store {
    /// What is recorded of the change that made a revision of a job, or that deleted it; `None` when nothing was, or is kept.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn job_change(&self, client: &ClientId, id: &JobId, row: &JobRow) -> Result<Option<ChangeRow>> {
        let changed = Changed { client, kind: Kind::Job, id: id.as_str(), revision: Some(row.revision()) };
        self.change_of(changed, row.revision(), row.changed_at()).await
    }

    /// What lies under a job's id, read consistently; `None` when there was never a job, or its tombstone has expired.
    /// A one-time job with a generated id has no such row: [`Store::one_time`] finds it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn job(&self, client: &ClientId, id: &JobId) -> Result<Option<JobRow>> {
        self.get(Table::Jobs, &key(client, id), true).await?.as_ref().map(read).transpose()
    }

    /// Those jobs of a client that are there of some ids, all different, read consistently. One that cannot be read is not among them:
    /// whoever writes it is told.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn jobs_of(&self, client: &ClientId, ids: &[&JobId]) -> Result<HashMap<JobId, Job>> {
        let rows: Vec<Attributes> = match ids {
            [] => Vec::new(),
            [one] => self.get(Table::Jobs, &key(client, one), true).await?.into_iter().collect(),
            many => {
                let keys: Vec<Key> = many.iter().map(|id| key(client, id)).collect();
                let keys: Vec<&Key> = keys.iter().collect();
                self.get_all(Table::Jobs, &keys, true).await?.into_values().collect()
            }
        };
        let jobs = rows.iter().filter_map(|row| match read(row) {
            Ok(JobRow::Live(job)) => Some((job.id.clone(), job)),
            _ => None,
        });
        Ok(jobs.collect())
    }

    /// A page of those of a client's jobs whose ids begin with `prefix`, by id. No other job is read. Tombstones are left out, so a page may be short.
    /// One-time jobs with a generated id are not among them: they are found by it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn jobs(&self, client: &ClientId, prefix: &str, page: impl Into<PageOf>) -> Result<Page<Job>> {
        let sorted = match prefix {
            "" => Sorted::All,
            prefix => Sorted::Prefix(prefix.to_owned()),
        };
        let query = Query { sorted, ..Query::of(Table::Jobs, client.as_str()) }.page(page.into());
        let Page { rows, next, unreadable } = self.query(query).await?.read(Table::Jobs, read);
        let live = |row| match row {
            JobRow::Live(job) => Some(job),
            JobRow::Deleted { .. } => None,
        };
        Ok(Page { rows: rows.into_iter().filter_map(live).collect(), next, unreadable })
    }

    /// Stores a new job for one instant under an id of its client's choice, with two plain writes: the index row first,
    /// then the job, which must not exist. When it does, the index row is removed again and the answer is `Exists`.
    ///
    /// A crash between the two leaves a row that may fire although no call was answered: as after any call that was not
    /// answered, the client cannot know, and asks again. It does not fire as a former job of the same id: where that
    /// launched, a void row is left, and the job must be written over it. Whoever knows of a job under the id, or of a
    /// former one, does not come here.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer; the job may then be stored or not.
    /// `StoreError::Corrupt` when there is a job under the id that cannot be read.
    pub async fn create_keyed_at(&self, job: &Job) -> Result<Create> {
        for index_row in rows_of(job, self.spread)? {
            if self.put_new(Table::Launch, index_row).await? == Create::Exists {
                return Ok(Create::Exists);
            }
        }
        let created = self.put_new(Table::Jobs, row(job)?).await?;
        if created == Create::Exists {
            if self.job(&job.client, &job.id).await? == Some(JobRow::Live(job.clone())) {
                // Our own write: its reply was lost, and the client library repeated it.
                return Ok(Create::Done);
            }
            for key in keys_of(job, self.spread) {
                let values = Attributes::from([(":rev".to_owned(), number(job.revision))]);
                self.remove_when(Table::Launch, &key, "rev = :rev", values).await?;
            }
        }
        Ok(created)
    }

    /// Writes a job over what was `seen` under its id, with its rows in the time index and the launches that are `owed` of it: everything
    /// or nothing. With them what is recorded of the `change`, whose instant is that of the job; `None`: nothing is. Refused when the row is no longer as seen. Of a job and of its rows that go on, attributes that this
    /// version does not know stay; over a tombstone, the job is new.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn write_job(
        &self,
        job: &Job,
        seen: Option<&JobRow>,
        owed: &[OutboxEntry],
        change: Option<&Change>,
    ) -> Result<Write> {
        let items = self.writes_of_job(job, seen, owed, change).await?;
        self.transact(Table::Jobs, items).await
    }

    /// All that [`Self::write_job`] writes together.
    pub(crate) async fn writes_of_job(
        &self,
        job: &Job,
        seen: Option<&JobRow>,
        owed: &[OutboxEntry],
        change: Option<&Change>,
    ) -> Result<Vec<TransactWriteItem>> {
        let new_keys = keys_of(job, self.spread);
        let kept: HashSet<(&str, &str)> = new_keys.iter().map(|k| (&*k.pk, &*k.sk)).collect();
        let rows = rows_of(job, self.spread)?;
        let mut items = Vec::with_capacity(rows.len().saturating_add(1));
        if let Some(JobRow::Live(old)) = seen {
            let over = Update::rewrite(Table::Jobs, row(job)?).when("rev = :seen");
            items.push(self.update_item_of(over.value(":seen", number(old.revision)))?);
            for row in rows {
                items.push(self.update_item_of(Update::rewrite(Table::Launch, row))?);
            }
        } else {
            items.push(self.guarded_put(Table::Jobs, row(job)?, seen.map(JobRow::revision))?);
            for row in rows {
                items.push(self.put_item_of(Table::Launch, row)?);
            }
        }
        if let Some(change) = change {
            let of = (&job.client, &job.id, job.revision);
            items.push(self.put_item_of(Table::Jobs, change_of_job(of, seen, Some(job), change)?)?);
        }
        if let Some(JobRow::Live(old)) = seen {
            let gone =
                remains_of(old, self.spread).into_iter().filter(|(k, _)| !kept.contains(&(&*k.pk, &*k.sk)));
            for (key, void) in gone {
                items.push(self.end_item_of(&key, void)?);
            }
        }
        for outbox in owed {
            items.push(self.put_item_of(Table::Launch, outbox_row(outbox)?)?);
        }
        let mut zone = self.zone_items(job, seen)?;
        if items.len().saturating_add(zone.len()) > TRANSACTION_ROWS
            && let Some(key) = zone_key_of(job)
        {
            // One row too many. Whoever is listed in a zone without a job there only keeps the zone in use.
            self.put(Table::Launch, Row::new(&key)).await?;
            zone = zone.into_iter().skip(1).collect();
        }
        items.extend(zone);
        Ok(items)
    }

    /// A job's place in the list of its zone, and then the end of the one that it had in another.
    fn zone_items(&self, job: &Job, seen: Option<&JobRow>) -> Result<Vec<TransactWriteItem>> {
        let old = match seen {
            Some(JobRow::Live(old)) => zone_key_of(old),
            _ => None,
        };
        let new = zone_key_of(job);
        let same = |a: &Option<Key>, b: &Option<Key>| match (a, b) {
            (Some(a), Some(b)) => a.pk == b.pk && a.sk == b.sk,
            _ => false,
        };
        if same(&old, &new) {
            return Ok(Vec::new());
        }
        let put = new.map(|key| self.put_item_of(Table::Launch, Row::new(&key)));
        let delete = old.map(|key| self.delete_item_of(Table::Launch, &key));
        put.into_iter().chain(delete).collect()
    }

    /// Writes jobs with their rows in the time index and their zones' lists, 25 rows to a call (what `BatchWriteItem`
    /// takes), whatever is there.
    ///
    /// For a deployment that is empty and that nobody else uses: nothing is checked, and nothing is emitted.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or leaves some rows unwritten in each of
    /// `WRITE_ROUNDS` rounds. Some rows may be written then; the call may be repeated.
    pub async fn import_jobs(&self, jobs: &[Job]) -> Result<()> {
        let mut rows = Vec::new();
        for job in jobs {
            rows.push((Table::Jobs, row(job)?));
            let index =
                rows_of(job, self.spread)?.into_iter().chain(zone_key_of(job).map(|key| Row::new(&key)));
            rows.extend(index.map(|row| (Table::Launch, row)));
        }
        self.put_all(rows).await
    }

    /// Whether any job has children in a zone, by the list of its jobs, read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn is_zone_used(&self, zone: Tz) -> Result<bool> {
        for shard in 0..ZONE_SHARDS {
            let query = Query {
                limit: Some(1),
                consistent: true,
                ..Query::of(Table::Launch, zone_partition(zone, shard))
            };
            if !self.query(query).await?.rows.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces a job by its tombstone, as of the instant of the `change`, removes its rows from the time index and the outbox, and
    /// records the change: everything or nothing. `Refused` when the job is no longer at `job.revision`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn delete_job(&self, job: &Job, change: &Change) -> Result<Write> {
        let revision = job.revision.saturating_add(1);
        let kept = days(2 * i64::from(job.terms.history_days.at_least_default().get()));
        let tombstone =
            tombstone(&key(&job.client, &job.id), revision, change.at).expiring(shifted(change.at, kept));
        let of = (&job.client, &job.id, revision);
        let recorded = change_of_job(of, Some(&JobRow::Live(job.clone())), None, change)?;
        let mut items = vec![
            self.guarded_put(Table::Jobs, tombstone, Some(job.revision))?,
            self.put_item_of(Table::Jobs, recorded)?,
        ];
        for (key, void) in remains_of(job, self.spread) {
            items.push(self.end_item_of(&key, void)?);
        }
        items.push(self.delete_item_of(Table::Launch, &owed_key_of(job))?);
        if let Some(key) = zone_key_of(job) {
            items.push(self.delete_item_of(Table::Launch, &key)?);
        }
        self.transact(Table::Jobs, items).await
    }

    /// Removes a row of the index, or makes it void.
    fn end_item_of(&self, key: &Key, void: Option<Row>) -> Result<TransactWriteItem> {
        match void {
            Some(void) => self.put_item_of(Table::Launch, void),
            None => self.delete_item_of(Table::Launch, key),
        }
    }
}

fn zone_partition(zone: Tz, shard: u32) -> String {
    format!("ZONE|{}|{shard}", zone.name())
}

/// A job's place in the list of its zone; `None` when it has no children.
pub(crate) fn zone_key_of(job: &Job) -> Option<Key> {
    let name = format!("{}|{}", job.client, job.id);
    let shard = shard_of(&name, ZONE_SHARDS);
    (!job.children.is_empty()).then(|| Key::new(zone_partition(job.trigger.zone(), shard), name))
}
