//! One-time jobs that are due within minutes: their events go ahead of them, and they are stored in a write that they share
//! with others. Whatever that write takes, each event comes, and comes once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture};
use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::around;
use tidegate_engine::{Engine, Written};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};

/// How long before their launch jobs are created, in seconds.
const AHEAD_SECONDS: i64 = 20;
/// What the write takes, in seconds.
const SLOW_SECONDS: i64 = 30;

/// What happens while the write is under way.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    /// The events are due, and nobody has looked at their messages.
    Due,
    /// They have come, and found no jobs.
    Came,
}

/// A master whose first write of many rows takes long.
fn slow_master(world: &Arc<World>, meanwhile: Meanwhile) -> Engine {
    let (of_hook, was_slow) = (Arc::clone(world), AtomicBool::new(false));
    let process = world.deployment.process().dynamodb_through(|http| {
        around(http, move |inner, request| {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let is_slow = target.ends_with(".BatchWriteItem") && !was_slow.swap(true, Ordering::Relaxed);
            let (inner, world) = (inner.clone(), Arc::clone(&of_hook));
            HttpConnectorFuture::new(async move {
                if is_slow {
                    world.advance(SLOW_SECONDS);
                    if matches!(meanwhile, Meanwhile::Came) {
                        world.pump().await.unwrap();
                    }
                }
                inner.call(request).await
            })
        })
    });
    process.unwrap().start(world.clock.clone())
}

/// How many events came of so many jobs of a slow master, and how many of their ids differ.
async fn came_of(jobs: usize, meanwhile: Meanwhile) -> (usize, usize) {
    let world = Arc::new(World::new().await.unwrap());
    let queue = world.queue("inbox").await.unwrap();
    let due = world.clock.now() + Duration::seconds(AHEAD_SECONDS);
    let (master, client) = (slow_master(&world, meanwhile), CLIENT.parse().unwrap());
    let draft = JobSpec::at(due, &queue).unwrap().into_draft();
    let created = match jobs {
        1 => vec![master.jobs().create(&client, None, draft).await],
        jobs => master.jobs().create_all(&client, vec![(None, draft); jobs]).await,
    };
    assert!(created.iter().all(|answer| matches!(answer, Ok(Written::Created(_)))), "{created:?}");
    assert!(world.clock.now() > due, "the write was slow");
    for _ in 0..3 {
        world.pump().await.unwrap();
        world.advance(2);
    }
    let events = world.consume(&queue).await.unwrap();
    let mut ids: Vec<_> = events.iter().map(|event| event.body.event_id.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    (events.len(), ids.len())
}

#[tokio::test]
async fn events_that_came_before_their_jobs_were_stored_come_again() {
    for jobs in [1, 3, 30] {
        assert_eq!(came_of(jobs, Meanwhile::Came).await, (jobs, jobs), "{jobs}");
    }
}

#[tokio::test]
async fn events_that_come_after_all_come_once() {
    for jobs in [1, 3] {
        assert_eq!(came_of(jobs, Meanwhile::Due).await, (jobs, jobs), "{jobs}");
    }
}
