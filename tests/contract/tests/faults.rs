//! Faults at the seam: what a caller sees, and what took place all the same.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::DateTime;
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{Call, ClientOptions, Embedded, Fault, FaultPlan, Faults, Refusal};

/// Strikes the calls of one operation, the first `times` times.
struct Strike {
    operation: &'static str,
    fault: Fault,
    times: AtomicUsize,
    seen: Arc<Mutex<Vec<Call>>>,
}

impl FaultPlan for Strike {
    fn on_request(&self, call: &Call) -> Fault {
        self.seen.lock().unwrap().push(call.clone());
        let due = call.operation == self.operation
            && self
                .times
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .is_ok();
        if due { self.fault } else { Fault::None }
    }
}

fn strike(operation: &'static str, fault: Fault, times: usize) -> Strike {
    Strike { operation, fault, times: AtomicUsize::new(times), seen: Arc::default() }
}

async fn with_queue() -> (Embedded, String) {
    let clock = ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap());
    let embedded = Embedded::in_memory(Arc::new(clock)).unwrap();
    let url = embedded.sqs().create_queue().queue_name("q").send().await.unwrap().queue_url.unwrap();
    (embedded, url)
}

async fn held(embedded: &Embedded, url: &str) -> String {
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let got = embedded.sqs().get_queue_attributes().queue_url(url).attribute_names(name.clone()).send().await;
    got.unwrap().attributes.unwrap()[&name].clone()
}

#[tokio::test]
async fn a_lost_reply_leaves_the_write_done() {
    let (embedded, url) = with_queue().await;
    embedded.inject(strike("SendMessage", Fault::LoseReply, 1));
    let client = embedded.sqs_with(&ClientOptions::without_retries());
    let lost = client.send_message().queue_url(&url).message_body("x").send().await.unwrap_err();
    assert!(matches!(lost, SdkError::DispatchFailure(_)), "{lost:?}");
    assert_eq!(held(&embedded, &url).await, "1");
    assert_eq!(embedded.meter().snapshot().queue("q", "SendMessage").calls, 1);
}

#[tokio::test]
async fn a_dropped_request_does_nothing() {
    let (embedded, url) = with_queue().await;
    embedded.inject(strike("SendMessage", Fault::DropBefore, 1));
    let client = embedded.sqs_with(&ClientOptions::without_retries());
    let dropped = client.send_message().queue_url(&url).message_body("x").send().await.unwrap_err();
    assert!(matches!(dropped, SdkError::DispatchFailure(_)), "{dropped:?}");
    assert_eq!(held(&embedded, &url).await, "0");
    assert_eq!(embedded.meter().snapshot().queue("q", "SendMessage").calls, 0);
}

#[tokio::test(start_paused = true)]
async fn the_sdk_retries_what_is_refused_or_dropped() {
    for fault in [Fault::Refuse(Refusal::Throttled), Fault::Refuse(Refusal::Internal), Fault::DropBefore] {
        let (embedded, url) = with_queue().await;
        embedded.inject(strike("SendMessage", fault, 2));
        embedded.sqs().send_message().queue_url(&url).message_body("x").send().await.unwrap();
        assert_eq!(held(&embedded, &url).await, "1", "{fault:?}");
    }
}

#[tokio::test]
async fn a_refusal_carries_the_services_code() {
    let (embedded, url) = with_queue().await;
    let options = ClientOptions::without_retries();
    embedded.inject(strike("SendMessage", Fault::Refuse(Refusal::Throttled), 1));
    let refused = embedded.sqs_with(&options).send_message().queue_url(&url).message_body("x").send().await;
    assert_eq!(refused.unwrap_err().code(), Some("RequestThrottled"));
    embedded.inject(strike("ListTables", Fault::Refuse(Refusal::Throttled), 1));
    let refused = embedded.dynamodb_with(&options).list_tables().send().await;
    assert_eq!(refused.unwrap_err().code(), Some("ProvisionedThroughputExceededException"));
}

#[tokio::test]
async fn a_crash_ends_its_client_until_reset_and_no_other() {
    let (embedded, url) = with_queue().await;
    let faults = Faults::new(strike("SendMessage", Fault::CrashAfter, 1));
    let options = ClientOptions::without_retries().with_faults(faults.clone());
    let (doomed, other) = (embedded.sqs_with(&options), embedded.sqs());
    let send = |client: &aws_sdk_sqs::Client| client.send_message().queue_url(&url).message_body("x").send();
    send(&doomed).await.unwrap_err();
    assert!(faults.is_crashed());
    send(&doomed).await.unwrap_err();
    embedded.dynamodb_with(&options).list_tables().send().await.unwrap_err();
    send(&other).await.unwrap();
    assert_eq!(held(&embedded, &url).await, "2", "the message before the crash and that of the other client");
    faults.reset();
    send(&doomed).await.unwrap();
}

#[tokio::test]
async fn a_plan_sees_what_each_call_is_for() {
    let (embedded, url) = with_queue().await;
    let plan = strike("nothing", Fault::None, 0);
    let seen = plan.seen.clone();
    embedded.inject(plan);
    embedded.sqs().send_message().queue_url(&url).message_body("x").send().await.unwrap();
    embedded.dynamodb().describe_table().table_name("jobs").send().await.unwrap_err();
    embedded.inject_nothing();
    embedded.sqs().send_message().queue_url(&url).message_body("x").send().await.unwrap();
    let seen = seen.lock().unwrap();
    let calls: Vec<_> = seen.iter().map(|call| (call.operation.as_str(), call.resource())).collect();
    assert_eq!(calls, [("SendMessage", "q"), ("DescribeTable", "jobs")]);
}
