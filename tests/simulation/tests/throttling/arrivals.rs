//! Single events that have little company: they travel in messages until they are due, and mostly never wait in a line.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Flow;
use tidegate_domain::ids::{JobId, RunId};
use tidegate_embedded::{Call, Fault, FaultPlan, Service};
use tidegate_engine::{Handled, PolicyDelete, RunState, Written};
use tidegate_simulation::world::{JobSpec, Received};
use tidegate_testkit::queue::receive_count;

use super::stage::{Stage, client, jobs_of, terms};

/// Kills the caller after a request that it chooses, or has it fail without a trace.
struct At {
    request: u64,
    fault: Fault,
    seen: Arc<AtomicU64>,
}

impl FaultPlan for At {
    fn on_request(&self, _: &Call) -> Fault {
        match self.seen.fetch_add(1, Ordering::Relaxed) {
            seen if seen == self.request => self.fault,
            _ => Fault::None,
        }
    }
}

/// Panics at a request that it chooses.
struct Panics {
    request: u64,
    seen: Arc<AtomicU64>,
}

impl FaultPlan for Panics {
    fn on_request(&self, _: &Call) -> Fault {
        assert_ne!(self.seen.fetch_add(1, Ordering::Relaxed), self.request, "as the test wants it");
        Fault::None
    }
}

/// Has every request on a table fail that writes one row.
struct NoPut;

impl FaultPlan for NoPut {
    fn on_request(&self, call: &Call) -> Fault {
        match (call.service, &*call.operation) {
            (Service::DynamoDb, "PutItem") => Fault::DropBefore,
            _ => Fault::None,
        }
    }
}

/// A stage with a policy of so many tokens and one-time jobs that are due in 30 minutes, whose tick is done: their events
/// are on their way.
async fn under_way(tokens: u32, jobs: &[&str]) -> Stage {
    let stage = Stage::new().await;
    stage.policy("small", terms(tokens)).await;
    for job in jobs {
        stage.job_in(1_800, job, 1, "small", Flow::default()).await;
    }
    stage.world.advance(29 * 60);
    stage.world.engine.tick().await.unwrap();
    stage.world.advance(60);
    stage
}

#[tokio::test]
async fn an_event_that_finds_a_free_slot_never_waits_in_the_line() {
    let stage = under_way(2, &["a", "b"]).await;
    let messages = stage.world.receive_dispatched().await.unwrap();
    assert_eq!(messages.len(), 1, "events of one instant travel together");
    let before = stage.world.embedded.meter().snapshot();
    let body = [(messages[0].body().unwrap(), 1)];
    assert_eq!(stage.world.engine.handle_all(&body).await, [Handled::Done]);
    let used = stage.world.embedded.meter().snapshot().since(&before);
    assert!(!used.dynamodb_calls.contains_key("TransactWriteItems"), "{used:?}");
    assert_eq!(stage.load("small").await.in_flight, 2);
    let arrived = stage.world.consume(&stage.queue).await.unwrap();
    assert_eq!(jobs_of(&arrived), ["a", "b"]);
    stage.release(&arrived).await;
    assert_eq!(stage.load("small").await.in_flight, 0);
}

#[tokio::test]
async fn events_that_find_no_slot_wait_in_the_line() {
    let stage = under_way(1, &["a", "b", "c"]).await;
    let mut came = Vec::new();
    for _ in 0..3 {
        let arrived = stage.arrived().await;
        assert_eq!(arrived.len(), 1);
        stage.release(&arrived).await;
        came.extend(arrived.into_iter().map(|event| event.body.job_id));
    }
    assert_eq!(came, ["a", "b", "c"]);
    assert_eq!(stage.arrived().await.len(), 0);
}

/// Whoever handles the message dies after any of its requests, or loses the reply to it. Meanwhile others are served. The
/// message comes again.
#[tokio::test]
async fn an_event_comes_though_its_message_is_handled_halfway() {
    comes_again(2).await;
}

/// SQS has two copies of the message, each of which comes for the first time (seed 1795367000022: I2, it never came).
#[tokio::test]
async fn an_event_comes_though_a_copy_of_its_message_is_handled_halfway() {
    comes_again(1).await;
}

/// The same event a second time is the same token.
fn distinct(mut events: Vec<Received>) -> Vec<Received> {
    events.sort_by_key(|event| event.token.as_ref().map(ToString::to_string));
    events.dedup_by_key(|event| event.token.as_ref().map(ToString::to_string));
    events
}

