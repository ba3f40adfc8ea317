//! Messages of our own queues that cannot be handled, or not now: poison is set aside with its reason, and what happened to
//! events is kept without sending them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal, Service};
use tidegate_engine::{EventStatus, Handled};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_testkit::{DEAD_LETTERS, DEAD_RELEASES};

/// The dead letters of a queue, with the reason that each names.
async fn dead(world: &World, queue: &str) -> Vec<(String, String)> {
    let url = world.queue(queue).await.unwrap();
    let receive = world.deployment.sqs.receive_message().queue_url(url);
    let received = receive.message_attribute_names("reason").max_number_of_messages(10).send().await.unwrap();
    let letter = |message: &aws_sdk_sqs::types::Message| {
        let reason = &message.message_attributes().unwrap()["reason"];
        (message.body().unwrap().to_owned(), reason.string_value().unwrap().to_owned())
    };
    received.messages().iter().map(letter).collect()
}

#[tokio::test]
async fn a_message_that_no_version_writes_is_set_aside_at_once_with_its_reason() {
    let world = World::new().await.unwrap();
    assert_eq!(world.engine.handle("no message of ours", 1).await, Handled::Done);
    let letters = dead(&world, DEAD_LETTERS).await;
    let [(body, reason)] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(body, "no message of ours");
    assert!(reason.starts_with("a dispatch message cannot be read: expected"), "{reason}");

    let handled = world.engine.handle_releases(&[("no release of ours", 1)]).await;
    assert_eq!(handled, [Handled::Done]);
    let letters = dead(&world, DEAD_RELEASES).await;
    let [(body, reason)] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(body, "no release of ours");
    assert!(reason.starts_with("expected"), "{reason}");
}

#[tokio::test]
async fn a_message_of_a_newer_version_waits_for_one() {
    let world = World::new().await.unwrap();
    let newer = json!({"v": 2, "wake": {"client": CLIENT, "policy": "small"}}).to_string();
    for received in [1, 5, 900] {
        assert_eq!(world.engine.handle(&newer, received).await, Handled::Retry, "{received}");
    }
    assert!(dead(&world, DEAD_LETTERS).await.is_empty());
}

/// Refuses everything to the dead-letter queue.
struct NoDeadLetters;

impl FaultPlan for NoDeadLetters {
    fn on_request(&self, call: &Call) -> Fault {
        match call.resource() == DEAD_LETTERS {
            true => Fault::Refuse(Refusal::Internal),
            false => Fault::None,
        }
    }
}

#[tokio::test]
async fn poison_that_cannot_be_set_aside_comes_again() {
    let world = World::new().await.unwrap();
    world.embedded.inject(NoDeadLetters);
    assert_eq!(world.engine.handle("no message of ours", 1).await, Handled::Retry);
}

/// Refuses, while it holds, what records that events were sent.
struct NoRecords(Refusal, Arc<AtomicBool>);

impl FaultPlan for NoRecords {
    fn on_request(&self, call: &Call) -> Fault {
        let records = call.service == Service::DynamoDb && call.operation == "BatchWriteItem";
        match records && self.1.load(Ordering::Relaxed) {
            true => Fault::Refuse(self.0),
            false => Fault::None,
        }
    }
}

#[tokio::test]
async fn what_became_of_events_is_kept_later_whatever_is_wrong_with_a_table_and_nothing_is_sent_twice() {
    for (count, refusal) in
        [(1, Refusal::Throttled), (250, Refusal::Throttled), (1, Refusal::Denied), (250, Refusal::Denied)]
    {
        let world = World::new().await.unwrap();
        let (queue, refuses) = (world.queue("inbox").await.unwrap(), Arc::new(AtomicBool::new(false)));
        world.embedded.inject(NoRecords(refusal, Arc::clone(&refuses)));
        world.engine.tick().await.unwrap();
        let launch_at = world.clock.now() + chrono::Duration::seconds(150);
        let job = world.create(JobSpec::at(launch_at, &queue).unwrap().of(count).unwrap()).await.unwrap();
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.advance(100);
        refuses.store(true, Ordering::Relaxed);
        world.pump().await.unwrap();
        assert_eq!(world.consume(&queue).await.unwrap().len() as u64, count);
        // As long as the table refuses, what is to be kept comes again, and sends nothing.
        world.advance(200);
        assert!(world.pump().await.unwrap().again > 0);
        assert!(world.consume(&queue).await.unwrap().is_empty());
        refuses.store(false, Ordering::Relaxed);
        world.advance(200);
        assert_eq!(world.pump().await.unwrap().again, 0);
        assert!(world.consume(&queue).await.unwrap().is_empty());
        let run = world.runs(&job).await.unwrap().remove(0);
        let client = CLIENT.parse().unwrap();
        let events = world.engine.queries().events(&client, &run.id, None).await.unwrap().unwrap();
        assert!(!events.rows.is_empty());
        for event in events.rows {
            assert_eq!((event.status, event.attempts), (EventStatus::Delivered, Some(1)), "{}", event.id);
        }
    }
}
