//! What the service keeps in memory beside its rows.

use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::DateTime;
use futures::FutureExt as _;
use futures::future::join_all;
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
    agrees_after_any_calls(&Sqs::open(None, clock.clone(), 0).unwrap(), &clock).await;
}

#[tokio::test]
async fn memory_agrees_with_the_rows_of_a_file_whose_commits_wait() {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let file = folder.path().join("sqs.db");
    let sqs = Sqs::open(Some((&file, Durability::Process)), clock.clone(), 0).unwrap();
    agrees_after_any_calls(&sqs, &clock).await;
}

async fn agrees_after_any_calls(sqs: &Sqs, clock: &ManualClock) {
    let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}"#;
    call(sqs, "CreateQueue", serde_json::json!({"QueueName": "dead"})).await;
    let attributes = serde_json::json!({"RedrivePolicy": policy, "MessageRetentionPeriod": "60", "VisibilityTimeout": "2"});
    call(sqs, "CreateQueue", serde_json::json!({"QueueName": "q", "Attributes": attributes})).await;
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
        let (_, _, reply) = call(sqs, operation, on(body)).await;
        let received = reply["Messages"].as_array().into_iter().flatten();
        receipts.extend(received.map(|message| message["ReceiptHandle"].clone()));
        receipts.drain(..receipts.len().saturating_sub(30));
        let mut store = sqs.hold();
        let Store { conn, queues, .. } = &mut *store;
        let queue = queues.get_mut("q").unwrap();
        let (in_flight, next_due_at_ms) = (queue.in_flight, queue.next_due_at_ms);
        queue.recall(conn).unwrap();
        assert_eq!(in_flight, queue.in_flight, "after {operation}");
        assert!(next_due_at_ms <= queue.next_due_at_ms, "after {operation}");
    }
    assert!(
        sqs.hold().queues["dead"].next_due_at_ms < i64::MAX,
        "some messages should have failed too often"
    );
}

/// What a send says beside its queue and body.
const NOTHING: serde_json::Value = serde_json::Value::Null;

/// Queues in a file, and what another process would find there.
struct InAFile {
    sqs: Sqs,
    clock: Arc<ManualClock>,
    file: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl InAFile {
    /// With a message in the queue `q`.
    async fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sqs.db");
        let clock = clock();
        let sqs = Sqs::open(Some((&file, durability)), clock.clone(), 0).unwrap();
        call(&sqs, "CreateQueue", serde_json::json!({"QueueName": "q"})).await;
        call(&sqs, "SendMessage", serde_json::json!({"QueueUrl": "q", "MessageBody": "x"})).await;
        Self { sqs, clock, file, _folder: folder }
    }

    /// Creates the queue `q.fifo`.
    async fn create_fifo(&self) {
        let attributes = serde_json::json!({"FifoQueue": "true"});
        call(&self.sqs, "CreateQueue", serde_json::json!({"QueueName": "q.fifo", "Attributes": attributes}))
            .await;
    }

    /// Sends a message, with `more` beside its queue and body; the status of the answer.
    async fn send(&self, queue: &str, more: serde_json::Value) -> u16 {
        let mut body = serde_json::json!({"QueueUrl": queue, "MessageBody": "y"});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        call(&self.sqs, "SendMessage", body).await.0
    }

