//! The end of a run is told: once, with its numbers, and again while the target does not take it.

use std::sync::Arc;

use aws_sdk_sqs::types::QueueAttributeName;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Flow;
use tidegate_domain::target::Target;
use tidegate_engine::{Outcome, Release, Released, RunCancel, Written};
use tidegate_protocol::Completion;
use tidegate_simulation::World;
use tidegate_simulation::gate::{Gate, Task};
use tidegate_simulation::world::{CLIENT, JobSpec, Received};
use tidegate_store::runs::RunRow;
use tidegate_testkit::queue;

/// A batch of events under policy `small`, whose end is told to `target`.
async fn batch(world: &World, queue: &str, count: u64, target: Target) {
    world.policy("small", 4, 600).await.unwrap();
    let job = JobSpec::at(world.clock.now(), queue).unwrap().of(count).unwrap().under("small").unwrap();
    let mut draft = job.attempts(3).unwrap().into_draft();
    draft.terms.flow = Flow { on_completion: Some(target), ..Flow::default() };
    let id = Some("nightly".parse().unwrap());
    let written = world.engine.jobs().create(&CLIENT.parse().unwrap(), id, draft).await.unwrap();
    assert!(matches!(written, Written::Created(_)), "{written:?}");
}

async fn run_row(world: &World) -> RunRow {
    world.runs("nightly").await.unwrap().pop().unwrap()
}

/// Takes and releases events until none comes; those whose index `fails` says so, as failed.
async fn work(world: &World, queue: &str, fails: impl Fn(u32) -> bool) -> u32 {
    let (client, mut done) = (CLIENT.parse().unwrap(), 0);
    loop {
        world.pump().await.unwrap();
        let events: Vec<Received> = world.consume(queue).await.unwrap();
        if events.is_empty() {
            return done;
        }
        done += events.len() as u32;
        let release = |event: Received| {
            let outcome = if fails(event.body.index) { Outcome::Failed } else { Outcome::Succeeded };
            Release::new(event.token.unwrap(), outcome)
        };
        let releases = events.into_iter().map(release).collect();
        let answers = world.engine.tokens().release(&client, releases).await.unwrap();
        assert!(answers.iter().all(|(_, answer)| *answer == Released::Released), "{answers:?}");
        world.advance(1);
    }
}

