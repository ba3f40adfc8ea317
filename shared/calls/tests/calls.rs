//! All ways against the embedded services: the same requests, the same answers, the same errors.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, PutRequest, WriteRequest};
use aws_sdk_sqs::types::MessageSystemAttributeName;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::SdkError;
use chrono::DateTime;
use tidegate_calls::{Attribute, BatchEntry, Call as _, Way, send_batch};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{ClientOptions, Durability, Embedded, Fault, FaultPlan};

/// What goes straight, in order.
#[derive(Debug, Clone)]
struct Noted {
    inner: SharedHttpConnector,
    targets: Arc<Mutex<Vec<String>>>,
}

impl HttpConnector for Noted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        self.targets.lock().unwrap().push(target);
        self.inner.call(request)
    }
}

/// Services with a table and a queue in a folder, and the ways to them: by the SDK, straight, and straight with what is handed over.
struct Stage {
    _folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    embedded: Embedded,
    db: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    queue: String,
    ways: [Way; 3],
    targets: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let embedded = Embedded::open(folder.path(), clock.clone(), Durability::Process).unwrap();
        let options = ClientOptions::without_retries();
        let (db, sqs) = (embedded.dynamodb_with(&options), embedded.sqs_with(&options));
        let key = aws_sdk_dynamodb::types::KeySchemaElement::builder()
            .attribute_name("pk")
            .key_type(aws_sdk_dynamodb::types::KeyType::Hash)
            .build();
        let attribute = aws_sdk_dynamodb::types::AttributeDefinition::builder()
            .attribute_name("pk")
            .attribute_type(aws_sdk_dynamodb::types::ScalarAttributeType::S)
            .build();
        db.create_table()
            .table_name("rows")
            .billing_mode(aws_sdk_dynamodb::types::BillingMode::PayPerRequest)
            .key_schema(key.unwrap())
            .attribute_definitions(attribute.unwrap())
            .send()
            .await
            .unwrap();
        let created = sqs.create_queue().queue_name("jobs").send().await.unwrap();
        let targets = Arc::default();
        let noted = Noted { inner: embedded.connector(), targets: Arc::clone(&targets) };
        let straight = Way::straight_to(SharedHttpConnector::new(noted));
        let ways = [Way::default(), straight, embedded.way_with(&options).once()];
        let queue = created.queue_url.unwrap();
        Self { _folder: folder, clock, embedded, db, sqs, queue, ways, targets }
    }

    /// What went straight as a request since the last look.
    fn straight(&self) -> Vec<String> {
        std::mem::take(&mut *self.targets.lock().unwrap())
    }

    /// What is in the queue, all attributes included, without what differs from message to message; and takes it out.
    async fn messages(&self) -> Vec<String> {
        let receive = self.sqs.receive_message().queue_url(&self.queue).max_number_of_messages(10);
        let received = receive.message_attribute_names("All").message_system_attribute_names("All".into());
        let received = received.send().await.unwrap();
        let mut all = Vec::new();
        for message in received.messages() {
            let delete = self.sqs.delete_message().queue_url(&self.queue);
            delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
            let attributes: BTreeMap<_, _> = message.message_attributes().into_iter().flatten().collect();
            let system = message.attributes().unwrap();
            let group = system.get(&MessageSystemAttributeName::MessageGroupId);
            all.push(format!("{:?} {attributes:?} {group:?}", message.body()));
        }
        all
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

#[tokio::test]
async fn a_call_that_succeeds_is_answered_alike_and_is_one_request() {
    let stage = Stage::new().await;
    let put = stage.db.put_item().table_name("rows").item("pk", text("a")).item("n", text("1"));
    let get = stage.db.get_item().table_name("rows").key("pk", text("a"));
    let update = stage
        .db
        .update_item()
        .table_name("rows")
        .key("pk", text("a"))
        .update_expression("SET n = :n")
        .expression_attribute_values(":n", text("2"))
        .return_values(aws_sdk_dynamodb::types::ReturnValue::AllNew);
    for way in &stage.ways {
        put.send_by(way).await.unwrap();
        let got = get.send_by(way).await.unwrap();
        assert_eq!(got.item().unwrap()["n"], text("1"));
        let updated = update.send_by(way).await.unwrap();
        assert_eq!(updated.attributes().unwrap()["n"], text("2"));
    }
    let names = ["PutItem", "GetItem", "UpdateItem"].map(|name| format!("DynamoDB_20120810.{name}"));
    assert_eq!(stage.straight(), names);

    let written = PutRequest::builder().item("pk", text("b")).build().unwrap();
    let write = WriteRequest::builder().put_request(written).build();
    let batch = stage.db.batch_write_item().request_items("rows", vec![write]);
    let query = stage.db.query().table_name("rows").key_condition_expression("pk = :pk");
    let query = query.expression_attribute_values(":pk", text("b"));
    let keys = KeysAndAttributes::builder().keys([("pk".to_owned(), text("b"))].into()).build().unwrap();
    let read = stage.db.batch_get_item().request_items("rows", keys);
    let gone = stage.db.delete_item().table_name("rows").key("pk", text("b"));
    for way in &stage.ways {
        assert!(batch.send_by(way).await.unwrap().unprocessed_items().is_none_or(|left| left.is_empty()));
        assert_eq!(query.send_by(way).await.unwrap().count(), 1);
        let rows = read.send_by(way).await.unwrap();
        assert_eq!(rows.responses().unwrap()["rows"], [[("pk".to_owned(), text("b"))].into()]);
        assert!(rows.unprocessed_keys().is_none_or(|left| left.is_empty()));
        gone.send_by(way).await.unwrap();
        assert_eq!(query.send_by(way).await.unwrap().count(), 0);
    }
    assert_eq!(stage.straight().len(), 5);
}

#[tokio::test]
async fn messages_go_each_way() {
    let stage = Stage::new().await;
    for way in &stage.ways {
        let batch = ["a", "b"].map(|body| BatchEntry { body: body.into(), ..BatchEntry::default() });
        assert_eq!(send_batch(&stage.sqs, &stage.queue, &batch, way).await.unwrap(), []);
        let receive = stage.sqs.receive_message().queue_url(&stage.queue).max_number_of_messages(10);
        let received = receive.send_by(way).await.unwrap();
        let bodies: Vec<_> = received.messages().iter().filter_map(|message| message.body()).collect();
        assert_eq!(bodies, ["a", "b"]);
        let entries = received.messages().iter().enumerate().map(|(id, message)| {
            aws_sdk_sqs::types::DeleteMessageBatchRequestEntry::builder()
                .id(id.to_string())
                .receipt_handle(message.receipt_handle().unwrap())
                .build()
                .unwrap()
        });
        let delete = stage.sqs.delete_message_batch().queue_url(&stage.queue);
        let deleted = delete.set_entries(Some(entries.collect())).send_by(way).await.unwrap();
        assert_eq!(deleted.successful().len(), 2);
    }
    assert_eq!(stage.straight().len(), 3);
}

/// Sends a batch each way, and says of each what it was answered, what was counted and what arrived.
async fn each_way(stage: &Stage, batch: &[BatchEntry<'_>]) -> Vec<(String, String, Vec<String>)> {
    let mut all = Vec::new();
    for way in &stage.ways {
        let before = stage.embedded.meter().snapshot();
        let refused = send_batch(&stage.sqs, &stage.queue, batch, way).await;
        let refused = refused.map_err(|error| error.code().map(str::to_owned));
        let counted = stage.embedded.meter().snapshot().since(&before);
        stage.clock.advance_ms(1000);
        all.push((format!("{refused:?}"), format!("{counted:?}"), stage.messages().await));
    }
    all
}

#[tokio::test]
async fn what_is_handed_over_arrives_as_what_is_sent() {
    let stage = Stage::new().await;
    let entry = |body: &'static str| BatchEntry { body: body.into(), ..BatchEntry::default() };
    let attribute = |name, kind, value: &str| Attribute { name, kind, value: value.to_owned() };
    let batch = [
        BatchEntry {
            attributes: vec![attribute("text", "String", "\"a\""), attribute("number", "Number", "7")],
            group_id: Some("group".to_owned()),
            ..entry("\"quoted\" and \\ and \u{e9} and \u{1f600}")
        },
        entry(""),
        BatchEntry { delay_seconds: Some(1), ..entry("later") },
        BatchEntry { attributes: vec![attribute("number", "Number", "x")], ..entry("wrong") },
        BatchEntry { deduplication_id: Some("twice".to_owned()), ..entry("for a FIFO queue") },
    ];
    let all = each_way(&stage, &batch).await;
    let (answer, _, arrived) = &all[0];
    assert_eq!(arrived.len(), 2, "{all:?}");
    let refused = [1, 3, 4].map(|index| format!("index: {index}"));
    assert!(refused.iter().all(|index| answer.contains(index)), "{answer}");
    assert_eq!(all[1], all[0]);
    assert_eq!(all[2], all[0]);
    assert_eq!(stage.straight(), ["AmazonSQS.SendMessageBatch"], "what is handed over is no request");
}

#[tokio::test]
async fn a_batch_that_is_refused_as_a_whole_is_told_alike_and_leaves_nothing() {
    let stage = Stage::new().await;
    let long = BatchEntry { body: "x".repeat(600_000).into(), ..BatchEntry::default() };
    for batch in
        [vec![], vec![long.clone(), long], vec![BatchEntry { body: "x".into(), ..BatchEntry::default() }; 11]]
    {
        let all = each_way(&stage, &batch).await;
        let (answer, _, arrived) = &all[0];
        assert!(answer.starts_with("Err(Some(") && arrived.is_empty(), "{all:?}");
        assert_eq!(all[1], all[0]);
        assert_eq!(all[2], all[0]);
    }
}

#[tokio::test]
async fn faults_strike_batches_as_requests() {
    let stage = Stage::new().await;
    stage.embedded.inject(Losing(AtomicU32::new(1)));
    let batch = [BatchEntry { body: "a".into(), ..BatchEntry::default() }];
    let lost = send_batch(&stage.sqs, &stage.queue, &batch, &stage.ways[2]).await;
    assert!(matches!(lost.unwrap_err(), SdkError::DispatchFailure(_)));
}

#[tokio::test]
async fn what_is_refused_is_told_alike_and_asked_for_once() {
    let stage = Stage::new().await;
    let put = stage.db.put_item().table_name("rows").item("pk", text("a"));
    put.send_by(&stage.ways[1]).await.unwrap();
    stage.straight();
    let absent = put.condition_expression("attribute_not_exists(pk)");
    let told = aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
    let again = absent.return_values_on_condition_check_failure(told);
    for way in &stage.ways {
        let error = again.send_by(way).await.unwrap_err();
        assert_eq!(error.code(), Some("ConditionalCheckFailedException"));
        match error.into_service_error() {
            PutItemError::ConditionalCheckFailedException(refused) => {
                assert_eq!(refused.item().unwrap()["pk"], text("a"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stage.straight().len(), 1);

    let wrong = stage.sqs.receive_message().queue_url("http://127.0.0.1/000000000000/none");
    for way in &stage.ways {
        assert!(wrong.send_by(way).await.unwrap_err().as_service_error().unwrap().is_queue_does_not_exist());
    }
    assert_eq!(stage.straight().len(), 1);
}

/// Loses so many requests.
struct Losing(AtomicU32);

impl FaultPlan for Losing {
    fn on_request(&self, _: &tidegate_embedded::Call) -> Fault {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() { Fault::DropBefore } else { Fault::None }
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_passing_is_repeated_by_the_sdk() {
    let stage = Stage::new().await;
    let db = stage.embedded.dynamodb();
    stage.embedded.inject(Losing(AtomicU32::new(2)));
    db.put_item().table_name("rows").item("pk", text("a")).send_by(&stage.ways[1]).await.unwrap();
    assert_eq!(stage.straight().len(), 1);
    let got = db.get_item().table_name("rows").key("pk", text("a")).send().await.unwrap();
    assert!(got.item().is_some());
}

#[tokio::test]
async fn what_goes_once_is_not_repeated() {
    let stage = Stage::new().await;
    let db = stage.embedded.dynamodb();
    stage.embedded.inject(Losing(AtomicU32::new(1)));
    let put = db.put_item().table_name("rows").item("pk", text("a"));
    let once = stage.ways[1].clone().once();
    assert!(matches!(put.send_by(&once).await.unwrap_err(), SdkError::DispatchFailure(_)));
    put.send_by(&once).await.unwrap();
    assert_eq!(stage.straight().len(), 2);
}
