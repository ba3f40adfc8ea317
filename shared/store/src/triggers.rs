//! Launches that somebody triggered, beside what their job's trigger says: a row for each, by its instant, and one for each
//! idempotency key that came with a call.
//!
//! Invariant: a job has one triggered launch of an instant at the most, and a key leads to one launch. Both rows and the debt
//! in the outbox are written together or not at all.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, JobId, RunId};
use tidegate_domain::limits::{HISTORY_DAYS, IDEMPOTENCY_HOURS};
use tidegate_domain::time::{Window, days, seconds, shifted};

use crate::item::{Item, Key, Row, number};
use crate::keys::KeyHash;
use crate::launch::{Child, OutboxEntry, outbox_row};
use crate::rows::{Query, Sorted};
use crate::tables::Table;
use crate::{Result, Store, Write};

/// Stands before the client in the keys of what was triggered.
pub(crate) const TRIGGERED: &str = "TRIGGERED|";

pub(crate) fn partition(client: &ClientId, job: &JobId) -> String {
    format!("{TRIGGERED}{client}|{job}")
}

fn place(launch_at: DateTime<Utc>) -> String {
    format!("{:012}", launch_at.timestamp())
}

fn key_of_launch(client: &ClientId, job: &JobId, launch_at: DateTime<Utc>) -> Key {
    Key::new(partition(client, job), place(launch_at))
}

fn key_of_key(client: &ClientId, job: &JobId, key: &KeyHash) -> Key {
    Key::new(partition(client, job), format!("key|{}", key.as_str()))
}

impl Store {
    /// Notes that a job is triggered, and that the master owes the launch: everything or nothing. With a key, a later call
    /// finds the launch by it.
    /// `Refused` when the job has a triggered launch at that instant already, or the key was used.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn trigger(&self, owed: &OutboxEntry, key: Option<&KeyHash>) -> Result<Write> {
        let (launch_at, written_at) = (owed.window.from(), owed.written_at);
        let Child { client, job, revision, .. } = &owed.child;
        let launch = Row::new(&key_of_launch(client, job, launch_at))
            .with("rev", number(*revision))
            .expiring(shifted(launch_at, days(HISTORY_DAYS)));
        let mut items = vec![
            self.put_new_item_of(Table::Launch, launch)?,
            self.put_item_of(Table::Launch, outbox_row(owed)?)?,
        ];
        if let Some(key) = key {
            let used = Row::new(&key_of_key(client, job, key))
                .with("rev", number(*revision))
                .with("launch_s", number(launch_at.timestamp()))
                .expiring(shifted(written_at, seconds(IDEMPOTENCY_HOURS * 3_600)));
            items.push(self.put_new_item_of(Table::Launch, used)?);
        }
        self.transact(Table::Launch, items).await
    }

    /// The run that a call with the key triggered; `None` when there was no such call in the last `IDEMPOTENCY_HOURS`, or
    /// somewhat longer. Read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn triggered_by_key(
        &self,
        client: &ClientId,
        job: &JobId,
        key: &KeyHash,
    ) -> Result<Option<RunId>> {
        let Some(row) = self.get(Table::Launch, &key_of_key(client, job, key), true).await? else {
            return Ok(None);
        };
        let item = Item::read(Table::Launch, &row)?;
        Ok(Some(RunId::new(job.clone(), item.number("rev")?, item.instant_s("launch_s")?)))
    }

    /// Whether a run was triggered in the last `HISTORY_DAYS`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn was_triggered(&self, client: &ClientId, run: &RunId) -> Result<bool> {
        let key = key_of_launch(client, run.job(), run.launch_at());
        let Some(row) = self.get(Table::Launch, &key, true).await? else { return Ok(false) };
        Ok(Item::read(Table::Launch, &row)?.number::<u32>("rev")? == run.revision())
    }

    /// The latest instants in a window at which a job was triggered, at most `most`, in order of time.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn triggered(
        &self,
        client: &ClientId,
        job: &JobId,
        window: Window,
        most: usize,
    ) -> Result<Vec<DateTime<Utc>>> {
        let last = place(shifted(window.to(), -seconds(1)));
        let query = Query {
            sorted: Sorted::Between(place(window.from()), last),
            limit: Some(i32::try_from(most).unwrap_or(i32::MAX)),
            descending: true,
            ..Query::of(Table::Launch, partition(client, job))
        };
        let rows = self.query(query).await?.rows;
        let instant = |text: &str| DateTime::from_timestamp(text.parse().ok()?, 0);
        let of_row = |row| Item::new(Table::Launch, row).find_text("sk").and_then(instant);
        Ok(rows.iter().rev().filter_map(of_row).collect())
    }
}
