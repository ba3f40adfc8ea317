//! How late the events of a client came: a row for each hour of UTC, added to now and then.
//!
//! A bucket of a histogram is an attribute: a letter and its bound in milliseconds. Buckets without events are not stored.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::lateness::{Histogram, Lateness, hour_of};
use tidegate_domain::limits::USAGE_DAYS;
use tidegate_domain::time::{Window, days, seconds, shifted};

use crate::item::{Attributes, Item, Key, number};
use crate::rows::{Query, Sorted, Update};
use crate::samples::{at_hour, hour};
use crate::tables::{EXPIRES_AT, SORT_KEY, Table};
use crate::{Page, Result, Store};

/// What buckets of events under a policy begin with.
const THROTTLED: &str = "t";
/// The same of events that nothing throttles.
const UNTHROTTLED: &str = "u";
/// Stands in the place of a bound in the bucket that has none.
const MORE: &str = "more";

fn partition(client: &ClientId) -> String {
    format!("{client}|lateness")
}

/// The buckets that have events, by the names of their attributes.
fn encode(lateness: &Lateness) -> Vec<(String, u64)> {
    let kinds = [(THROTTLED, &lateness.throttled), (UNTHROTTLED, &lateness.unthrottled)];
    let buckets = kinds.into_iter().flat_map(|(kind, histogram)| {
        histogram.buckets().map(move |(bound_ms, events)| {
            (format!("{kind}{}", bound_ms.map_or(MORE.to_owned(), |ms| ms.to_string())), events)
        })
    });
    buckets.collect()
}

fn decode(item: &Item<'_>, kind: &str) -> Result<Histogram> {
    let mut buckets = Vec::new();
    for name in item.names() {
        let bound_ms = match name.strip_prefix(kind) {
            Some(MORE) => None,
            Some(bound_ms) => match bound_ms.parse() {
                Ok(bound_ms) => Some(bound_ms),
                // It is no bucket.
                Err(_) => continue,
            },
            None => continue,
        };
        buckets.push((bound_ms, item.number(name)?));
    }
    Ok(Histogram::of(buckets))
}

fn read(row: &Attributes) -> Result<(DateTime<Utc>, Lateness)> {
    let item = Item::read(Table::Policies, row)?;
    let at = at_hour(item.text(SORT_KEY)?).ok_or_else(|| item.corrupt("'sk' is no hour"))?;
    let (throttled, unthrottled) = (decode(&item, THROTTLED)?, decode(&item, UNTHROTTLED)?);
    Ok((at, Lateness { throttled, unthrottled }))
}

impl Store {
    /// Adds to how late the events of a client came in the hour of an instant: one write unit. Whoever repeats it counts twice.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn add_lateness(
        &self,
        client: &ClientId,
        at: DateTime<Utc>,
        lateness: &Lateness,
    ) -> Result<()> {
        let buckets = encode(lateness);
        if buckets.is_empty() {
            return Ok(());
        }
        let added: Vec<String> = buckets.iter().map(|(name, _)| format!("{name} :{name}")).collect();
        let changes = format!("SET #expires = :expires ADD {}", added.join(", "));
        let update = Update::new(Table::Policies, Key::new(partition(client), hour(at)), changes)
            .name("#expires", EXPIRES_AT)
            .value(":expires", number(shifted(hour_of(at), days(USAGE_DAYS)).timestamp()));
        let update = buckets
            .into_iter()
            .fold(update, |update, (name, events)| update.value(format!(":{name}"), number(events)));
        self.update(update).await.map(drop)
    }

    /// How late the events of a client came in each hour that a window touches and in which there were any, in order of time: a read
    /// unit for a day or two. A row that cannot be read is among the `unreadable` ones.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn lateness(
        &self,
        client: &ClientId,
        window: Window,
    ) -> Result<Page<(DateTime<Utc>, Lateness)>> {
        let last = shifted(window.to(), -seconds(1)).max(window.from());
        let sorted = Sorted::Between(hour(window.from()), hour(last));
        let query = Query { sorted, ..Query::of(Table::Policies, partition(client)) };
        Ok(self.query(query).await?.read(Table::Policies, read))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::time::milliseconds;

    use super::*;
    use crate::item::text;

    fn row(buckets: &[(&str, u64)]) -> Attributes {
        let key = [("pk", text("acme|lateness")), ("sk", text("0000498684")), (EXPIRES_AT, number(1))];
        let buckets = buckets.iter().map(|(name, events)| (*name, number(*events)));
        key.into_iter().chain(buckets).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn the_stored_form_of_lateness_is_pinned() {
        let mut lateness = Lateness::default();
        lateness.throttled.count(milliseconds(61_000), 7);
        lateness.unthrottled.count(milliseconds(3), 2);
        lateness.unthrottled.count(days(2), 1);
        let buckets = encode(&lateness);
        let said: Vec<(&str, u64)> = buckets.iter().map(|(name, events)| (&**name, *events)).collect();
        assert_eq!(said, [("t120000", 7), ("u10", 2), ("umore", 1)]);
        let at = DateTime::from_timestamp(1_795_262_400, 0).unwrap();
        assert_eq!(hour(at), "0000498684");
        assert_eq!(read(&row(&said)).unwrap(), (at, lateness));
    }

    #[test]
    fn what_a_later_version_says_stays_what_it_is() {
        // Another bound, and something else.
        let (_, read) = read(&row(&[("u15", 1), ("t10", 2), ("tries", 9), ("x10", 9)])).unwrap();
        assert_eq!(encode(&read), [("t10".to_owned(), 2), ("u20".to_owned(), 1)]);
        let mut spoiled = row(&[]);
        spoiled.insert("u10".to_owned(), text("many"));
        assert!(super::read(&spoiled).is_err());
        spoiled.remove("u10");
        spoiled.insert("sk".to_owned(), text("noon"));
        assert!(super::read(&spoiled).is_err());
    }
}
