//! Single faults at every request of the main path, and the bugs that seeded histories have found.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::Duration;
use tidegate_domain::clock::{Clock as _, ManualClock};
use tidegate_domain::job::{Payload, Trigger};
use tidegate_domain::time::Instants;
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::Written;
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec, Received};
use tidegate_store::line::LineEntry;
use tidegate_testkit::PREFIX;

/// One fault, at request number `at` of a kind.
struct Once {
    fault: Fault,
    at: u64,
    seen: Arc<AtomicU64>,
    operation: &'static str,
}

impl FaultPlan for Once {
    fn on_request(&self, call: &Call) -> Fault {
        if !call.operation.starts_with(self.operation) {
            return Fault::None;
        }
        match self.seen.fetch_add(1, Ordering::Relaxed) == self.at {
            true => self.fault,
            false => Fault::None,
        }
    }
}

/// Puts one fault in force; what it returns counts the requests that it could have struck.
fn strike(world: &World, fault: Fault, at: u64, operation: &'static str) -> Arc<AtomicU64> {
    let seen = Arc::new(AtomicU64::new(0));
    world.embedded.inject(Once { fault, at, seen: Arc::clone(&seen), operation });
    seen
}

fn ids(events: &[Received]) -> BTreeSet<String> {
    events.iter().map(|event| event.body.event_id.clone()).collect()
}

/// Ticks, pollers and consumers that release everything, for some minutes.
async fn settle(world: &World, queue: &str, minutes: u32) -> Vec<Received> {
    let mut arrived = Vec::new();
    for _ in 0..minutes {
        world.advance(60);
        let _may_fail = world.engine.tick().await;
        loop {
            let _may_fail = world.pump().await;
            let events = world.consume(queue).await.unwrap();
            if events.is_empty() {
                break;
            }
            let throttled: Vec<Received> = events.iter().filter(|e| e.token.is_some()).cloned().collect();
            if world.release(&throttled).await.is_err() {
                world.release(&throttled).await.unwrap();
            }
            arrived.extend(events);
        }
    }
    arrived
}

/// Creates a batch, asks again if no answer comes, and settles.
async fn batch_with(fault: Fault, at: u64, policy: Option<u32>) -> (u64, usize) {
    let world = World::with_quick_retries().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let job = JobSpec::at(world.clock.now() + Duration::seconds(30), &queue).unwrap().of(40).unwrap();
    let job = job.named("batch").attempts(3).unwrap();
    let job = match policy {
        Some(limit) => {
            world.policy("small", limit, 60).await.unwrap();
            job.under("small").unwrap()
        }
        None => job,
    };
    let seen = strike(&world, fault, at, "");
    if world.create(job.clone()).await.is_err() {
        let _unchanged_is_no_creation = world.create(job).await;
    }
    let arrived = settle(&world, &queue, 8).await;
    (seen.load(Ordering::Relaxed), ids(&arrived).len())
}

async fn every_request_once(fault: Fault, policy: Option<u32>) {
    let mut at = 0;
    loop {
        let (requests, arrived) = batch_with(fault, at, policy).await;
        assert_eq!(arrived, 40, "{fault:?} at request {at}");
        at += 7;
        if at >= requests.min(240) {
            break;
        }
    }
    assert!(at > 30);
}

/// An SDK repeats a request whose reply was lost: the repetition meets its own effect.
#[tokio::test]
async fn any_lost_reply_is_survived_by_a_throttled_batch() {
    every_request_once(Fault::LoseReply, Some(15)).await;
}

#[tokio::test]
async fn any_lost_reply_is_survived_by_an_unthrottled_batch() {
    every_request_once(Fault::LoseReply, None).await;
}

/// The event of a job that is due within minutes is sent before its job is stored.
#[tokio::test]
async fn an_event_whose_job_was_never_stored_is_not_delivered() {
    // Those that nothing throttles share their writes.
    for (policy, write) in [(None, "BatchWriteItem"), (Some("small"), "PutItem")] {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        world.policy("small", 5, 60).await.unwrap();
        let job = || JobSpec::at(world.clock.now() + Duration::seconds(30), &queue).unwrap();
        let job = || policy.map_or_else(job, |policy| job().under(policy).unwrap());
        let seen = strike(&world, Fault::DropBefore, 0, write);
        world.create(job()).await.unwrap_err();
        assert_eq!(seen.load(Ordering::Relaxed), 1);
        let stored = world.create(job()).await.unwrap();
        world.advance(30);
        let pumped = world.pump().await.unwrap();
        assert!(pumped.done > 1 && pumped.again == 0, "{pumped:?}");
        let arrived = world.consume(&queue).await.unwrap();
        let jobs: Vec<&str> = arrived.iter().map(|event| &*event.body.job_id).collect();
        assert_eq!(jobs, [stored]);
    }
}

