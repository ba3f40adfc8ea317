//! For each kind of message a scene in which it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Duration;
use tidegate_domain::change::{Change, What};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::{ExpectedSeconds, Job, Payload};
use tidegate_domain::retry::{Backoff, RedrivePace, Retry, RetryWait};
use tidegate_domain::sideline::SidelineOf;
use tidegate_domain::target::Target;
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal, Service};
use tidegate_engine::{DeadLetterFilter, Redriven, Sidelined};
use tidegate_simulation::world::{JobSpec, stored};
use tidegate_store::ClientRecord;

use super::Kind;
use super::stage::{Stage, client, refused};

/// One-time jobs with large rows of one shard and minute: more than a tick takes.
const LARGE: u64 = 352;

/// Plays the scene of a stage's kind to its end.
pub(crate) async fn play(stage: &mut Stage) {
    match stage.kind {
        Kind::Chunk => chunks(stage).await,
        Kind::Arrival => arrivals(stage).await,
        Kind::Sent => sent(stage).await,
        Kind::Wake => wakes(stage).await,
        Kind::Retain => retained(stage).await,
        Kind::Scan => scans(stage).await,
        Kind::Drain => drained(stage).await,
        Kind::Delete => deleted(stage).await,
        Kind::Event => granted(stage).await,
        Kind::Callback => ends(stage).await,
        Kind::Look | Kind::Overdue => overdue(stage).await,
        Kind::Release | Kind::OfReleaseQueue => batches(stage).await,
    }
}

/// A queue that is not there, with one more delivery a few seconds after the first.
fn lost(job: JobSpec) -> JobSpec {
    let backoff = Backoff::Fixed { wait: RetryWait::new(5).unwrap() };
    let job = job.with(|draft| {
        draft.terms.target = Target::sqs(&format!("{}-missing", draft.terms.target.address())).unwrap();
        draft.terms.retry = Retry { backoff, ..Retry::default() };
    });
    job.attempts(2).unwrap()
}

/// Runs of one event and of many, some of which nobody takes; what is dead is discarded, or sent again in vain.
async fn chunks(stage: &mut Stage) {
    stage.job("one", 150, |job| job).await;
    stage.job("many", 150, |job| job.of(250).unwrap()).await;
    stage.job("few", 150, |job| job.of(3).unwrap().failures_only()).await;
    stage.job("lost", 150, lost).await;
    stage.job("losts", 150, |job| lost(job).of(7).unwrap()).await;
    stage.pass(300).await;
    settle_letters(stage).await;
    stage.end().await;
}

/// The first dead letter is discarded, and the last sent again.
async fn settle_letters(stage: &Stage) {
    let letters = stage.world.engine.dead_letters();
    let all = letters.list(&client(), &DeadLetterFilter::default(), None).await.unwrap().rows;
    let (first, last) = (all.first().unwrap().event.clone(), all.last().unwrap().event.clone());
    assert!(letters.discard(&client(), &[first]).await.remove(0).unwrap());
    let redriven = letters.redrive(&client(), &[(last, stage.world.clock.now())]).await;
    assert_eq!(redriven.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), [Redriven::Done]);
}

/// Single events that join a line by messages.
async fn arrivals(stage: &mut Stage) {
    stage.policy("small", 2).await;
    for single in ["a", "b", "c", "d", "e"] {
        stage.job(single, 150, |job| job.under("small").unwrap()).await;
    }
    stage.end().await;
}

/// Refuses what records that events were sent, while it holds.
struct NoRecords(Arc<AtomicBool>);

impl FaultPlan for NoRecords {
    fn on_request(&self, call: &Call) -> Fault {
        let records = call.service == Service::DynamoDb && call.operation == "BatchWriteItem";
        match records && self.0.load(Ordering::Relaxed) {
            true => Fault::Refuse(Refusal::Throttled),
            false => Fault::None,
        }
    }
}

