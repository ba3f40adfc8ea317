//! The time index: children by zone, LaunchExpression and shard; instants by minute and shard; launches that are owed.
//!
//! A row says everything that the emitter needs, so emission reads no job. Invariant: a job that launches at an instant
//! has a row under a key that is eligible for that instant (the index over-selects at most).

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{Job, Terms, Trigger};
use tidegate_domain::limits::{AT_SHARDS, HISTORY_DAYS, LATE_SHARDS};
use tidegate_domain::shard::shard_of;
use tidegate_domain::time::{
    AtMinute, ChildKey, CompiledCron, Minutes, ShardRange, Window, decompose, parse_zone,
};

use crate::doc::TermsDoc;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted};
use crate::tables::Table;
use crate::{Create, Page, Result, Store, StoreError, Write};

/// Shards of every (zone, LaunchExpression).
pub const EXPRESSION_SHARDS: u32 = 1;

/// A row of the time index, as the emitter reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Whose job.
    pub client: ClientId,
    /// Which job.
    pub job: JobId,
    /// At which revision.
    pub revision: u32,
    /// When it launches.
    pub timing: Timing,
    /// Launches before it are not the emitter's: the master emitted them.
    pub emit_from: DateTime<Utc>,
    /// What it delivers; a large payload is left in the job.
    pub terms: Terms,
}

/// When a row of the index launches.
#[derive(Debug, Clone, PartialEq)]
pub enum Timing {
    /// By an expression; the row stands for the local times of its key.
    Cron {
        /// The expression.
        cron: CompiledCron,
        /// Whose wall clock counts.
        zone: Tz,
        /// The local times that the row stands for; `None`: all of them.
        key: Option<ChildKey>,
    },
    /// Once.
    At {
        /// The instant.
        launch_at: DateTime<Utc>,
    },
}

/// Launches that the master must emit itself: those between the arrival of a job and its `emit_from`. The row stays
/// until they are emitted, so that the emitter can pay what a dead master left.
#[derive(Debug, Clone, PartialEq)]
pub struct Owed {
    /// The job's part of it; `timing` has no key.
    pub child: Child,
    /// Which launches.
    pub window: Window,
    /// When the row was written.
    pub written_at: DateTime<Utc>,
}

/// One query of the emitter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shard {
    /// Children of a LaunchExpression in a zone.
    Expression {
        /// The zone.
        zone: Tz,
        /// The LaunchExpression and its minutes.
        range: ShardRange,
        /// 0 to [`EXPRESSION_SHARDS`].
        shard: u32,
    },
    /// Instants of some minutes, which lie in one partition.
    Minutes {
        /// The first minute.
        first: AtMinute,
        /// The last minute.
        last: AtMinute,
        /// 0 to `AT_SHARDS`.
        shard: u32,
    },
}

impl Shard {
    /// The reads that find every instant of a window. A long window takes a tenth of the reads that its minutes would.
    pub fn instants(window: Window) -> Vec<Self> {
        let minutes: Vec<AtMinute> = window.at_minutes().collect();
        let parts = minutes.chunk_by(|a, b| ten_minutes(*a) == ten_minutes(*b));
        let ends = parts.filter_map(|part| Some((*part.first()?, *part.last()?)));
        ends.flat_map(|(first, last)| (0..AT_SHARDS).map(move |shard| Self::Minutes { first, last, shard }))
            .collect()
    }
}

/// The ten minutes that share partitions, as `2026-11-21T11:2`, and the minute's own digit, which begins the sort key.
fn ten_minutes(minute: AtMinute) -> String {
    let mut text = minute.to_string();
    text.pop();
    text
}

fn own_digit(minute: AtMinute) -> char {
    minute.to_string().pop().unwrap_or_default()
}

fn expression_partition(zone: Tz, expression: impl std::fmt::Display, shard: u32) -> String {
    format!("{}|{expression}|{shard:02}", zone.name())
}

fn minute_partition(minute: AtMinute, shard: u32) -> String {
    format!("AT|{}|{shard:02}", ten_minutes(minute))
}

/// The shard of the minute that an instant's row lies in.
pub fn at_shard(client: &ClientId, job: &JobId) -> u32 {
    match job.one_time_place() {
        Some(place) => place.shard,
        None => shard_of(&format!("{client}|{job}"), AT_SHARDS),
    }
}

pub(crate) fn at_row_key(client: &ClientId, job: &JobId, launch_at: DateTime<Utc>) -> Key {
    let minute = AtMinute::of(launch_at);
    let partition = minute_partition(minute, at_shard(client, job));
    Key::new(partition, format!("{}|{client}|{job}", own_digit(minute)))
}