/// `take_range` took its own repeated write for another group's, and forgot the range.
#[tokio::test]
async fn a_repeated_taking_of_a_range_loses_nothing() {
    for at in 0..12 {
        let world = World::with_quick_retries().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.policy("small", 3, 600).await.unwrap();
        let job = JobSpec::at(world.clock.now(), &queue).unwrap().of(5).unwrap().under("small").unwrap();
        strike(&world, Fault::LoseReply, at, "UpdateItem");
        world.create(job.named("batch").attempts(1).unwrap()).await.unwrap();
        let arrived = settle(&world, &queue, 3).await;
        assert_eq!(ids(&arrived).len(), 5, "reply {at} was lost");
    }
}

/// The index row of a keyed job was removed again when the job's own write was repeated.
#[tokio::test]
async fn a_repeated_creation_keeps_its_index_row() {
    for at in 0..2 {
        let world = World::with_quick_retries().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        strike(&world, Fault::LoseReply, at, "PutItem");
        let launch_at = world.clock.now() + Duration::minutes(10);
        world.create(JobSpec::at(launch_at, &queue).unwrap().named("order-1")).await.unwrap();
        let arrived = settle(&world, &queue, 12).await;
        assert_eq!(arrived.len(), 1, "reply {at} was lost");
    }
}

/// The events that a group had taken stayed with it when its share fell to nothing.
#[tokio::test]
async fn a_lowered_limit_strands_no_events() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 30, 60).await.unwrap();
    let job = JobSpec::at(world.clock.now(), &queue).unwrap().of(700).unwrap().under("small").unwrap();
    world.create(job.named("batch")).await.unwrap();
    world.pump().await.unwrap();
    world.change_policy("small", 5, 60).await.unwrap();
    let arrived = settle(&world, &queue, 4).await;
    assert_eq!(ids(&arrived).len(), 700);
}

/// Under 24 tokens two groups hold 12 each. A third, added by a limit of 25, may hold only what is left of 25.
#[tokio::test]
async fn a_raised_limit_is_not_passed_by_what_was_held_before() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 24, 600).await.unwrap();
    let job = JobSpec::at(world.clock.now(), &queue).unwrap().of(500).unwrap().under("small").unwrap();
    world.create(job.named("batch")).await.unwrap();
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 24);
    world.change_policy("small", 25, 600).await.unwrap();
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 1);
}

/// A job was replaced while its emitter lagged: what was due before the change was forgotten.
#[tokio::test]
async fn a_change_forgets_nothing_that_was_due_before() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let job = |expression| JobSpec::cron(expression, "UTC", &queue).unwrap().named("each");
    world.create(job("* * * * *")).await.unwrap();
    let start = world.clock.now().timestamp();
    world.advance(600);
    world.replace(job("0 0 1 1 *")).await.unwrap();
    world.advance(60);
    world.pump().await.unwrap();
    let arrived = ids(&world.consume(&queue).await.unwrap());
    let due = (0..10).map(|minute| format!("each.1.{}.0", start + minute * 60)).collect::<BTreeSet<_>>();
    assert!(arrived.is_superset(&due), "{arrived:?}");
}

/// The answer to a creation was lost before its first launches were emitted; the second call found it unchanged.
#[tokio::test]
async fn asking_again_emits_what_the_first_call_owed() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let job = JobSpec::cron("* * * * *", "UTC", &queue).unwrap().named("each");
    strike(&world, Fault::Crash, 0, "SendMessageBatch");
    assert!(world.create(job.clone()).await.is_err());
    world.embedded.inject_nothing();
    assert!(world.create(job).await.is_err(), "it is there already");
    assert_eq!(world.pump().await.unwrap().done, 1);
    assert_eq!(world.consume(&queue).await.unwrap().len(), 1);
}

