//! The seam end to end: SDK clients on the embedded services.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::sync::Arc;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use chrono::{DateTime, Utc};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::Embedded;

fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_763_725_000, 0).unwrap()
}

#[tokio::test]
async fn a_put_is_read_back_and_metered() {
    let embedded = Embedded::in_memory(Arc::new(ManualClock::new(start()))).unwrap();
    let client = embedded.dynamodb();
    client
        .create_table()
        .table_name("jobs")
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(
            AttributeDefinition::builder()
                .attribute_name("id")
                .attribute_type(ScalarAttributeType::S)
                .build()
                .unwrap(),
        )
        .key_schema(KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap())
        .send()
        .await
        .unwrap();
    let before = embedded.meter().snapshot();
    let put =
        client.put_item().table_name("jobs").item("id", AttributeValue::S("a".into())).send().await.unwrap();
    assert_eq!(put.consumed_capacity(), None);
    let got =
        client.get_item().table_name("jobs").key("id", AttributeValue::S("a".into())).send().await.unwrap();
    assert_eq!(got.item().unwrap()["id"], AttributeValue::S("a".into()));
    let spent = embedded.meter().snapshot().since(&before);
    assert_eq!((spent.write_units(), spent.read_units()), (1.0, 0.5));
}

#[tokio::test]
async fn a_message_is_sent_received_and_deleted() {
    let embedded = Embedded::in_memory(Arc::new(ManualClock::new(start()))).unwrap();
    let client = embedded.sqs();
    let url = client.create_queue().queue_name("jobs").send().await.unwrap().queue_url.unwrap();
    client.send_message().queue_url(&url).message_body("hello").send().await.unwrap();
    let received = client.receive_message().queue_url(&url).send().await.unwrap();
    let message = &received.messages()[0];
    assert_eq!(message.body(), Some("hello"));
    client
        .delete_message()
        .queue_url(&url)
        .receipt_handle(message.receipt_handle().unwrap())
        .send()
        .await
        .unwrap();
    let usage = embedded.meter().snapshot();
    assert_eq!(usage.queue("jobs", "DeleteMessage").calls, 1);
}
