//! What the embedded SQS does beyond the contract that every SQS keeps: fair turns, exact metering, its own origin.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use chrono::{DateTime, Utc};
use tidegate_domain::clock::{Clock, ManualClock};
use tidegate_domain::limits::DUE_MS_ATTRIBUTE;
use tidegate_embedded::loopback::Limits;
use tidegate_embedded::{Embedded, OwnQueues, QueueUse};

fn embedded() -> (Arc<ManualClock>, Embedded) {
    let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap()));
    let embedded = Embedded::in_memory(clock.clone()).unwrap();
    (clock, embedded)
}

/// Shows the time of the runtime, which a paused runtime moves on by itself.
struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> DateTime<Utc> {
        let elapsed_ms = self.0.elapsed().as_millis();
        DateTime::from_timestamp_millis(1_763_725_000_000 + i64::try_from(elapsed_ms).unwrap()).unwrap()
    }
}

async fn queue(client: &Client, name: &str) -> String {
    client.create_queue().queue_name(name).send().await.unwrap().queue_url.unwrap()
}

async fn send(client: &Client, url: &str, group: &str, body: &str, delay_s: i32) {
    let send = client.send_message().queue_url(url).message_group_id(group).message_body(body);
    send.delay_seconds(delay_s).send().await.unwrap();
}

async fn receive(client: &Client, url: &str) -> Vec<Message> {
    let receive = client.receive_message().queue_url(url).max_number_of_messages(10);
    receive.send().await.unwrap().messages.unwrap_or_default()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().filter_map(|message| message.body()).collect()
}

#[tokio::test]
async fn a_quiet_group_does_not_wait_behind_a_noisy_one() {
    let (_, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "fair").await;
    for number in 0..40 {
        send(&client, &url, "noisy", &number.to_string(), 0).await;
    }
    assert_eq!(receive(&client, &url).await.len(), 10);
    send(&client, &url, "quiet", "quiet", 0).await;
    let next = receive(&client, &url).await;
    assert!(bodies(&next)[..2].contains(&"quiet"), "{:?}", bodies(&next));
}

#[tokio::test]
async fn delayed_messages_take_their_turns_when_they_become_ready() {
    let (clock, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "fair").await;
    for number in 0..40 {
        send(&client, &url, "noisy", &number.to_string(), 5).await;
    }
    send(&client, &url, "quiet", "quiet", 5).await;
    assert_eq!(receive(&client, &url).await.len(), 0);
    clock.advance_ms(5_000);
    let first = receive(&client, &url).await;
    assert!(bodies(&first)[..2].contains(&"quiet"), "{:?}", bodies(&first));
}

#[tokio::test]
async fn more_messages_than_are_made_ready_at_once_all_arrive() {
    let (clock, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "herd").await;
    for batch in 0..150 {
        let entry = |number: i32| {
            let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).delay_seconds(5);
            entry.message_body(format!("{batch}-{number}")).build().unwrap()
        };
        let entries = (0..10).map(entry).collect();
        client.send_message_batch().queue_url(&url).set_entries(Some(entries)).send().await.unwrap();
    }
    clock.advance_ms(5_000);
    let mut seen = std::collections::HashSet::new();
    loop {
        let messages = receive(&client, &url).await;
        if messages.is_empty() {
            break;
        }
        seen.extend(messages.into_iter().filter_map(|message| message.body));
    }
    assert_eq!(seen.len(), 1500);
}

#[tokio::test]
async fn the_meter_counts_requests_as_sqs_bills_them() {
    let (_, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "metered").await;
    let before = embedded.meter().snapshot();
    client.send_message().queue_url(&url).message_body("x".repeat(64 * 1024)).send().await.unwrap();
    client.send_message().queue_url(&url).message_body("x".repeat(64 * 1024 + 1)).send().await.unwrap();
    assert_eq!(receive(&client, &url).await.len(), 2);
    assert_eq!(receive(&client, &url).await.len(), 0);
    let late = client.send_message().queue_url(&url).message_body("x").delay_seconds(901);
    late.send().await.unwrap_err();
    let spent = embedded.meter().snapshot().since(&before);
    assert_eq!(spent.queue("metered", "SendMessage"), QueueUse { calls: 3, billed: 4, messages: 2 });
    assert_eq!(spent.queue("metered", "ReceiveMessage"), QueueUse { calls: 2, billed: 4, messages: 2 });
    assert_eq!(spent.sqs_requests(), 8);
}

#[tokio::test(start_paused = true)]
async fn one_waiting_receiver_after_the_other_is_woken_while_there_is_more() {
    let (_, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "woken").await;
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let receive =
                client.receive_message().queue_url(&url).max_number_of_messages(1).wait_time_seconds(20);
            tokio::spawn(async move { receive.send().await.unwrap().messages().len() })
        })
        .collect();
    // All receivers wait before the only send.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let started = tokio::time::Instant::now();
    let entry = |id: &str| SendMessageBatchRequestEntry::builder().id(id).message_body(id).build().unwrap();
    let entries = ["a", "b", "c", "d"].map(entry).to_vec();
    client.send_message_batch().queue_url(&url).set_entries(Some(entries)).send().await.unwrap();
    for receiver in receivers {
        assert_eq!(receiver.await.unwrap(), 1);
    }
    assert_eq!(started.elapsed().as_millis(), 0, "no receiver should have had to look by itself");
}