/// A change died after its write: the second call found the job unchanged, and what waited of the revision before was
/// delivered beside what followed from the change.
#[tokio::test]
async fn asking_again_stops_what_waits_of_the_revision_before() {
    for pauses in [false, true] {
        let mut unchanged = 0;
        for at in 0.. {
            let world = World::new().await.unwrap();
            let queue = world.queue("jobs").await.unwrap();
            world.policy("small", 5, 60).await.unwrap();
            world.engine.tick().await.unwrap();
            let (client, id) = (CLIENT.parse().unwrap(), "each".parse().unwrap());
            let job = |expression| JobSpec::cron(expression, "UTC", &queue).unwrap().named("each");
            world.create(job("30 * * * * *").of(2).unwrap().under("small").unwrap()).await.unwrap();
            let change = async || match pauses {
                true => world.engine.jobs().pause(&client, &id, true, None).await,
                false => {
                    let draft = job("30 0 0 * * *").of(2).unwrap().under("small").unwrap().into_draft();
                    world.engine.jobs().replace(&client, id.clone(), draft, None).await
                }
            };
            strike(&world, Fault::Crash, at, "");
            if change().await.is_ok() {
                break;
            }
            world.embedded.inject_nothing();
            unchanged += u32::from(matches!(change().await.unwrap(), Written::Unchanged(_)));
            // Also where the first call had stopped the run, and died before it took its rest out of the line.
            let line = world.engine.store().line(&client, &"small".parse().unwrap(), None).await.unwrap();
            assert!(line.rows.iter().all(LineEntry::is_exhausted), "died at request {at}: {line:?}");
            let arrived = settle(&world, &queue, 4).await;
            assert_eq!(ids(&arrived), BTreeSet::new(), "died at request {at}, pauses: {pauses}");
        }
        assert!(unchanged > 2, "{unchanged} calls died after the write");
    }
}

/// A resumption that died left its outbox row behind, though the job stayed paused; the next one emitted it.
#[tokio::test]
async fn a_resumption_that_died_owes_nothing() {
    let mut stayed_paused = 0;
    for at in 0.. {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        let launch_at = world.clock.now() + Duration::minutes(10);
        let id = world.create(JobSpec::at(launch_at, &queue).unwrap()).await.unwrap();
        let (client, id) = (CLIENT.parse().unwrap(), id.parse().unwrap());
        world.engine.jobs().pause(&client, &id, true, None).await.unwrap();
        world.advance(570);
        strike(&world, Fault::Crash, at, "");
        if world.engine.jobs().pause(&client, &id, false, None).await.is_ok() {
            break;
        }
        world.embedded.inject_nothing();
        if world.engine.jobs().get(&client, &id).await.unwrap().unwrap().paused {
            world.advance(60);
            world.engine.jobs().pause(&client, &id, false, None).await.unwrap();
            let arrived = settle(&world, &queue, 4).await;
            assert_eq!(ids(&arrived), BTreeSet::new(), "died at request {at}");
            stayed_paused += 1;
        }
    }
    assert!(stayed_paused > 2, "{stayed_paused} calls died before the write");
}

/// Moves the clock an hour back with the request of this number.
struct JumpsBack {
    clock: Arc<ManualClock>,
    at: u64,
    seen: AtomicU64,
}

impl FaultPlan for JumpsBack {
    fn on_request(&self, _: &Call) -> Fault {
        if self.seen.fetch_add(1, Ordering::Relaxed) == self.at {
            self.clock.advance_ms(-3_600_000);
        }
        Fault::None
    }
}

/// The clock jumped back while a job was replaced: what was due between the two readings was neither revision's.
#[tokio::test]
async fn a_clock_that_jumps_within_a_change_leaves_no_gap() {
    // From the request on that follows the first look at the clock.
    for at in 1..8 {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        let job = |expression| JobSpec::cron(expression, "UTC", &queue).unwrap().named("each");
        let start = world.clock.now().timestamp();
        world.create(job("* * * * *")).await.unwrap();
        world.advance(600);
        let clock = Arc::clone(&world.clock);
        world.embedded.inject(JumpsBack { clock, at, seen: AtomicU64::new(0) });
        world.replace(job("0 0 1 1 *")).await.unwrap();
        world.embedded.inject_nothing();
        world.clock.set(chrono::DateTime::from_timestamp(start + 600, 0).unwrap());
        let arrived = ids(&settle(&world, &queue, 1).await);
        let due = (0..10).map(|minute| format!("each.1.{}.0", start + minute * 60)).collect::<BTreeSet<_>>();
        assert!(arrived.is_superset(&due), "jumped at request {at}: {arrived:?}");
    }
}