fn child_key(client: &ClientId, job: &JobId, zone: Tz, key: &ChildKey) -> Key {
    let shard = shard_of(job.as_str(), EXPRESSION_SHARDS);
    Key::new(
        expression_partition(zone, key.launch_expression(), shard),
        format!("{}|{client}|{job}", key.sort_prefix()),
    )
}

fn owed_key(client: &ClientId, job: &JobId) -> Key {
    let name = format!("{client}|{job}");
    Key::new(format!("OWED|{}", shard_of(&name, LATE_SHARDS)), name)
}

fn terms_attribute(terms: &Terms) -> Result<AttributeValue> {
    let json = serde_json::to_string(&TermsDoc::from(terms)).map_err(|e| StoreError::Corrupt {
        table: Table::Launch,
        key: String::new(),
        reason: e.to_string(),
    })?;
    Ok(text(json))
}

fn common(key: &Key, job: &Job) -> Result<Row> {
    Ok(Row::new(key)
        .with("rev", number(job.revision))
        .with("since", number(job.emit_from.timestamp()))
        .with("terms", terms_attribute(&job.terms.to_travel())?))
}

/// The keys of a job's rows in the index.
pub(crate) fn keys_of(job: &Job) -> Vec<Key> {
    match &job.trigger {
        Trigger::Cron { spec, zone } => {
            decompose(spec.compiled()).iter().map(|key| child_key(&job.client, &job.id, *zone, key)).collect()
        }
        Trigger::At { launch_at } => vec![at_row_key(&job.client, &job.id, *launch_at)],
    }
}

/// The rows of a job in the index.
pub(crate) fn rows_of(job: &Job) -> Result<Vec<Row>> {
    let keys = keys_of(job);
    keys.iter()
        .map(|key| {
            let row = common(key, job)?;
            Ok(match &job.trigger {
                Trigger::Cron { spec, .. } => row.with("cron", text(spec.compiled().encode())),
                Trigger::At { launch_at } => at_row(row, job, *launch_at)?,
            })
        })
        .collect()
}

fn at_row(row: Row, job: &Job, launch_at: DateTime<Utc>) -> Result<Row> {
    let expires_at = launch_at.max(job.changed_at) + Duration::days(HISTORY_DAYS);
    let row = row.with("due", number(launch_at.timestamp())).expiring(expires_at);
    match job.id.one_time_place() {
        // The row is the whole job: it keeps a large payload too.
        Some(_) => Ok(row
            .with("changed_at", number(job.changed_at.timestamp_millis()))
            .with("terms", terms_attribute(&job.terms)?)),
        None => Ok(row),
    }
}

pub(crate) fn owed_row(job: &Job, owed: &Owed) -> Result<Row> {
    let row = common(&owed_key(&job.client, &job.id), job)?
        .with("from_s", number(owed.window.from().timestamp()))
        .with("written_at", number(owed.written_at.timestamp_millis()))
        .expiring(owed.written_at + Duration::days(HISTORY_DAYS));
    Ok(match &job.trigger {
        Trigger::Cron { spec, zone } => {
            row.with("cron", text(spec.compiled().encode())).with("zone", text(zone.name()))
        }
        Trigger::At { launch_at } => row.with("due", number(launch_at.timestamp())),
    })
}