async fn completions(world: &World, queue: &str) -> Vec<Completion> {
    let sqs = world.embedded.sqs();
    let messages = queue::receive(&sqs, queue).await.unwrap();
    queue::delete(&sqs, queue, &messages).await.unwrap();
    messages.iter().map(|message| serde_json::from_str(message.body().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn the_end_of_a_run_is_told_once_with_its_numbers() {
    let world = World::new().await.unwrap();
    let (jobs, done) = (world.queue("jobs").await.unwrap(), world.queue("done").await.unwrap());
    batch(&world, &jobs, 25, Target::sqs(&done).unwrap()).await;
    world.pump().await.unwrap();
    assert_eq!(completions(&world, &done).await, []);
    assert_eq!(work(&world, &jobs, |index| index == 7).await, 25);
    let run = run_row(&world).await;
    let told = completions(&world, &done).await;
    let text = |instant: chrono::DateTime<chrono::Utc>| instant.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    assert_eq!(
        told,
        [Completion {
            r#type: "run.completed".to_owned(),
            id: format!("{}.completed", run.id),
            run_id: run.id.to_string(),
            job_id: "nightly".to_owned(),
            client_id: CLIENT.to_owned(),
            state: "finished".to_owned(),
            reason: None,
            count: 25,
            succeeded: 24,
            failed: 1,
            expired: 0,
            dead: 0,
            left_out: 0,
            launch_at: text(run.id.launch_at()),
            started_at: Some(text(run.started_at.unwrap())),
            finished_at: Some(text(run.last_outcome_at.unwrap())),
        }]
    );
    assert!(run.announced.is_some_and(|announced| announced.failure.is_none()));

    // Whatever comes again, nobody is told twice.
    let again = format!(r#"{{"v":1,"callback":{{"client":"{CLIENT}","run":"{}"}}}}"#, run.id);
    world.engine.handle(&again, 2).await;
    world.engine.tick().await.unwrap();
    world.pump().await.unwrap();
    assert_eq!(completions(&world, &done).await, []);
}

/// Whoever tells dies before it is noted; the next one tells again, under the same id.
#[tokio::test]
async fn a_fifo_queue_that_is_told_twice_keeps_one() {
    let world = World::new().await.unwrap();
    let jobs = world.queue("jobs").await.unwrap();
    let sqs = world.embedded.sqs();
    let fifo = sqs.create_queue().queue_name("done.fifo").attributes(QueueAttributeName::FifoQueue, "true");
    let done = fifo.send().await.unwrap().queue_url.unwrap();
    batch(&world, &jobs, 1, Target::sqs(&done).unwrap()).await;
    world.pump().await.unwrap();
    let event = world.consume(&jobs).await.unwrap();
    world.release(&event).await.unwrap();

    let gate = Arc::new(Gate::default());
    gate.stop_only(|body| {
        let notes = body["UpdateExpression"].as_str().is_some_and(|changes| changes.contains("announced"));
        notes || body.get("MessageBody").is_some()
    });
    let engine = world.process(&gate).unwrap();
    let run = run_row(&world).await;
    let told = format!(r#"{{"v":1,"callback":{{"client":"{CLIENT}","run":"{}"}}}}"#, run.id);
    let mut task = Task::new(&gate, async move { engine.handle(&told, 1).await });
    assert!(task.step() && !task.is_over());
    drop(task);
    assert_eq!(run_row(&world).await.announced, None);
    let count = QueueAttributeName::ApproximateNumberOfMessages;
    let there = sqs.get_queue_attributes().queue_url(&done).attribute_names(count.clone());
    assert_eq!(there.send().await.unwrap().attributes.unwrap()[&count], "1");

    world.pump().await.unwrap();
    assert!(run_row(&world).await.announced.is_some());
    assert_eq!(completions(&world, &done).await.len(), 1);
    assert_eq!(completions(&world, &done).await.len(), 0);
}

#[tokio::test]
async fn a_run_that_was_cancelled_is_told_when_its_last_token_is_back() {
    let world = World::new().await.unwrap();
    let (jobs, done) = (world.queue("jobs").await.unwrap(), world.queue("done").await.unwrap());
    batch(&world, &jobs, 100, Target::sqs(&done).unwrap()).await;
    world.pump().await.unwrap();
    let run = run_row(&world).await.id;
    let client = CLIENT.parse().unwrap();
    assert_eq!(world.engine.jobs().cancel_run(&client, &run).await.unwrap(), RunCancel::Done);
    world.pump().await.unwrap();
    assert_eq!(completions(&world, &done).await, [], "four events are still in flight");
    assert_eq!(work(&world, &jobs, |_| false).await, 4);
    let told = completions(&world, &done).await;
    let [told] = &*told else { panic!("{told:?}") };
    assert_eq!((&*told.state, told.reason.as_deref()), ("stopped", Some("cancelled")));
    assert_eq!((told.count, told.succeeded, told.left_out), (100, 4, 96));
}

#[tokio::test]
async fn a_target_that_does_not_take_it_is_tried_again_and_then_given_up() {
    let world = World::new().await.unwrap();
    let jobs = world.queue("jobs").await.unwrap();
    let missing = jobs.replace("jobs", "missing");
    batch(&world, &jobs, 1, Target::sqs(&missing).unwrap()).await;
    work(&world, &jobs, |_| false).await;
    assert_eq!(run_row(&world).await.announced, None);

    // The second attempt comes after two to three seconds, the third and last after four to six more.
    world.advance(3);
    world.pump().await.unwrap();
    assert_eq!(run_row(&world).await.announced, None);
    world.advance(6);
    world.pump().await.unwrap();
    let failure = run_row(&world).await.announced.unwrap().failure.unwrap();
    assert!(failure.contains("queue"), "{failure}");
}

#[tokio::test]
async fn a_target_that_takes_it_later_is_told_then() {
    let world = World::new().await.unwrap();
    let jobs = world.queue("jobs").await.unwrap();
    let missing = jobs.replace("jobs", "done");
    batch(&world, &jobs, 1, Target::sqs(&missing).unwrap()).await;
    work(&world, &jobs, |_| false).await;
    let done = world.queue("done").await.unwrap();
    assert_eq!(completions(&world, &done).await, []);
    world.advance(3);
    world.pump().await.unwrap();
    assert_eq!(completions(&world, &done).await.len(), 1);
    assert_eq!(run_row(&world).await.announced.unwrap().failure, None);
}

#[tokio::test]
async fn an_endpoint_that_this_deployment_does_not_allow_is_given_up_at_once() {
    let world = World::new().await.unwrap();
    let jobs = world.queue("jobs").await.unwrap();
    batch(&world, &jobs, 1, Target::http("http://127.0.0.1:9/done").unwrap()).await;
    work(&world, &jobs, |_| false).await;
    let failure = run_row(&world).await.announced.unwrap().failure.unwrap();
    assert!(failure.contains("loopback"), "{failure}");
}
