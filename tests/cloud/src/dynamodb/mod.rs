//! DynamoDB as it is: its latency, what its tables and partitions take, and transactions that meet.
//!
//! A hook before the embedded tables. A request travels for half of its time, is judged, acts all at once, and its answer
//! travels for the other half: whoever is killed in between does not know whether it acted.

mod capacity;
mod conflicts;
mod replica;
mod request;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::{Embedded, Service};
use tidegate_testkit::ItemKey;
use tokio::time::sleep;

use capacity::Capacity;
pub use capacity::Hottest;
pub(crate) use capacity::Units;
use conflicts::Conflicts;
use replica::Replica;
use request::{Kind, Wanted};

use crate::clock::VirtualClock;
use crate::dice::Dice;
use crate::limits::{DYNAMODB_CALL, DYNAMODB_TRANSACTION, READ_LAG, UNANSWERED};
use crate::reply::{Answer, cancelled, dynamodb_error, no_answer};
use crate::weather::{Trouble, Weather};

/// What differs between regions.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    /// Write and read units a second that every table takes as it begins; those of a new table when `None`.
    pub warm: Option<(f64, f64)>,
    /// Whether partitions are split that are too small for a while.
    pub splits: bool,
    /// Whether eventually consistent reads lag behind.
    pub lags: bool,
}

impl TableOptions {
    /// Write and read units a second that tables take as they begin, as `docs/operations.md` has it for an account of 1,000
    /// concurrent.
    pub(crate) const WARM_IN_LARGE_ACCOUNT: (f64, f64) = (40_000.0, 40_000.0);
}

/// The tables of a region, as its processes see them.
pub(crate) struct DynamoDb {
    embedded: Embedded,
    clock: VirtualClock,
    dice: Arc<Dice>,
    weather: Arc<Weather>,
    capacity: Mutex<Capacity>,
    conflicts: Mutex<Conflicts>,
    replica: Option<Replica>,
    /// Batches of writes, and of reads, of which some items were left out.
    left_out: (AtomicU64, AtomicU64),
}

/// Lets go of a transaction's items, also when whoever waits for it is killed.
struct Holding<'a> {
    conflicts: &'a Mutex<Conflicts>,
    keys: &'a [ItemKey],
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        locked(self.conflicts).let_go(self.keys);
    }
}

impl DynamoDb {
    pub(crate) async fn new(
        embedded: &Embedded,
        clock: VirtualClock,
        (dice, weather): (Arc<Dice>, Arc<Weather>),
        options: TableOptions,
    ) -> anyhow::Result<Self> {
        let warm = options.warm.map(|(write, read)| Units { write, read });
        Ok(Self {
            embedded: embedded.clone(),
            clock,
            dice,
            weather,
            capacity: Mutex::new(Capacity::new(warm, options.splits)),
            conflicts: Mutex::default(),
            left_out: Default::default(),
            replica: if options.lags { Some(Replica::new(clock, READ_LAG).await?) } else { None },
        })
    }

    /// Serves a request: `inner` leads to the embedded tables.
    pub(crate) async fn serve(&self, inner: SharedHttpConnector, request: HttpRequest) -> Answer {
        let wanted = Wanted::of(&request);
        let kind = wanted.kind;
        let of = if kind == Kind::Transaction { DYNAMODB_TRANSACTION } else { DYNAMODB_CALL };
        let latency = self.dice.time(of);
        sleep(latency / 2).await;
        let trouble = self.weather.of(Service::DynamoDb, self.clock.now());
        let answer = match trouble {
            Some(Trouble::Throttled) => throttled(),
            Some(Trouble::Gone) if self.dice.once_in(UNANSWERED) => no_answer().await,
            Some(Trouble::Gone) => dynamodb_error(500, "InternalServerError", "Internal server error"),
            Some(Trouble::Slow(by)) => {
                sleep(by).await;
                self.judge(inner, request, wanted).await
            }
            None => self.judge(inner, request, wanted).await,
        };
        sleep(latency / 2).await;
        answer
    }

