//! A scan that is too large for its tick is left in parts, which others work on; what dies in a part is taken over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::{Job, Payload};
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::Handled;
use tidegate_engine::message::Message;
use tidegate_simulation::World;
use tidegate_simulation::gate::{Gate, Task};
use tidegate_simulation::world::{JobSpec, stored};

/// One-time jobs of one minute, by shard. A tick emits about 75 of them: the rest of the first shard is a part of its own, and
/// so is the rest of the second, for the worker who has its first rows.
const JOBS: [(u32, usize); 3] = [(3, 352), (9, 300), (40, 150)];
/// The parts that a tick leaves of them: the rest of a shard, and the other shards in eight parts.
const PARTS: usize = 9;

/// A world whose next tick leaves parts, and the ids of its jobs.
async fn crowded() -> (World, BTreeSet<String>) {
    let world = World::new().await.unwrap();
    world.engine.tick().await.unwrap();
    let ids = crowd(&world, 150).await;
    world.advance(60);
    (world, ids)
}

/// Adds the jobs of one minute, due so many seconds from now.
async fn crowd(world: &World, due_in_seconds: i64) -> BTreeSet<String> {
    let queue = world.queue("jobs").await.unwrap();
    let launch_at = world.clock.now() + Duration::seconds(due_in_seconds);
    let mut draft = JobSpec::at(launch_at, &queue).unwrap().failures_only().into_draft();
    draft.terms.payload = Payload::new(format!("\"{}\"", "x".repeat(64_000))).unwrap();
    let mut ids = BTreeSet::new();
    for (shard, count) in JOBS {
        let job = |number| stored::one_time(&draft, launch_at, shard, number).unwrap();
        let jobs: Vec<Job> = (0..count as u64).map(job).collect();
        world.engine.store().create_one_times(&jobs).await.unwrap();
        ids.extend(jobs.iter().map(|job| job.id.to_string()));
    }
    ids
}

/// What was emitted: for each job the ids of the chunks that have it, and whether those after the first say that they
/// may be repetitions.
#[derive(Default)]
struct Emitted(BTreeMap<String, Vec<(String, bool)>>);

impl Emitted {
    async fn collect(&mut self, world: &World) {
        for message in world.take_dispatched().await.unwrap() {
            let Message::Chunk(chunk) = message else { panic!("{message:?}") };
            for item in &chunk.items {
                self.0.entry(item.job.clone()).or_default().push((chunk.id(), chunk.repeat));
            }
        }
    }

    /// Every job is in a chunk, and in no two that are not known for the same.
    fn is_each_once(&self, ids: &BTreeSet<String>) {
        assert_eq!(&self.0.keys().cloned().collect::<BTreeSet<_>>(), ids);
        for (job, chunks) in &self.0 {
            let different: BTreeSet<&String> = chunks.iter().map(|(id, _)| id).collect();
            assert_eq!(different.len(), 1, "{job}: {chunks:?}");
            let unmarked = chunks.iter().filter(|(_, repeat)| !repeat).count();
            assert!(unmarked <= 1, "{job}: {chunks:?}");
        }
    }

    fn repeated(&self) -> usize {
        self.0.values().filter(|chunks| chunks.len() > 1).count()
    }
}

async fn parts_left(world: &World) -> usize {
    world.engine.store().parts(None).await.unwrap().rows.len()
}

#[tokio::test]
async fn a_large_scan_is_left_in_parts_and_each_event_comes_once() {
    let (world, ids) = crowded().await;
    let report = world.engine.tick().await.unwrap();
    assert_eq!((report.parts, parts_left(&world).await), (PARTS as u64, PARTS));
    assert!(report.occurrences < ids.len() as u64, "{report:?}");
    let pumped = world.pump_scans().await.unwrap();
    assert_eq!((pumped.again, parts_left(&world).await), (0, 0));
    assert!(pumped.done > PARTS, "{pumped:?}");
    world.advance(120);
    let mut emitted = Emitted::default();
    emitted.collect(&world).await;
    emitted.is_each_once(&ids);
    assert_eq!(emitted.repeated(), 0);
}

/// Dies after so many requests of a kind.
struct Dies {
    operation: &'static str,
    after: AtomicI64,
}

