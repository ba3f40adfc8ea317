//! What it costs to read what came of a large run: as much as is read, and not as much as there is.

use std::collections::BTreeSet;

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::limits::EVENTS_PER_CHUNK;
use tidegate_domain::occurrence::Occurrence;
use tidegate_engine::{EventStatus, Outcome, Release};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_store::events::{EventRow, HistoryOf, PartRow, Record};

use super::fire_at;

const EVENTS: u32 = 20_000;
/// Events that are released before anything is read: the run is still at work.
const RELEASED: u32 = 19_000;
/// Ten slot groups.
const TOKENS: u32 = 120;
/// Of how many events one fails.
const FAILS: u32 = 700;
/// What a page of 100 events may cost: run, policy, ten slot groups, the rows of two blocks and of the events themselves.
const PAGE_READS: f64 = 25.0;
/// What an explanation may cost: the slot groups and the line are read too.
const EXPLAIN_READS: f64 = 35.0;

fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

fn fails(index: u32) -> bool {
    index % FAILS == 3
}

/// A run of which most is done, by ten groups, ten events to a call.
async fn large_run() -> (World, RunId) {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("ten-groups", TOKENS, 43_200).await.unwrap();
    let launch_at = world.clock.now() + Duration::minutes(180);
    let job = JobSpec::at(launch_at, &queue).unwrap().of(EVENTS.into()).unwrap().under("ten-groups").unwrap();
    let id = world.create(job.named("batch")).await.unwrap();
    fire_at(&world, 180).await;
    let mut released = 0;
    while released < RELEASED {
        let mut held = world.consume(&queue).await.unwrap();
        assert!(!held.is_empty(), "{released} events came");
        held.sort_by_key(|event| event.token.as_ref().map(|token| (token.group.group, token.lease.slot)));
        for some in held.chunks(10) {
            let release = |event: &tidegate_simulation::world::Received| {
                let outcome = if fails(event.body.index) { Outcome::Failed } else { Outcome::Succeeded };
                Release::new(event.token.clone().unwrap(), outcome)
            };
            world.engine.tokens().release(&client(), some.iter().map(release).collect()).await.unwrap();
            released += some.len() as u32;
        }
    }
    let runs = world.engine.queries().runs(&client(), &id.parse().unwrap(), None).await.unwrap();
    (world, runs.rows[0].id.clone())
}

fn reads_since(world: &World, before: &tidegate_embedded::Usage) -> f64 {
    world.embedded.meter().snapshot().since(before).read_units()
}

#[tokio::test]
async fn reading_of_a_large_run_costs_what_is_read() {
    let (world, run) = large_run().await;
    pages_cost_a_page(&world, &run).await;
    explanations_cost_one_event(&world, &run).await;
    failures_cost_what_is_found(&world, &run).await;
    what_is_looked_for_is_bounded(&world, &run).await;
}

async fn pages_cost_a_page(world: &World, run: &RunId) {
    for after in [None, Some(460), Some(9_999), Some(15_000), Some(18_800), Some(EVENTS - 101)] {
        let before = world.embedded.meter().snapshot();
        let page = world.engine.queries().events(&client(), run, after).await.unwrap().unwrap();
        let reads = reads_since(world, &before);
        println!("a page after {after:?}: {reads} read units");
        assert_eq!(page.rows.len(), 100);
        for event in &page.rows {
            let is_known = matches!(event.status, EventStatus::Succeeded | EventStatus::Failed);
            assert_eq!(is_known && fails(event.id.index()), event.status == EventStatus::Failed);
        }
        assert!(reads <= PAGE_READS, "a page after {after:?}: {reads} read units");
    }
}

async fn explanations_cost_one_event(world: &World, run: &RunId) {
    for index in [0, 9_999, 15_000, EVENTS - 1] {
        let before = world.embedded.meter().snapshot();
        let explained = world.engine.queries().explain(&client(), &run.event(index)).await.unwrap().unwrap();
        let reads = reads_since(world, &before);
        println!("explain {index} ({}): {reads} read units", explained.record.status.as_str());
        assert!(reads <= EXPLAIN_READS, "event {index}: {reads} read units");
    }
}

async fn failures_cost_what_is_found(world: &World, run: &RunId) {
    let failed = BTreeSet::from([EventStatus::Failed, EventStatus::Expired, EventStatus::Dead]);
    let before = world.embedded.meter().snapshot();
    let page = world.engine.queries().events_that_are(&client(), run, &failed, None).await.unwrap().unwrap();
    let reads = reads_since(world, &before);
    println!("{} failures: {reads} read units", page.rows.len());
    let found: Vec<u32> = page.rows.iter().map(|event| event.id.index()).collect();
    let all: Vec<u32> = (0..EVENTS).filter(|index| fails(*index)).collect();
    assert!(all.starts_with(&found) && found.len() as u32 > RELEASED / FAILS - 3, "{found:?}");
    assert_eq!(page.next, None);
    // What its consumer said, for each.
    assert!(reads <= PAGE_READS + found.len() as f64, "{reads} read units");
}

