//! One-time jobs whose ids say where they lie: their changes, those of a minute, and in which places a client has some. One row of the
//! time index is the whole job.
//!
//! Invariant: where such a job lies, its client has a mark: a row for each ten minutes, with the shards in which some lie. It is
//! written before the job, so that no list lacks one. A mark whose jobs were never stored, or are gone, costs a list some reads.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::change::Change;
use tidegate_domain::ids::{ClientId, JobId, ONE_TIME_PREFIX};
use tidegate_domain::job::Job;
use tidegate_domain::limits::AT_ROW_DAYS;
use tidegate_domain::time::{AtMinute, Window, days, seconds, shifted};

use crate::item::{Attributes, Item, Key, Row, number};
use crate::jobs::{JobRow, change_of_job};
use crate::launch::{OutboxEntry, job_of, outbox_row, owner_of, place_in_minute, remains_of, rows_of};
use crate::rows::{Query, Sorted, Update};
use crate::tables::{EXPIRES_AT, SORT_KEY, Table};
use crate::{Page, PageOf, Result, Store, Write};

/// The ten minutes whose rows share partitions, which a mark is of: their number since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenMinutes(i64);

impl TenMinutes {
    const SECONDS: i64 = 600;

    /// Those that an instant lies in.
    pub fn of(at: DateTime<Utc>) -> Self {
        Self(at.timestamp().div_euclid(Self::SECONDS))
    }

    /// Their first instant; `None`: it is beyond all instants.
    pub fn starts_at(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.0.checked_mul(Self::SECONDS)?, 0)
    }

    /// What of a window lies in them; `None`: nothing.
    pub fn within(self, window: Window) -> Option<Window> {
        let (from, to) = (self.starts_at()?, Self(self.0.checked_add(1)?).starts_at()?);
        let within = Window::new(from.max(window.from()), to.min(window.to())).ok()?;
        (within.from() < within.to()).then_some(within)
    }

    fn sort_key(self) -> String {
        format!("{:010}", self.0)
    }
}

/// The mark that a one-time job leaves whose id says where it lies; `None`: its id is another.
pub fn mark_of(job: &JobId) -> Option<(TenMinutes, u32)> {
    let place = job.one_time_shard()?;
    Some((TenMinutes(place.minute.div_euclid(TenMinutes::SECONDS / 60)), place.shard))
}

/// In which shards of ten minutes a client has one-time jobs.
pub type Mark = (TenMinutes, BTreeSet<u32>);

fn marks_of(client: &ClientId) -> String {
    format!("{client}|one-times")
}

fn read_mark(row: &Attributes) -> Result<Mark> {
    let item = Item::read(Table::Events, row)?;
    let number = item.parsed(SORT_KEY, item.text(SORT_KEY)?)?;
    Ok((TenMinutes(number), item.numbers("shards").into_iter().collect()))
}

