//! Snapshots of tables, each taken before some request of a call.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpClient};
use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::{DateTime, Utc};
use tidegate_domain::clock::{Clock as _, ManualClock};
use tidegate_embedded::around;
use tidegate_store::tables::Table;
use tidegate_testkit::rows::{self, Row};

/// When a table's snapshot is taken: at the first request from an instant on, after some more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) table: Table,
    pub(super) at: DateTime<Utc>,
    pub(super) requests_later: u64,
}

#[derive(Default)]
struct State {
    open: Vec<Cut>,
    taken: Vec<(Table, Vec<Row>)>,
    /// Requests that are still served; `None`: all.
    left: Option<u64>,
}

/// What stands before the tables.
pub(super) struct Snapshots {
    clock: Arc<ManualClock>,
    db: Client,
    state: Mutex<State>,
}

impl Snapshots {
    pub(super) fn new(clock: Arc<ManualClock>, db: Client) -> Arc<Self> {
        Arc::new(Self { clock, db, state: Mutex::default() })
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn plan(&self, cuts: Vec<Cut>) {
        self.with(|state| state.open = cuts);
    }

    /// Whether all snapshots are taken, and whether none is.
    pub(super) fn progress(&self) -> (bool, bool) {
        self.with(|state| (state.open.is_empty(), state.taken.is_empty()))
    }

    /// From now on so many requests are served, and of the next one nobody knows the answer; `None`: all are.
    pub(super) fn serve(&self, requests: Option<u64>) {
        self.with(|state| state.left = requests);
    }

    fn due(&self) -> Vec<Table> {
        let now = self.clock.now();
        self.with(|state| {
            let mut due = Vec::new();
            state.open.retain_mut(|cut| {
                let is_due = now >= cut.at && cut.requests_later == 0;
                if now >= cut.at {
                    cut.requests_later = cut.requests_later.saturating_sub(1);
                }
                due.extend(is_due.then_some(cut.table));
                !is_due
            });
            due
        })
    }

    /// What becomes of a request: it is served, served without an answer, or not served.
    fn fate(&self) -> Fate {
        self.with(|state| match state.left {
            None => Fate::Served,
            Some(0) => Fate::Refused,
            Some(1) => {
                state.left = Some(0);
                Fate::Unanswered
            }
            Some(left) => {
                state.left = Some(left - 1);
                Fate::Served
            }
        })
    }

    /// The same client, behind the snapshots.
    pub(super) fn before(self: &Arc<Self>, http: SharedHttpClient) -> SharedHttpClient {
        let own = Arc::clone(self);
        around(http, move |inner, request| {
            let (own, inner) = (Arc::clone(&own), inner.clone());
            HttpConnectorFuture::new(async move {
                for table in own.due() {
                    let taken = rows::all(&own.db, table).await;
                    let taken = taken.map_err(|error| ConnectorError::other(error.into(), None))?;
                    own.with(|state| state.taken.push((table, taken)));
                }
                let lost = || ConnectorError::io("the process is killed".into());
                match own.fate() {
                    Fate::Served => inner.call(request).await,
                    Fate::Unanswered => {
                        inner.call(request).await?;
                        Err(lost())
                    }
                    Fate::Refused => Err(lost()),
                }
            })
        })
    }

    /// Makes every table what its snapshot says.
    pub(super) async fn restore(&self) -> Result<()> {
        for (table, rows) in self.with(|state| std::mem::take(&mut state.taken)) {
            rows::replace_all(&self.db, table, rows).await?;
        }
        Ok(())
    }
}

enum Fate {
    Served,
    Unanswered,
    Refused,
}
