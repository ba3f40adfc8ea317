//! A call whose time is over leaves the rest where others find it.

use chrono::Duration;
use tidegate_domain::flow::{Flow, Overlap};
use tidegate_domain::job::Payload;
use tidegate_domain::limits::{HISTORY_DAYS, OUTBOX_SHARDS, TOKENS_PER_GROUP};
use tidegate_domain::time::Window;
use tidegate_engine::message::Message;
use tidegate_engine::{EngineError, Handled, Outcome, Release, RunCancel, Written, within};
use tidegate_simulation::pace::Pace;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_store::launch::{Child, OutboxEntry};

use super::stage::{POLICY, Stage, client, is_of, wake};

/// More than are dropped in one transaction.
pub const GROUPS: u32 = 30;
/// Entries of a line that are looked at between two looks at the clock.
const BETWEEN_LOOKS: usize = 128;

impl Stage {
    /// A run was cancelled in a call whose time was over: its groups still have ranges of it.
    pub async fn with_ranges_of_a_stopped_run() -> Self {
        let tokens = GROUPS * TOKENS_PER_GROUP;
        let stage = Self::of(tokens).await;
        stage.put("batch", stage.throttled(0, u64::from(20 * tokens)), Flow::default()).await;
        stage.world.pump().await.unwrap();
        // After a release, a group takes for later slots as well.
        let events = stage.world.consume(&stage.queue).await.unwrap();
        assert_eq!(events.len(), tokens as usize);
        let releases =
            events.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Succeeded));
        stage.world.engine.tokens().release(&client(), releases.collect()).await.unwrap();
        stage.world.pump().await.unwrap();
        let run = stage.world.runs("batch").await.unwrap().pop().unwrap().id;
        let client = client();
        let cancel = stage.world.engine.jobs().cancel_run(&client, &run);
        assert_eq!(within(stage.now(), cancel).await.unwrap(), RunCancel::Done);
        assert!(stage.load().await.waiting > 0, "nothing is left in the groups");
        stage
    }
}

#[tokio::test]
async fn what_groups_have_of_a_stopped_run_is_left_to_whoever_looks_after_the_policy() {
    let stage = Stage::with_ranges_of_a_stopped_run().await;
    stage.world.pump().await.unwrap();
    for _ in 0..3 {
        stage.world.advance(3_700);
        stage.world.engine.handle(&wake(), 1).await;
        stage.world.pump().await.unwrap();
    }
    assert_eq!(stage.load().await.waiting, 0);
}

#[tokio::test]
async fn runs_that_overlap_are_left_undecided() {
    let stage = Stage::paused().await;
    stage.put_runs(3, &Flow { overlap: Overlap::Skip, ..Flow::default() }).await;
    let looks = Pace::of(|operation, body| {
        operation == "Query" && is_of(body, "runs") && body["ScanIndexForward"] == false
    });
    let engine = stage.world.paced(&looks).unwrap();
    within(stage.now(), engine.handle(&wake(), 1)).await;
    assert_eq!(looks.seen(), 0);
    assert_eq!(engine.handle(&wake(), 1).await, Handled::Done);
    assert_eq!(looks.seen(), 3);
}

/// A page that is too large for a call is gone on with where it ended.
#[tokio::test]
async fn what_waits_for_long_is_kept_from_where_a_call_ended() {
    let stage = Stage::paused().await;
    let runs = BETWEEN_LOOKS + 10;
    stage.put_runs(runs, &Flow::default()).await;
    stage.world.take_dispatched().await.unwrap();
    stage.world.advance(86_400 * (HISTORY_DAYS / 2 + 1));
    let writes = Pace::of(|operation, body| operation == "UpdateItem" && is_of(body, "runs"));
    let engine = stage.world.paced(&writes).unwrap();
    let retain = Message::Retain { client: CLIENT.to_owned(), policy: POLICY.to_owned(), after: None };
    assert_eq!(within(stage.now(), engine.handle(&retain.encode(), 1)).await, Handled::Done);
    assert_eq!(writes.seen(), BETWEEN_LOOKS);
    let next = stage.world.take_dispatched().await.unwrap();
    let [next @ Message::Retain { after: Some(_), .. }] = &next[..] else { panic!("{next:?}") };
    assert_eq!(engine.handle(&next.encode(), 1).await, Handled::Done);
    assert_eq!(writes.seen(), runs);
}

