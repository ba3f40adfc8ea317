//! What becomes of the SDK's requests: those that were throttled, that met a transaction, and that failed are counted apart, and
//! each can be logged by the permission that it needs.
//!
//! Attempts are counted, not calls: what succeeds when it is repeated is counted too. A condition that does not hold is an
//! answer like another, and an error of a consumer's queue is its consumer's; one of our own queues is a fault.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_sqs::operation::change_message_visibility_batch::ChangeMessageVisibilityBatchInput;
use aws_sdk_sqs::operation::send_message::SendMessageInput;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchInput;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef, Input,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use metrics::counter;
use serde::Deserialize;
use serde_json::Value;
use tracing::{Level, debug, enabled};

use crate::figures::{CONFLICTS, FAULTS, THROTTLES};

/// The target of the log's lines that name calls: one each, with `action` and `resource`.
const CALLS: &str = "tidegate_aws::calls";
/// What the SDK calls the service that all else is not.
const DYNAMODB: &str = "DynamoDB";

/// Counts what became of requests.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    under_way: Arc<AtomicU64>,
    /// The URLs of our own queues.
    own_queues: Arc<[String]>,
}

impl Counted {
    /// Counts those under way in `under_way`.
    pub(crate) fn new(under_way: Arc<AtomicU64>, own_queues: Arc<[String]>) -> Self {
        Self { under_way, own_queues }
    }
}

/// Says of a call that it is for one of our own queues.
#[derive(Debug)]
struct OfOwnQueue;

impl Storable for OfOwnQueue {
    type Storer = StoreReplace<Self>;
}

/// The queue that a call is for, of those that functions make of their own queues.
fn queue_url(input: &Input) -> Option<&str> {
    let batch = input.downcast_ref::<SendMessageBatchInput>().and_then(SendMessageBatchInput::queue_url);
    let single = || input.downcast_ref::<SendMessageInput>().and_then(SendMessageInput::queue_url);
    let later = || input.downcast_ref::<ChangeMessageVisibilityBatchInput>()?.queue_url();
    batch.or_else(single).or_else(later)
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for Counted {
    fn name(&self) -> &'static str {
        "Counted"
    }

    // Later the input is gone, and the body of a request may have a megabyte.
    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let url = queue_url(context.input());
        if url.is_some_and(|url| self.own_queues.iter().any(|own| own == url)) {
            config.interceptor_state().store_put(OfOwnQueue);
        }
        Ok(())
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        if enabled!(target: CALLS, Level::DEBUG)
            && let Some(call) = config.load::<Metadata>()
        {
            let body = context.request().body().bytes().unwrap_or_default();
            for (action, resource) in permissions(call.service(), call.name(), body) {
                debug!(target: CALLS, action, resource, "call");
            }
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // An attempt whose request could not even be made was never under way.
        let less = |under_way: u64| under_way.checked_sub(1);
        let _none_under_way = self.under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let Some(call) = config.load::<Metadata>() else { return Ok(()) };
        let metric = match context.response() {
            None => Some(FAULTS),
            Some(response) => {
                let body = response.body().bytes().unwrap_or_default();
                let is_ours = call.service() == DYNAMODB || config.load::<OfOwnQueue>().is_some();
                told(call, is_ours, response.status().as_u16(), body)
            }
        };
        if let Some(metric) = metric {
            counter!(metric).increment(1);
        }
        Ok(())
    }
}

/// What an answer counts as; `None`: as nothing. `is_ours`: of a table or queue of ours.
fn told(call: &Metadata, is_ours: bool, status: u16, body: &[u8]) -> Option<&'static str> {
    let is_dynamodb = call.service() == DYNAMODB;
    if status < 300 {
        // The rest of a batch is sent again: the tables were too small for it.
        let is_batch = is_dynamodb && call.name().starts_with("Batch");
        return (is_batch && has_unprocessed(body)).then_some(THROTTLES);
    }
    let error: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
    let code = error.code();
    let is_of_requester = (400..500).contains(&status);
    match code {
        "ConditionalCheckFailedException" => None,
        "TransactionCanceledException" => error.canceled(),
        "TransactionConflictException" | "TransactionInProgressException" => Some(CONFLICTS),
        _ if is_throttled(code) || status == 429 => Some(THROTTLES),
        // Of a consumer's queue: missing, or not allowed.
        _ if !is_ours && is_of_requester => None,
        _ => Some(FAULTS),
    }
}

fn is_throttled(code: &str) -> bool {
    let codes = [
        "ProvisionedThroughputExceeded",
        "Throttling",
        "ThrottlingError",
        "RequestLimitExceeded",
        "RequestThrottled",
        "KmsThrottled",
    ];
    codes.contains(&code.strip_suffix("Exception").unwrap_or(code))
}

