//! Units and requests per event against the budgets of the design, from consumed capacity and counted calls.
//!
//! Requests are those of Tidegate: everything on the dispatch queue, and what is sent to consumers' queues. A
//! consumer's own receives and deletes are not. Each test prints its figures.

mod history;
mod large;
mod singles;

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::limits::{AT_ROW_DAYS, TOKENS_PER_GROUP};
use tidegate_embedded::Usage;
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, Received};
use tidegate_testkit::DISPATCH;

const BATCH: u64 = 1_000;

/// The most that one event may cost.
struct Budget {
    write_units: f64,
    read_units: f64,
    requests: f64,
}

fn ours(queue: &str, operation: &str) -> bool {
    queue == DISPATCH || operation.starts_with("SendMessage")
}

/// Prints what `used` is per event, and holds it against the budget.
fn hold(row: &str, used: &Usage, events: u64, budget: &Budget) {
    let per = |total: f64| total / events as f64;
    let (write, read) = (per(used.write_units()), per(used.read_units()));
    let requests = per(used.sqs_requests_where(ours) as f64);
    println!(
        "{row}: write {write:.4} (at most {}), read {read:.4} (at most {}), requests {requests:.4} (at most {})",
        budget.write_units, budget.read_units, budget.requests
    );
    for (table, units) in &used.capacity {
        println!("    {table}: write {:.1}, read {:.1}", units.write, units.read);
    }
    println!("    {:?}", used.dynamodb_calls);
    println!("    {:?}", used.queues);
    assert!(write <= budget.write_units, "write units: {write}");
    assert!(read <= budget.read_units, "read units: {read}");
    assert!(requests <= budget.requests, "requests: {requests}");
}

/// A batch for the minute after the next, created, emitted and delivered.
async fn unthrottled(failures_only: bool) -> Usage {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let before = world.embedded.meter().snapshot();
    let launch_at = world.clock.now() + Duration::minutes(180);
    let job = JobSpec::at(launch_at, &queue).unwrap().of(BATCH).unwrap().named("batch");
    world.create(if failures_only { job.failures_only() } else { job }).await.unwrap();
    fire_at(&world, 180).await;
    let used = world.embedded.meter().snapshot().since(&before);
    assert_eq!(world.consume(&queue).await.unwrap().len() as u64, BATCH);
    used
}

/// Moves on to `minutes` from now, with the tick before it.
async fn fire_at(world: &World, minutes: i64) {
    world.advance(minutes * 60 - 60);
    assert!(world.engine.tick().await.unwrap().won);
    world.advance(60);
    world.pump().await.unwrap();
}

#[tokio::test]
async fn unthrottled_with_a_history_of_failures() {
    let used = unthrottled(true).await;
    hold(
        "unthrottled, failures only",
        &used,
        BATCH,
        &Budget { write_units: 0.02, read_units: 0.1, requests: 0.15 },
    );
}

#[tokio::test]
async fn unthrottled_with_a_record_for_each_event() {
    let used = unthrottled(false).await;
    hold(
        "unthrottled, a record each",
        &used,
        BATCH,
        &Budget { write_units: 1.02, read_units: 0.6, requests: 0.15 },
    );
}

/// A batch under a policy of ten tokens, from its creation to its last packed outcome.
async fn throttled(released_at_once: usize) -> Usage {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("ten", 10, 600).await.unwrap();
    let before = world.embedded.meter().snapshot();
    let launch_at = world.clock.now() + Duration::minutes(180);
    let job = JobSpec::at(launch_at, &queue).unwrap().of(BATCH).unwrap().under("ten").unwrap();
    let id = world.create(job.named("batch")).await.unwrap();
    fire_at(&world, 180).await;
    let mut held: Vec<Received> = Vec::new();
    let mut released = 0;
    loop {
        held.extend(world.consume(&queue).await.unwrap());
        if held.is_empty() {
            break;
        }
        assert!(held.len() <= 10);
        let done: Vec<Received> = held.drain(..released_at_once).collect();
        world.release(&done).await.unwrap();
        released += done.len() as u64;
    }
    assert_eq!(released, BATCH);
    let used = world.embedded.meter().snapshot().since(&before);
    let runs =
        world.engine.queries().runs(&"acme".parse().unwrap(), &id.parse().unwrap(), None).await.unwrap();
    assert_eq!(u64::from(runs.rows[0].tally.succeeded), BATCH);
    used
}

#[tokio::test]
async fn throttled_and_released_ten_at_a_time() {
    let used = throttled(10).await;
    hold(
        "throttled, ten at a time",
        &used,
        BATCH,
        &Budget { write_units: 0.25, read_units: 0.1, requests: 0.3 },
    );
}