    /// Serves a request past the model: at once and for nothing. What it writes comes to what lags all the same.
    pub(crate) async fn serve_past(&self, inner: SharedHttpConnector, request: HttpRequest) -> Answer {
        match &self.replica {
            Some(replica) if Wanted::of(&request).kind != Kind::Read => replica.write(&inner, request).await,
            _ => inner.call(request).await,
        }
    }

    /// Deletes what has expired from what eventually consistent reads see.
    pub(crate) async fn sweep_copy(&self) {
        if let Some(replica) = &self.replica {
            replica.sweep_ttl().await;
        }
    }

    /// What was refused because a limit was reached, and because two met.
    pub(crate) fn refused(&self) -> (u64, u64) {
        (locked(&self.capacity).throttled, locked(&self.conflicts).refused)
    }

    /// Batches of writes, and of reads, of which some items were left out.
    pub(crate) fn left_out(&self) -> (u64, u64) {
        (self.left_out.0.load(Ordering::Relaxed), self.left_out.1.load(Ordering::Relaxed))
    }

    /// The keys that took most in a second: of write units, and of read units.
    pub(crate) fn hottest(&self) -> (Hottest, Hottest) {
        locked(&self.capacity).hottest()
    }

    async fn judge(&self, inner: SharedHttpConnector, request: HttpRequest, mut wanted: Wanted) -> Answer {
        let writes = wanted.kind != Kind::Read;
        let admitted: Vec<bool> = {
            let mut capacity = locked(&self.capacity);
            match wanted.may_leave_out() {
                true => capacity.admits_each(&wanted.keys, writes),
                false => wanted.keys.iter().map(|key| capacity.admits(key, writes)).collect(),
            }
        };
        let left_out = match admitted.iter().filter(|admitted| !**admitted).count() {
            0 => None,
            some if some < admitted.len() && wanted.may_leave_out() => {
                let counted = if writes { &self.left_out.0 } else { &self.left_out.1 };
                counted.fetch_add(1, Ordering::Relaxed);
                Some(wanted.leave_out(|place| !admitted.get(place).is_none_or(|admitted| *admitted)))
            }
            _ if wanted.kind == Kind::Transaction => {
                return cancelled(admitted.iter().map(|admitted| (!admitted).then_some("ThrottlingError")));
            }
            _ => return throttled(),
        };
        if writes && let Some(held) = locked(&self.conflicts).among(&wanted.keys) {
            return match wanted.kind {
                Kind::Transaction => {
                    cancelled(held.into_iter().map(|held| held.then_some("TransactionConflict")))
                }
                _ => {
                    dynamodb_error(400, "TransactionConflictException", "Transaction is ongoing for the item")
                }
            };
        }
        let request = if left_out.is_some() { wanted.rewritten(request) } else { request };
        if wanted.kind == Kind::Transaction {
            locked(&self.conflicts).hold(&wanted.keys);
            let holding = Holding { conflicts: &self.conflicts, keys: &wanted.keys };
            sleep(self.dice.time(DYNAMODB_CALL)).await;
            drop(holding);
        }
        let answer = self.act(inner, request, &wanted).await;
        match left_out {
            Some((member, items)) => named_in(answer, member, items),
            None => answer,
        }
    }

    /// The request reaches the tables, and is charged.
    async fn act(&self, inner: SharedHttpConnector, request: HttpRequest, wanted: &Wanted) -> Answer {
        let before = self.embedded.meter().snapshot();
        let answer = match &self.replica {
            Some(replica) => replica.serve(&inner, request, wanted).await,
            None => inner.call(request).await,
        };
        let used = self.embedded.meter().snapshot().since(&before);
        let used = Units { write: used.write_units(), read: used.read_units() };
        locked(&self.capacity).charge(&wanted.keys, used);
        answer
    }
}

fn throttled() -> Answer {
    dynamodb_error(
        400,
        "ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded.",
    )
}

/// The answer of a batch, with what was left out of it in its member.
fn named_in(answer: Answer, member: &str, items: Value) -> Answer {
    let answer = answer?;
    let body = answer.body().bytes().unwrap_or_default();
    let Ok(Value::Object(mut body)) = serde_json::from_slice(body) else { return Ok(answer) };
    body.insert(member.to_owned(), items);
    Ok(HttpResponse::new(answer.status(), SdkBody::from(Value::Object(body).to_string())))
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
