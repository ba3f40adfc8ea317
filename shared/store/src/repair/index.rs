//! The tables `jobs` and `launch`: jobs against their rows in the time index.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::time::{ChildKey, LaunchExpression, parse_zone};

use crate::changes::is_change;
use crate::item::{Attributes, Item, Key, Row, number};
use crate::jobs::{self, JobRow, zone_key_of};
use crate::launch::{OutboxEntry, RowKey, keys_of, outbox_row, owed_key_of, owner_of, rows_of};
use crate::tables::{PARTITION_KEY, SORT_KEY, Table};
use crate::{Create, Page, Result, Store, Write};

/// What a row of the time index is.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexKind {
    /// A child, with what the shape of the index must know so that scans read it: zone, LaunchExpression and shard.
    Child(Tz, LaunchExpression, u32),
    /// The instants of a minute.
    Minute,
    /// Launches that the master must emit.
    Outbox,
    /// The place of a job in the list of its zone.
    Zone,
    /// Any other: a void row.
    Other,
}

/// A row of the time index, as far as it is held against its job.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedRow {
    /// What it is.
    pub kind: IndexKind,
    /// Where it lies.
    pub place: RowKey,
    /// The client whose job it is of.
    pub client: ClientId,
    /// The job.
    pub job: JobId,
    /// The revision of the job that wrote it; 0 where it does not say.
    pub revision: u32,
    /// Launches before it are the master's; `None` where it does not say.
    pub emit_from: Option<DateTime<Utc>>,
}

fn place(key: &Key) -> RowKey {
    RowKey { partition: Arc::from(&*key.pk), sort_key: Arc::from(&*key.sk) }
}

fn key_of(place: &RowKey) -> Key {
    Key::new(&*place.partition, &*place.sort_key)
}

/// The minute of UTC that a key is of; `None` where it is of none.
fn minute_of(key: &Key) -> Option<DateTime<Utc>> {
    let ten = key.pk.strip_prefix("AT|")?.split('|').next()?;
    let digit = key.sk.split('|').next()?;
    let minute = NaiveDateTime::parse_from_str(&format!("{ten}{digit}"), "%Y-%m-%dT%H:%M");
    Some(minute.ok()?.and_utc())
}

fn kind_of(item: Item<'_>) -> Result<IndexKind> {
    let (pk, sk) = (item.text(PARTITION_KEY)?, item.text(SORT_KEY)?);
    let parts: Vec<&str> = pk.split('|').collect();
    Ok(match parts.as_slice() {
        ["AT", ..] if item.find_text("void").is_some() => IndexKind::Other,
        ["AT", ..] => IndexKind::Minute,
        // What was triggered is owed whatever its job says now.
        ["OUTBOX", ..] if sk.split('|').count() > 2 => IndexKind::Other,
        ["OUTBOX", ..] => IndexKind::Outbox,
        ["ZONE", ..] => IndexKind::Zone,
        [zone, expression, shard] => {
            let zone = parse_zone(zone).map_err(|e| item.corrupt(e.to_string()))?;
            let minute = sk.split('|').next().unwrap_or_default();
            let key = ChildKey::parse(expression, minute).map_err(|e| item.corrupt(e.to_string()))?;
            IndexKind::Child(zone, key.launch_expression(), item.parsed(PARTITION_KEY, shard)?)
        }
        _ => IndexKind::Other,
    })
}

fn read(row: &Attributes) -> Result<IndexedRow> {
    let item = Item::new(Table::Launch, row);
    let sk = item.text(SORT_KEY)?;
    let (client, job) = owner_of(sk).ok_or_else(|| item.corrupt("'sk' names no job"))?;
    Ok(IndexedRow {
        kind: kind_of(item)?,
        place: place(&Key::new(item.text(PARTITION_KEY)?, sk)),
        client,
        job,
        revision: item.number_or("rev", 0)?,
        emit_from: row.contains_key("since").then(|| item.instant_s("since")).transpose()?,
    })
}