async fn what_is_looked_for_is_bounded(world: &World, run: &RunId) {
    for status in [EventStatus::Succeeded, EventStatus::Waiting] {
        let before = world.embedded.meter().snapshot();
        let page = world.engine.queries().events_that_are(&client(), run, &[status].into(), None).await;
        let page = page.unwrap().unwrap();
        let reads = reads_since(world, &before);
        println!("a page of {}: {} events, {reads} read units", status.as_str(), page.rows.len());
        assert!(page.next.is_some());
        assert!(reads <= 2.0 * PAGE_READS, "{reads} read units");
    }
}

/// Of a run that nothing throttles.
const UNTHROTTLED: u32 = 300_000;
/// What a page of its events may cost, and one of those that could not be delivered: parts of 131,072 events, some blocks.
const UNTHROTTLED_PAGE_READS: f64 = 10.0;
const DEAD_PAGE_READS: f64 = 80.0;

/// A run that nothing throttles, as its handlers have recorded it, and which of its events could not be delivered.
async fn sent_run(world: &World) -> (RunId, Vec<u32>) {
    let queue = world.queue("jobs").await.unwrap();
    let now = world.clock.now();
    let terms = JobSpec::at(now, &queue).unwrap().of(UNTHROTTLED.into()).unwrap().into_draft().terms;
    let job = "sent".parse().unwrap();
    let occurrence = Occurrence { client: client(), job, revision: 1, launch_at: now, terms };
    let (run, store) = (occurrence.run_id(), world.engine.store());
    store.create_run(&occurrence, now).await.unwrap();
    // A hundred beside each other, and some that lie far apart.
    let is_dead = |index: u32| (70_000..70_150).contains(&index) || index % 9_973 == 17;
    let dead: Vec<u32> = (0..UNTHROTTLED).filter(|index| is_dead(*index)).collect();
    let mut records = Vec::new();
    for from in (0..UNTHROTTLED).step_by(EVENTS_PER_CHUNK as usize) {
        let to = from + EVENTS_PER_CHUNK;
        let of_part = (from..to).filter(|index| is_dead(*index)).count() as u32;
        let (retried, retried_ranges) = (0, Vec::new());
        let part = PartRow { from, to, dead: of_part, retried, retried_ranges, attempt: 1, at: Some(now) };
        records.push(Record::Part {
            client: client(),
            run: run.clone(),
            part,
            at: now,
            kept: HistoryDays::DEFAULT,
        });
    }
    for index in &dead {
        let reason = Some("gone".to_owned());
        let event = EventRow { index: *index, delivered: false, attempts: 1, at: now, reason };
        records.push(Record::Event {
            client: client(),
            of: HistoryOf::Run(run.clone()),
            event,
            kept: HistoryDays::DEFAULT,
        });
    }
    store.keep(&records).await.unwrap();
    (run, dead)
}

#[tokio::test]
async fn reading_of_a_large_run_that_nothing_throttles_costs_what_is_read() {
    let world = World::new().await.unwrap();
    let (run, dead) = sent_run(&world).await;
    let queries = world.engine.queries();
    for after in [None, Some(16_350), Some(150_000), Some(UNTHROTTLED - 101)] {
        let before = world.embedded.meter().snapshot();
        let page = queries.events(&client(), &run, after).await.unwrap().unwrap();
        let reads = reads_since(&world, &before);
        println!("a page after {after:?}: {reads} read units");
        assert_eq!(page.rows.len(), 100);
        for event in page.rows {
            let is_dead = dead.contains(&event.id.index());
            let expected = if is_dead { EventStatus::Dead } else { EventStatus::Delivered };
            assert_eq!((event.status, event.reason.is_some()), (expected, is_dead), "{}", event.id);
        }
        assert!(reads <= UNTHROTTLED_PAGE_READS, "a page after {after:?}: {reads} read units");
    }
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let before = world.embedded.meter().snapshot();
        let statuses = [EventStatus::Dead, EventStatus::Failed].into();
        let page = queries.events_that_are(&client(), &run, &statuses, after).await.unwrap().unwrap();
        let reads = reads_since(&world, &before);
        println!("{} that could not be delivered after {after:?}: {reads} read units", page.rows.len());
        assert!(reads <= DEAD_PAGE_READS, "{reads} read units");
        found.extend(page.rows.into_iter().map(|event| event.id.index()));
        pages += 1;
        let Some(next) = page.next else { break };
        after = Some(next.parse().unwrap());
    }
    assert_eq!((found, pages), (dead, 3));
}