impl FaultPlan for Dies {
    fn on_request(&self, call: &Call) -> Fault {
        let counts = call.operation.starts_with(self.operation);
        if counts && self.after.fetch_sub(1, Ordering::Relaxed) == 1 {
            Fault::CrashAfter
        } else {
            Fault::None
        }
    }
}

/// Dies before its second update of the watermark: the tick has left its parts and does not say that it is done.
struct DiesUnconfirmed(AtomicI64);

impl FaultPlan for DiesUnconfirmed {
    fn on_request(&self, call: &Call) -> Fault {
        let is_update = call.operation == "UpdateItem" && call.resource().ends_with("ticker");
        if is_update && self.0.fetch_sub(1, Ordering::Relaxed) == 1 { Fault::Crash } else { Fault::None }
    }
}

/// The next tick's window begins where the first one's did and is a minute longer: what it leaves of that minute must
/// not be taken for what the dead tick left.
#[tokio::test]
async fn a_tick_that_dies_after_it_left_parts_hides_nothing_from_the_next() {
    let world = World::new().await.unwrap();
    world.engine.tick().await.unwrap();
    let mut ids = crowd(&world, 150).await;
    ids.append(&mut crowd(&world, 210).await);
    world.advance(60);
    world.embedded.inject(DiesUnconfirmed(AtomicI64::new(2)));
    world.engine.tick().await.unwrap_err();
    world.embedded.inject_nothing();
    assert_eq!(parts_left(&world).await, PARTS);
    world.advance(60);
    world.engine.tick().await.unwrap();
    world.pump_scans().await.unwrap();
    assert_eq!(parts_left(&world).await, 0);
    world.advance(180);
    let mut emitted = Emitted::default();
    emitted.collect(&world).await;
    assert_eq!(emitted.0.keys().cloned().collect::<BTreeSet<_>>(), ids);
}

/// One worker dies when it has sent, the other when it has said how far it came. Their messages come no more in time:
/// the next ticks send others.
#[tokio::test]
async fn whoever_dies_in_a_part_is_replaced() {
    let (world, ids) = crowded().await;
    world.engine.tick().await.unwrap();
    let messages = world.receive_scans().await.unwrap();
    let mut deaths = vec![("UpdateItem", 2), ("SendMessageBatch", 1)];
    for message in &messages {
        let Some((operation, after)) = deaths.last().copied() else { break };
        world.embedded.inject(Dies { operation, after: AtomicI64::new(after) });
        // A part in which there is nothing to do is done before anybody dies.
        if world.engine.handle(message.body().unwrap(), 1).await == Handled::Retry {
            deaths.pop();
        }
        world.embedded.inject_nothing();
    }
    assert_eq!((deaths.len(), messages.len()), (0, PARTS));
    assert!(parts_left(&world).await >= 2);
    world.advance(60);
    world.engine.tick().await.unwrap();
    world.pump_scans().await.unwrap();
    assert_eq!(parts_left(&world).await, 0);
    world.advance(120);
    let mut emitted = Emitted::default();
    emitted.collect(&world).await;
    emitted.is_each_once(&ids);
    assert!(emitted.repeated() > 0);
}

/// A worker that was taken for dead goes on: its fencing number is old, so it moves no cursor and strikes no part.
#[tokio::test]
async fn a_worker_that_was_taken_over_stops() {
    let (world, ids) = crowded().await;
    world.engine.tick().await.unwrap();
    // The part of a shard, not one of several shards.
    let messages = world.receive_scans().await.unwrap();
    let message = messages.iter().find(|message| !message.body().unwrap().contains(" to ")).unwrap();
    let gate = Arc::new(Gate::default());
    let engine = world.process(&gate).unwrap();
    let body = message.body().unwrap().to_owned();
    let mut slow = Task::new(&gate, async move { engine.handle(&body, 1).await });
    // It takes the part, reads a page and sleeps.
    assert_eq!(slow.steps(2), 2);
    world.advance(60);
    world.engine.tick().await.unwrap();
    world.pump_scans().await.unwrap();
    assert_eq!(parts_left(&world).await, 0);
    assert_eq!(slow.finish(), Some(Handled::Done));
    assert_eq!(parts_left(&world).await, 0);
    world.advance(120);
    let mut emitted = Emitted::default();
    emitted.collect(&world).await;
    emitted.is_each_once(&ids);
    assert!(emitted.repeated() > 0, "it sent what it had read, under the same chunk ids");
}