async fn comes_again(received: u32) {
    for fault in [Fault::CrashAfter, Fault::DropBefore, Fault::LoseReply] {
        for request in 0..20 {
            for others in [false, true] {
                let stage = under_way(2, &["a", "b"]).await;
                let messages = stage.world.receive_dispatched().await.unwrap();
                let body = messages[0].body().unwrap();
                let seen = Arc::new(AtomicU64::new(0));
                stage.world.embedded.inject(At { request, fault, seen: Arc::clone(&seen) });
                stage.world.engine.handle(body, 1).await;
                stage.world.embedded.inject_nothing();
                let case = format!("{fault:?} at request {request}, others: {others}");
                let mut arrived = stage.world.consume(&stage.queue).await.unwrap();
                if others {
                    // They fill the slots, and are gone again.
                    for job in ["c", "d", "e"] {
                        stage.job(job, 1, "small", Flow::default()).await;
                    }
                    for _ in 0..4 {
                        arrived.extend(stage.arrived().await);
                        stage.release_those_held(&std::mem::take(&mut arrived)).await;
                    }
                }
                assert_eq!(stage.world.engine.handle(body, received).await, Handled::Done, "{case}");
                stage.world.delete_dispatched(&messages).await.unwrap();
                let mut came: BTreeSet<String> = BTreeSet::new();
                for _ in 0..4 {
                    // A delivery that failed is tried again.
                    stage.world.advance(5);
                    arrived.extend(stage.arrived().await);
                    arrived = distinct(arrived);
                    came.extend(arrived.iter().map(|event| event.body.job_id.clone()));
                    stage.release_those_held(&std::mem::take(&mut arrived)).await;
                }
                if !others {
                    assert_eq!(came.into_iter().collect::<Vec<_>>(), ["a", "b"], "{case}");
                }
                for job in ["a", "b"] {
                    assert_eq!(stage.ended(job).await, 1, "{case}: {job}");
                }
                assert_eq!(stage.load("small").await.in_flight, 0, "{case}");
                if seen.load(Ordering::Relaxed) <= request {
                    break;
                }
            }
        }
    }
}

/// Its events are handled one by one then, and what is halfway is finished.
#[tokio::test]
async fn events_come_though_the_handling_of_their_message_panicked_halfway() {
    for request in 0..20 {
        let stage = under_way(2, &["a", "b"]).await;
        let messages = stage.world.receive_dispatched().await.unwrap();
        let seen = Arc::new(AtomicU64::new(0));
        stage.world.embedded.inject(Panics { request, seen: Arc::clone(&seen) });
        assert_eq!(stage.world.engine.handle(messages[0].body().unwrap(), 1).await, Handled::Done);
        stage.world.embedded.inject_nothing();
        stage.world.delete_dispatched(&messages).await.unwrap();
        let mut came = BTreeSet::new();
        for _ in 0..4 {
            let arrived = distinct(stage.arrived().await);
            came.extend(arrived.iter().map(|event| event.body.job_id.clone()));
            stage.release(&arrived).await;
        }
        assert_eq!(came.into_iter().collect::<Vec<_>>(), ["a", "b"], "a panic at request {request}");
        assert_eq!(stage.load("small").await.in_flight, 0, "a panic at request {request}");
        if seen.load(Ordering::Relaxed) <= request {
            return;
        }
    }
    panic!("the message takes more requests than were tried");
}

#[tokio::test]
async fn the_same_message_twice_is_one_event() {
    let stage = under_way(2, &["a"]).await;
    let messages = stage.world.receive_dispatched().await.unwrap();
    let body = messages[0].body().unwrap();
    for received in [1, 1, 2, 3] {
        assert_eq!(stage.world.engine.handle(body, received).await, Handled::Done);
    }
    stage.world.delete_dispatched(&messages).await.unwrap();
    let arrived = stage.arrived().await;
    let tokens: BTreeSet<_> = arrived.iter().map(|event| event.token.as_ref().unwrap().to_string()).collect();
    assert_eq!((tokens.len(), stage.load("small").await.in_flight), (1, 1));
    stage.release(&arrived[..1]).await;
    assert_eq!(stage.world.engine.handle(body, 4).await, Handled::Done);
    assert_eq!(stage.arrived().await.len(), 0);
}

#[tokio::test]
async fn an_event_whose_job_was_deleted_on_the_way_does_not_come() {
    let stage = under_way(2, &["a", "b"]).await;
    stage.world.engine.jobs().delete(&client(), &"a".parse().unwrap(), None).await.unwrap();
    let arrived = stage.arrived().await;
    assert_eq!(jobs_of(&arrived), ["b"]);
    assert_eq!(stage.load("small").await.in_flight, 1);
}