/// An error as DynamoDB and SQS tell it.
#[derive(Debug, Default, Deserialize)]
struct ErrorBody {
    #[serde(rename = "__type", default)]
    kind: String,
    #[serde(rename = "CancellationReasons", default)]
    reasons: Vec<Reason>,
}

#[derive(Debug, Deserialize)]
struct Reason {
    #[serde(rename = "Code", default)]
    code: String,
}

impl ErrorBody {
    /// The code, without the name of the service before it.
    fn code(&self) -> &str {
        self.kind.rsplit(['#', '.']).next().unwrap_or_default()
    }

    /// What a transaction that was cancelled counts as: its worst reason.
    fn canceled(&self) -> Option<&'static str> {
        let of = |reason: &Reason| match reason.code.as_str() {
            "" | "None" | "ConditionalCheckFailed" => (0, None),
            "TransactionConflict" => (1, Some(CONFLICTS)),
            code if is_throttled(code) => (2, Some(THROTTLES)),
            _ => (3, Some(FAULTS)),
        };
        self.reasons.iter().map(of).max_by_key(|(rank, _)| *rank).and_then(|(_, metric)| metric)
    }
}

fn has_unprocessed(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Batch {
        #[serde(rename = "UnprocessedItems", alias = "UnprocessedKeys", default)]
        left: std::collections::BTreeMap<String, serde::de::IgnoredAny>,
    }
    serde_json::from_slice(body).is_ok_and(|batch: Batch| !batch.left.is_empty())
}

