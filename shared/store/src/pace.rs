//! How fast a policy's events may begin, and when somebody looks after it next: a row of two instants.
//!
//! Only policies with a rate, or with a paced run in their line, have one.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::rate_limit::{Allowed, RateLimit};

use crate::item::{Attributes, Item, Key, number};
use crate::rows::{Update, Updated};
use crate::tables::Table;
use crate::{Result, Store, Write};

fn key(client: &ClientId, policy: &PolicyId) -> Key {
    Key::new(format!("{client}|{policy}|pace"), "-")
}

fn arrival_us(row: Option<&Attributes>) -> Result<i64> {
    row.map_or(Ok(0), |row| Item::read(Table::Policies, row)?.number_or("arrival_us", 0))
}

impl Store {
    /// Takes leave for up to `wanted` events to begin at `now`. What it grants counts, whether they begin or not.
    /// Grants none when too many others ask at once (in each of [`WRITE_ROUNDS`] rounds).
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn take_rate(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        rate: RateLimit,
        wanted: u32,
        now: DateTime<Utc>,
    ) -> Result<Allowed> {
        let key = key(client, policy);
        let mut seen = self.get(Table::Policies, &key, true).await?;
        let mut allowed = Allowed { events: 0, arrival_us: 0, next_us: now.timestamp_micros() };
        for _ in 0..WRITE_ROUNDS {
            let before_us = arrival_us(seen.as_ref())?;
            allowed = rate.allow(before_us, now.timestamp_micros(), wanted);
            if allowed.events == 0 {
                break;
            }
            let update = Update::new(Table::Policies, key.clone(), "SET arrival_us = :new")
                .when("attribute_not_exists(arrival_us) OR arrival_us = :seen")
                .value(":new", number(allowed.arrival_us))
                .value(":seen", number(before_us));
            match self.update(update).await? {
                Updated::Done(_) => return Ok(allowed),
                Updated::Refused(row) => seen = row,
            }
        }
        Ok(Allowed { events: 0, ..allowed })
    }

    /// When the next event may begin, as some replica of the row says: `next_us` counts, `events` is 0. Takes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn rate_allows(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        rate: RateLimit,
        now: DateTime<Utc>,
    ) -> Result<Allowed> {
        let seen = self.get(Table::Policies, &key(client, policy), false).await?;
        Ok(rate.allow(arrival_us(seen.as_ref())?, now.timestamp_micros(), 0))
    }

    /// Takes it upon the caller to wake a policy at `due_at`: `Refused` when somebody else does so after `now` and no
    /// later.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn claim_wake(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        due_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Write> {
        let update = Update::new(Table::Policies, key(client, policy), "SET wake_at = :due")
            .when("attribute_not_exists(wake_at) OR wake_at <= :now OR wake_at > :due")
            .value(":due", number(due_at.timestamp_millis()))
            .value(":now", number(now.timestamp_millis()));
        Ok(self.update(update).await?.into())
    }
}
