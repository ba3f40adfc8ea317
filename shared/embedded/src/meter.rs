//! What AWS would bill: capacity units of each table and index, calls of each operation, requests to each queue.
//!
//! Counted at the seam, for every request of the in-process clients, so that a test can hold a budget exactly. Requests
//! over loopback HTTP are those of other programs and are not counted. A request that a fault dropped or refused is not
//! counted either; one whose reply was lost is.
//!
//! Failed conditional writes count as AWS counts them: by the size of the item that was there, one unit at least.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// The size of a payload that SQS bills as one request.
const BILLED_STEP_BYTES: usize = 64 * 1024;

/// Capacity units of one table or index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Units {
    /// Write request units.
    pub write: f64,
    /// Read request units.
    pub read: f64,
}

/// Requests of one operation to one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueUse {
    /// API calls.
    pub calls: u64,
    /// Requests as SQS bills them: each started 64 KiB of payload is one, and a call is one at least.
    pub billed: u64,
    /// Messages sent, received, deleted or changed by these calls.
    pub messages: u64,
}

/// Everything counted up to one moment. Differences of two are what happened between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Units by table name, or `table/index` for an index.
    pub capacity: BTreeMap<String, Units>,
    /// DynamoDB calls by operation.
    pub dynamodb_calls: BTreeMap<String, u64>,
    /// SQS use by queue name (empty for calls that name none), then by operation.
    pub queues: BTreeMap<String, BTreeMap<String, QueueUse>>,
}

impl Usage {
    /// What was counted after `earlier`, entries without a change left out.
    pub fn since(&self, earlier: &Usage) -> Usage {
        let mut left = Usage::default();
        for (store, now) in &self.capacity {
            let then = earlier.capacity.get(store).copied().unwrap_or_default();
            if *now != then {
                let units = Units { write: now.write - then.write, read: now.read - then.read };
                left.capacity.insert(store.clone(), units);
            }
        }
        for (operation, now) in &self.dynamodb_calls {
            let then = earlier.dynamodb_calls.get(operation).copied().unwrap_or_default();
            if *now != then {
                left.dynamodb_calls.insert(operation.clone(), now - then);
            }
        }
        for (queue, operations) in &self.queues {
            for (operation, now) in operations {
                let then = earlier.queue(queue, operation);
                if *now != then {
                    let used = QueueUse {
                        calls: now.calls - then.calls,
                        billed: now.billed - then.billed,
                        messages: now.messages - then.messages,
                    };
                    left.queues.entry(queue.clone()).or_default().insert(operation.clone(), used);
                }
            }
        }
        left
    }

    /// Write units of all tables and indexes together.
    ///
    /// A fold: the sum of no floats is -0.0.
    pub fn write_units(&self) -> f64 {
        self.capacity.values().fold(0.0, |sum, units| sum + units.write)
    }

    /// Read units of all tables and indexes together.
    pub fn read_units(&self) -> f64 {
        self.capacity.values().fold(0.0, |sum, units| sum + units.read)
    }

    /// Calls of all DynamoDB operations together.
    pub fn dynamodb_requests(&self) -> u64 {
        self.dynamodb_calls.values().sum()
    }

    /// Billed requests to all queues together.
    pub fn sqs_requests(&self) -> u64 {
        self.sqs_requests_where(|_, _| true)
    }

    /// Billed requests of the (queue, operation) pairs for which `counts` holds, to leave a consumer's own calls out.
    pub fn sqs_requests_where(&self, counts: impl Fn(&str, &str) -> bool) -> u64 {
        let all = self.queues.iter().flat_map(|(queue, operations)| {
            operations.iter().map(move |(operation, used)| (queue, operation, used))
        });
        all.filter(|(queue, operation, _)| counts(queue, operation)).map(|(_, _, used)| used.billed).sum()
    }

    /// The use of `queue` by `operation`.
    pub fn queue(&self, queue: &str, operation: &str) -> QueueUse {
        self.queues.get(queue).and_then(|operations| operations.get(operation)).copied().unwrap_or_default()
    }
}

/// Adds up what passes the seam. Shared by all clients of one [`Embedded`](crate::Embedded).
#[derive(Debug, Default)]
pub struct Meter {
    usage: Mutex<Usage>,
}

impl Meter {
    /// Everything counted so far.
    pub fn snapshot(&self) -> Usage {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts one DynamoDB call and the units it consumed, by table name or `table/index`.
    pub(crate) fn dynamodb<'a>(
        &self,
        operation: &str,
        units: impl IntoIterator<Item = (Cow<'a, str>, Units)>,
    ) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut usage.dynamodb_calls, operation, |calls| *calls += 1);
        for (store, units) in units {
            update(&mut usage.capacity, &store, |total| {
                total.write += units.write;
                total.read += units.read;
            });
        }
    }

    /// Counts one SQS call that carried `payload_bytes` and acted on `messages`.
    pub(crate) fn sqs(&self, queue: &str, operation: &str, payload_bytes: usize, messages: usize) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut usage.queues, queue, |operations| {
            update(operations, operation, |used| {
                used.calls += 1;
                used.billed += payload_bytes.div_ceil(BILLED_STEP_BYTES).max(1) as u64;
                used.messages += messages as u64;
            });
        });
    }
}

/// Changes the value under `key`; allocates only for a key that is new.
fn update<V: Default>(map: &mut BTreeMap<String, V>, key: &str, change: impl FnOnce(&mut V)) {
    match map.get_mut(key) {
        Some(value) => change(value),
        None => change(map.entry(key.to_owned()).or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_holds_only_what_changed() {
        let meter = Meter::default();
        meter.dynamodb("PutItem", [("jobs".into(), Units { write: 1.0, read: 0.0 })]);
        meter.sqs("a", "SendMessage", 10, 1);
        let before = meter.snapshot();
        meter.dynamodb("PutItem", [("jobs".into(), Units { write: 2.0, read: 0.0 })]);
        meter.sqs("b", "SendMessageBatch", BILLED_STEP_BYTES + 1, 10);
        let spent = meter.snapshot().since(&before);
        assert_eq!(spent.write_units(), 2.0);
        assert_eq!(spent.dynamodb_requests(), 1);
        assert_eq!(spent.queue("a", "SendMessage"), QueueUse::default());
        assert_eq!(spent.queue("b", "SendMessageBatch"), QueueUse { calls: 1, billed: 2, messages: 10 });
        assert_eq!(spent.sqs_requests(), 2);
        assert_eq!(spent.sqs_requests_where(|queue, _| queue == "a"), 0);
    }
}