/// What became of events cannot be kept at once; letters that follow from it are discarded, or sent again.
async fn sent(stage: &mut Stage) {
    stage.job("one", 150, |job| job).await;
    stage.job("many", 150, |job| job.of(250).unwrap()).await;
    stage.job("lost", 150, |job| lost(job).attempts(1).unwrap()).await;
    stage.job("losts", 150, |job| lost(job).attempts(1).unwrap().of(7).unwrap()).await;
    stage.pass(120).await;
    let refuses = Arc::new(AtomicBool::new(true));
    stage.world.embedded.inject(NoRecords(Arc::clone(&refuses)));
    stage.world.advance(32);
    stage.settle().await;
    refuses.store(false, Ordering::Relaxed);
    stage.pass(120).await;
    settle_letters(stage).await;
    stage.end().await;
}

/// Batches in the line of a policy that is paused meanwhile, and events that are due in it later.
async fn wakes(stage: &mut Stage) {
    stage.policy("small", 3).await;
    stage.job("now", 1, |job| job.of(10).unwrap().under("small").unwrap()).await;
    stage.job("soon", 100, |job| job.of(10).unwrap().under("small").unwrap()).await;
    stage.job("lost", 100, |job| lost(job).under("small").unwrap()).await;
    let id = "small".parse().unwrap();
    stage.world.engine.policies().pause(&client(), &id, true, None).await.unwrap();
    stage.pass(400).await;
    stage.world.engine.policies().pause(&client(), &id, false, None).await.unwrap();
    stage.end().await;
}

/// A batch that waits for days.
async fn retained(stage: &mut Stage) {
    stage.policy("small", 3).await;
    let id = "small".parse().unwrap();
    stage.world.engine.policies().pause(&client(), &id, true, None).await.unwrap();
    stage.job("batch", 1, |job| job.of(7).unwrap().under("small").unwrap()).await;
    stage.settle().await;
    for _ in 0..3 {
        stage.world.advance(86_400);
        stage.world.engine.emission().wake_policies().await.unwrap();
        stage.settle().await;
    }
    stage.world.engine.policies().pause(&client(), &id, false, None).await.unwrap();
    stage.world.engine.emission().wake_policies().await.unwrap();
    stage.settle().await;
    stage.end().await;
}

/// A minute that is too large for its tick.
async fn scans(stage: &mut Stage) {
    let launch_at = stage.world.clock.now() + Duration::seconds(150);
    let mut draft = JobSpec::at(launch_at, &stage.queue).unwrap().into_draft();
    draft.terms.payload = Payload::new(format!("\"{}\"", "x".repeat(64_000))).unwrap();
    let job = |number| stored::one_time(&draft, launch_at, 3, number).unwrap();
    let jobs: Vec<Job> = (0..LARGE).map(job).collect();
    stage.world.engine.store().create_one_times(&jobs).await.unwrap();
    stage.know(jobs.iter().map(|job| job.id.to_string()));
    stage.end().await;
}

/// A client that is sidelined while jobs come due, and drains at a pace; then jobs of it, one under a policy beside others.
async fn drained(stage: &mut Stage) {
    for (job, seconds) in [("first", 40), ("second", 70), ("third", 100)] {
        stage.job(job, seconds, |job| job.of(30).unwrap()).await;
    }
    sidelined(stage, SidelineOf::Client).await;
    stage.policy("small", 2).await;
    for (job, seconds) in [("shared", 80), ("other", 80)] {
        stage.job(job, seconds, |job| job.of(7).unwrap().under("small").unwrap()).await;
    }
    sidelined(stage, SidelineOf::Job("shared".parse().unwrap())).await;
    stage.job("alone", 80, |job| job.of(7).unwrap()).await;
    sidelined(stage, SidelineOf::Job("alone".parse().unwrap())).await;
    stage.end().await;
}

