//! What the service keeps in memory beside its rows.

use chrono::DateTime;
use tidegate_domain::clock::ManualClock;

use super::*;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap()))
}

/// Status, error code and body of one call.
async fn call(
    sqs: &Sqs,
    operation: &str,
    body: serde_json::Value,
) -> (u16, Option<String>, serde_json::Value) {
    let reply = sqs.call(operation, body.to_string().as_bytes(), None).await;
    (reply.status, reply.query_error, serde_json::from_slice(&reply.body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_in_flight_limit_refuses_a_short_poll_and_starves_a_long_one() {
    let sqs = Sqs::open(None, clock(), 0).unwrap();
    call(&sqs, "CreateQueue", serde_json::json!({"QueueName": "q"})).await;
    call(&sqs, "SendMessage", serde_json::json!({"QueueUrl": "q", "MessageBody": "x"})).await;
    sqs.lock().queues.get_mut("q").unwrap().in_flight = limits::IN_FLIGHT;
    let (status, code, _) = call(&sqs, "ReceiveMessage", serde_json::json!({"QueueUrl": "q"})).await;
    assert_eq!((status, code.as_deref()), (400, Some("OverLimit;Sender")));
    let long_poll = serde_json::json!({"QueueUrl": "q", "WaitTimeSeconds": 2});
    assert_eq!(call(&sqs, "ReceiveMessage", long_poll).await, (200, None, serde_json::json!({})));
    sqs.lock().queues.get_mut("q").unwrap().in_flight = limits::IN_FLIGHT - 1;
    let (_, _, received) = call(&sqs, "ReceiveMessage", serde_json::json!({"QueueUrl": "q"})).await;
    assert_eq!(received["Messages"].as_array().map(Vec::len), Some(1));
}

/// Whatever is called in whatever order, memory says what the rows say.
#[tokio::test]
async fn memory_agrees_with_the_rows_after_any_calls() {
    let clock = clock();
    let sqs = Sqs::open(None, clock.clone(), 0).unwrap();
    let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}"#;
    call(&sqs, "CreateQueue", serde_json::json!({"QueueName": "dead"})).await;
    let attributes = serde_json::json!({"RedrivePolicy": policy, "MessageRetentionPeriod": "60", "VisibilityTimeout": "2"});
    call(&sqs, "CreateQueue", serde_json::json!({"QueueName": "q", "Attributes": attributes})).await;
    let mut receipts: Vec<serde_json::Value> = Vec::new();
    let mut seed = 7_u64;
    for _ in 0..3_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = (seed >> 33) as usize;
        let receipt = receipts.get(draw % (receipts.len() + 1)).cloned().unwrap_or_default();
        let on = |mut body: serde_json::Value| {
            body["QueueUrl"] = "q".into();
            body
        };
        let (operation, body) = match draw % 7 {
            0 | 1 => ("SendMessage", serde_json::json!({"MessageBody": "x", "DelaySeconds": draw % 3})),
            2 | 3 => ("ReceiveMessage", serde_json::json!({"MaxNumberOfMessages": 1 + draw % 10})),
            4 => ("DeleteMessage", serde_json::json!({"ReceiptHandle": receipt})),
            5 => (
                "ChangeMessageVisibility",
                serde_json::json!({"ReceiptHandle": receipt, "VisibilityTimeout": draw % 4}),
            ),
            _ => {
                clock.advance_ms((draw % 1500) as i64);
                continue;
            }
        };
        let (_, _, reply) = call(&sqs, operation, on(body)).await;
        let received = reply["Messages"].as_array().into_iter().flatten();
        receipts.extend(received.map(|message| message["ReceiptHandle"].clone()));
        receipts.drain(..receipts.len().saturating_sub(30));
        let mut store = sqs.lock();
        let Store { conn, queues, .. } = &mut *store;
        let queue = queues.get_mut("q").unwrap();
        let (in_flight, next_due_at_ms) = (queue.in_flight, queue.next_due_at_ms);
        queue.recall(conn).unwrap();
        assert_eq!(in_flight, queue.in_flight, "after {operation}");
        assert!(next_due_at_ms <= queue.next_due_at_ms, "after {operation}");
    }
    assert!(
        sqs.lock().queues["dead"].next_due_at_ms < i64::MAX,
        "some messages should have failed too often"
    );
}