/// The second of a change was the old revision's and the new one's: what fell into it was delivered by both.
#[tokio::test]
async fn the_second_of_a_change_is_the_old_revisions() {
    for old in ["at", "cron"] {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        let each = JobSpec::cron("* * * * *", "UTC", &queue).unwrap().named("each");
        let minute = world.clock.now() + Duration::seconds(60);
        let instants = Instants::new([minute, minute + Duration::hours(1)]).unwrap();
        let first = match old {
            "at" => JobSpec::new(Trigger::At(instants), &queue).unwrap().named("each"),
            _ => each.clone().attempts(2).unwrap(),
        };
        world.create(first).await.unwrap();
        world.clock.advance_ms(60_900);
        world.pump().await.unwrap();
        world.replace(each).await.unwrap();
        let arrived = settle(&world, &queue, 1).await;
        let launched = |seconds| {
            let launch_s = minute.timestamp() + seconds;
            ids(&arrived).into_iter().filter(|id| id.ends_with(&format!(".{launch_s}.0"))).collect::<Vec<_>>()
        };
        assert_eq!(launched(0), [format!("each.1.{}.0", minute.timestamp())], "from {old}");
        assert_eq!(launched(60), [format!("each.2.{}.0", minute.timestamp() + 60)], "from {old}");
    }
}

/// A change within the very instant of a launch: it is the old revision's, though its emitter lags.
#[tokio::test]
async fn a_launch_at_the_instant_of_a_change_is_made() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let job = || JobSpec::cron("* * * * *", "UTC", &queue).unwrap().named("each");
    world.create(job()).await.unwrap();
    world.advance(600);
    let at_s = world.clock.now().timestamp();
    world.replace(job().attempts(2).unwrap()).await.unwrap();
    let arrived = ids(&settle(&world, &queue, 1).await);
    let launched: Vec<_> = arrived.iter().filter(|id| id.ends_with(&format!(".{at_s}.0"))).collect();
    assert_eq!(launched, [&format!("each.1.{at_s}.0")]);
}

/// The first tick of a deployment began with its own minute, and what jobs had due before was never emitted.
#[tokio::test]
async fn a_first_tick_that_is_late_leaves_nothing_out() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let launch_at = world.clock.now() + Duration::minutes(6);
    world.create(JobSpec::at(launch_at, &queue).unwrap()).await.unwrap();
    world.advance(1_200);
    world.engine.tick().await.unwrap();
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 1);
}

/// A lowered limit leaves some slot groups without a share. A call that died before it told them so is made again, finds
/// the policy as it asked for, and must not answer before they know (I1; seed 2018).
#[tokio::test]
async fn a_repeated_lowering_reaches_the_groups_that_lose_their_share() {
    let world = World::with_quick_retries().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("p", 27, 600).await.unwrap();
    world.engine.tick().await.unwrap();
    let job = JobSpec::at(world.clock.now() + Duration::seconds(30), &queue).unwrap().of(100).unwrap();
    world.create(job.under("p").unwrap()).await.unwrap();
    world.advance(60);
    world.pump().await.unwrap();
    let held = world.consume(&queue).await.unwrap();
    assert_eq!(held.len(), 27);
    // The policy is written, and nothing after it.
    strike(&world, Fault::CrashAfter, 0, "UpdateItem");
    assert!(world.change_policy("p", 6, 600).await.is_err());
    world.embedded.inject_nothing();
    world.change_policy("p", 6, 600).await.unwrap();
    // The first group holds ten of them, which is more than the limit.
    let is_beyond = |event: &&Received| event.token.as_ref().is_some_and(|token| token.group.group > 0);
    let beyond: Vec<Received> = held.iter().filter(is_beyond).cloned().collect();
    assert_eq!(beyond.len(), 17);
    world.release(&beyond).await.unwrap();
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 0, "groups without a share grant nothing");
}

/// The reply to the first send to a FIFO queue is lost: the event has arrived, and its sender does not know.
struct FirstFifoReplyIsLost(AtomicU64);

impl FaultPlan for FirstFifoReplyIsLost {
    fn on_request(&self, call: &Call) -> Fault {
        let is_send = call.resource().ends_with(".fifo") && call.operation == "SendMessageBatch";
        match is_send && self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            true => Fault::LoseReply,
            false => Fault::None,
        }
    }
}

#[tokio::test]
async fn a_repeat_of_one_delivery_stays_one_message_of_a_fifo_queue() {
    for throttled in [false, true] {
        let world = World::new().await.unwrap();
        let fifo = aws_sdk_sqs::types::QueueAttributeName::FifoQueue;
        let created =
            world.embedded.sqs().create_queue().queue_name("jobs.fifo").attributes(fifo, "true").send();
        let queue = created.await.unwrap().queue_url.unwrap();
        let job = JobSpec::at(world.clock.now(), &queue).unwrap();
        world.policy("small", 1, 60).await.unwrap();
        world.embedded.inject(FirstFifoReplyIsLost(AtomicU64::new(0)));
        world.create(if throttled { job.under("small").unwrap() } else { job }).await.unwrap();
        world.pump().await.unwrap();
        world.advance(2);
        world.pump().await.unwrap();
        assert_eq!(world.consume(&queue).await.unwrap().len(), 1, "throttled: {throttled}");
    }
}

