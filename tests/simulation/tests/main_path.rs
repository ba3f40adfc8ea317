//! The main path without faults: what is due is delivered once, what is throttled stays within its limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_engine::Released;
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, Received};

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
