//! The runtime in virtual time: Tokio's clock is paused, the engine and the queues go by it too.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use chrono::{DateTime, TimeDelta, Utc};
use tidegate_domain::clock::Clock;
use tidegate_domain::flow::Flow;
use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::target::Target;
use tidegate_domain::time::{CronSpec, parse_zone};
use tidegate_domain::token::SignedToken;
use tidegate_embedded::OpenError;
use tidegate_engine::random::SeededRandom;
use tidegate_engine::{JobDraft, Outcome, Release, Written};
use tidegate_protocol::Event;
use tokio::time::Instant;

use crate::{Options, Place, Runtime, StartError};

/// Tokio's clock, put at a date: 13.3 seconds into a minute.
struct VirtualClock {
    started: Instant,
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        let start = DateTime::from_timestamp_millis(1_763_724_973_300).unwrap();
        start + TimeDelta::from_std(self.started.elapsed()).unwrap()
    }
}

fn options(place: Place, handlers: usize) -> Options {
    let clock = Arc::new(VirtualClock { started: Instant::now() });
    Options { clock, random: Arc::new(SeededRandom::new(7)), handlers, ..Options::new(place) }
}

async fn queue(sqs: &Client, name: &str) -> String {
    sqs.create_queue().queue_name(name).send().await.unwrap().queue_url.unwrap()
}

/// What the queue has, as soon as it has something. Received messages are deleted.
async fn receive(sqs: &Client, url: &str, wait_seconds: i32) -> Vec<String> {
    let receive = sqs.receive_message().queue_url(url).max_number_of_messages(10);
    let messages = receive.wait_time_seconds(wait_seconds).send().await.unwrap().messages.unwrap_or_default();
    for message in &messages {
        let receipt = message.receipt_handle.as_deref().unwrap();
        sqs.delete_message().queue_url(url).receipt_handle(receipt).send().await.unwrap();
    }
    messages.into_iter().map(|message| message.body.unwrap()).collect()
}

fn event(body: &str) -> Event {
    serde_json::from_str(body).unwrap()
}

fn terms(count: u64, policy: Option<&str>, queue_url: &str) -> Terms {
    Terms {
        count: Count::new(count).unwrap(),
        policy: policy.map(|id| id.parse().unwrap()),
        target: Target::sqs(queue_url).unwrap(),
        payload: Payload::new("null".to_owned()).unwrap(),
        history: History::All,
        history_days: HistoryDays::DEFAULT,
        max_attempts: None,
        retry: Default::default(),
        relevancy: None,
        flow: Flow::default(),
        unknown: Default::default(),
    }
}

