//! What was emitted for a client: a row for each day of UTC, added to now and then.

use chrono::{DateTime, NaiveDate, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::USAGE_DAYS;
use tidegate_domain::time::{days, shifted};
use tidegate_domain::usage::Tally;

use crate::item::{Attributes, Item, Key, number};
use crate::rows::{Query, Sorted, Update};
use crate::tables::{EXPIRES_AT, SORT_KEY, Table};
use crate::{Page, Result, Store};

fn partition(client: &ClientId) -> String {
    format!("{client}|usage")
}

fn read(row: &Attributes) -> Result<(NaiveDate, Tally)> {
    let item = Item::read(Table::Policies, row)?;
    let day = item.text(SORT_KEY)?.parse().map_err(|_| item.corrupt("'sk' is no day"))?;
    let tally = Tally {
        launches: item.number_or("launches", 0)?,
        skipped: item.number_or("skipped", 0)?,
        singles: item.number_or("singles", 0)?,
        batched: item.number_or("batched", 0)?,
        throttled: item.number_or("throttled", 0)?,
    };
    Ok((day, tally))
}

impl Store {
    /// Adds to what was emitted for a client on the day of an instant: one write unit. Whoever repeats it counts twice.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn add_usage(&self, client: &ClientId, at: DateTime<Utc>, tally: Tally) -> Result<()> {
        let key = Key::new(partition(client), at.date_naive().to_string());
        let added = "SET #expires = :expires ADD launches :launches, skipped :skipped, singles :singles, batched :batched, \
                     throttled :throttled";
        let update = Update::new(Table::Policies, key, added)
            .name("#expires", EXPIRES_AT)
            .value(":expires", number(shifted(at, days(USAGE_DAYS)).timestamp()))
            .value(":launches", number(tally.launches))
            .value(":skipped", number(tally.skipped))
            .value(":singles", number(tally.singles))
            .value(":batched", number(tally.batched))
            .value(":throttled", number(tally.throttled));
        self.update(update).await.map(drop)
    }

    /// What was emitted for a client on some days, the first and the last included, in their order: half a read unit a month. A row
    /// that cannot be read is among the `unreadable` ones.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn usage(
        &self,
        client: &ClientId,
        (first, last): (NaiveDate, NaiveDate),
    ) -> Result<Page<(NaiveDate, Tally)>> {
        let sorted = Sorted::Between(first.to_string(), last.to_string());
        let query = Query { sorted, ..Query::of(Table::Policies, partition(client)) };
        Ok(self.query(query).await?.read(Table::Policies, read))
    }
}
