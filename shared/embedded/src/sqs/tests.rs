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
        let draw = draw(&mut seed);
        let receipt = receipts.get(draw % (receipts.len() + 1)).cloned().unwrap_or_default();
        let on = |mut body: serde_json::Value| {
            body["QueueUrl"] = "q".into();
            body
        };
        let (operation, body) = match draw % 9 {
            7 => {
                let entry = |id: usize| serde_json::json!({"Id": id.to_string(), "MessageBody": "x", "DelaySeconds": draw % 2});
                (
                    "SendMessageBatch",
                    serde_json::json!({"Entries": (0..1 + draw % 10).map(entry).collect::<Vec<_>>()}),
                )
            }
            8 => {
                let entry = |(id, receipt): (usize, &serde_json::Value)| serde_json::json!({"Id": id.to_string(), "ReceiptHandle": receipt});
                let entries: Vec<_> =
                    receipts.iter().rev().take(1 + draw % 10).enumerate().map(entry).collect();
                ("DeleteMessageBatch", serde_json::json!({ "Entries": entries }))
            }
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
        agrees(sqs, operation);
    }
    assert!(
        sqs.hold().queues["dead"].next_due_at_ms < i64::MAX,
        "some messages should have failed too often"
    );
}

/// The next of the numbers that follow from a seed.
fn draw(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

/// What is kept of the queue `q` in memory is what its rows say.
fn agrees(sqs: &Sqs, operation: &str) {
    let mut store = sqs.hold();
    let Store { conn, queues, .. } = &mut *store;
    let queue = queues.get_mut("q").unwrap();
    let (in_flight, next_due_at_ms) = (queue.in_flight, queue.next_due_at_ms);
    queue.recall(conn).unwrap();
    assert_eq!(in_flight, queue.in_flight, "after {operation}");
    assert!(next_due_at_ms <= queue.next_due_at_ms, "after {operation}");
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

/// A message as its queue should have it.
struct Expected {
    visible_at_ms: i64,
    receive_count: usize,
    /// Of the last receive.
    receipt: serde_json::Value,
    /// Of the receive before.
    stale: serde_json::Value,
}

/// Sends batches, and does things with any of their messages, alone and together; tells what it did not expect.
struct Consumer {
    sqs: Sqs,
    clock: Arc<ManualClock>,
    seed: u64,
    sent: usize,
    expected: std::collections::BTreeMap<String, Expected>,
}

impl Consumer {
    fn draw(&mut self, below: usize) -> usize {
        draw(&mut self.seed) % below
    }

    fn now_ms(&self) -> i64 {
        self.sqs.now_ms()
    }

    async fn call(&self, operation: &str, mut body: serde_json::Value) -> serde_json::Value {
        body["QueueUrl"] = "q".into();
        let (status, code, reply) = call(&self.sqs, operation, body).await;
        assert_eq!((status, code), (200, None), "{operation}");
        reply
    }

    async fn send(&mut self) {
        let same_delay = self.draw(3);
        let entries: Vec<_> = (0..1 + self.draw(10))
            .map(|id| {
                let delay_s = if self.draw(8) == 0 { 1 } else { same_delay };
                let group = if self.draw(8) == 0 { "a".into() } else { serde_json::Value::Null };
                let more = "é".repeat(self.draw(4));
                let body = format!("{} {more}", self.sent);
                self.sent += 1;
                let visible_at_ms = self.now_ms() + delay_s as i64 * 1000;
                let expected = Expected { visible_at_ms, receive_count: 0, receipt: NOTHING, stale: NOTHING };
                self.expected.insert(body.clone(), expected);
                let attribute = serde_json::json!({"DataType": "String", "StringValue": body});
                let attributes = if id % 3 == 0 { serde_json::json!({}) } else { serde_json::json!({ "text": attribute }) };
                serde_json::json!({
                    "Id": id.to_string(), "MessageBody": body, "DelaySeconds": delay_s, "MessageGroupId": group,
                    "MessageAttributes": attributes,
                })
            })
            .collect();
        let reply = self.call("SendMessageBatch", serde_json::json!({ "Entries": entries })).await;
        assert_eq!(reply["Successful"].as_array().map(Vec::len), Some(entries.len()));
    }

    /// Receives; how many there were.
    async fn receive(&mut self) -> usize {
        let most = 1 + self.draw(10);
        let visibility_s = self.draw(4);
        let body = serde_json::json!({
            "MaxNumberOfMessages": most, "VisibilityTimeout": visibility_s, "MessageAttributeNames": ["All"],
            "AttributeNames": ["ApproximateReceiveCount"],
        });
        let reply = self.call("ReceiveMessage", body).await;
        let now_ms = self.now_ms();
        let received = reply["Messages"].as_array().cloned().unwrap_or_default();
        let visible = self.expected.values().filter(|message| message.visible_at_ms <= now_ms).count();
        assert_eq!(received.is_empty(), visible == 0);
        assert!(received.len() <= most);
        for message in &received {
            let body = message["Body"].as_str().unwrap();
            let expected = self.expected.get_mut(body).unwrap();
            assert!(expected.visible_at_ms <= now_ms, "{body} is hidden");
            expected.receive_count += 1;
            expected.visible_at_ms = now_ms + visibility_s as i64 * 1000;
            expected.stale = std::mem::replace(&mut expected.receipt, message["ReceiptHandle"].clone());
            assert_eq!(message["Attributes"]["ApproximateReceiveCount"], expected.receive_count.to_string());
            let text = &message["MessageAttributes"]["text"]["StringValue"];
            assert!(text.is_null() || text == body, "{text} of {body}");
            assert_eq!(message["MD5OfBody"], super::message::md5_of_body(body));
        }
        received.len()
    }

    /// Some that were received, or one of them, with the receipts of their last receives.
    fn some_received(&mut self, which: impl Fn(&Expected) -> bool) -> Vec<(String, serde_json::Value)> {
        let received =
            self.expected.iter().filter(|(_, message)| message.receive_count > 0 && which(message));
        let mut received: Vec<_> =
            received.map(|(body, message)| (body.clone(), message.receipt.clone())).collect();
        let from = self.draw(received.len() + 1);
        received.rotate_left(from);
        received.truncate(1 + self.draw(10));
        received
    }

    async fn delete(&mut self) {
        let gone = self.some_received(|_| true);
        if gone.is_empty() {
            return;
        }
        let entry = |(id, (_, receipt)): (usize, &(String, serde_json::Value))| serde_json::json!({"Id": id.to_string(), "ReceiptHandle": receipt});
        match &*gone {
            [(_, receipt)] => {
                drop(self.call("DeleteMessage", serde_json::json!({"ReceiptHandle": receipt})).await)
            }
            many => {
                // Whoever was given a message before somebody else deletes nothing.
                let is_stale = |(body, message): &(&String, &Expected)| {
                    !message.stale.is_null() && many.iter().all(|(deleted, _)| deleted != *body)
                };
                let stale = self
                    .expected
                    .iter()
                    .find(is_stale)
                    .map(|(body, message)| (body.clone(), message.stale.clone()));
                let all: Vec<_> = many.iter().cloned().chain(stale).take(10).collect();
                let entries: Vec<_> = all.iter().enumerate().map(entry).collect();
                self.call("DeleteMessageBatch", serde_json::json!({ "Entries": entries })).await;
            }
        }
        self.expected.retain(|body, _| !gone.iter().any(|(deleted, _)| deleted == body));
    }

    async fn change_visibility(&mut self) {
        let now_ms = self.now_ms();
        let seconds = self.draw(4);
        for (body, receipt) in self.some_received(|message| message.visible_at_ms > now_ms) {
            let request = serde_json::json!({"ReceiptHandle": receipt, "VisibilityTimeout": seconds});
            self.call("ChangeMessageVisibility", request).await;
            self.expected.get_mut(&body).unwrap().visible_at_ms = now_ms + seconds as i64 * 1000;
        }
    }

    async fn count(&self) {
        let reply = self.call("GetQueueAttributes", serde_json::json!({"AttributeNames": ["All"]})).await;
        let told = ["", "NotVisible", "Delayed"].map(|which| {
            reply["Attributes"][format!("ApproximateNumberOfMessages{which}")].as_str().unwrap().to_owned()
        });
        let now_ms = self.now_ms();
        let count = |which: &dyn Fn(&Expected) -> bool| {
            self.expected.values().filter(|message| which(message)).count()
        };
        let counted = [
            count(&|message| message.visible_at_ms <= now_ms),
            count(&|message| message.visible_at_ms > now_ms && message.receive_count > 0),
            count(&|message| message.visible_at_ms > now_ms && message.receive_count == 0),
        ];
        assert_eq!(told, counted.map(|count| count.to_string()));
    }

    /// Rows that have several messages.
    fn shared_rows(&self) -> i64 {
        let store = self.sqs.hold();
        store.conn.query_row("SELECT count(*) FROM messages WHERE count > 1", [], |row| row.get(0)).unwrap()
    }
}

/// What is sent together lies in one row, and no caller can tell.
#[tokio::test(start_paused = true)]
async fn messages_that_share_a_row_are_as_good_as_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut shared, mut deleted_together) = (0, 0);
    for seed in 0..16 {
        let (clock, file) = (clock(), folder.path().join(format!("{seed}.db")));
        let open = || Sqs::open(Some((&file, Durability::Process)), clock.clone(), 0).unwrap();
        let expected = std::collections::BTreeMap::new();
        let mut consumer = Consumer { sqs: open(), clock: clock.clone(), seed, sent: 0, expected };
        consumer.call("CreateQueue", serde_json::json!({"QueueName": "q"})).await;
        for _ in 0..200 {
            match consumer.draw(12) {
                0 | 1 => consumer.send().await,
                2..=5 => drop(consumer.receive().await),
                6..=8 => {
                    let before = consumer.shared_rows();
                    consumer.delete().await;
                    deleted_together += i64::from(consumer.shared_rows() < before);
                }
                9 => consumer.change_visibility().await,
                10 => {
                    let ahead_ms = consumer.draw(1500) as i64;
                    consumer.clock.advance_ms(ahead_ms);
                }
                _ => {
                    consumer.sqs = Sqs::open(None, clock.clone(), 0).unwrap();
                    consumer.sqs = open();
                }
            }
            shared += consumer.shared_rows();
            consumer.count().await;
            agrees(&consumer.sqs, "a step");
        }
        consumer.clock.advance_ms(10_000);
        while consumer.receive().await > 0 {
            consumer.delete().await;
            consumer.clock.advance_ms(4_000);
        }
        assert_eq!(consumer.expected.len(), 0);
    }
    assert!(shared > 2_000, "rows had several messages {shared} times");
    assert!(deleted_together > 40, "{deleted_together} deletes took shared rows");
}