#[tokio::test]
async fn a_line_that_is_too_long_to_be_counted_is_not_answered_in_part() {
    let stage = Stage::paused().await;
    stage.put_runs(1, &Flow::default()).await;
    let policy = POLICY.parse().unwrap();
    let counted = within(stage.now(), stage.world.engine.queries().policy(&client(), &policy)).await;
    assert!(matches!(counted, Err(EngineError::OutOfTime)), "{counted:?}");
    assert_eq!(stage.load().await.waiting, 2);
}

#[tokio::test]
async fn entries_that_cannot_be_read_wait_for_a_call_with_time() {
    let stage = Stage::paused().await;
    stage.put_runs(2, &Flow::default()).await;
    let bad = aws_sdk_dynamodb::types::AttributeValue::S("written by nobody".to_owned());
    assert_eq!(stage.change("policies", |pk, _| pk.ends_with("|line"), "cur", bad).await, 2);
    let aside = async || {
        let store = stage.world.engine.store();
        store.entries_set_aside(&client(), &POLICY.parse().unwrap()).await.unwrap().len()
    };
    assert_eq!(within(stage.now(), stage.world.engine.handle(&wake(), 1)).await, Handled::Retry);
    assert_eq!(aside().await, 0);
    assert_eq!(stage.world.engine.handle(&wake(), 1).await, Handled::Done);
    assert_eq!(aside().await, 2);
}