/// It was due, and its message had not been handled, when its job was deleted (seed 101: I2, no trace of it was left).
#[tokio::test]
async fn an_event_whose_job_is_gone_when_it_arrives_is_recorded_with_the_reason() {
    let stage = Stage::new().await;
    stage.policy("small", terms(2)).await;
    let launch_at = stage.world.clock.now() + Duration::seconds(30);
    let job = JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap();
    let job: JobId = stage.world.create(job).await.unwrap().parse().unwrap();
    stage.world.advance(31);
    stage.world.engine.jobs().delete(&client(), &job, None).await.unwrap();
    assert_eq!(stage.arrived().await.len(), 0);
    let run = RunId::new(job, 1, launch_at);
    let detail = stage.world.engine.queries().run_detail(&client(), &run).await.unwrap().unwrap();
    assert_eq!(detail.summary.reason.as_deref(), Some("job_deleted"));
    assert_eq!(stage.load("small").await.in_flight, 0);
}

#[tokio::test]
async fn a_run_on_its_way_is_told_from_its_job_and_none_that_the_revision_before_launched() {
    let stage = Stage::new().await;
    stage.policy("small", terms(9)).await;
    let each = || JobSpec::cron("* * * * *", "UTC", &stage.queue).unwrap().under("small").unwrap();
    stage.put("each", each(), Flow::default()).await;
    for _ in 0..3 {
        let arrived = stage.wait(60).await;
        stage.release(&arrived).await;
    }
    stage.world.replace(each().attempts(2).unwrap().named("each")).await.unwrap();
    let changed_at = stage.world.clock.now();
    let runs =
        stage.world.engine.queries().runs(&client(), &"each".parse().unwrap(), None).await.unwrap().rows;
    let (new, old): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.id.revision() > 1);
    assert!(old.iter().filter(|run| run.state == RunState::Finished).count() >= 2, "{old:?}");
    assert!(
        new.iter().all(|run| run.id.launch_at() > changed_at && run.state == RunState::Waiting),
        "{new:?}"
    );
    assert!(!new.is_empty());
}

#[tokio::test]
async fn messages_that_come_together_are_one_pack() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    let launch_at = stage.world.clock.now() + Duration::seconds(30);
    for _ in 0..9 {
        stage
            .world
            .create(JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap())
            .await
            .unwrap();
    }
    stage.world.advance(30);
    let messages = stage.world.receive_dispatched().await.unwrap();
    assert_eq!(messages.len(), 9);
    let bodies: Vec<_> = messages.iter().map(|m| (m.body().unwrap(), receive_count(m))).collect();
    assert_eq!(stage.world.engine.handle_all(&bodies).await, vec![Handled::Done; 9]);
    let store = stage.world.engine.store();
    let packs = store.packs_of_minute(&client(), launch_at).await.unwrap();
    assert_eq!(packs.iter().map(|(_, pack)| pack.members.len()).collect::<Vec<_>>(), [9]);
}

/// A request to SQS that was repeated by the client library (seed 327: I3, granted twice).
#[tokio::test]
async fn the_same_message_twice_in_one_receive_is_one_event() {
    let stage = under_way(2, &["a"]).await;
    let messages = stage.world.receive_dispatched().await.unwrap();
    let body = messages[0].body().unwrap();
    assert_eq!(stage.world.engine.handle_all(&[(body, 1), (body, 1)]).await, [Handled::Done; 2]);
    assert_eq!(stage.load("small").await.in_flight, 1);
    assert_eq!(stage.world.consume(&stage.queue).await.unwrap().len(), 1);
}

/// Nothing has looked after the policy since its last event was released.
#[tokio::test]
async fn how_an_event_ended_is_known_when_its_policy_is_deleted() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    let launch_at = stage.world.clock.now() + Duration::seconds(30);
    let job = JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap();
    let job = stage.world.create(job).await.unwrap();
    stage.world.advance(30);
    let arrived = stage.arrived().await;
    stage.release(&arrived).await;
    let deleted =
        stage.world.engine.policies().delete(&client(), &"small".parse().unwrap(), None).await.unwrap();
    assert_eq!(deleted, PolicyDelete::Done);
    assert_eq!(stage.ended(&job).await, 1);
}

/// The event of a job that is due soon is under way before the job is stored.
#[tokio::test]
async fn a_job_that_could_not_be_stored_does_not_fire_and_never_will_be_stored() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    let launch_at = stage.world.clock.now() + Duration::seconds(30);
    let job = || JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap();
    stage.world.embedded.inject(NoPut);
    assert!(stage.world.create(job()).await.is_err());
    stage.world.embedded.inject_nothing();
    stage.world.advance(30);
    assert_eq!(stage.arrived().await.len(), 0);
    // One that is stored does.
    let launch_at = stage.world.clock.now() + Duration::seconds(30);
    let draft = JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap().into_draft();
    let created = stage.world.engine.jobs().create(&client(), None, draft).await.unwrap();
    let Written::Created(job) = created else { panic!("{created:?}") };
    stage.world.advance(30);
    assert_eq!(jobs_of(&stage.arrived().await), [job.id.as_str()]);
}
