//! The embedded SQS: standard and FIFO queues over SQLite, behind the JSON protocol, on an injected clock.
//!
//! Every request is a transaction, or part of one, under one lock; only a long poll waits, and a send for one turn of the others,
//! outside of the lock. Limits and error codes are those that AWS documents. It checks no signature and no policy, encrypts nothing,
//! speaks no Query protocol and has no message move tasks. Two of AWS's waits are left out: a queue's name is free at once after a
//! delete, and a change of attributes works at once.

mod acknowledge;
mod admin;
mod attributes;
mod batch;
mod bundle;
mod error;
mod fifo;
mod handed_over;
mod limits;
mod message;
mod name;
mod outside;
mod poll;
mod queue;
mod receipt;
mod receive;
mod redrive;
mod release;
mod requests;
mod schema;
mod send;
mod standard;
mod store;
mod taken;
mod turns;
mod wire;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock;

use crate::folder::Durability;
use crate::meter::Meter;
use crate::reply::Reply;
pub(crate) use error::Failure;
pub(crate) use name::REGION;
pub use name::{QueueName, place_of_queues};
pub use outside::OwnQueues;
use requests::Served;
use store::{Fate, Keep, Store};

/// The origin of queue URLs before the service is served over HTTP.
const IN_PROCESS_ORIGIN: &str = "http://127.0.0.1";

/// One embedded SQS.
pub(crate) struct Sqs {
    clock: Arc<dyn Clock>,
    store: Arc<Mutex<Store>>,
    origin: RwLock<String>,
    own: RwLock<OwnQueues>,
    /// Each send that is under way has a clone.
    sending: Arc<()>,
}

impl Sqs {
    /// The queues in `file`, or none in memory; equal seeds give equal message ids.
    pub(crate) fn open(
        file: Option<(&Path, Durability)>,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> rusqlite::Result<Self> {
        let store = Arc::new(Mutex::new(Store::open(file, seed)?));
        let origin = RwLock::new(IN_PROCESS_ORIGIN.to_owned());
        Ok(Self { clock, store, origin, own: RwLock::default(), sending: Arc::default() })
    }

    /// Serves one request; a receive may wait.
    pub(crate) async fn call(&self, operation: &str, body: &[u8], meter: Option<&Meter>) -> Reply {
        let served = match operation {
            "ReceiveMessage" => self.receive(body).await,
            "SendMessage" | "SendMessageBatch" => self.send(operation, body).await,
            _ => self.answer(operation, body),
        };
        match served {
            Ok(Served { queue, body, payload_bytes, messages }) => {
                if let Some(meter) = meter {
                    meter.sqs(&queue, operation, payload_bytes, messages);
                }
                Reply::ok(body)
            }
            Err(failure) => {
                if let Some(meter) = meter {
                    meter.sqs(&requests::queue_named(body), operation, 0, 0);
                }
                failure.reply()
            }
        }
    }

    /// The origin (scheme, host and port) that queue URLs carry from now on. URLs with another one stay valid.
    pub(crate) fn set_origin(&self, origin: String) {
        *self.origin.write().unwrap_or_else(PoisonError::into_inner) = origin;
    }

    /// The origin that queue URLs carry.
    pub(crate) fn origin(&self) -> String {
        self.origin.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets everyone who waits in a long poll look again: for a clock that was moved by hand.
    pub(crate) fn wake_all(&self) {
        for queue in self.lock().queues.values() {
            queue.wake.notify_waiters();
        }
    }

    /// Does `work` while no request changes a queue, and tells it what time that is; requests meanwhile wait.
    pub(crate) fn while_held<R>(&self, work: impl FnOnce(DateTime<Utc>) -> R) -> R {
        let _store = self.lock();
        work(self.clock.now())
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().timestamp_millis()
    }

    /// The queues of Tidegate itself.
    fn own(&self) -> RwLockReadGuard<'_, OwnQueues> {
        self.own.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, with all that was changed committed.
    fn lock(&self) -> MutexGuard<'_, Store> {
        let mut store = self.hold();
        store.settle();
        store
    }

    fn hold(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a queue, and commits that.
    fn on_queue<R>(
        &self,
        url: &str,
        work: impl FnOnce(&mut store::Desk<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.on_queue_kept(url, Keep::Now, work)
    }

    fn on_queue_kept<R>(
        &self,
        url: &str,
        keep: Keep,
        work: impl FnOnce(&mut store::Desk<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.on_queue_with_fate(url, keep, work).map(|(done, _)| done)
    }

    /// Changes a queue. Where that waits for a commit, its fate is to be [awaited](Self::see_kept).
    fn on_queue_with_fate<R>(
        &self,
        url: &str,
        keep: Keep,
        work: impl FnOnce(&mut store::Desk<'_>) -> Result<R, Failure>,
    ) -> Result<(R, Option<Fate>), Failure> {
        let now_ms = self.now_ms();
        let mut store = self.hold();
        let done = store.on_queue(url, (now_ms, &self.own().hidden), keep, work);
        if store.needs_a_promise() {
            Store::promise(&mut store, Arc::downgrade(&self.store))?;
        }
        Ok((done?, store.fate()))
    }

    /// Sees to it that changes are committed, unless others did.
    fn see_kept(&self, fate: Option<Fate>) -> Result<(), Failure> {
        let Some(fate) = fate else { return Ok(()) };
        if fate.is_open() {
            let mut store = self.hold();
            if fate.is_open() {
                store.settle();
            }
        }
        fate.kept()
    }

    /// How a receive from the queue at `url` is kept. A message of ours that comes again must say so: whoever handles it looks
    /// then whether it was handled.
    fn keeps_receives(&self, url: &str) -> Keep {
        let is_own = name::in_url(url).is_ok_and(|name| self.own().hides(name));
        if is_own { Keep::Now } else { Keep::Soon }
    }
}

#[cfg(test)]
mod tests;
