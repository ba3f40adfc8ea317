//! Watches: jobs whose launches are expected to be over in time, each at the instant at which the next of them should be.
//!
//! A row a job, apart from its index: what the index loses is noticed all the same. It is written before its job, so one of a
//! revision that never was stays behind after a crash; whoever looks at it finds the job at another revision, and removes it.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{ExpectedSeconds, Job, Trigger};
use tidegate_domain::limits::{AT_GRACE_SECONDS, WATCH_SHARDS};
use tidegate_domain::shard::shard_of;
use tidegate_domain::time::{seconds, shifted, whole_second};

use crate::item::{Attributes, Item, Key, Row, number};
use crate::launch::{Child, owner_of};
use crate::rows::{Query, Sorted};
use crate::tables::{SORT_KEY, Table};
use crate::{Page, Result, Store};

/// Rows of one page of what is due.
const WATCHES_PER_PAGE: i32 = 250;

/// A job whose launches are expected to be over in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The client whose job it is.
    pub client: ClientId,
    /// The job.
    pub job: JobId,
    /// The revision of the job that it is of.
    pub revision: u32,
    /// Launches before it were looked at, in whole seconds.
    pub from: DateTime<Utc>,
    /// When the next launch should be over, in whole seconds, at the earliest.
    pub due: DateTime<Utc>,
}

impl Watch {
    /// The first watch of a job as it is now; `None` when it expects nothing, or launches no more.
    pub fn first(job: &Job) -> Option<Self> {
        let since = match (&job.trigger, job.revision) {
            // An instant that is a little late launches at once.
            (Trigger::At(_), 1) => shifted(job.changed_at, -seconds(AT_GRACE_SECONDS)),
            _ => job.changed_at,
        };
        Self::from(job, whole_second(since))
    }

    /// The watch of a job whose launches before an instant, in whole seconds, were looked at; `None` when it expects nothing, or
    /// launches no more. What its calendars, start and end leave out is looked at, and found to be left out; where they move launches, it is
    /// looked at the times of every day.
    pub fn from(job: &Job, from: DateTime<Utc>) -> Option<Self> {
        let within = job.expect?;
        let offset = job.rules.jitter.offset(&job.client, &job.id);
        let after = shifted(shifted(from, -offset), -seconds(1));
        let next = Child::of(job).candidates().upcoming(after, 1).first()?.launch_at;
        let due = over_by(shifted(next, offset), within);
        Some(Self { client: job.client.clone(), job: job.id.clone(), revision: job.revision, from, due })
    }
}

/// When a launch is expected to be over.
pub fn over_by(launch_at: DateTime<Utc>, within: ExpectedSeconds) -> DateTime<Utc> {
    shifted(launch_at, seconds(within.get().into()))
}

fn partition(shard: u32) -> String {
    format!("WATCH|{shard}")
}

fn key(client: &ClientId, job: &JobId, due: DateTime<Utc>) -> Key {
    let name = format!("{client}|{job}");
    Key::new(partition(shard_of(&name, WATCH_SHARDS)), format!("{:012}|{name}", due.timestamp()))
}

fn row(watch: &Watch) -> Row {
    Row::new(&key(&watch.client, &watch.job, watch.due))
        .with("rev", number(watch.revision))
        .with("from_s", number(watch.from.timestamp()))
}

fn read(row: &Attributes) -> Result<Watch> {
    let item = Item::read(Table::Launch, row)?;
    let sort_key = item.text(SORT_KEY)?;
    let (client, job) = owner_of(sort_key).ok_or_else(|| item.corrupt("'sk' names no job"))?;
    let due = sort_key.split('|').next().and_then(|due| DateTime::from_timestamp(due.parse().ok()?, 0));
    let due = due.ok_or_else(|| item.corrupt("'sk' names no instant"))?;
    Ok(Watch { client, job, revision: item.number("rev")?, from: item.instant_s("from_s")?, due })
}

impl Store {
    /// Writes the watch of a job. Where there is one of the same instant that is of this revision or a later one, that one stays.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn put_watch(&self, watch: &Watch) -> Result<()> {
        let values = Attributes::from([(":rev".to_owned(), number(watch.revision))]);
        let older = "attribute_not_exists(pk) OR rev < :rev";
        self.put_when(Table::Launch, row(watch), older, values).await.map(drop)
    }

    /// A page of the watches that are due at an instant, of one shard (0 to `WATCH_SHARDS`), those that are due first first.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn due_watches(
        &self,
        shard: u32,
        now: DateTime<Utc>,
        after: Option<String>,
    ) -> Result<Page<Watch>> {
        let query = Query {
            sorted: Sorted::Between(String::new(), format!("{:012}|~", now.timestamp())),
            limit: Some(WATCHES_PER_PAGE),
            after,
            ..Query::of(Table::Launch, partition(shard))
        };
        Ok(self.query(query).await?.read(Table::Launch, read))
    }

    /// The watch of a job that is due at an instant, read consistently; `None` when there is none, or none any more.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn watch(&self, client: &ClientId, job: &JobId, due: DateTime<Utc>) -> Result<Option<Watch>> {
        self.get(Table::Launch, &key(client, job, due), true).await?.as_ref().map(read).transpose()
    }

    /// Puts the next watch of a job in the place of one that was looked at. A crash between the two writes leaves both: the former
    /// is looked at once more, and then is one with the latter.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn move_watch(&self, seen: &Watch, next: Option<&Watch>) -> Result<()> {
        if let Some(next) = next {
            self.put_new(Table::Launch, row(next)).await?;
        }
        // A change of the job may have put its own in this place.
        let values = Attributes::from([(":rev".to_owned(), number(seen.revision))]);
        let place = key(&seen.client, &seen.job, seen.due);
        self.remove_when(Table::Launch, &place, "rev = :rev", values).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_a_watch_is_pinned() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let watch = Watch {
            client: "acme".parse().unwrap(),
            job: "books:close".parse().unwrap(),
            revision: 3,
            from: at(1_795_262_640),
            due: at(1_795_263_540),
        };
        let stored = row(&watch).into_attributes();
        let pinned = [
            ("pk", crate::item::text("WATCH|1")),
            ("sk", crate::item::text("001795263540|acme|books:close")),
            ("rev", number(3)),
            ("from_s", number(1_795_262_640)),
        ];
        assert_eq!(stored, pinned.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(read(&stored).unwrap(), watch);
    }
}