impl Store {
    /// Says that a client has one-time jobs in some shards of ten minutes: one write unit. Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn mark_one_times(
        &self,
        client: &ClientId,
        place: TenMinutes,
        shards: &BTreeSet<u32>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let key = Key::new(marks_of(client), place.sort_key());
        let until = shifted(place.starts_at().unwrap_or(now).max(now), days(AT_ROW_DAYS.saturating_add(1)));
        let update = Update::new(Table::Events, key, "SET #expires = :expires ADD shards :shards")
            .name("#expires", EXPIRES_AT)
            .value(":expires", number(until.timestamp()))
            .value(":shards", AttributeValue::Ns(shards.iter().map(ToString::to_string).collect()));
        self.update(update).await.map(drop)
    }

    /// What is marked of some ten minutes, all different: half a read unit each. It may lag a little.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when a row cannot be read.
    pub async fn one_time_marks(
        &self,
        client: &ClientId,
        places: &[TenMinutes],
    ) -> Result<BTreeMap<TenMinutes, BTreeSet<u32>>> {
        let keys: Vec<Key> =
            places.iter().map(|place| Key::new(marks_of(client), place.sort_key())).collect();
        let rows = self.get_all(Table::Events, &keys.iter().collect::<Vec<_>>(), false).await?;
        rows.values().map(read_mark).collect()
    }

    /// A page of what is marked of a window, in order of time, from some ten minutes on: up to 1 MB, which is what months have.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn one_time_marks_in(
        &self,
        client: &ClientId,
        window: Window,
        after: Option<String>,
    ) -> Result<Page<Mark>> {
        let last = TenMinutes::of(shifted(window.to(), -seconds(1)));
        let sorted = Sorted::Between(TenMinutes::of(window.from()).sort_key(), last.sort_key());
        let query = Query { sorted, after, ..Query::of(Table::Events, marks_of(client)) };
        Ok(self.query(query).await?.read(Table::Events, read_mark))
    }

    /// A page of the one-time jobs of a client whose instant lies in a minute, of one of the shards that the minute is spread over (from
    /// 0 up to, not including, [`Spread::at_shards`](crate::Spread)), by their ids; those whose ids name no place are not among them. It
    /// may lag a little. Its `next` is the id of the last job that was read.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn one_times_of(
        &self,
        client: &ClientId,
        (minute, shard): (AtMinute, u32),
        page: PageOf<JobId>,
    ) -> Result<Page<Job>> {
        let (pk, prefix) = place_in_minute(client, minute, shard);
        let sorted = Sorted::Prefix(format!("{prefix}{ONE_TIME_PREFIX}"));
        let after = page.after.map(|id| format!("{prefix}{id}"));
        let query = Query { sorted, ..Query::of(Table::Launch, pk) }.page(PageOf { after, rows: page.rows });
        let read = self.query(query).await?.read(Table::Launch, job_of);
        let last = read.next.as_deref().and_then(owner_of).map(|(_, job)| job.to_string());
        let mut jobs = Page::new(read.rows.into_iter().flatten().collect(), last);
        jobs.unreadable = read.unreadable;
        Ok(jobs)
    }

    /// Makes the row of a one-time job void, so that no later job is stored there as if it were the first, and records the
    /// change: both or neither. Repeating it changes nothing more.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn delete_one_time(&self, job: &Job, change: &Change) -> Result<()> {
        let of = (&job.client, &job.id, job.revision.saturating_add(1));
        let recorded = change_of_job(of, Some(&JobRow::Live(job.clone())), None, change)?;
        let mut items = Vec::new();
        for (_, void) in remains_of(job, self.spread) {
            if let Some(void) = void {
                items.push(self.put_item_of(Table::Launch, void)?);
            }
        }
        items.push(self.put_item_of(Table::Jobs, recorded)?);
        // No condition: it cannot be refused.
        self.transact(Table::Launch, items).await.map(drop)
    }

    /// Writes a changed one-time job over its former revision `seen`, its outbox row, and what is recorded of the `change`:
    /// all or nothing. `Refused` when it is no longer at that revision.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn replace_one_time(
        &self,
        job: &Job,
        seen: &Job,
        outbox: Option<&OutboxEntry>,
        change: &Change,
    ) -> Result<Write> {
        let of = (&job.client, &job.id, job.revision);
        let recorded = change_of_job(of, Some(&JobRow::Live(seen.clone())), Some(job), change)?;
        let mut items = Vec::new();
        if let Some(outbox) = outbox {
            items.push(self.put_item_of(Table::Launch, outbox_row(outbox)?)?);
        }
        for row in rows_of(job, self.spread)? {
            items.push(self.update_item_of(over_revision(row, seen))?);
        }
        items.push(self.put_item_of(Table::Jobs, recorded)?);
        self.transact(Table::Launch, items).await
    }
}

/// A row of a one-time job in the place of the revision that was seen.
fn over_revision(row: Row, seen: &Job) -> Update {
    Update::rewrite(Table::Launch, row).when("rev = :seen").value(":seen", number(seen.revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_a_mark_is_pinned() {
        let place = TenMinutes::of(DateTime::from_timestamp(1_795_262_640, 0).unwrap());
        assert_eq!(
            (marks_of(&"acme".parse().unwrap()).as_str(), place.sort_key().as_str()),
            ("acme|one-times", "0002992104")
        );
        let seconds = |from, to| {
            Window::new(DateTime::from_timestamp(from, 0).unwrap(), DateTime::from_timestamp(to, 0).unwrap())
        };
        let (wide, part) =
            (seconds(0, 2_000_000_000).unwrap(), seconds(1_795_262_400, 1_795_263_000).unwrap());
        assert_eq!(place.within(wide), Some(part));
        assert_eq!(
            place.within(seconds(1_795_262_999, 1_795_263_001).unwrap()),
            seconds(1_795_262_999, 1_795_263_000).ok()
        );
        assert_eq!(place.within(seconds(1_795_263_000, 1_795_263_001).unwrap()), None);
        let row = Attributes::from([
            ("pk".to_owned(), AttributeValue::S("acme|one-times".to_owned())),
            ("sk".to_owned(), AttributeValue::S("0002992104".to_owned())),
            ("shards".to_owned(), AttributeValue::Ns(vec!["63".to_owned(), "0".to_owned()])),
            ("expires_at".to_owned(), number(1)),
        ]);
        assert_eq!(read_mark(&row).unwrap(), (place, BTreeSet::from([0, 63])));
    }
}
