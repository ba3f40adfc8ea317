//! One-time jobs whose ids say where they lie: their changes, and those of a minute. One row of the time index is the whole job.

use tidegate_domain::change::Change;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::time::AtMinute;

use crate::item::{Attributes, Item, Row, number};
use crate::jobs::{JobRow, change_of_job};
use crate::launch::{OutboxEntry, job_of, outbox_row, owner_of, place_in_minute, remains_of, rows_of};
use crate::rows::{Query, Sorted, Update};
use crate::tables::{SORT_KEY, Table};
use crate::{Page, Result, Store, Write};

impl Store {
    /// The one-time jobs of a client whose instant lies in a minute, of one of the shards that the minute is spread over (from 0 up to,
    /// not including, [`Spread::at_shards`](crate::Spread)); those whose ids name no place are not among them. Read eventually, to the
    /// end.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn one_times_of(&self, client: &ClientId, minute: AtMinute, shard: u32) -> Result<Page<Job>> {
        let (pk, prefix) = place_in_minute(client, minute, shard);
        let mut all = Page::new(Vec::new(), None);
        let mut after = None;
        loop {
            let sorted = Sorted::Prefix(prefix.clone());
            let page = self.query(Query { sorted, after, ..Query::of(Table::Launch, pk.clone()) }).await?;
            after = page.next.clone();
            let mut page = page;
            page.rows.retain(names_its_place);
            let page = page.read(Table::Launch, job_of);
            all.rows.extend(page.rows.into_iter().flatten());
            all.unreadable.extend(page.unreadable);
            if after.is_none() {
                return Ok(all);
            }
        }
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

/// Whether a row is the whole of a job, which others are not: their ids name no place.
fn names_its_place(row: &Attributes) -> bool {
    let key = Item::new(Table::Launch, row).find_text(SORT_KEY);
    let id: Option<JobId> = key.and_then(owner_of).map(|(_, job)| job);
    id.is_some_and(|id| id.one_time_shard().is_some())
}

/// A row of a one-time job in the place of the revision that was seen.
fn over_revision(row: Row, seen: &Job) -> Update {
    Update::rewrite(Table::Launch, row).when("rev = :seen").value(":seen", number(seen.revision))
}