fn read_child(
    row: &Attributes,
    cron: impl FnOnce(Item<'_>, CompiledCron) -> Result<Timing>,
) -> Result<Child> {
    let item = Item::new(Table::Launch, row);
    let mut name = item.text("sk")?.rsplit('|');
    let (job, client) = (name.next().unwrap_or_default(), name.next().unwrap_or_default());
    let timing = match item.find_text("cron") {
        Some(encoded) => {
            let compiled = CompiledCron::decode(encoded).map_err(|e| item.corrupt(e.to_string()))?;
            cron(item, compiled)?
        }
        None => Timing::At { launch_at: item.instant_s("due")? },
    };
    let doc: TermsDoc = serde_json::from_str(item.text("terms")?).map_err(|e| item.corrupt(e.to_string()))?;
    Ok(Child {
        client: item.parsed("sk", client)?,
        job: item.parsed("sk", job)?,
        revision: item.number("rev")?,
        timing,
        emit_from: item.instant_s("since")?,
        terms: doc.read().map_err(|e| item.corrupt(format!("'terms': {e}")))?,
    })
}

fn keyed(item: Item<'_>, cron: CompiledCron) -> Result<Timing> {
    let (zone, rest) = item.text("pk")?.split_once('|').unwrap_or_default();
    let expression = rest.rsplit_once('|').unwrap_or_default().0;
    let minute = item.text("sk")?.split('|').next().unwrap_or_default();
    let zone = parse_zone(zone).map_err(|e| item.corrupt(e.to_string()))?;
    let key = ChildKey::parse(expression, minute).map_err(|e| item.corrupt(e.to_string()))?;
    Ok(Timing::Cron { cron, zone, key: Some(key) })
}

fn read_owed(row: &Attributes) -> Result<Owed> {
    let child = read_child(row, |item, cron| {
        let zone = parse_zone(item.text("zone")?).map_err(|e| item.corrupt(e.to_string()))?;
        Ok(Timing::Cron { cron, zone, key: None })
    })?;
    let item = Item::new(Table::Launch, row);
    let window = Window::new(item.instant_s("from_s")?, child.emit_from);
    let window = window.map_err(|e| item.corrupt(e.to_string()))?;
    Ok(Owed { child, window, written_at: item.instant_ms("written_at")? })
}

impl Store {
    /// A page of the rows of a shard. Read eventually: a row is older than its `emit_from` by more than any replica lags.
    ///
    /// # Errors
    /// When DynamoDB does not answer, or a row cannot be read; the other rows of its page are then not returned.
    pub async fn children(&self, shard: &Shard, after: Option<String>) -> Result<Page<Result<Child>>> {
        let query = match shard {
            Shard::Expression { zone, range, shard } => {
                let partition = expression_partition(*zone, range.launch_expression, *shard);
                let sorted = match &range.minutes {
                    Minutes::Any => Sorted::All,
                    Minutes::Range(minutes) => {
                        Sorted::Between(format!("{:02}|", minutes.start()), format!("{:02}|~", minutes.end()))
                    }
                };
                Query { sorted, after, ..Query::of(Table::Launch, partition) }
            }
            Shard::Minutes { first, last, shard } => {
                let sorted =
                    Sorted::Between(format!("{}|", own_digit(*first)), format!("{}|~", own_digit(*last)));
                Query { sorted, after, ..Query::of(Table::Launch, minute_partition(*first, *shard)) }
            }
        };
        Ok(self.query(query).await?.map(|row| read_child(&row, keyed)))
    }

    /// Stores a one-time job whose id says where it lies: one row is the whole job.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn create_one_time(&self, job: &Job) -> Result<Create> {
        let mut created = Create::Done;
        for row in rows_of(job)? {
            created = self.put_new(Table::Launch, row).await?;
        }
        Ok(created)
    }

    /// A one-time job, by the place that its id names. Its trigger is the instant.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn one_time(&self, client: &ClientId, id: &JobId) -> Result<Option<Job>> {
        let Some(place) = id.one_time_place() else { return Ok(None) };
        let Some(minute) = DateTime::from_timestamp(place.minute.saturating_mul(60), 0) else {
            return Ok(None);
        };
        let key = at_row_key(client, id, minute);
        let Some(row) = self.get(Table::Launch, &key, true).await? else { return Ok(None) };
        let child = read_child(&row, keyed)?;
        let Timing::At { launch_at } = child.timing else { return Ok(None) };
        Ok(Some(Job {
            client: child.client,
            id: child.job,
            revision: child.revision,
            trigger: Trigger::At { launch_at },
            terms: child.terms,
            emit_from: child.emit_from,
            changed_at: Item::new(Table::Launch, &row).instant_ms("changed_at")?,
        }))
    }

    /// Removes the row of a one-time job.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn delete_one_time(&self, job: &Job) -> Result<()> {
        for key in keys_of(job) {
            self.remove(Table::Launch, &key).await?;
        }
        Ok(())
    }

    /// Writes down what the master owes for a job that is not written in a transaction.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn put_owed(&self, job: &Job, owed: &Owed) -> Result<()> {
        self.put(Table::Launch, owed_row(job, owed)?).await
    }

    /// A page of the launches that are owed, of one shard.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn owed(&self, shard: u32, after: Option<String>) -> Result<Page<Result<Owed>>> {
        let page = self.query(Query { after, ..Query::of(Table::Launch, format!("OWED|{shard}")) }).await?;
        Ok(page.map(|row| read_owed(&row)))
    }

    /// What is still owed of a job, read consistently.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn owed_of(&self, client: &ClientId, job: &JobId) -> Result<Option<Owed>> {
        let row = self.get(Table::Launch, &owed_key(client, job), true).await?;
        row.as_ref().map(read_owed).transpose()
    }

    /// Strikes what was owed for a revision of a job: it is emitted.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn strike_owed(&self, child: &Child) -> Result<Write> {
        let values = Attributes::from([(":rev".to_owned(), number(child.revision))]);
        self.remove_when(Table::Launch, &owed_key(&child.client, &child.job), "rev = :rev", values).await
    }
}

pub(crate) fn owed_key_of(job: &Job) -> Key {
    owed_key(&job.client, &job.id)
}