#[test]
fn a_file_of_the_first_form_is_read_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sqs.db");
    let conn = rusqlite::Connection::open(&file).unwrap();
    conn.execute_batch(
        "CREATE TABLE messages (seq INTEGER PRIMARY KEY, queue_id INTEGER NOT NULL, state INTEGER NOT NULL,
            rank INTEGER NOT NULL, visible_at_ms INTEGER NOT NULL, receive_count INTEGER NOT NULL,
            received_at_ms INTEGER NOT NULL, first_received_at_ms INTEGER NOT NULL, sent_at_ms INTEGER NOT NULL,
            message_id BLOB NOT NULL, group_id TEXT, dedup_id TEXT, trace TEXT, source_arn TEXT, attributes TEXT,
            body TEXT NOT NULL);
         CREATE INDEX ready ON messages (queue_id, rank, seq) WHERE state = 0;
         CREATE TABLE queues (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, attributes TEXT NOT NULL,
            tags TEXT NOT NULL, created_at_ms INTEGER NOT NULL, modified_at_ms INTEGER NOT NULL,
            purged_at_ms INTEGER NOT NULL DEFAULT 0);
         INSERT INTO queues VALUES (1, 'q', '{}', '{}', 0, 0, 0);
         INSERT INTO messages VALUES (7, 1, 0, 1, 0, 0, 0, 0, 1763725000000, zeroblob(16), NULL, NULL, NULL, NULL, NULL, 'old');
         PRAGMA user_version = 1;",
    )
    .unwrap();
    for times in 1..=2 {
        let sqs = Sqs::open(Some((&file, Durability::Process)), clock(), 0).unwrap();
        let hidden = serde_json::json!({"QueueUrl": "q", "VisibilityTimeout": 0});
        let (_, _, reply) = call(&sqs, "ReceiveMessage", hidden).now_or_never().unwrap();
        assert_eq!(reply["Messages"][0]["Body"], "old", "opened {times} times");
        // As a version does that knows the first form only.
        conn.execute_batch("PRAGMA user_version = 1").unwrap();
    }
}
