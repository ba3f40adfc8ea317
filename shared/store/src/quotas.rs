//! What clients have taken of their quotas in the present minute: a row for each client that has one.
//!
//! Invariant: of a minute no more is taken than the quota was that any of its writes went by, however many processes take at once.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{MINUTE_SECONDS, WRITE_ROUNDS};
use tidegate_domain::quota::CreatesPerMinute;

use crate::item::{Item, Key, number};
use crate::rows::{Update, Updated};
use crate::tables::Table;
use crate::{Result, Store};

fn key(client: &ClientId) -> Key {
    Key::new(format!("creates|{client}"), "-")
}

impl Store {
    /// Takes up to `wanted` of the jobs that a client may write in the minute of `now`: how many it may. One write for most calls,
    /// two for the first of a minute and for one that is not granted all that it wants.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, and then up to `wanted` may be taken; `StoreError::Corrupt`
    /// when the row cannot be read.
    pub async fn take_creates(
        &self,
        client: &ClientId,
        most: CreatesPerMinute,
        wanted: u32,
        now: DateTime<Utc>,
    ) -> Result<u32> {
        let mut minute = now.timestamp().div_euclid(MINUTE_SECONDS);
        let mut granted = wanted.min(most.get());
        for _ in 0..WRITE_ROUNDS {
            if granted == 0 {
                break;
            }
            let taken = Update::new(Table::Clients, key(client), "ADD creates :wanted")
                .when("in_minute = :minute AND creates <= :room")
                .value(":wanted", number(granted))
                .value(":minute", number(minute))
                .value(":room", number(most.get().saturating_sub(granted)));
            let Updated::Refused(seen) = self.update(taken).await? else { return Ok(granted) };
            if let Some(row) = seen {
                let item = Item::read(Table::Clients, &row)?;
                let (in_minute, creates): (i64, u32) = (item.number("in_minute")?, item.number("creates")?);
                if in_minute >= minute {
                    // The clock of whoever began it may be ahead of this one.
                    minute = in_minute;
                    granted = granted.min(most.get().saturating_sub(creates));
                    continue;
                }
            }
            let begun =
                Update::new(Table::Clients, key(client), "SET in_minute = :minute, creates = :wanted")
                    .when("attribute_not_exists(in_minute) OR in_minute < :minute")
                    .value(":wanted", number(granted))
                    .value(":minute", number(minute));
            if let Updated::Done(_) = self.update(begun).await? {
                return Ok(granted);
            }
        }
        Ok(0)
    }
}