async fn sidelined(stage: &mut Stage, of: SidelineOf) {
    let held = stage.world.engine.sidelining().sideline(&client(), &of, "asleep").await.unwrap();
    assert_eq!(held, Sidelined::Done);
    stage.pass(200).await;
    stage.world.engine.sidelining().drain(&client(), &of, RedrivePace::new(2).unwrap()).await.unwrap();
    stage.pass(120).await;
}

/// A client with jobs, runs and a line is deleted.
async fn deleted(stage: &mut Stage) {
    let now = stage.world.clock.now();
    let (record, key) =
        (stored::registered("whsec_AAAA", now).unwrap(), stored::api_key("key", now).unwrap());
    stage
        .world
        .engine
        .store()
        .create_client(&record, &key, &Change::by_nobody(What::Created, now))
        .await
        .unwrap();
    stage.world.policy("small", 2, 600).await.unwrap();
    stage.job("gone", 40, |job| job.of(7).unwrap()).await;
    stage.job("held", 1, |job| job.of(7).unwrap().under("small").unwrap()).await;
    stage.job("later", 7_000, |job| job).await;
    stage.pass(70).await;
    assert!(stage.world.engine.deletions().begin(&client()).await.unwrap().is_some());
    stage.pass(2_400).await;
    assert_eq!(stage.world.engine.store().registered_client(&client()).await.unwrap(), None);
    stage.end().await;
}

/// Events that hold tokens and travel: to an endpoint that may not be called.
async fn granted(stage: &mut Stage) {
    stage.policy("small", 2).await;
    stage.job("one", 100, refused).await;
    stage.job("many", 1, |job| refused(job).of(7).unwrap()).await;
    stage.pass(200).await;
    settle_letters(stage).await;
    stage.end().await;
}

/// Runs whose ends are told; one cannot be told at once.
async fn ends(stage: &mut Stage) {
    stage.policy("small", 4).await;
    for (job, url) in [("told", stage.ends.clone()), ("untold", format!("{}-missing", stage.ends))] {
        let told = |draft: &mut tidegate_engine::JobDraft| {
            draft.terms.flow.on_completion = Some(Target::sqs(&url).unwrap());
        };
        let job_of =
            |job: JobSpec| job.of(9).unwrap().under("small").unwrap().attempts(2).unwrap().with(told);
        stage.job(job, 1, job_of).await;
    }
    stage.end().await;
}

/// Launches that a paused policy keeps from being over in time, of which the client is told, and one that is over.
async fn overdue(stage: &mut Stage) {
    let now = stage.world.clock.now();
    let record = stored::registered("whsec_AAAA", now).unwrap();
    let record = ClientRecord { alerts: Some(Target::sqs(&stage.ends).unwrap()), ..record };
    let (key, change) = (stored::api_key("key", now).unwrap(), Change::by_nobody(What::Created, now));
    stage.world.engine.store().create_client(&record, &key, &change).await.unwrap();
    stage.policy("small", 2).await;
    let id = "small".parse().unwrap();
    stage.world.engine.policies().pause(&client(), &id, true, None).await.unwrap();
    let expecting = |job: JobSpec| job.with(|draft| draft.expect = ExpectedSeconds::new(60).ok());
    stage.job("held", 40, |job| expecting(job.of(3).unwrap().under("small").unwrap())).await;
    stage.job("single", 100, |job| expecting(job.under("small").unwrap())).await;
    stage.job("in-time", 40, expecting).await;
    stage.pass(400).await;
    stage.world.engine.policies().pause(&client(), &id, false, None).await.unwrap();
    stage.end().await;
}

/// Events of a batch and single ones, which their consumers release.
async fn batches(stage: &mut Stage) {
    stage.policy("small", 4).await;
    stage.job("many", 1, |job| job.of(17).unwrap().under("small").unwrap()).await;
    for single in ["a", "b", "c"] {
        stage.job(single, 100, |job| job.under("small").unwrap()).await;
    }
    stage.end().await;
}
