//! How fast the embedded services are through the SDK: figures, not checks. Run in release:
//! `cargo nextest run --release -p tidegate-contract --test throughput --run-ignored only --no-capture -j 1`.
#![allow(clippy::unwrap_used, reason = "figures for a reader: a failure may just end the run")]

use std::sync::Arc;
use std::time::Instant;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry};
use tidegate_embedded::{Durability, Embedded};
use tidegate_engine::clock::SystemClock;

const TASKS: usize = 8;

fn places() -> [(&'static str, Embedded, Option<tempfile::TempDir>); 2] {
    let memory = Embedded::in_memory(Arc::new(SystemClock)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = Embedded::open(dir.path(), Arc::new(SystemClock), Durability::default()).unwrap();
    [("memory", memory, None), ("file", file, Some(dir))]
}

/// Processor time of this process so far, where the system tells (in steps of 10 ms).
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat.split(' ').filter_map(|field| field.parse().ok()).collect();
    // User and system time: fields 14 and 15, less the name and the state, which are no numbers.
    fields.get(11..13).map_or(0.0, |times| times.iter().sum::<f64>() * 10.0)
}

/// How fast something went: by the clock, and by processor time, which other programs disturb less.
struct Rate {
    per_s: f64,
    cpu_us: f64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}/s ({:.0} us of processor time each)", self.per_s, self.cpu_us)
    }
}

/// Runs `each` `times` times over on several tasks; each time counts for `items`.
async fn rate<F: Future<Output = ()> + Send>(
    times: usize,
    items: usize,
    each: impl Fn(usize) -> F + Send + Sync + 'static,
) -> Rate {
    let before_ms = cpu_ms();
    let each = Arc::new(each);
    let started = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let each = each.clone();
            tokio::spawn(async move {
                for index in (task..times).step_by(TASKS) {
                    each(index).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let items = (times * items) as f64;
    Rate { per_s: items / started.elapsed().as_secs_f64(), cpu_us: (cpu_ms() - before_ms) * 1000.0 / items }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn dynamodb() {
    for (place, embedded, _dir) in places() {
        let client = embedded.dynamodb();
        let key = AttributeDefinition::builder()
            .attribute_name("id")
            .attribute_type(ScalarAttributeType::S)
            .build();
        client
            .create_table()
            .table_name("jobs")
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(key.unwrap())
            .key_schema(
                KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap(),
            )
            .send()
            .await
            .unwrap();
        let put = {
            let client = client.clone();
            move |index: usize| {
                let put = client
                    .put_item()
                    .table_name("jobs")
                    .item("id", AttributeValue::S(format!("job-{index}")));
                let put = put.item("payload", AttributeValue::S("x".repeat(300)));
                let put = put.condition_expression("attribute_not_exists(id)");
                async move {
                    put.send().await.unwrap();
                }
            }
        };
        let puts = rate(20_000, 1, put).await;
        let update = move |index: usize| {
            let update = client
                .update_item()
                .table_name("jobs")
                .key("id", AttributeValue::S(format!("job-{}", index % 100)));
            let update = update.update_expression("SET n = if_not_exists(n, :zero) + :one");
            let update = update.condition_expression("attribute_exists(id)");
            let update = update.expression_attribute_values(":zero", AttributeValue::N("0".into()));
            let update = update.expression_attribute_values(":one", AttributeValue::N("1".into()));
            async move {
                update.send().await.unwrap();
            }
        };
        let updates = rate(20_000, 1, update).await;
        println!("dynamodb in {place}: conditional puts {puts}, conditional updates {updates}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn sqs() {
    for (place, embedded, _dir) in places() {
        for fifo in [false, true] {
            let client = embedded.sqs();
            let mut create = client.create_queue().queue_name(if fifo { "q.fifo" } else { "q" });
            if fifo {
                create = create.attributes(aws_sdk_sqs::types::QueueAttributeName::FifoQueue, "true");
            }
            let url = create.send().await.unwrap().queue_url.unwrap();
            let body = "x".repeat(300);
            let batches = 4_000;
            let send = {
                let (client, url) = (client.clone(), url.clone());
                move |index: usize| {
                    let entries = (0..10).map(|entry| {
                        let builder =
                            SendMessageBatchRequestEntry::builder().id(entry.to_string()).message_body(&body);
                        let builder = match fifo {
                            true => {
                                let builder = builder.message_deduplication_id(format!("{index}-{entry}"));
                                builder.message_group_id(format!("g{}", index % 50))
                            }
                            false => builder,
                        };
                        builder.build().unwrap()
                    });
                    let send =
                        client.send_message_batch().queue_url(&url).set_entries(Some(entries.collect()));
                    async move {
                        assert!(send.send().await.unwrap().failed().is_empty());
                    }
                }
            };
            let sent = rate(batches, 10, send).await;
            let take = move |_| {
                let (client, url) = (client.clone(), url.clone());
                async move {
                    let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
                    let received = receive.wait_time_seconds(1).send().await.unwrap();
                    let entries = received.messages().iter().enumerate().map(|(index, message)| {
                        let builder = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
                        builder.receipt_handle(message.receipt_handle().unwrap()).build().unwrap()
                    });
                    let delete =
                        client.delete_message_batch().queue_url(&url).set_entries(Some(entries.collect()));
                    delete.send().await.unwrap();
                }
            };
            let taken = rate(batches, 10, take).await;
            println!("sqs in {place}, fifo {fifo}: sent {sent}, received and deleted {taken}");
        }
    }
}
