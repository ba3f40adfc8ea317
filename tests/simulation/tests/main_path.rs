//! The main path without faults: what is due is delivered once, what is throttled stays within its limit.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_engine::{EventStatus, Released};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec, Received};
use tidegate_store::tables::Table;
use tidegate_testkit::{DISPATCH, rows};

fn ids(events: &[Received]) -> BTreeSet<String> {
    events.iter().map(|event| event.body.event_id.clone()).collect()
}

#[tokio::test]
async fn an_unthrottled_batch_arrives_once_and_on_time() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let launch_at = world.clock.now() + Duration::minutes(30);
    let job = JobSpec::at(launch_at, &queue).unwrap().of(1_000).unwrap();
    let id = world.create(job.named("nightly")).await.unwrap();
    let mut arrived = Vec::new();
    for _ in 0..35 {
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        let events = world.consume(&queue).await.unwrap();
        assert!(events.is_empty() || world.clock.now() >= launch_at);
        arrived.extend(events);
        world.advance(60);
    }
    let expected = (0..1_000).map(|i| format!("{id}.1.{}.{i}", launch_at.timestamp())).collect();
    assert_eq!(ids(&arrived), expected);
    assert_eq!(arrived.len(), 1_000);
}

/// A key takes 1,000 write units a second, and nothing throttles such a run.
#[tokio::test]
async fn the_history_of_a_large_batch_lies_under_several_keys_and_is_shown_as_one() {
    const EVENTS: u32 = 33_000;
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let job = JobSpec::at(world.clock.now() + Duration::minutes(10), &queue).unwrap();
    world.create(job.of(EVENTS.into()).unwrap().named("large")).await.unwrap();
    for _ in 0..12 {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
    }
    let (client, job) = (CLIENT.parse().unwrap(), "large".parse().unwrap());
    let run = world.engine.queries().runs(&client, &job, None).await.unwrap().rows.pop().unwrap();
    assert_eq!(run.tally.delivered, EVENTS);
    for first in [200, 16_350, 16_390, 32_950] {
        let events =
            world.engine.queries().events(&client, &run.id, Some(first)).await.unwrap().unwrap().rows;
        assert!(events.iter().all(|event| event.status == EventStatus::Delivered), "{events:?}");
        assert_eq!(events.len() as u32, (EVENTS - first - 1).min(100));
    }
    let mut per_key = BTreeMap::<String, usize>::new();
    for row in rows::all(&world.embedded.dynamodb(), Table::Events).await.unwrap() {
        let text = |name: &str| row[name].as_s().unwrap().clone();
        if text("sk").starts_with('c') {
            *per_key.entry(text("pk")).or_default() += 1;
        }
    }
    assert_eq!(per_key.values().sum::<usize>(), 330);
    assert!(per_key.len() == 3 && per_key.values().all(|parts| *parts <= 165), "{per_key:?}");
}

#[tokio::test]
async fn a_job_for_ten_seconds_from_now_is_emitted_by_its_creation() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let launch_at = world.clock.now() + Duration::seconds(10);
    world.create(JobSpec::at(launch_at, &queue).unwrap()).await.unwrap();
    world.advance(9);
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 0);
    world.advance(1);
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 1);
}

/// Each waits for the send before it, and those that wait share the next one.
#[tokio::test]
async fn jobs_that_are_created_side_by_side_share_their_messages() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let launch_at = world.clock.now() + Duration::seconds(10);
    let before = world.embedded.meter().snapshot();
    let create = || world.create(JobSpec::at(launch_at, &queue).unwrap());
    let created = futures::future::join_all((0..20).map(|_| create())).await;
    let created: BTreeSet<String> = created.into_iter().map(Result::unwrap).collect();
    let sends = world.embedded.meter().snapshot().since(&before).queue(DISPATCH, "SendMessageBatch");
    assert_eq!((sends.calls, sends.messages), (2, 2));
    world.advance(10);
    world.pump().await.unwrap();
    let arrived = world.consume(&queue).await.unwrap();
    let jobs: BTreeSet<String> = arrived.iter().map(|event| event.body.job_id.clone()).collect();
    assert_eq!((arrived.len(), jobs), (20, created));
}

#[tokio::test]
async fn a_cron_job_fires_each_minute_from_its_creation_on() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let start = world.clock.now();
    world.create(JobSpec::cron("* * * * *", "Europe/Berlin", &queue).unwrap().named("each")).await.unwrap();
    let mut arrived = Vec::new();
    for _ in 0..20 {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        arrived.extend(world.consume(&queue).await.unwrap());
    }
    let expected = (0..=20).map(|m| format!("each.1.{}.0", start.timestamp() + m * 60)).collect();
    assert_eq!(ids(&arrived), expected);
    assert_eq!(arrived.len(), 21);
}

async fn throttled(max_in_flight: u32, released_at_once: usize, may_wait_beside_idle_slots: usize) {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", max_in_flight, 600).await.unwrap();
    let job = JobSpec::at(world.clock.now(), &queue).unwrap().of(1_000).unwrap().under("small").unwrap();
    world.create(job.named("batch")).await.unwrap();
    let mut arrived = Vec::new();
    let mut held: Vec<Received> = Vec::new();
    loop {
        world.pump().await.unwrap();
        held.extend(world.consume(&queue).await.unwrap());
        assert!(held.len() <= max_in_flight as usize, "{} in flight", held.len());
        if held.is_empty() {
            break;
        }
        let waiting = 1_000 - arrived.len() - held.len();
        // Near the end of a run the last ranges lie with some groups only.
        let idle = max_in_flight as usize - held.len();
        assert!(idle == 0 || waiting <= may_wait_beside_idle_slots, "{idle} idle slots, {waiting} wait");
        let done: Vec<Received> = held.drain(..released_at_once.min(held.len())).collect();
        let answers = world.release(&done).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == Released::Released), "{answers:?}");
        arrived.extend(done);
    }
    assert_eq!(arrived.len(), 1_000);
    assert_eq!(ids(&arrived).len(), 1_000);
}

#[tokio::test]
async fn a_throttled_batch_released_ten_at_a_time_is_drained() {
    throttled(10, 10, 0).await;
}

#[tokio::test]
async fn a_throttled_batch_released_one_by_one_is_drained() {
    throttled(3, 1, 0).await;
}

#[tokio::test]
async fn a_throttled_batch_of_several_slot_groups_is_drained() {
    throttled(30, 7, 24).await;
}