#[tokio::test]
async fn equal_runs_give_equal_message_ids() {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (_, embedded) = embedded();
        let client = embedded.sqs();
        let url = queue(&client, "q").await;
        ids.push(client.send_message().queue_url(&url).message_body("x").send().await.unwrap().message_id);
    }
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn urls_carry_the_address_that_is_served_and_older_ones_stay_valid() {
    let (_, embedded) = embedded();
    let client = embedded.sqs();
    let before = queue(&client, "q").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    embedded.serve_sqs(listener, Limits::default(), std::future::ready(())).await.unwrap();
    let after = queue(&client, "q").await;
    assert_eq!(after, format!("http://{address}/000000000000/q"));
    client.send_message().queue_url(&before).message_body("x").send().await.unwrap();
    assert_eq!(bodies(&receive(&client, &after).await), ["x"]);
}

#[tokio::test]
async fn a_dead_letter_queue_that_is_gone_loses_nothing() {
    let (clock, embedded) = embedded();
    let client = embedded.sqs();
    let dead = queue(&client, "dead").await;
    let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}"#;
    let create =
        client.create_queue().queue_name("source").attributes(QueueAttributeName::RedrivePolicy, policy);
    let url = create.send().await.unwrap().queue_url.unwrap();
    client.delete_queue().queue_url(dead).send().await.unwrap();
    client.send_message().queue_url(&url).message_body("x").send().await.unwrap();
    for _ in 0..3 {
        assert_eq!(bodies(&receive(&client, &url).await), ["x"]);
        clock.advance_ms(30_000);
    }
}

#[tokio::test]
async fn a_message_that_comes_back_goes_ahead_of_the_backlog() {
    let (clock, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "back").await;
    for number in 0..12 {
        send(&client, &url, "g", &number.to_string(), 0).await;
    }
    let first = client.receive_message().queue_url(&url).visibility_timeout(1).send().await.unwrap();
    assert_eq!(bodies(first.messages()), ["0"]);
    clock.advance_ms(1_000);
    assert_eq!(bodies(&receive(&client, &url).await)[0], "0");
}

#[tokio::test]
async fn a_fifo_group_waits_for_each_of_its_messages_in_flight() {
    let (_, embedded) = embedded();
    let client = embedded.sqs();
    let create =
        client.create_queue().queue_name("line.fifo").attributes(QueueAttributeName::FifoQueue, "true");
    let url = create.send().await.unwrap().queue_url.unwrap();
    for body in ["1", "2", "3"] {
        let send = client.send_message().queue_url(&url).message_group_id("g").message_body(body);
        send.message_deduplication_id(body).send().await.unwrap();
    }
    let taken = client.receive_message().queue_url(&url).max_number_of_messages(2).send().await.unwrap();
    let receipts: Vec<&str> =
        taken.messages().iter().filter_map(|message| message.receipt_handle()).collect();
    let release = client.change_message_visibility().queue_url(&url).receipt_handle(receipts[0]);
    release.visibility_timeout(0).send().await.unwrap();
    assert_eq!(bodies(&receive(&client, &url).await), Vec::<&str>::new(), "the second is still in flight");
    client.delete_message().queue_url(&url).receipt_handle(receipts[1]).send().await.unwrap();
    assert_eq!(bodies(&receive(&client, &url).await), ["1", "3"]);
}

#[tokio::test]
async fn messages_that_nobody_receives_expire_all_the_same() {
    let (clock, embedded) = embedded();
    let client = embedded.sqs();
    let create = client.create_queue().queue_name("old");
    let create = create.attributes(QueueAttributeName::MessageRetentionPeriod, "60");
    let url = create.send().await.unwrap().queue_url.unwrap();
    send(&client, &url, "g", "old", 0).await;
    send(&client, &url, "g", "old and delayed", 900).await;
    let count = async || {
        let get = client.get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::All);
        let all = get.send().await.unwrap().attributes.unwrap();
        let visible = all[&QueueAttributeName::ApproximateNumberOfMessages].clone();
        (visible, all[&QueueAttributeName::ApproximateNumberOfMessagesDelayed].clone())
    };
    assert_eq!(count().await, ("1".to_owned(), "1".to_owned()));
    clock.advance_ms(60_000);
    assert_eq!(count().await, ("0".to_owned(), "0".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_looks_again_when_the_next_message_is_due() {
    let embedded = Embedded::in_memory(Arc::new(RuntimeClock(tokio::time::Instant::now()))).unwrap();
    let client = embedded.sqs();
    let url = queue(&client, "due").await;
    send(&client, &url, "g", "x", 3).await;
    let started = tokio::time::Instant::now();
    let received = client.receive_message().queue_url(&url).wait_time_seconds(20).send().await.unwrap();
    assert_eq!(bodies(received.messages()), ["x"]);
    assert!((3_000..=3_002).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
}

/// A message that is due 300 ms before its delay ends, and how long it was not to be received.
async fn waited_ms(hidden: bool) -> i64 {
    let (clock, embedded) = embedded();
    let client = embedded.sqs();
    let url = queue(&client, "delayed").await;
    if hidden {
        embedded.hide_queues(OwnQueues { hidden: ["delayed".to_owned()].into(), send_only: None });
    }
    let due = MessageAttributeValue::builder().data_type("Number");
    let due = due.string_value((clock.now().timestamp_millis() + 4_700).to_string()).build().unwrap();
    let send = client.send_message().queue_url(&url).message_body("x").delay_seconds(5);
    send.message_attributes(DUE_MS_ATTRIBUTE, due).send().await.unwrap();
    let mut waited_ms = 0;
    while receive(&client, &url).await.is_empty() {
        clock.advance_ms(100);
        waited_ms += 100;
    }
    waited_ms
}

#[tokio::test]
async fn messages_of_our_own_queues_are_due_to_the_millisecond() {
    assert_eq!(waited_ms(true).await, 4_700);
    assert_eq!(waited_ms(false).await, 5_000, "whoever delays a message of another queue gets the delay");
}