    /// Counts commits from now on; they fail if told so.
    fn commits(&self, fail: bool) -> Arc<AtomicUsize> {
        let commits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&commits);
        self.sqs.lock().conn.commit_hook(Some(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            fail
        }));
        commits
    }

    async fn received(&self) -> Vec<serde_json::Value> {
        let (_, _, received) = call(&self.sqs, "ReceiveMessage", serde_json::json!({"QueueUrl": "q"})).await;
        received["Messages"].as_array().cloned().unwrap_or_default()
    }

    async fn receive_and_delete(&self) {
        let receipt = self.received().await[0]["ReceiptHandle"].clone();
        call(&self.sqs, "DeleteMessage", serde_json::json!({"QueueUrl": "q", "ReceiptHandle": receipt}))
            .await;
    }

    /// How often each message that is kept was received.
    fn kept(&self) -> Vec<i64> {
        let conn = rusqlite::Connection::open(&self.file).unwrap();
        let mut statement = conn.prepare("SELECT receive_count FROM messages ORDER BY seq").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn that_a_message_is_gone_is_kept_soon_after_it_was_answered() {
    let queues = InAFile::new(Durability::Process).await;
    queues.receive_and_delete().await;
    assert_eq!(queues.kept(), [0]);
    tokio::time::sleep(std::time::Duration::from_millis(11)).await;
    assert_eq!(queues.kept(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_kept_with_all_before_it() {
    let queues = InAFile::new(Durability::Process).await;
    queues.receive_and_delete().await;
    queues.send("q", NOTHING).await;
    assert_eq!(queues.kept(), [0]);
    assert_eq!(queues.received().await[0]["Body"], "y");
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_where_the_machine_may_stop() {
    let queues = InAFile::new(Durability::Machine).await;
    queues.receive_and_delete().await;
    assert_eq!(queues.kept(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn that_a_message_of_ours_was_received_is_kept_at_once() {
    let queues = InAFile::new(Durability::Process).await;
    let hidden = std::collections::BTreeSet::from(["q".to_owned()]);
    queues.sqs.hide(OwnQueues { hidden, send_only: None });
    queues.received().await;
    assert_eq!(queues.kept(), [1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_in_a_fifo_queue() {
    let queues = InAFile::new(Durability::Process).await;
    queues.create_fifo().await;
    queues.send("q.fifo", serde_json::json!({"MessageGroupId": "g", "MessageDeduplicationId": "d"})).await;
    call(&queues.sqs, "ReceiveMessage", serde_json::json!({"QueueUrl": "q.fifo"})).await;
    assert_eq!(queues.kept(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_takes_nothing_back() {
    let queues = InAFile::new(Durability::Process).await;
    queues.receive_and_delete().await;
    let odd = serde_json::json!({"Odd": {"DataType": "String", "StringValue": "x"}});
    assert_eq!(queues.send("q", serde_json::json!({ "MessageSystemAttributes": odd })).await, 400);
    assert_eq!(queues.kept(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_takes_back_what_was_not_kept_and_nothing_else() {
    let queues = InAFile::new(Durability::Process).await;
    queues.receive_and_delete().await;
    let panics = std::panic::AssertUnwindSafe(|| {
        queues.sqs.on_queue("q", |_| -> Result<(), Failure> { panic!("as told") })
    });
    std::panic::catch_unwind(panics).unwrap_err();
    assert_eq!(queues.received().await.len(), 1, "it comes once more");
    queues.send("q", NOTHING).await;
    assert_eq!(queues.kept(), [1, 0]);
}

#[test]
fn without_a_runtime_nothing_waits() {
    let mut opening = Box::pin(InAFile::new(Durability::Process));
    let queues = (0..10).find_map(|_| (&mut opening).now_or_never()).unwrap();
    queues.receive_and_delete().now_or_never().unwrap();
    assert_eq!(queues.kept(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn sends_side_by_side_share_a_commit() {
    for durability in [Durability::Process, Durability::Machine] {
        let queues = InAFile::new(durability).await;
        let commits = queues.commits(false);
        let sent = join_all((0..5).map(|_| queues.send("q", NOTHING))).await;
        assert_eq!((sent, queues.kept()), (vec![200; 5], vec![0; 6]));
        assert_eq!(commits.load(Ordering::Relaxed), 2, "the first is alone, the others share one");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_sent_is_answered_before_it_is_kept() {
    let queues = InAFile::new(Durability::Process).await;
    let (mut first, mut second) = (Box::pin(queues.send("q", NOTHING)), Box::pin(queues.send("q", NOTHING)));
    assert_eq!((&mut first).now_or_never(), None);
    assert_eq!((&mut second).now_or_never(), None);
    assert_eq!(queues.kept(), [0; 2], "the second waits");
    assert_eq!(second.await, 200);
    assert_eq!(queues.kept(), [0; 3]);
    assert_eq!(first.await, 200);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_any_more_is_kept_soon() {
    let queues = InAFile::new(Durability::Process).await;
    let (mut first, mut second) = (Box::pin(queues.send("q", NOTHING)), Box::pin(queues.send("q", NOTHING)));
    assert_eq!(((&mut first).now_or_never(), (&mut second).now_or_never()), (None, None));
    drop(second);
    assert_eq!(queues.kept(), [0; 2]);
    tokio::time::sleep(std::time::Duration::from_millis(11)).await;
    assert_eq!(queues.kept(), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn who_shares_a_commit_that_fails_is_told() {
    let queues = InAFile::new(Durability::Process).await;
    let mut alone = Box::pin(queues.send("q", NOTHING));
    assert_eq!((&mut alone).now_or_never(), None);
    let commits = queues.commits(true);
    assert_eq!(join_all((0..3).map(|_| queues.send("q", NOTHING))).await, [500; 3]);
    assert_eq!(commits.load(Ordering::Relaxed), 1);
    queues.commits(false);
    assert_eq!((alone.await, queues.kept()), (200, vec![0; 2]));
}

#[tokio::test(start_paused = true)]
async fn what_a_fifo_queue_refuses_takes_nothing_from_who_shares_a_commit() {
    let queues = InAFile::new(Durability::Process).await;
    queues.create_fifo().await;
    let line = serde_json::json!({"MessageGroupId": "g", "MessageDeduplicationId": "d"});
    assert_eq!(queues.send("q.fifo", line).await, 200);
    // What is forgotten of the message before is a row that changes ahead of the refusal.
    queues.clock.advance_ms(limits::DEDUPLICATION_MS + 1);
    let odd = serde_json::json!({
        "MessageGroupId": "g", "MessageDeduplicationId": "e",
        "MessageSystemAttributes": {"Odd": {"DataType": "String", "StringValue": "x"}},
    });
    let sends = [queues.send("q", NOTHING), queues.send("q", NOTHING), queues.send("q.fifo", odd)];
    assert_eq!(join_all(sends).await, [200, 200, 400]);
    assert_eq!(queues.kept(), [0; 4]);
}
