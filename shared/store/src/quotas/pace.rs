//! Places in time for the events of a client that nothing throttles: a row of the client says up to when they are given away.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::quota::EventsPace;

use crate::item::{Item, Key, number};
use crate::rows::{Update, Updated};
use crate::tables::Table;
use crate::{Result, Store};

/// Up to when places are given away, in microseconds since the epoch. It only rises.
const END: &str = "end_us";

fn key(client: &ClientId) -> Key {
    Key::new(format!("paced|{client}"), "-")
}

impl Store {
    /// Gives places to so many events of a client: where they begin, in microseconds since the epoch; `None` where more would wait
    /// than may. What is given away is not given back. One write, two for the first of a minute.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, and then places may be given away; `StoreError::Corrupt`
    /// when the row cannot be read.
    pub async fn give_places(
        &self,
        client: &ClientId,
        pace: EventsPace,
        events: u32,
        now: DateTime<Utc>,
    ) -> Result<Option<i64>> {
        let (first_us, last_us, length_us) =
            (pace.first_us(now), pace.last_us(now, events), pace.length_us(events));
        if last_us < first_us {
            return Ok(None);
        }
        let (mut begins, mut seen_us) = (false, None);
        // A third round comes where another began the minute in between, and no fourth: the end never falls.
        for _ in 0..WRITE_ROUNDS {
            let update = match begins {
                false => Update::new(Table::Clients, key(client), "ADD end_us :length")
                    .when("end_us >= :first AND end_us <= :last")
                    .value(":length", number(length_us))
                    .value(":last", number(last_us)),
                true => Update::new(Table::Clients, key(client), "SET end_us = :end")
                    .when("attribute_not_exists(end_us) OR end_us < :first")
                    .value(":end", number(first_us.saturating_add(length_us))),
            };
            match self.update(update.value(":first", number(first_us))).await? {
                Updated::Done(row) => {
                    let end_us: i64 = Item::read(Table::Clients, &row)?.number(END)?;
                    return Ok(Some(end_us.saturating_sub(length_us)));
                }
                Updated::Refused(row) => {
                    let row = row.unwrap_or_default();
                    seen_us = Item::read(Table::Clients, &row)?.find_number::<i64>(END)?;
                }
            }
            begins = seen_us.is_none_or(|seen_us| seen_us < first_us);
            if !begins && seen_us > Some(last_us) {
                return Ok(None);
            }
        }
        // Rather late than never.
        Ok(seen_us.or(Some(last_us)))
    }

    /// Up to when places are given away to events of a client, in microseconds since the epoch, read eventually; 0 where none were.
    ///
    /// # Errors
    /// As [`Self::give_places`].
    pub async fn places_end(&self, client: &ClientId) -> Result<i64> {
        let row = self.get(Table::Clients, &key(client), false).await?.unwrap_or_default();
        Item::read(Table::Clients, &row)?.number_or(END, 0)
    }
}