impl Store {
    /// A page of all jobs that were not deleted, but for one-time jobs with a generated id, which are rows of the time
    /// index.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn all_of_jobs(&self, after: Option<String>) -> Result<Page<Job>> {
        let mut page = self.scan(Table::Jobs, after).await?;
        page.rows.retain(|row| !is_change(row));
        let page = page.read(Table::Jobs, jobs::read);
        let Page { rows, next, unreadable } = page;
        let live = |row| match row {
            JobRow::Live(job) => Some(job),
            JobRow::Deleted { .. } => None,
        };
        Ok(Page { rows: rows.into_iter().filter_map(live).collect(), next, unreadable })
    }

    /// A page of the whole time index.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn all_of_index(&self, after: Option<String>) -> Result<Page<IndexedRow>> {
        Ok(self.scan(Table::Launch, after).await?.read(Table::Launch, read))
    }

    /// Which rows of each of some jobs are missing in the time index, or are of another revision; of instants, those of
    /// minutes from `from` on.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn index_gaps(&self, jobs: &[Job], from: DateTime<Utc>) -> Result<Vec<Vec<RowKey>>> {
        let keys: Vec<Vec<Key>> = jobs.iter().map(|job| self.due_keys(job, from)).collect();
        let all: Vec<&Key> = keys.iter().flatten().collect();
        let found = self.get_all(Table::Launch, &all, false).await?;
        let is_there = |job: &Job, key: &Key| {
            let row = found.get(key).map(|row| Item::new(Table::Launch, row));
            row.is_some_and(|row| {
                key.pk.starts_with("ZONE|")
                    || (row.find_text("void").is_none()
                        && row.find_number("rev").ok().flatten() == Some(job.revision))
            })
        };
        let gaps = jobs
            .iter()
            .zip(&keys)
            .map(|(job, keys)| keys.iter().filter(|key| !is_there(job, key)).map(place).collect::<Vec<_>>());
        Ok(gaps.collect())
    }

    fn due_keys(&self, job: &Job, from: DateTime<Utc>) -> Vec<Key> {
        let own = keys_of(job, self.spread).into_iter().chain(zone_key_of(job));
        own.filter(|key| minute_of(key).is_none_or(|minute| minute >= from)).collect()
    }

    /// Whether a row of the time index is one that a job has.
    pub fn is_place_of(&self, job: &Job, row: &RowKey) -> bool {
        let key = key_of(row);
        let own = keys_of(job, self.spread).into_iter().chain(zone_key_of(job)).chain([owed_key_of(job)]);
        own.into_iter().any(|own| own == key)
    }

    /// Writes rows of a job into the time index, whatever is there.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer; some rows may be written then.
    pub async fn fill_index(&self, job: &Job, places: &[RowKey]) -> Result<()> {
        let wanted: HashSet<Key> = places.iter().map(key_of).collect();
        let zone = zone_key_of(job).map(|key| Row::new(&key));
        let rows = rows_of(job, self.spread)?.into_iter().chain(zone);
        let rows = rows.filter_map(|row| {
            let (key, ..) = row.clone().into_changes();
            wanted.contains(&key).then_some((Table::Launch, row))
        });
        self.put_all(rows.collect()).await
    }

    /// Removes a row of the time index that is of no job, at the revision that it was seen at. `Refused` when it is
    /// another by now.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn drop_index_row(&self, row: &IndexedRow) -> Result<Write> {
        if row.kind == IndexKind::Zone {
            self.remove(Table::Launch, &key_of(&row.place)).await?;
            return Ok(Write::Done);
        }
        let values = Attributes::from([(":rev".to_owned(), number(row.revision))]);
        self.remove_when(Table::Launch, &key_of(&row.place), "rev = :rev", values).await
    }

    /// Some jobs by their names, all different; those that are not there, or were deleted, or cannot be read, are left
    /// out.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn jobs_named(&self, names: &[(ClientId, JobId)]) -> Result<HashMap<(ClientId, JobId), Job>> {
        let keys: Vec<Key> = names.iter().map(|(client, job)| jobs::key(client, job)).collect();
        let found = self.get_all(Table::Jobs, &keys.iter().collect::<Vec<_>>(), false).await?;
        let read = found.values().filter_map(|row| match jobs::read(row) {
            Ok(JobRow::Live(job)) => Some(((job.client.clone(), job.id.clone()), job)),
            _ => None,
        });
        Ok(read.collect())
    }

    /// Writes the outbox row of a job: its first launches are emitted once more. `Exists` when it has one.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn owe_first_launches(&self, outbox: &OutboxEntry) -> Result<Create> {
        self.put_new(Table::Launch, outbox_row(outbox)?).await
    }
}