async fn put(runtime: &Runtime, trigger: Trigger, terms: Terms) {
    let client = "acme".parse().unwrap();
    let draft = JobDraft::new(trigger, terms);
    let written = runtime.engine().jobs().replace(&client, "job".parse().unwrap(), draft, None).await;
    assert!(matches!(written.unwrap(), Written::Created(_)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_runtime_stops_at_once() {
    let runtime = Runtime::start(options(Place::Memory, 8)).await.unwrap();
    // Far enough for every loop to stand in its wait.
    tokio::time::sleep(Duration::from_secs(130)).await;
    let stopped = Instant::now();
    runtime.stop().await;
    assert!(stopped.elapsed() < Duration::from_millis(10), "{:?}", stopped.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_fires_as_each_minute_begins() {
    let runtime = Runtime::start(options(Place::Memory, 2)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    let url = queue(&sqs, "inbox").await;
    let trigger =
        Trigger::Cron { spec: CronSpec::parse("* * * * *").unwrap(), zone: parse_zone("UTC").unwrap() };
    put(&runtime, trigger, terms(1, None, &url)).await;
    let mut late_ms = Vec::new();
    while late_ms.len() < 10 {
        for body in receive(&sqs, &url, 20).await {
            let launch_at: DateTime<Utc> = event(&body).launch_at.parse().unwrap();
            assert_eq!(launch_at.timestamp() % 60, 0);
            late_ms.push((runtime.engine().clock().now() - launch_at).num_milliseconds());
        }
    }
    assert!(late_ms.iter().all(|ms| (0..10).contains(ms)), "{late_ms:?}");
    runtime.stop().await;
}

/// Delays of SQS are whole seconds from whenever a message is sent: 0.3 s into one here.
#[tokio::test(start_paused = true)]
async fn a_job_created_within_the_minute_fires_at_its_instant() {
    let runtime = Runtime::start(options(Place::Memory, 2)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    let url = queue(&sqs, "inbox").await;
    let now = runtime.engine().clock().now();
    let launch_at = DateTime::from_timestamp(now.timestamp() + 20, 0).unwrap();
    put(&runtime, Trigger::at(launch_at), terms(1, None, &url)).await;
    let draft = JobDraft::new(Trigger::at(launch_at), terms(1, None, &url));
    runtime.engine().jobs().create(&"acme".parse().unwrap(), None, draft).await.unwrap();
    let mut came = 0;
    while came < 2 {
        came += receive(&sqs, &url, 20).await.len();
        let late_ms = (runtime.engine().clock().now() - launch_at).num_milliseconds();
        assert!((0..10).contains(&late_ms), "{late_ms}");
    }
    runtime.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_taken_back_within_seconds() {
    let runtime = Runtime::start(options(Place::Memory, 2)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    let url = queue(&sqs, "inbox").await;
    let client = "acme".parse().unwrap();
    let policy = PolicyTerms::new(1, 10).unwrap();
    runtime.engine().policies().create(&client, "one".parse().unwrap(), policy).await.unwrap();
    let launch_at = DateTime::from_timestamp(runtime.engine().clock().now().timestamp(), 0).unwrap();
    put(&runtime, Trigger::at(launch_at), terms(2, Some("one"), &url)).await;
    let started = Instant::now();
    let first = event(&receive(&sqs, &url, 20).await[0]);
    // Nobody releases it: the same event comes again under another token, and the next one still waits.
    let again = event(&receive(&sqs, &url, 20).await[0]);
    assert!(started.elapsed() < Duration::from_secs(17), "{:?}", started.elapsed());
    assert_eq!((&again.event_id, again.attempt), (&first.event_id, 2));
    let signed: SignedToken = again.token.unwrap().parse().unwrap();
    let release = Release::new(signed.token, Outcome::Succeeded);
    runtime.engine().tokens().release(&client, vec![release]).await.unwrap();
    assert_eq!(event(&receive(&sqs, &url, 20).await[0]).index, 1);
    runtime.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_process_had_in_hand_does_not_wait_for_its_visibility() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Folder(folder.path().to_owned());
    let runtime = Runtime::start(options(place.clone(), 0)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    let (ours, theirs) = (queue(&sqs, "tidegate-dispatch").await, queue(&sqs, "inbox").await);
    for url in [&ours, &theirs] {
        sqs.send_message().queue_url(url).message_body("in hand").send().await.unwrap();
        assert_eq!(sqs.receive_message().queue_url(url).send().await.unwrap().messages().len(), 1);
    }
    drop(sqs);
    runtime.stop().await;

    let runtime = Runtime::start(options(place, 0)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    assert_eq!(receive(&sqs, &ours, 0).await, ["in hand"]);
    assert!(receive(&sqs, &theirs, 0).await.is_empty(), "a consumer's message is the consumer's");
}

#[tokio::test(start_paused = true)]
async fn a_poison_message_becomes_a_dead_letter_and_stops_no_other() {
    let runtime = Runtime::start(options(Place::Memory, 1)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    let (ours, url) = (queue(&sqs, "tidegate-dispatch").await, queue(&sqs, "inbox").await);
    let dead = queue(&sqs, "tidegate-dispatch-dead-letters").await;
    sqs.send_message().queue_url(&ours).message_body("no message of ours").send().await.unwrap();
    let launch_at = DateTime::from_timestamp(runtime.engine().clock().now().timestamp(), 0).unwrap();
    put(&runtime, Trigger::at(launch_at), terms(1, None, &url)).await;
    assert_eq!(receive(&sqs, &url, 1).await.len(), 1);
    let mut letters = Vec::new();
    while letters.is_empty() {
        letters = receive(&sqs, &dead, 20).await;
    }
    assert_eq!(letters, ["no message of ours"]);
    let waited = (runtime.engine().clock().now() - launch_at).num_seconds();
    assert!(waited < 60, "{waited} s: what will never be handled need not wait");
    runtime.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_in_the_release_queue_frees_tokens_and_one_that_is_none_becomes_a_dead_letter() {
    let runtime = Runtime::start(options(Place::Memory, 2)).await.unwrap();
    let sqs = runtime.embedded().sqs();
    let (url, releases) = (queue(&sqs, "inbox").await, queue(&sqs, "tidegate-release").await);
    let dead = queue(&sqs, "tidegate-release-dead-letters").await;
    let client = "acme".parse().unwrap();
    let policy = PolicyTerms::new(2, 600).unwrap();
    runtime.engine().policies().create(&client, "two".parse().unwrap(), policy).await.unwrap();
    let launch_at = DateTime::from_timestamp(runtime.engine().clock().now().timestamp(), 0).unwrap();
    put(&runtime, Trigger::at(launch_at), terms(4, Some("two"), &url)).await;
    let mut tokens = Vec::new();
    while tokens.len() < 2 {
        tokens.extend(receive(&sqs, &url, 20).await.iter().map(|body| event(body).token.unwrap()));
    }
    let body = serde_json::json!({"client_id": "acme", "tokens": tokens}).to_string();
    for body in ["no release of ours", &*body] {
        sqs.send_message().queue_url(&releases).message_body(body).send().await.unwrap();
    }
    let mut next = Vec::new();
    while next.len() < 2 {
        next.extend(receive(&sqs, &url, 20).await.iter().map(|body| event(body).index));
    }
    next.sort_unstable();
    assert_eq!(next, [2, 3]);
    let mut letters = Vec::new();
    while letters.is_empty() {
        letters = receive(&sqs, &dead, 20).await;
    }
    assert_eq!(letters, ["no release of ours"]);
    runtime.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_folder_belongs_to_one_runtime_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Folder(folder.path().to_owned());
    let runtime = Runtime::start(options(place.clone(), 1)).await.unwrap();
    let error = Runtime::start(options(place.clone(), 1)).await.err().unwrap();
    assert!(matches!(error, StartError::Open(OpenError::InUse(_))), "{error}");
    runtime.stop().await;
    Runtime::start(options(place, 1)).await.unwrap().stop().await;
}
