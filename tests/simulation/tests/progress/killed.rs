//! Calls that are killed at a request, again and again: each has moved something that lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::Handled;
use tidegate_engine::message::Message;
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_testkit::queue::receive_count;

/// Dies after so many requests.
struct DiesAfter(AtomicI64);

impl FaultPlan for DiesAfter {
    fn on_request(&self, _call: &Call) -> Fault {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 { Fault::CrashAfter } else { Fault::None }
    }
}

fn kill_after(world: &World, requests: i64) {
    world.embedded.inject(DiesAfter(AtomicI64::new(requests)));
}

const EVENTS: u32 = 120_000;
const JOBS: usize = 1_500;

/// A batch that is a part of its own, and more throttled launches than a call takes, in calls of so many requests.
async fn is_emitted_in_calls_of(requests: i64) {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let launch_at = world.clock.now() + Duration::minutes(30);
    world.policy("small", 10, 600).await.unwrap();
    let batch = JobSpec::at(launch_at, &queue).unwrap().of(EVENTS.into()).unwrap().failures_only();
    world.create(batch.named("batch")).await.unwrap();
    let two = JobSpec::at(launch_at, &queue).unwrap().of(2).unwrap().under("small").unwrap().into_draft();
    world.engine.jobs().create_all(&CLIENT.parse().unwrap(), vec![(None, two); JOBS]).await;
    world.advance(29 * 60);
    let store = world.engine.store();
    let (mut kills, mut minutes) = (0, 0);
    loop {
        kill_after(&world, requests);
        let ticked = world.engine.tick().await;
        kills += usize::from(ticked.is_err());
        world.embedded.inject_nothing();
        loop {
            let messages = world.receive_scans().await.unwrap();
            if messages.is_empty() {
                break;
            }
            for message in messages {
                kill_after(&world, requests);
                let handled = world.engine.handle(message.body().unwrap(), receive_count(&message)).await;
                world.embedded.inject_nothing();
                kills += usize::from(handled == Handled::Retry);
                if handled == Handled::Done {
                    world.delete_scans(&[message]).await.unwrap();
                }
            }
        }
        let watermark = store.watermark().await.unwrap().unwrap();
        if watermark.scanned_to > launch_at && store.parts(None).await.unwrap().rows.is_empty() {
            break;
        }
        minutes += 1;
        assert!(minutes < 40, "calls of {requests} requests do not get on: {watermark:?}");
        world.advance(60);
    }
    let joined = world.waiting_runs("small").await.unwrap();
    assert_eq!(joined.len(), JOBS);
    assert_eq!(joined.iter().collect::<BTreeSet<_>>().len(), JOBS, "an occurrence is in one pack, once");
    world.advance(900);
    let mut parts: BTreeMap<u32, u32> = BTreeMap::new();
    for message in world.take_dispatched().await.unwrap() {
        let Message::Chunk(chunk) = message else { continue };
        for item in chunk.items {
            assert!(parts.insert(item.from, item.to).is_none_or(|to| to == item.to), "cut in two ways");
        }
    }
    let end = parts.into_iter().fold(0, |end, (from, to)| if from == end { to } else { end });
    assert_eq!(end, EVENTS);
    println!("calls of {requests} requests: {kills} were killed, all was emitted after {minutes} minutes");
    assert!(kills > 0 || requests > 700);
}

#[tokio::test]
async fn killed_calls_get_on_however_long_they_live() {
    for requests in [700, 1_000, 1_600] {
        is_emitted_in_calls_of(requests).await;
    }
}

/// Active policies are woken where the tick before was killed.
#[tokio::test]
async fn every_active_policy_is_woken_by_ticks_that_die() {
    let world = World::new().await.unwrap();
    let client = CLIENT.parse().unwrap();
    let all: BTreeSet<String> = (0..2_000).map(|number| format!("policy-{number}")).collect();
    for policy in &all {
        let policy = policy.parse().unwrap();
        world.engine.store().touch_active(&client, &policy, world.clock.now()).await.unwrap();
    }
    // What joined since a tick began was given a wake-up by its emission.
    world.advance(1);
    let mut woken = BTreeSet::new();
    for _ in 0..16 {
        kill_after(&world, 250);
        world.engine.tick().await.unwrap_err();
        world.embedded.inject_nothing();
        world.advance(60);
        for message in world.take_dispatched().await.unwrap() {
            let Message::Wake { policy, .. } = message else { panic!("{message:?}") };
            woken.insert(policy);
        }
    }
    assert_eq!(woken.len(), all.len());
}
