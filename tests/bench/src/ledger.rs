//! What each partition key of the tables takes: writes, and units of either kind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::Value;
use tidegate_embedded::Usage;
use tidegate_testkit::items_in;

/// What one key took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    /// Requests that wrote to it, or tried to.
    pub(crate) writes: u32,
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
}

/// The keys, as `table/partition key`. Closed until it is opened.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: AtomicBool,
    keys: Mutex<BTreeMap<String, Taken>>,
}

impl Ledger {
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Begins anew.
    pub(crate) fn open(&self) {
        self.locked().clear();
        self.open.store(true, Ordering::Relaxed);
    }

    /// What was noted since it was opened.
    pub(crate) fn close(&self) -> BTreeMap<String, Taken> {
        self.open.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.locked())
    }

    /// The keys that a request names, each as often as it names it.
    pub(crate) fn keys(request: &HttpRequest) -> Vec<String> {
        let body = request.body().bytes().unwrap_or_default();
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
        items_in(&body).into_iter().map(|item| format!("{}/{}", item.table, item.partition)).collect()
    }

    /// Notes what a request took, in equal parts when it named several keys.
    pub(crate) fn note(&self, keys: &[String], used: &Usage) {
        let share = 1.0 / keys.len().max(1) as f64;
        let mut noted = self.locked();
        for key in keys {
            let taken = noted.entry(key.clone()).or_default();
            taken.writes += u32::from(used.write_units() > 0.0);
            taken.write_units += used.write_units() * share;
            taken.read_units += used.read_units() * share;
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Taken>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(body: &str) -> Vec<String> {
        Ledger::keys(&HttpRequest::new(body.into()))
    }

    #[test]
    fn every_kind_of_request_names_its_keys() {
        let key = r#""pk":{"S":"a"},"sk":{"S":"b"}"#;
        let cases = [
            (format!(r#"{{"TableName":"t","Key":{{{key}}}}}"#), &["t/a"][..]),
            (format!(r#"{{"TableName":"t","Item":{{{key}}}}}"#), &["t/a"]),
            (r#"{"TableName":"t","ExpressionAttributeValues":{":pk":{"S":"a"}}}"#.to_owned(), &["t/a"]),
            (
                format!(
                    r#"{{"TransactItems":[{{"Put":{{"TableName":"t","Item":{{{key}}}}}}},{{"Delete":{{"TableName":"u","Key":{{{key}}}}}}}]}}"#
                ),
                &["t/a", "u/a"],
            ),
            (format!(r#"{{"RequestItems":{{"t":[{{"PutRequest":{{"Item":{{{key}}}}}}}]}}}}"#), &["t/a"]),
            (r#"{"QueueUrl":"q"}"#.to_owned(), &[]),
        ];
        for (body, named) in cases {
            assert_eq!(keys(&body), named, "{body}");
        }
    }
}