/// Nothing of a chunk is sent before all of its jobs were looked up.
async fn comes_again_whole(stage: &Stage) {
    stage.world.advance(30);
    let messages = stage.world.receive_dispatched().await.unwrap();
    let [message] = &messages[..] else { panic!("{} messages", messages.len()) };
    let (engine, body) = (&stage.world.engine, message.body().unwrap());
    assert_eq!(within(stage.now(), engine.handle(body, 1)).await, Handled::Retry);
    assert!(stage.world.consume(&stage.queue).await.unwrap().is_empty());
    assert_eq!(engine.handle(body, 1).await, Handled::Done);
    assert_eq!(stage.world.consume(&stage.queue).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_chunk_whose_jobs_may_have_changed_comes_again() {
    let stage = Stage::of(1).await;
    let (soon, later) = (stage.now() + Duration::seconds(30), stage.now() + Duration::hours(2));
    let other = JobSpec::at(later, &stage.queue).unwrap();
    stage.put("other", other.clone(), Flow::default()).await;
    stage.put("single", JobSpec::at(soon, &stage.queue).unwrap(), Flow::default()).await;
    stage.world.replace(other.named("other").failures_only()).await.unwrap();
    comes_again_whole(&stage).await;
}

#[tokio::test]
async fn a_chunk_whose_payloads_lie_in_their_jobs_comes_again() {
    let stage = Stage::of(1).await;
    let at = stage.now() + Duration::seconds(30);
    let mut draft = JobSpec::at(at, &stage.queue).unwrap().into_draft();
    draft.terms.payload = Payload::new(format!("\"{}\"", "x".repeat(1_000))).unwrap();
    stage.world.engine.jobs().create(&client(), Some("large".parse().unwrap()), draft).await.unwrap();
    comes_again_whole(&stage).await;
}

#[tokio::test]
async fn jobs_of_a_call_that_were_not_come_to_are_answered_so() {
    let stage = Stage::of(1).await;
    let (named, near) = (stage.throttled(7_200, 1).into_draft(), stage.throttled(30, 2).into_draft());
    let drafts = vec![(Some("named".parse().unwrap()), named), (None, near)];
    let answers = within(stage.now(), stage.world.engine.jobs().create_all(&client(), drafts)).await;
    let is_left = |answer: &Result<_, EngineError>| matches!(answer, Err(EngineError::OutOfTime));
    assert!(answers.len() == 2 && answers.iter().all(is_left), "{answers:?}");
    assert!(stage.world.engine.store().jobs(&client(), "", None).await.unwrap().rows.is_empty());
}

#[tokio::test]
async fn events_of_a_large_run_are_left_to_workers() {
    let stage = Stage::of(1).await;
    let spec = JobSpec::at(stage.now(), &stage.queue).unwrap().of(1_500).unwrap();
    within(stage.now(), stage.put("large", spec, Flow::default())).await;
    assert_eq!(stage.world.take_dispatched().await.unwrap(), []);
    assert_eq!(stage.world.engine.store().parts(None).await.unwrap().rows.len(), 1);
    stage.world.advance(60);
    stage.world.engine.tick().await.unwrap();
    stage.world.pump().await.unwrap();
    assert_eq!(stage.world.consume(&stage.queue).await.unwrap().len(), 1_500);
}

/// No tick came for long, so a change of a job emits first what is behind: more than one call has time for.
#[tokio::test]
async fn launches_that_are_behind_are_emitted_by_the_next_call() {
    let stage = Stage::of(1).await;
    let spec = JobSpec::cron("* * * * * *", "UTC", &stage.queue).unwrap().of(2).unwrap();
    stage.put("each-second", spec.clone(), Flow::default()).await;
    stage.world.advance(1_200);
    let replace = async || {
        let (id, draft) = ("each-second".parse().unwrap(), spec.clone().failures_only().into_draft());
        stage.world.engine.jobs().replace(&client(), id, draft, None).await
    };
    let replaced = within(stage.now(), replace()).await;
    assert!(matches!(replaced, Err(EngineError::OutOfTime)), "{replaced:?}");
    assert!(matches!(replace().await, Ok(Written::Replaced(_))));
}

#[tokio::test]
async fn the_outbox_is_left_to_the_next_tick() {
    let stage = Stage::of(1).await;
    let launch_at = stage.now() + Duration::seconds(200);
    for number in 0..16 {
        let spec = JobSpec::at(launch_at, &stage.queue).unwrap();
        let job = stage.put(&format!("job-{number}"), spec, Flow::default()).await;
        // As its master left it that died before it removed the row.
        let window = Window::new(stage.now(), job.emit_from).unwrap();
        let outbox =
            OutboxEntry { child: Child::of(&job), window, written_at: stage.now() - Duration::minutes(10) };
        stage.world.engine.store().owe_first_launches(&outbox).await.unwrap();
    }
    stage.world.advance(60);
    let left = async || {
        let (store, mut left) = (stage.world.engine.store(), Vec::new());
        for shard in 0..OUTBOX_SHARDS {
            left.push(store.outbox(shard, None).await.unwrap().rows.len());
        }
        left
    };
    let before = left().await;
    within(stage.now(), stage.world.engine.tick()).await.unwrap();
    // Some of it in any case: a page.
    assert_eq!(left().await, [&[0], &before[1..]].concat(), "{before:?}");
    assert!(before[1..].iter().sum::<usize>() > 0, "{before:?}");
    stage.world.advance(60);
    stage.world.engine.tick().await.unwrap();
    assert_eq!(left().await.iter().sum::<usize>(), 0);
}

#[tokio::test]
async fn events_that_there_is_no_time_to_put_into_packs_come_again() {
    let stage = Stage::paused().await;
    stage.put("single", stage.throttled(30, 1), Flow::default()).await;
    stage.world.advance(30);
    let messages = stage.world.receive_dispatched().await.unwrap();
    let bodies: Vec<&str> = messages.iter().map(|message| message.body().unwrap()).collect();
    let is_arrival = |body: &&&str| matches!(Message::decode(body), Ok(Message::Arrival(_)));
    let arrival = bodies.iter().find(is_arrival).unwrap();
    let engine = &stage.world.engine;
    assert_eq!(within(stage.now(), engine.handle(arrival, 1)).await, Handled::Retry);
    assert_eq!(stage.load().await.waiting, 0);
    assert_eq!(engine.handle(arrival, 2).await, Handled::Done);
    assert_eq!(stage.load().await.waiting, 1);
}
