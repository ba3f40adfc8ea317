//! What is emitted for each client, counted in the process and told to the tables now and then: for whoever asks what was used, and
//! what that costs.
//!
//! A process that dies before it tells loses what it counted, and a tick that is done over counts twice: it is an estimate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::stream::{self, StreamExt as _};
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::time::seconds;
use tidegate_domain::usage::Tally;
use tidegate_store::Store;
use tracing::debug;

/// For how long what is counted stays in the process: a write unit for each client that launches something in so long.
const TOLD_AFTER: TimeDelta = seconds(300);
/// Clients that are told of at once.
const CLIENTS_AT_ONCE: usize = 16;

/// Counts what is emitted for each client.
pub(crate) struct UsageCounter {
    store: Store,
    clock: Arc<dyn Clock>,
    untold: Mutex<Untold>,
}

#[derive(Default)]
struct Untold {
    /// When the first of it was counted.
    since: Option<DateTime<Utc>>,
    of: BTreeMap<(ClientId, NaiveDate), Tally>,
}

impl UsageCounter {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, untold: Mutex::default() }
    }

    /// Counts what was emitted for some clients, and tells it to the tables if it is time. What cannot be told is counted further.
    pub(crate) async fn count(&self, emitted: BTreeMap<ClientId, Tally>) {
        let now = self.clock.now();
        let Some(due) = self.add(emitted, now) else { return };
        let told = due.into_iter().map(async |((client, day), tally): ((ClientId, NaiveDate), Tally)| {
            let at = day.and_time(chrono::NaiveTime::MIN).and_utc();
            if let Err(error) = self.store.add_usage(&client, at, tally).await {
                debug!(%client, %error, "what was emitted is told later");
                self.add_again(client, day, tally);
            }
        });
        stream::iter(told.collect::<Vec<_>>()).buffer_unordered(CLIENTS_AT_ONCE).collect::<()>().await;
    }

    /// Adds to what is counted, and takes it all where it is time to tell it.
    fn add(
        &self,
        emitted: BTreeMap<ClientId, Tally>,
        now: DateTime<Utc>,
    ) -> Option<BTreeMap<(ClientId, NaiveDate), Tally>> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        for (client, tally) in emitted {
            untold.of.entry((client, now.date_naive())).or_default().include(tally);
        }
        if untold.of.is_empty() {
            return None;
        }
        let since = *untold.since.get_or_insert(now);
        let is_due = now.signed_duration_since(since) >= TOLD_AFTER;
        is_due.then(|| std::mem::take(&mut *untold).of)
    }

    fn add_again(&self, client: ClientId, day: NaiveDate, tally: Tally) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.of.entry((client, day)).or_default().include(tally);
    }
}
