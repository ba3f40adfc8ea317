//! What only the embedded DynamoDB shows, through the SDK: lost replies, threads that race, capacity, time to live. The rest is in `src/dynamodb.rs`.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, GlobalSecondaryIndex, KeySchemaElement,
    KeyType, Projection, ProjectionType, Put, ReturnConsumedCapacity, ScalarAttributeType,
    TimeToLiveSpecification, TransactWriteItem,
};
use chrono::DateTime;
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{Call, Embedded, Fault, FaultPlan, Units};

const START_S: i64 = 1_763_725_000;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(DateTime::from_timestamp(START_S, 0).unwrap()))
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn hash(name: &str) -> KeySchemaElement {
    KeySchemaElement::builder().attribute_name(name).key_type(KeyType::Hash).build().unwrap()
}

/// A table `jobs` with key `id` and an index by `owner`.
async fn create_jobs(client: &Client) {
    let attribute = |name: &str| {
        AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(ScalarAttributeType::S)
            .build()
            .unwrap()
    };
    let by_owner = GlobalSecondaryIndex::builder().index_name("by-owner").key_schema(hash("owner"));
    let by_owner =
        by_owner.projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build());
    client
        .create_table()
        .table_name("jobs")
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("id"))
        .attribute_definitions(attribute("owner"))
        .key_schema(hash("id"))
        .global_secondary_indexes(by_owner.build().unwrap())
        .send()
        .await
        .unwrap();
}

async fn with_jobs() -> (Embedded, Client) {
    let embedded = Embedded::in_memory(clock()).unwrap();
    let client = embedded.dynamodb();
    create_jobs(&client).await;
    (embedded, client)
}

fn put(id: &str) -> Put {
    let put = Put::builder().table_name("jobs").item("id", text(id)).item("size", number(1));
    put.condition_expression("attribute_not_exists(id)").build().unwrap()
}

/// Loses the reply of the first transaction.
struct LoseFirst(AtomicBool);

impl FaultPlan for LoseFirst {
    fn on_request(&self, call: &Call) -> Fault {
        let first = call.operation == "TransactWriteItems" && !self.0.swap(true, Ordering::SeqCst);
        if first { Fault::LoseReply } else { Fault::None }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_whose_reply_is_lost_is_repeated_without_harm() {
    let (embedded, client) = with_jobs().await;
    embedded.inject(LoseFirst(AtomicBool::new(false)));
    let before = embedded.meter().snapshot();
    let put = TransactWriteItem::builder().put(put("a")).build();
    client.transact_write_items().transact_items(put.clone()).send().await.unwrap();
    assert_eq!(embedded.meter().snapshot().since(&before).dynamodb_requests(), 2);
    let again =
        client.transact_write_items().transact_items(put).send().await.unwrap_err().into_service_error();
    assert!(again.is_transaction_canceled_exception(), "another call is another transaction: {again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_writers_never_pass_a_conditional_limit() {
    const LIMIT: i64 = 100;
    let (_embedded, client) = with_jobs().await;
    let writers: Vec<_> = (0..16)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut won = 0;
                for _ in 0..20 {
                    let take = client.update_item().table_name("jobs").key("id", text("bucket"));
                    let take = take.update_expression("ADD taken :one");
                    let take = take.condition_expression("attribute_not_exists(taken) OR taken < :limit");
                    let take = take.expression_attribute_values(":one", number(1));
                    match take.expression_attribute_values(":limit", number(LIMIT)).send().await {
                        Ok(_) => won += 1,
                        Err(error) => {
                            assert!(error.into_service_error().is_conditional_check_failed_exception())
                        }
                    }
                }
                won
            })
        })
        .collect();
    let mut won = 0;
    for writer in writers {
        won += writer.await.unwrap();
    }
    let bucket = client.get_item().table_name("jobs").key("id", text("bucket")).send().await.unwrap();
    assert_eq!((won, &bucket.item().unwrap()["taken"]), (LIMIT, &number(LIMIT)));
}

