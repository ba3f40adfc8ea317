//! Changes of one-time jobs whose ids say where they lie: one row of the time index is the whole job.

use tidegate_domain::change::Change;
use tidegate_domain::job::Job;

use crate::item::{Row, number};
use crate::jobs::{JobRow, change_of_job};
use crate::launch::{OutboxEntry, outbox_row, remains_of, rows_of};
use crate::rows::Update;
use crate::tables::Table;
use crate::{Result, Store, Write};

impl Store {
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
