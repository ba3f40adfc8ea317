//! Rows of what waits: they are kept for as long as it does, however long that is.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::limits::HISTORY_DAYS;
use tidegate_domain::time::{days, shifted};

use super::{key, list_key, part};
use crate::item::{Item, Key, number};
use crate::rows::{Query, Sorted, Update};
use crate::tables::{EXPIRES_AT, Table};
use crate::{Result, Store, Write};

/// Rows of one run that are kept for longer at once.
const PARTS_AT_ONCE: usize = 8;

impl Store {
    /// Keeps the row of a run, and those that its outcomes are counted in, for [`HISTORY_DAYS`] from `now`. Rows that are kept
    /// for longer, or are gone, stay so: `Refused` when the run's own is one of them.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn retain_run(&self, client: &ClientId, run: &RunId, now: DateTime<Utc>) -> Result<Write> {
        let written = self.retain(key(client, run), now).await?;
        let mut after = None;
        loop {
            let query = Query {
                sorted: Sorted::Prefix(format!("{}|", list_key(run))),
                after,
                ..Query::of(Table::Runs, part::partition(client, run))
            };
            let page = self.query(query).await?;
            let mut keys = Vec::with_capacity(page.rows.len());
            for row in &page.rows {
                let item = Item::new(Table::Runs, row);
                keys.push(Key::new(item.text("pk")?, item.text("sk")?));
            }
            let retains: Vec<_> = keys.into_iter().map(|key| self.retain(key, now)).collect();
            let parts: Vec<Write> =
                stream::iter(retains).buffer_unordered(PARTS_AT_ONCE).try_collect().await?;
            drop(parts);
            after = page.next;
            if after.is_none() {
                return Ok(written);
            }
        }
    }

    /// Keeps a row of the table of runs for [`HISTORY_DAYS`] from `now`. `Refused` when it is kept for longer, or is gone.
    pub(crate) async fn retain(&self, key: Key, now: DateTime<Utc>) -> Result<Write> {
        let until = shifted(now, days(HISTORY_DAYS));
        let update = Update::new(Table::Runs, key, format!("SET {EXPIRES_AT} = :until"))
            // Of a row that is gone, this does not hold either.
            .when(format!("{EXPIRES_AT} < :until"))
            .value(":until", number(until.timestamp()));
        Ok(self.update(update).await?.into())
    }
}