/// Ten tokens of a call lie in ten slot groups, as they mostly do under a wide policy. A write each; but what goes out instead
/// of them is one call to the queue.
#[tokio::test]
async fn throttled_by_many_groups_and_released_any_ten_at_a_time() {
    const TOKENS: u32 = 10 * TOKENS_PER_GROUP;
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("wide", TOKENS, 600).await.unwrap();
    let launch_at = world.clock.now() + Duration::minutes(180);
    let job = JobSpec::at(launch_at, &queue).unwrap().of(BATCH).unwrap().under("wide").unwrap();
    world.create(job.named("batch")).await.unwrap();
    fire_at(&world, 180).await;
    let before = world.embedded.meter().snapshot();
    let mut held = world.consume(&queue).await.unwrap();
    let mut released = 0;
    while !held.is_empty() {
        // One of each group, then the second of each.
        held.sort_by_key(|event| event.token.as_ref().map(|token| (token.lease.slot, token.group.group)));
        let done: Vec<Received> = held.drain(..held.len().min(10)).collect();
        world.release(&done).await.unwrap();
        released += done.len() as u64;
        held.extend(world.consume(&queue).await.unwrap());
    }
    assert_eq!(released, BATCH);
    let used = world.embedded.meter().snapshot().since(&before);
    // So small a run is soon at its end, where groups take of the line in small portions.
    let budget = Budget { write_units: 1.6, read_units: 0.35, requests: 0.2 };
    hold("throttled by ten groups, any ten at a time", &used, BATCH, &budget);
}

#[tokio::test]
async fn throttled_and_released_one_by_one() {
    let used = throttled(1).await;
    hold("throttled, one by one", &used, BATCH, &Budget { write_units: 1.2, read_units: 0.1, requests: 1.2 });
}

/// One-time jobs for one minute, created one by one, fired, and their rows expired.
async fn one_time(with_a_key: bool) -> Usage {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let before = world.embedded.meter().snapshot();
    let launch_at = world.clock.now() + Duration::minutes(180);
    for number in 0..BATCH {
        let job = JobSpec::at(launch_at, &queue).unwrap().failures_only();
        let job = if with_a_key { job.named(&format!("order-{number}")) } else { job };
        world.create(job).await.unwrap();
    }
    fire_at(&world, 180).await;
    assert_eq!(world.consume(&queue).await.unwrap().len() as u64, BATCH);
    world.advance((AT_ROW_DAYS + 1) * 86_400);
    assert!(world.embedded.sweep_ttl().unwrap() as u64 >= BATCH);
    world.embedded.meter().snapshot().since(&before)
}

#[tokio::test]
async fn a_one_time_job_with_a_key_of_its_own() {
    let used = one_time(true).await;
    hold(
        "one-time job, own key",
        &used,
        BATCH,
        &Budget { write_units: 2.1, read_units: 0.1, requests: 0.15 },
    );
}

#[tokio::test]
async fn a_one_time_job_with_a_generated_id() {
    let used = one_time(false).await;
    hold(
        "one-time job, generated id",
        &used,
        BATCH,
        &Budget { write_units: 1.1, read_units: 0.1, requests: 0.15 },
    );
}

const ZONES: [&str; 40] = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Johannesburg",
    "Africa/Lagos",
    "Africa/Nairobi",
    "America/Argentina/Buenos_Aires",
    "America/Bogota",
    "America/Chicago",
    "America/Denver",
    "America/Halifax",
    "America/Lima",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/New_York",
    "America/Phoenix",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Dubai",
    "Asia/Hong_Kong",
    "Asia/Jakarta",
    "Asia/Jerusalem",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Manila",
    "Asia/Seoul",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Istanbul",
    "Europe/London",
    "Europe/Moscow",
    "Europe/Paris",
    "Pacific/Auckland",
    "Pacific/Honolulu",
];

#[tokio::test]
async fn an_idle_minute_with_forty_zones() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    for (number, zone) in ZONES.iter().enumerate() {
        let job = JobSpec::cron("59 23 29 2 *", zone, &queue).unwrap().named(&format!("rare-{number}"));
        world.create(job).await.unwrap();
    }
    world.engine.tick().await.unwrap();
    world.advance(60);
    let before = world.embedded.meter().snapshot();
    assert!(world.engine.tick().await.unwrap().won);
    let used = world.embedded.meter().snapshot().since(&before);
    hold(
        "an idle minute, 40 zones",
        &used,
        1,
        &Budget { write_units: 2.0, read_units: 300.0, requests: 2.0 },
    );
}