/// The permissions that a request needs: each an action of IAM, and the name of the table or queue. `service` is `DynamoDB` or
/// `SQS`, `operation` its name in the SDK, and `body` what is sent.
///
/// ```
/// let needed = tidegate_aws::permissions("DynamoDB", "GetItem", br#"{"TableName": "tidegate-jobs"}"#);
/// assert_eq!(needed, [("dynamodb:GetItem".to_owned(), "tidegate-jobs".to_owned())]);
/// ```
pub fn permissions(service: &str, operation: &str, body: &[u8]) -> Vec<(String, String)> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let name = |of: &Value, field| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    if service != DYNAMODB {
        let queue = name(&body, "QueueUrl").rsplit('/').next().unwrap_or_default().to_owned();
        return vec![(format!("sqs:{}", operation.trim_end_matches("Batch")), queue)];
    }
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            let actions = body.get("TransactItems").and_then(Value::as_array).into_iter().flatten();
            let actions = actions.filter_map(|action| action.as_object()?.iter().next());
            actions
                .map(|(kind, item)| {
                    (format!("dynamodb:{}Item", kind.trim_end_matches("Item")), name(item, "TableName"))
                })
                .collect()
        }
        "BatchWriteItem" | "BatchGetItem" => {
            let tables = body.get("RequestItems").and_then(Value::as_object).into_iter().flatten();
            tables.map(|(table, _)| (format!("dynamodb:{operation}"), table.clone())).collect()
        }
        _ => vec![(format!("dynamodb:{operation}"), name(&body, "TableName"))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_conflicts_and_faults_are_told_apart() {
        let error =
            |kind: &str| format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{kind}","message":"x"}}"#);
        let canceled = |codes: &[&str]| {
            let reasons: Vec<_> = codes.iter().map(|code| format!(r#"{{"Code":"{code}"}}"#)).collect();
            let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
            format!(r#"{{"__type":"{kind}","CancellationReasons":[{}]}}"#, reasons.join(","))
        };
        for (status, body, metric) in [
            (200, "{}".to_owned(), None),
            (200, r#"{"UnprocessedItems":{}}"#.to_owned(), None),
            (200, r#"{"UnprocessedItems":{"runs":[{"PutRequest":{}}]}}"#.to_owned(), Some(THROTTLES)),
            (200, r#"{"Responses":{},"UnprocessedKeys":{"runs":{"Keys":[]}}}"#.to_owned(), Some(THROTTLES)),
            (400, error("ConditionalCheckFailedException"), None),
            (400, error("ProvisionedThroughputExceededException"), Some(THROTTLES)),
            (400, error("ThrottlingException"), Some(THROTTLES)),
            (400, error("RequestLimitExceeded"), Some(THROTTLES)),
            (400, error("TransactionConflictException"), Some(CONFLICTS)),
            (400, error("TransactionInProgressException"), Some(CONFLICTS)),
            (400, canceled(&["None", "ConditionalCheckFailed"]), None),
            (400, canceled(&["ConditionalCheckFailed", "TransactionConflict"]), Some(CONFLICTS)),
            (400, canceled(&["TransactionConflict", "ThrottlingError"]), Some(THROTTLES)),
            (400, canceled(&["ProvisionedThroughputExceeded"]), Some(THROTTLES)),
            (400, canceled(&["ThrottlingError", "ItemCollectionSizeLimitExceeded"]), Some(FAULTS)),
            (400, error("ValidationException"), Some(FAULTS)),
            (400, error("AccessDeniedException"), Some(FAULTS)),
            (500, error("InternalServerError"), Some(FAULTS)),
            (503, "no JSON".to_owned(), Some(FAULTS)),
        ] {
            let call = Metadata::new("BatchWriteItem", "DynamoDB");
            assert_eq!(told(&call, true, status, body.as_bytes()), metric, "{status} {body}");
        }
    }

    #[test]
    fn an_error_of_a_consumer_s_queue_is_no_fault_of_ours() {
        let error = |kind: &str| format!(r#"{{"__type":"com.amazonaws.sqs#{kind}"}}"#);
        for (status, body, metric) in [
            (200, r#"{"Failed":[],"Successful":[]}"#.to_owned(), None),
            (400, error("QueueDoesNotExist"), None),
            (403, error("AccessDenied"), None),
            (400, error("KmsThrottled"), Some(THROTTLES)),
            (403, error("RequestThrottled"), Some(THROTTLES)),
            (500, error("InternalFailure"), Some(FAULTS)),
        ] {
            let call = Metadata::new("SendMessageBatch", "SQS");
            assert_eq!(told(&call, false, status, body.as_bytes()), metric, "{status} {body}");
        }
    }

    /// The role or the key's policy was changed, or the queue was deleted.
    #[test]
    fn an_error_of_our_own_queue_is_a_fault() {
        let call = Metadata::new("SendMessageBatch", "SQS");
        for kind in ["AccessDenied", "KmsAccessDenied", "QueueDoesNotExist"] {
            let body = format!(r#"{{"__type":"com.amazonaws.sqs#{kind}"}}"#);
            assert_eq!(told(&call, true, 403, body.as_bytes()), Some(FAULTS), "{kind}");
        }
        let throttled = r#"{"__type":"com.amazonaws.sqs#RequestThrottled"}"#;
        assert_eq!(told(&call, true, 403, throttled.as_bytes()), Some(THROTTLES));
    }

    #[test]
    fn the_queue_of_a_call_is_known_before_it_is_written() {
        let url = "https://sqs.us-east-1.amazonaws.com/1/t-dispatch";
        let single = SendMessageInput::builder().queue_url(url).message_body("x").build().unwrap();
        let batch = SendMessageBatchInput::builder().queue_url(url).set_entries(Some(Vec::new())).build();
        let later = ChangeMessageVisibilityBatchInput::builder().queue_url(url).set_entries(Some(Vec::new()));
        for input in
            [Input::erase(single), Input::erase(batch.unwrap()), Input::erase(later.build().unwrap())]
        {
            assert_eq!(queue_url(&input), Some(url), "{input:?}");
        }
        assert_eq!(queue_url(&Input::erase("of a table")), None);
    }

    #[test]
    fn a_request_needs_a_permission_on_each_of_its_tables() {
        let of = |service: &str, operation: &str, body: &str| {
            let needed = permissions(service, operation, body.as_bytes());
            needed.into_iter().map(|(action, resource)| format!("{action} {resource}")).collect::<Vec<_>>()
        };
        assert_eq!(of("DynamoDB", "GetItem", r#"{"TableName":"t-jobs"}"#), ["dynamodb:GetItem t-jobs"]);
        let transaction =
            r#"{"TransactItems":[{"Put":{"TableName":"t-jobs"}},{"ConditionCheck":{"TableName":"t-runs"}}]}"#;
        assert_eq!(
            of("DynamoDB", "TransactWriteItems", transaction),
            ["dynamodb:PutItem t-jobs", "dynamodb:ConditionCheckItem t-runs"]
        );
        let batch = r#"{"RequestItems":{"t-events":[],"t-runs":[]}}"#;
        assert_eq!(
            of("DynamoDB", "BatchWriteItem", batch),
            ["dynamodb:BatchWriteItem t-events", "dynamodb:BatchWriteItem t-runs"]
        );
        let send = r#"{"QueueUrl":"https://sqs.us-east-1.amazonaws.com/1/t-dispatch","Entries":[]}"#;
        assert_eq!(of("SQS", "SendMessageBatch", send), ["sqs:SendMessage t-dispatch"]);
    }
}
