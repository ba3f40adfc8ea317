//! What went on in a policy, minute by minute: a row an hour, with an attribute for each minute in which it was looked at.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::HISTORY_DAYS;
use tidegate_domain::time::{Window, days, seconds, shifted};

use crate::item::{Attributes, Item, Key, number, text};
use crate::rows::{Query, Sorted, Update};
use crate::tables::{EXPIRES_AT, SORT_KEY, Table};
use crate::{Page, Result, Store};

/// Seconds of an hour, which a row is of.
const HOUR_SECONDS: i64 = 3_600;

/// What went on in a policy when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The minute.
    pub at: DateTime<Utc>,
    /// Tokens that events held.
    pub in_flight: u32,
    /// Its limit.
    pub max_in_flight: u32,
    /// Events that were launched and waited for a token, as far as they were counted.
    pub waiting: u32,
    /// For how long the oldest of them had, in seconds; 0 when none waited.
    pub oldest_seconds: u32,
}

fn partition(client: &ClientId, policy: &PolicyId) -> String {
    format!("{client}|{policy}|samples")
}

/// The number of the hour, which sorts as it does.
pub(crate) fn hour(at: DateTime<Utc>) -> String {
    format!("{:010}", at.timestamp().div_euclid(HOUR_SECONDS))
}

/// When an hour begins that has such a number; `None`: it is none.
pub(crate) fn at_hour(number: &str) -> Option<DateTime<Utc>> {
    let hour: i64 = number.parse().ok()?;
    DateTime::from_timestamp(hour.checked_mul(HOUR_SECONDS)?, 0)
}

fn minute_of_hour(at: DateTime<Utc>) -> String {
    format!("m{:02}", at.timestamp().rem_euclid(HOUR_SECONDS).div_euclid(60))
}

fn encode(sample: &Sample) -> String {
    let Sample { in_flight, max_in_flight, waiting, oldest_seconds, at: _ } = sample;
    format!("{in_flight} {max_in_flight} {waiting} {oldest_seconds}")
}

fn decode(at: DateTime<Utc>, said: &str) -> Option<Sample> {
    let mut numbers = said.split(' ').map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten();
    let (in_flight, max_in_flight, waiting, oldest_seconds) = (next()?, next()?, next()?, next()?);
    Some(Sample { at, in_flight, max_in_flight, waiting, oldest_seconds })
}

/// The samples of an hour, in order of time.
fn read(row: &Attributes) -> Result<Vec<Sample>> {
    let item = Item::read(Table::Policies, row)?;
    let hour = at_hour(item.text(SORT_KEY)?).ok_or_else(|| item.corrupt("'sk' is no hour"))?;
    let mut samples = Vec::new();
    for minute in 0..60_i64 {
        let at = shifted(hour, seconds(minute.saturating_mul(60)));
        if let Some(said) = item.find_text(&minute_of_hour(at)) {
            samples.push(decode(at, said).ok_or_else(|| item.corrupt(format!("'{said}' is no sample")))?);
        }
    }
    Ok(samples)
}

impl Store {
    /// Keeps what went on in a policy in a minute. One of the same minute is replaced.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn keep_sample(&self, client: &ClientId, policy: &PolicyId, sample: &Sample) -> Result<()> {
        let place = Key::new(partition(client, policy), hour(sample.at));
        let update = Update::new(Table::Policies, place, "SET #minute = :sample, #expires = :expires")
            .name("#minute", minute_of_hour(sample.at))
            .name("#expires", EXPIRES_AT)
            .value(":sample", text(encode(sample)))
            .value(":expires", number(shifted(sample.at, days(HISTORY_DAYS)).timestamp()));
        self.update(update).await.map(drop)
    }

    /// What went on in a policy in a window, in order of time: a read unit for each day of it, or two. Minutes in which nobody looked,
    /// since nothing went on, are left out. A row that cannot be read is among the `unreadable` ones.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn samples(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        window: Window,
    ) -> Result<Page<Sample>> {
        let (mut found, mut after) = (Page::new(Vec::new(), None), None);
        loop {
            let query = Query {
                sorted: Sorted::Between(hour(window.from()), hour(window.to())),
                after,
                ..Query::of(Table::Policies, partition(client, policy))
            };
            let page = self.query(query).await?.read(Table::Policies, read);
            let within = |sample: &Sample| window.from() <= sample.at && sample.at < window.to();
            found.rows.extend(page.rows.into_iter().flatten().filter(within));
            found.unreadable.extend(page.unreadable);
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_samples_is_pinned() {
        let at = DateTime::from_timestamp(1_795_262_640, 0).unwrap();
        let sample = Sample { at, in_flight: 4, max_in_flight: 5, waiting: 120, oldest_seconds: 33 };
        assert_eq!(
            (hour(at), minute_of_hour(at), encode(&sample)),
            ("0000498684".into(), "m04".into(), "4 5 120 33".into())
        );
        let row = |said: &str| {
            let row = [("pk", text("acme|small|samples")), ("sk", text(hour(at))), ("m04", text(said))];
            row.map(|(name, value)| (name.to_owned(), value)).into()
        };
        assert_eq!(read(&row("4 5 120 33")).unwrap(), [sample]);
        // A later version may say more.
        assert_eq!(read(&row("4 5 120 33 9")).unwrap(), [sample]);
        assert!(read(&row("4 5 x 33")).is_err());
    }
}
