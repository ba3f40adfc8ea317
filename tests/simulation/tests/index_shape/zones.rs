//! Zones come with their first job and go when none is left, and never while a job is being added.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_engine::Written;
use tidegate_simulation::World;
use tidegate_simulation::gate::{Gate, Task};
use tidegate_simulation::world::{Account, CLIENT, JobSpec};

/// A time before the minute in which the list of zones is swept, 03:17 UTC.
const EVENING: &str = "2026-11-21T02:55:00Z";
const BEFORE_SWEEP: &str = "2026-11-21T03:16:00Z";

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

async fn zones(world: &World) -> Vec<String> {
    let shape = world.engine.index().shape().await.unwrap();
    shape.zones.iter().map(|(zone, _)| zone.name().to_owned()).collect()
}

async fn create(world: &World, queue: &str, zone: &str, name: &str) {
    world.create(JobSpec::cron("* * * * *", zone, queue).unwrap().named(name)).await.unwrap();
}

async fn delete(world: &World, name: &str) {
    world.engine.jobs().delete(&CLIENT.parse().unwrap(), &name.parse().unwrap(), None).await.unwrap();
}

/// A world before the sweep, in which a zone has no job left.
async fn before_the_sweep() -> (World, String) {
    let world = World::at(instant(EVENING)).await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    create(&world, &queue, "Asia/Tokyo", "gone").await;
    delete(&world, "gone").await;
    world.clock.set(instant(BEFORE_SWEEP));
    world.engine.tick().await.unwrap();
    assert_eq!(zones(&world).await, ["Asia/Tokyo"]);
    world.advance(60);
    (world, queue)
}

#[tokio::test]
async fn a_zone_without_jobs_is_taken_off_the_list_and_comes_again() {
    let (world, queue) = before_the_sweep().await;
    world.advance(-60);
    create(&world, &queue, "Europe/Rome", "stays").await;
    world.advance(60);
    world.engine.tick().await.unwrap();
    assert_eq!(zones(&world).await, ["Europe/Rome"], "Tokyo has no job, Rome has");
    create(&world, &queue, "Asia/Tokyo", "again").await;
    assert_eq!(zones(&world).await, ["Asia/Tokyo", "Europe/Rome"]);
    // The next day, both still have their jobs.
    world.advance(86_340);
    while zones(&world).await.len() == 2 && world.clock.now() < instant("2026-11-22T03:20:00Z") {
        world.engine.tick().await.unwrap();
        world.advance(60);
    }
    assert_eq!(zones(&world).await, ["Asia/Tokyo", "Europe/Rome"]);
}

/// Every cut of a creation and of the tick that sweeps, in both orders.
#[tokio::test]
async fn a_zone_stays_while_a_job_is_added_to_it() {
    let (writer_steps, tick_steps) = added_while_swept(true, 99, 0).await;
    assert!(writer_steps > 4 && tick_steps > 5, "{writer_steps}, {tick_steps}");
    for writer in 1..=writer_steps {
        for tick in 1..=tick_steps {
            for writer_first in [true, false] {
                added_while_swept(writer_first, writer, tick).await;
            }
        }
    }
}

async fn added_while_swept(writer_first: bool, writer_steps: usize, tick_steps: usize) -> (usize, usize) {
    let (world, queue) = before_the_sweep().await;
    let writer_gate = Arc::new(Gate::default());
    let engine = world.process(&writer_gate).unwrap();
    let draft = JobSpec::cron("* * * * *", "Asia/Tokyo", &queue).unwrap().into_draft();
    let mut writer = Task::new(&writer_gate, async move {
        engine.jobs().create(&CLIENT.parse().unwrap(), Some("new".parse().unwrap()), draft).await
    });
    let tick_gate = Arc::new(Gate::default());
    let engine = world.process(&tick_gate).unwrap();
    // Reads of instants and of the outbox have nothing to do with zones.
    tick_gate.stop_only(|body| {
        let pk = body["ExpressionAttributeValues"][":pk"]["S"].as_str().unwrap_or_default();
        !["AT|", "OUTBOX|", "active|"].iter().any(|other| pk.starts_with(other))
            && !pk.starts_with("Asia/Tokyo|W")
            && !pk.starts_with("Asia/Tokyo|M")
    });
    let mut tick = Task::new(&tick_gate, async move { engine.tick().await });
    let mut made = (0, 0);
    if !writer_first {
        made.1 += tick.steps(tick_steps);
    }
    made.0 += writer.steps(writer_steps);
    if writer_first {
        made.1 += tick.steps(tick_steps);
    } else {
        made.1 += tick.steps(usize::MAX);
    }
    let written = writer.finish().unwrap().unwrap();
    assert!(matches!(written, Written::Created(_)));
    made.1 += tick.steps(usize::MAX);
    tick.finish().unwrap().unwrap();

    let told = format!("writer first: {writer_first}, {writer_steps} and {tick_steps}");
    assert_eq!(zones(&world).await, ["Asia/Tokyo"], "{told}");
    let (mut account, start) = (Account::default(), world.clock.now().timestamp());
    // The first minutes are the writer's, the others come when the emitter catches up.
    world.advance(360);
    world.engine.tick().await.unwrap();
    account.collect(&world, &queue).await.unwrap();
    let launches: Vec<(u32, i64)> = (0..=6).map(|minute| (1, start + minute * 60)).collect();
    assert_eq!(account.delivered("new").unwrap(), launches, "{told}");
    made
}
