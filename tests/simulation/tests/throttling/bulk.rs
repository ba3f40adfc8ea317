//! Throttled one-time jobs that are created in one call shortly before they are due: their events share messages.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Job;
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::{EngineError, Handled, Written};
use tidegate_simulation::world::{JobSpec, Received};

use super::stage::{Stage, client, jobs_of, terms};

/// Has the first request of an operation fail.
struct First {
    operation: &'static str,
    fault: Fault,
    is_over: AtomicBool,
}

impl First {
    fn of(operation: &'static str, fault: Fault) -> Self {
        Self { operation, fault, is_over: AtomicBool::new(false) }
    }
}

impl FaultPlan for First {
    fn on_request(&self, call: &Call) -> Fault {
        match call.operation == self.operation && !self.is_over.swap(true, Ordering::Relaxed) {
            true => self.fault,
            false => Fault::None,
        }
    }
}

async fn stage(tokens: u32) -> Stage {
    let stage = Stage::new().await;
    stage.policy("small", terms(tokens)).await;
    stage
}

/// One call for so many jobs that are due in 30 seconds.
async fn create(stage: &Stage, jobs: usize) -> Vec<Result<Written<Job>, EngineError>> {
    let launch_at = stage.world.clock.now() + Duration::seconds(30);
    let draft = JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap().into_draft();
    stage.world.engine.jobs().create_all(&client(), vec![(None, draft); jobs]).await
}

/// The ids of those that were created.
fn ids(answers: &[Result<Written<Job>, EngineError>]) -> BTreeSet<String> {
    let created = answers.iter().filter_map(|answer| match answer {
        Ok(Written::Created(job)) => Some(job.id.to_string()),
        _ => None,
    });
    created.collect()
}

/// The ids of those whose events came, each once.
fn came(events: &[Received]) -> BTreeSet<String> {
    let ids: BTreeSet<String> = jobs_of(events).into_iter().map(str::to_owned).collect();
    assert_eq!(ids.len(), events.len(), "each once");
    ids
}

#[tokio::test]
async fn a_hundred_events_share_a_message_and_the_look_at_their_jobs() {
    let stage = stage(300).await;
    let used = || stage.world.embedded.meter().snapshot();
    let before = used();
    let answers = create(&stage, 250).await;
    let created = ids(&answers);
    assert_eq!(created.len(), 250);
    assert_eq!(used().since(&before).sqs_requests_where(|_, operation| operation.starts_with("Send")), 1);
    stage.world.advance(30);
    let before = used();
    let messages = stage.world.receive_dispatched().await.unwrap();
    assert_eq!(messages.len(), 3);
    let bodies: Vec<_> = messages.iter().map(|message| (message.body().unwrap(), 1)).collect();
    assert_eq!(stage.world.engine.handle_all(&bodies).await, [Handled::Done; 3]);
    stage.world.delete_dispatched(&messages).await.unwrap();
    assert_eq!(used().since(&before).dynamodb_calls["BatchGetItem"], 3);
    assert_eq!(came(&stage.arrived().await), created);
}

#[tokio::test]
async fn a_job_that_could_not_be_stored_fails_alone() {
    let stage = stage(9).await;
    stage.world.embedded.inject(First::of("PutItem", Fault::DropBefore));
    let answers = create(&stage, 5).await;
    stage.world.embedded.inject_nothing();
    let created = ids(&answers);
    assert_eq!((created.len(), answers.iter().filter(|answer| answer.is_err()).count()), (4, 1));
    stage.world.advance(30);
    assert_eq!(came(&stage.arrived().await), created);
}

/// Whether SQS has them or not: those that it has find no job.
#[tokio::test]
async fn jobs_whose_events_could_not_be_sent_together_are_created_one_by_one() {
    for fault in [Fault::DropBefore, Fault::LoseReply] {
        let stage = stage(9).await;
        stage.world.embedded.inject(First::of("SendMessageBatch", fault));
        let answers = create(&stage, 5).await;
        stage.world.embedded.inject_nothing();
        let created = ids(&answers);
        assert_eq!(created.len(), 5, "{fault:?}");
        stage.world.advance(30);
        assert_eq!(came(&stage.arrived().await), created, "{fault:?}");
    }
}
