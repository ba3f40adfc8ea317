//! What is emitted for each client, and how late its events come: counted in the process and told to the tables now and then, for
//! whoever asks.
//!
//! A process that dies before it tells loses what it counted, and what is done over counts twice: both are estimates.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt as _};
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::lateness::{Lateness, hour_of};
use tidegate_domain::limits::ROWS_COUNTED;
use tidegate_domain::time::seconds;
use tidegate_domain::usage::Tally;
use tidegate_store::{Store, StoreError};
use tracing::debug;

use crate::contain::locked;
use crate::deadline;

/// For how long what is counted stays in the process: a write unit for each client of which there is anything in so long.
const TOLD_AFTER: TimeDelta = seconds(300);
/// Clients that are told of at once.
const CLIENTS_AT_ONCE: usize = 16;

/// What is counted for a client, by the row that it is added to.
pub(crate) trait Counted: Default + Send {
    /// What it is, for the log.
    const WHAT: &'static str;
    /// Of what is counted for one row, so much is told at once. A process that has nothing to do for long may be ended without a word:
    /// it should not have more untold than that.
    const MUCH: u64;
    /// Whether the first that is counted is told at once, and what comes then after a while; otherwise the first waits as well.
    const IS_TOLD_AT_ONCE: bool;

    /// Counts another as well.
    fn include(&mut self, other: &Self);

    /// How much it is.
    fn amount(&self) -> u64;

    /// When the row begins that holds what is counted at an instant.
    fn row_at(at: DateTime<Utc>) -> DateTime<Utc>;

    /// Adds it to the row of an instant.
    fn add_to(
        &self,
        store: &Store,
        client: &ClientId,
        at: DateTime<Utc>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What is emitted, by day. Whoever emits has something to do each minute.
impl Counted for Tally {
    const WHAT: &'static str = "what was emitted";
    const MUCH: u64 = u64::MAX;
    const IS_TOLD_AT_ONCE: bool = false;

    fn include(&mut self, other: &Self) {
        Self::include(self, *other);
    }

    fn amount(&self) -> u64 {
        self.events()
    }

    fn row_at(at: DateTime<Utc>) -> DateTime<Utc> {
        at.date_naive().and_time(NaiveTime::MIN).and_utc()
    }

    async fn add_to(&self, store: &Store, client: &ClientId, at: DateTime<Utc>) -> Result<(), StoreError> {
        store.add_usage(client, at, *self).await
    }
}

/// How late events come, by hour. Whoever delivers a single event may have nothing else to do that day, and of many it may be ended
/// right after the last.
impl Counted for Lateness {
    const WHAT: &'static str = "how late events came";
    const MUCH: u64 = 250;
    const IS_TOLD_AT_ONCE: bool = true;

    fn include(&mut self, other: &Self) {
        Self::include(self, other);
    }

    fn amount(&self) -> u64 {
        self.events()
    }

    fn row_at(at: DateTime<Utc>) -> DateTime<Utc> {
        hour_of(at)
    }

    async fn add_to(&self, store: &Store, client: &ClientId, at: DateTime<Utc>) -> Result<(), StoreError> {
        store.add_lateness(client, at, self).await
    }
}

/// The row of a client, by when it begins.
type RowOf = (ClientId, DateTime<Utc>);

/// Counts something for each client.
pub(crate) struct Counter<T> {
    store: Store,
    clock: Arc<dyn Clock>,
    untold: Mutex<Untold<T>>,
}

struct Untold<T> {
    /// Since when nothing was told that is due by time; `None`: what is there is due.
    since: Option<DateTime<Utc>>,
    of: BTreeMap<RowOf, T>,
    /// Rows for which much was counted.
    much: Vec<RowOf>,
}

impl<T: Counted> Counter<T> {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let untold = Untold { since: None, of: BTreeMap::new(), much: Vec::new() };
        Self { store, clock, untold: Mutex::new(untold) }
    }

    /// Counts something for a client. Makes no call.
    pub(crate) fn count(&self, client: &ClientId, counted: &T) {
        let now = self.clock.now();
        let mut untold = self.untold();
        if untold.of.is_empty() && !T::IS_TOLD_AT_ONCE {
            untold.since = Some(now);
        }
        let row = (client.clone(), T::row_at(now));
        let Some((before, after)) = untold.include(row.clone(), counted) else { return };
        // Once for each so much: what cannot be told is not tried again with each event.
        if before.checked_div(T::MUCH) != after.checked_div(T::MUCH) {
            untold.much.push(row);
        }
    }

    /// Tells the tables what it is time for. What cannot be told, or is not while there is time, is counted further.
    pub(crate) async fn tell(&self) {
        let due = self.take_due(self.clock.now());
        let told = due.into_iter().map(async |((client, at), counted): (RowOf, T)| {
            let told = match deadline::is_over(&*self.clock) {
                true => Err("the time of the call is over".to_owned()),
                false => counted.add_to(&self.store, &client, at).await.map_err(|error| error.to_string()),
            };
            if let Err(reason) = told {
                debug!(%client, reason, "{} is told later", T::WHAT);
                self.untold().include((client, at), &counted);
            }
        });
        stream::iter(told.collect::<Vec<_>>()).buffer_unordered(CLIENTS_AT_ONCE).collect::<()>().await;
    }

    fn take_due(&self, now: DateTime<Utc>) -> BTreeMap<RowOf, T> {
        let mut untold = self.untold();
        let is_time = untold.since.is_none_or(|since| now.signed_duration_since(since) >= TOLD_AFTER);
        if !untold.of.is_empty() && (is_time || untold.of.len() >= ROWS_COUNTED) {
            untold.since = Some(now);
            untold.much.clear();
            return std::mem::take(&mut untold.of);
        }
        let much = std::mem::take(&mut untold.much);
        much.into_iter().filter_map(|row| untold.of.remove_entry(&row)).collect()
    }

    fn untold(&self) -> MutexGuard<'_, Untold<T>> {
        locked(&self.untold)
    }
}

impl<T: Counted> Untold<T> {
    /// Counts something, and how much there was of it and is. `None`: there is no room for another row.
    fn include(&mut self, row: RowOf, counted: &T) -> Option<(u64, u64)> {
        let rows = self.of.len();
        let known = match self.of.entry(row) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) if rows < ROWS_COUNTED => new.insert(T::default()),
            Entry::Vacant(new) => {
                debug!(client = %new.key().0, "{} is lost: too many clients are counted for", T::WHAT);
                return None;
            }
        };
        let before = known.amount();
        known.include(counted);
        Some((before, known.amount()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_lost_and_what_is_known_counts_further() {
        let mut untold = Untold::<Tally> { since: None, of: BTreeMap::new(), much: Vec::new() };
        let row = |number: usize| {
            let client: ClientId = format!("client-{number}").parse().unwrap();
            (client, DateTime::UNIX_EPOCH)
        };
        let launch = Tally::of_launch(2, false);
        for number in 0..ROWS_COUNTED {
            assert_eq!(untold.include(row(number), &launch), Some((0, 2)));
        }
        assert_eq!(untold.include(row(ROWS_COUNTED), &launch), None);
        assert_eq!((untold.include(row(7), &launch), untold.of.len()), (Some((2, 4)), ROWS_COUNTED));
    }
}