#[tokio::test]
async fn the_meter_counts_what_aws_bills() {
    let (embedded, client) = with_jobs().await;
    let before = embedded.meter().snapshot();
    let large = text(&"x".repeat(2500));
    // 3 units for the table; 1 for the index, which holds keys only.
    let put_item = client.put_item().table_name("jobs").item("id", text("a")).item("owner", text("me"));
    put_item.item("payload", large).send().await.unwrap();
    // A failed condition costs what the item that is there costs: 3.
    let again = client.put_item().table_name("jobs").item("id", text("a"));
    again.condition_expression("attribute_not_exists(id)").send().await.unwrap_err();
    // A transaction costs twice: 2 for the write, 2 x 3 for the check of the large item.
    let check = ConditionCheck::builder().table_name("jobs").key("id", text("a"));
    let check = check.condition_expression("attribute_exists(id)").build().unwrap();
    let both =
        client.transact_write_items().transact_items(TransactWriteItem::builder().put(put("b")).build());
    both.transact_items(TransactWriteItem::builder().condition_check(check).build()).send().await.unwrap();
    // Half a unit for an eventually consistent read, of the table and of the index.
    client.get_item().table_name("jobs").key("id", text("a")).send().await.unwrap();
    let query = client.query().table_name("jobs").index_name("by-owner").key_condition_expression("#o = :o");
    let query = query.expression_attribute_names("#o", "owner").expression_attribute_values(":o", text("me"));
    query.send().await.unwrap();
    let spent = embedded.meter().snapshot().since(&before);
    let expected = BTreeMap::from([
        ("jobs".to_owned(), Units { write: 3.0 + 3.0 + 2.0 + 6.0, read: 0.5 }),
        ("jobs/by-owner".to_owned(), Units { write: 1.0, read: 0.5 }),
    ]);
    assert_eq!(spent.capacity, expected);
    let calls: Vec<_> =
        spent.dynamodb_calls.iter().map(|(operation, calls)| (operation.as_str(), *calls)).collect();
    assert_eq!(calls, [("GetItem", 1), ("PutItem", 2), ("Query", 1), ("TransactWriteItems", 1)]);
}

#[tokio::test]
async fn capacity_is_reported_to_the_caller_as_asked() {
    let (_embedded, client) = with_jobs().await;
    let put = |mode: Option<ReturnConsumedCapacity>| {
        let put = client.put_item().table_name("jobs").item("id", text("a")).item("owner", text("me"));
        put.set_return_consumed_capacity(mode).send()
    };
    assert_eq!(put(None).await.unwrap().consumed_capacity(), None);
    let total = put(Some(ReturnConsumedCapacity::Total)).await.unwrap().consumed_capacity.unwrap();
    assert_eq!((total.capacity_units(), total.table()), (Some(1.0), None));
    let indexes = put(Some(ReturnConsumedCapacity::Indexes)).await.unwrap().consumed_capacity.unwrap();
    assert_eq!(indexes.table().unwrap().capacity_units(), Some(1.0));
}

#[tokio::test]
async fn what_dynamodb_refuses_is_refused_by_its_code() {
    use aws_sdk_dynamodb::error::ProvideErrorMetadata;
    let (_embedded, client) = with_jobs().await;
    let missing = client.put_item().table_name("missing").item("id", text("a")).send().await.unwrap_err();
    assert_eq!(missing.code(), Some("ResourceNotFoundException"));
    let no_key = client.put_item().table_name("jobs").item("other", text("a")).send().await.unwrap_err();
    assert_eq!(no_key.code(), Some("ValidationException"));
    let twice = client.create_table().table_name("jobs").billing_mode(BillingMode::PayPerRequest);
    let key =
        AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S).build();
    let twice = twice.attribute_definitions(key.unwrap()).key_schema(hash("id")).send().await.unwrap_err();
    assert_eq!(twice.code(), Some("ResourceInUseException"));
    let backups = client.list_backups().send().await.unwrap_err();
    assert_eq!(backups.code(), Some("UnknownOperationException"));
}

#[tokio::test]
async fn a_sweep_deletes_what_has_outlived_its_ttl_and_nothing_else() {
    let clock = clock();
    let embedded = Embedded::in_memory(clock.clone()).unwrap();
    let client = embedded.dynamodb();
    create_jobs(&client).await;
    let ttl = TimeToLiveSpecification::builder().attribute_name("expires_at").enabled(true).build().unwrap();
    client.update_time_to_live().table_name("jobs").time_to_live_specification(ttl).send().await.unwrap();
    for (id, expires_at_s) in [("soon", START_S + 10), ("later", START_S + 1000)] {
        let put = client
            .put_item()
            .table_name("jobs")
            .item("id", text(id))
            .item("expires_at", number(expires_at_s));
        put.send().await.unwrap();
    }
    assert_eq!(embedded.sweep_ttl().unwrap(), 0);
    clock.advance_ms(11_000);
    assert_eq!(embedded.sweep_ttl().unwrap(), 1);
    let left = client.scan().table_name("jobs").send().await.unwrap();
    assert_eq!(left.items()[0]["id"], text("later"));
}