/// A replacement that died between two writes left a launch at the new time, under the first revision (seed
/// 1795370700939: I6). Where the job had been deleted before, asking again launched a second time (seed 1795370701584: I3).
#[tokio::test]
async fn a_replacement_that_died_leaves_no_launch() {
    for is_deleted in [false, true] {
        for at in 0.. {
            let world = World::new().await.unwrap();
            let queue = world.queue("jobs").await.unwrap();
            world.engine.tick().await.unwrap();
            let job = |launch_at| JobSpec::at(launch_at, &queue).unwrap().named("report");
            let (client, id) = (CLIENT.parse().unwrap(), "report".parse().unwrap());
            world.create(job(world.clock.now() + Duration::minutes(30))).await.unwrap();
            if is_deleted {
                world.engine.jobs().delete(&client, &id, None).await.unwrap();
            }
            let launch_at = world.clock.now() + Duration::minutes(10);
            let draft = job(launch_at).into_draft();
            strike(&world, Fault::Crash, at, "");
            if world.engine.jobs().replace(&client, id, draft, None).await.is_ok() {
                assert!(at > 2);
                break;
            }
            world.embedded.inject_nothing();
            let arrived = ids(&settle(&world, &queue, 12).await);
            let never_was = format!("report.1.{}.0", launch_at.timestamp());
            assert!(
                !arrived.contains(&never_was),
                "deleted: {is_deleted}, died at request {at}: {arrived:?}"
            );
        }
    }
}

/// A batch whose payload lies in its job had a row, and its job was deleted between two looks at it: no record said why
/// nothing came (seed 1795371200721: I2).
#[tokio::test]
async fn a_run_whose_payload_is_gone_says_so() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let mut draft =
        JobSpec::at(world.clock.now() + Duration::seconds(30), &queue).unwrap().of(5).unwrap().into_draft();
    draft.terms.payload = Payload::new(format!("{:?}", "x".repeat(1_000))).unwrap();
    let (client, id) = (CLIENT.parse().unwrap(), "batch".parse().unwrap());
    world.engine.jobs().create(&client, Some("batch".parse().unwrap()), draft).await.unwrap();
    let run = world.engine.store().runs(&client, &id, None).await.unwrap().rows.remove(0);
    assert_eq!(run.stopped, None);
    let jobs = world.embedded.dynamodb().delete_item().table_name(format!("{PREFIX}-jobs"));
    let text = |text: &str| AttributeValue::S(text.to_owned());
    jobs.key("pk", text(CLIENT)).key("sk", text("batch")).send().await.unwrap();
    world.advance(30);
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len(), 0);
    let run = world.engine.store().runs(&client, &id, None).await.unwrap().rows.remove(0);
    assert_eq!(run.stopped.as_deref(), Some("payload_deleted"));
}

/// A run was created and the reply lost, so its row of the index is left for later, when its launch is too old (seed
/// 1795401363423: I2, its events did not come, and nothing said why).
#[tokio::test]
async fn a_run_whose_creation_got_no_answer_has_a_reason_when_it_is_too_old_for_its_events() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let job = JobSpec::cron("*/5 * * * *", "UTC", &queue).unwrap().of(3).unwrap().relevant_for(104).unwrap();
    world.create(job.named("batch")).await.unwrap();
    world.advance(180);
    world.engine.tick().await.unwrap();
    // The next row that is put is that of the run at 12:05.
    world.advance(60);
    let puts = strike(&world, Fault::LoseReply, 0, "PutItem");
    world.engine.tick().await.unwrap();
    assert!(puts.load(Ordering::Relaxed) > 0);
    world.advance(180);
    settle(&world, &queue, 2).await;
    let runs = world.engine.store().runs(&CLIENT.parse().unwrap(), &"batch".parse().unwrap(), None).await;
    let due_at = world.clock.now() - Duration::minutes(4);
    let run = runs.unwrap().rows.into_iter().find(|run| run.id.launch_at() == due_at).unwrap();
    assert_eq!(run.stopped.as_deref(), Some("expired"));
}
