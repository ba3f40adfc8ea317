//! The model itself: each limit bites, and what it does to the engine is seen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use chrono::{DateTime, TimeZone as _, Utc};
use http::StatusCode;
use serde_json::{Value, json};
use tidegate_cloud::cloud::{Cloud, Options};
use tidegate_cloud::dynamodb::TableOptions;
use tidegate_cloud::lambda::{Configured, Function, Schedule};
use tidegate_cloud::sqs::QueueOptions;
use tidegate_cloud::weather::Trouble;
use tidegate_domain::flow::Flow;
use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms, Trigger};
use tidegate_domain::target::Target;
use tidegate_embedded::Service;
use tidegate_engine::{JobDraft, Written};

const CLIENT: &str = "acme";

fn began_at() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 24, 12, 0, 20).unwrap()
}

fn options() -> Options {
    Options::new(7, began_at())
}

/// A region that runs, with a client and a queue of its: its key and the queue's URL.
async fn region(options: Options) -> (Cloud, String, String) {
    let mut cloud = Cloud::new(options).await.unwrap();
    let key = cloud.register(CLIENT).await.unwrap();
    let queue = cloud.target("inbox").await.unwrap();
    cloud.start().unwrap();
    (cloud, key, queue)
}

fn job(queue: &str, in_seconds: i64) -> Value {
    let at = began_at() + chrono::Duration::seconds(in_seconds);
    json!({"trigger": {"at": at.to_rfc3339()}, "target": {"sqs": {"queue_url": queue}}})
}

fn terms(queue: &str) -> Terms {
    Terms {
        count: Count::new(1).unwrap(),
        policy: None,
        target: Target::sqs(queue).unwrap(),
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

async fn create(cloud: &Cloud, key: &str, job: &Value) {
    let (status, answer) = cloud.caller().call("POST", "/v1/jobs", key, job).await.unwrap();
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_invocation_is_stopped_wherever_it_is_and_its_message_comes_again() {
    let mut options = options();
    let handler = Configured { timeout: Duration::from_secs(1), ..Function::Handler.as_deployed() };
    options.configured.insert(Function::Handler, handler);
    let (cloud, key, queue) = region(options).await;
    create(&cloud, &key, &job(&queue, 130)).await;
    let due_at = began_at() + chrono::Duration::seconds(130);
    let slow = Trouble::Slow(Duration::from_millis(900));
    cloud.weather.trouble(Service::DynamoDb, slow, due_at, due_at + chrono::Duration::seconds(60));
    let stopped = |cloud: &Cloud| cloud.invoked(Function::Handler).timed_out > 0;
    assert!(cloud.until(Duration::from_secs(300), stopped).await.is_some());
    let came = |cloud: &Cloud| cloud.arrivals.count_of(CLIENT) == 1;
    assert!(cloud.until(Duration::from_secs(900), came).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_is_killed_at_any_request_loses_nothing() {
    for requests in 0..6 {
        let (cloud, key, queue) = region(options()).await;
        create(&cloud, &key, &job(&queue, 130)).await;
        cloud.until_instant(began_at() + chrono::Duration::seconds(125)).await;
        cloud.kill_after(Function::Handler, requests);
        let took = cloud.until(Duration::from_secs(900), |cloud| cloud.arrivals.count_of(CLIENT) == 1).await;
        assert!(took.is_some(), "killed after {requests} requests");
        assert!(cloud.dead_letters().await.unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_runs_only_so_many_at_once() {
    let (cloud, key, _) = region(Options { concurrency: 2, ..options() }).await;
    let caller = cloud.caller();
    let health = || caller.call("GET", "/v1/jobs", &key, &Value::Null);
    let (a, b, c) = tokio::join!(health(), health(), health());
    let mut statuses = [a, b, c].map(|answer| answer.unwrap().0);
    statuses.sort();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]);
    assert_eq!(cloud.invoked(Function::Master).throttled, 1);
}

#[tokio::test(start_paused = true)]
async fn ticks_may_come_at_any_phase_twice_or_not_for_an_hour() {
    let hour = chrono::Duration::hours(1);
    let from = began_at() + chrono::Duration::minutes(5);
    for schedule in [
        Schedule { phase: Duration::from_secs(59), ..Schedule::default() },
        Schedule { twice: true, ..Schedule::default() },
        Schedule { silent: Some((from, from + hour)), ..Schedule::default() },
    ] {
        let (cloud, key, queue) = region(Options { schedule, ..options() }).await;
        let cron = json!({"trigger": {"cron": "* * * * *"}, "target": {"sqs": {"queue_url": queue}}});
        create(&cloud, &key, &cron).await;
        cloud.until_instant(began_at() + hour + chrono::Duration::minutes(10)).await;
        let arrivals = cloud.arrivals.of(CLIENT);
        assert!((66..=70).contains(&arrivals.len()), "{schedule:?}: {}", arrivals.len());
        assert!(arrivals.iter().all(|arrival| arrival.times == 1 && arrival.late_ms() >= 0), "{schedule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_may_lag() {
    let tables = TableOptions { lags: true, ..TableOptions::default() };
    let (cloud, key, queue) = region(Options { tables, ..options() }).await;
    for number in 0..5 {
        create(&cloud, &key, &job(&queue, 100 + number * 20)).await;
    }
    let took = cloud.until(Duration::from_secs(400), |cloud| cloud.arrivals.count_of(CLIENT) == 5).await;
    assert!(took.is_some());
    assert!(cloud.arrivals.of(CLIENT).iter().all(|arrival| arrival.times == 1));
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_find_what_was_set_up_past_the_model() {
    let tables = TableOptions { lags: true, ..TableOptions::default() };
    let (cloud, _, queue) = region(Options { tables, ..options() }).await;
    // So far away that a tick finds it.
    let draft = JobDraft::new(Trigger::at(began_at() + chrono::Duration::seconds(700)), terms(&queue));
    cloud.engine().jobs().create(&CLIENT.parse().unwrap(), None, draft).await.unwrap();
    let came = |cloud: &Cloud| cloud.arrivals.count_of(CLIENT) == 1;
    assert!(cloud.until(Duration::from_secs(900), came).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_finds_no_room_comes_again_within_its_minute() {
    let (cloud, key, _) = region(Options { concurrency: 1, ..options() }).await;
    // A call is under way as the minute begins.
    let slow = Trouble::Slow(Duration::from_millis(2_500));
    let (from, tick_at) = (cloud.now(), began_at() + chrono::Duration::seconds(40));
    cloud.weather.trouble(Service::DynamoDb, slow, from, tick_at + chrono::Duration::seconds(1));
    cloud.until_instant(tick_at - chrono::Duration::seconds(1)).await;
    let caller = cloud.caller();
    let call = caller.call("GET", "/v1/jobs", &key, &Value::Null);
    let tick = cloud.until(Duration::from_secs(60), |cloud| cloud.invoked(Function::Emitter).begun > 0);
    let (answer, tick) = tokio::join!(call, tick);
    assert_eq!(answer.unwrap().0, StatusCode::OK);
    assert!(cloud.invoked(Function::Emitter).throttled > 0, "the tick found room");
    assert!(tick.is_some(), "no tick came within its minute");
}

/// Tables that take less than what comes.
#[tokio::test(start_paused = true)]
async fn what_a_batch_leaves_out_is_asked_for_again() {
    const JOBS: usize = 500;
    let tables = TableOptions { warm: Some((30.0, 90.0)), ..TableOptions::default() };
    let (cloud, _, queue) = region(Options { tables, ..options() }).await;
    let (engine, client) = (cloud.engine(), CLIENT.parse().unwrap());
    // Every second payload lies in its job.
    let drafts = (0..JOBS).map(|number| {
        let payload = serde_json::to_string(&"x".repeat(if number % 2 == 0 { 10 } else { 600 })).unwrap();
        let terms = Terms { payload: Payload::new(payload).unwrap(), ..terms(&queue) };
        (None, JobDraft::new(Trigger::at(began_at() + chrono::Duration::seconds(400)), terms))
    });
    let mut jobs = Vec::new();
    for written in engine.jobs().create_all(&client, drafts.collect()).await {
        let Written::Created(job) = written.unwrap() else { panic!("a job was not created") };
        jobs.push(job.id);
    }
    let came = |cloud: &Cloud| cloud.arrivals.count_of(CLIENT) == JOBS;
    assert!(cloud.until(Duration::from_secs(3_600), came).await.is_some());
    cloud.until_instant(cloud.now() + chrono::Duration::minutes(60)).await;
    let (writes, _) = cloud.left_out();
    assert!(writes > 0 && cloud.refused().0 > 0, "nothing was refused: {:?}", cloud.left_out());
    assert!(cloud.arrivals.of(CLIENT).iter().all(|arrival| arrival.times == 1));
    let mut not_recorded = Vec::new();
    for job in &jobs {
        let runs = engine.queries().runs(&client, job, None).await.unwrap().rows;
        let delivered: Vec<u32> = runs.iter().map(|run| run.tally.delivered).collect();
        if delivered != [1] {
            not_recorded.push((job.to_string(), delivered));
        }
    }
    assert!(not_recorded.is_empty(), "{} of {JOBS}: {:?}", not_recorded.len(), not_recorded.first());
    assert!(cloud.dead_letters().await.unwrap().is_empty());
}

/// Read units that the table of the index gives for a one-time job with a generated id and a payload of so many bytes, once it is
/// stored.
async fn read_of_index(payload_bytes: usize) -> f64 {
    let (cloud, key, queue) = region(options()).await;
    let mut job = job(&queue, 400);
    job["payload"] = json!("x".repeat(payload_bytes));
    create(&cloud, &key, &job).await;
    let before = cloud.usage();
    cloud.until_instant(began_at() + chrono::Duration::seconds(450)).await;
    assert_eq!(cloud.arrivals.count_of(CLIENT), 1);
    cloud
        .usage()
        .since(&before)
        .capacity
        .iter()
        .filter(|(name, _)| name.contains("launch"))
        .map(|(_, units)| units.read)
        .sum()
}

/// Decision 0037 says it.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_whole_in_its_row_is_not_read_again_for_a_large_payload() {
    let (small, large) = (read_of_index(300).await, read_of_index(1_000).await);
    assert!((large - small).abs() < 0.1, "{small} and {large} read units");
}

#[tokio::test(start_paused = true)]
async fn messages_may_come_twice() {
    let queues = QueueOptions { doubled: 1_000_000, ..QueueOptions::default() };
    let (cloud, key, queue) = region(Options { queues, ..options() }).await;
    create(&cloud, &key, &job(&queue, 130)).await;
    cloud.until_instant(began_at() + chrono::Duration::seconds(300)).await;
    let arrivals = cloud.arrivals.of(CLIENT);
    assert!(arrivals.len() == 1 && arrivals[0].times >= 2, "{arrivals:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_may_be_overtaken() {
    for (overtaken, least_ms) in [(0, 0), (1_000_000, 2_000)] {
        let queues = QueueOptions { overtaken, ..QueueOptions::default() };
        let (cloud, key, queue) = region(Options { queues, ..options() }).await;
        create(&cloud, &key, &job(&queue, 1)).await;
        let came = |cloud: &Cloud| cloud.arrivals.count_of(CLIENT) == 1;
        assert!(cloud.until(Duration::from_secs(300), came).await.is_some());
        let late_ms = cloud.arrivals.of(CLIENT)[0].late_ms();
        assert!(late_ms >= least_ms && (least_ms > 0 || late_ms < 2_000), "{overtaken}: {late_ms}");
    }
}

/// How many of the messages of a client are received before the one of another, which was sent after them.
async fn received_before(unfair: u32) -> usize {
    let queues = QueueOptions { unfair, ..QueueOptions::default() };
    let cloud = Cloud::new(Options { queues, ..options() }).await.unwrap();
    let (sqs, queue) = (cloud.queues().unwrap(), cloud.target("shared").await.unwrap());
    for (group, text) in [("many", "many"); 30].into_iter().chain([("one", "one")]) {
        let send = sqs.send_message().queue_url(&queue).message_body(text).message_group_id(group);
        send.send().await.unwrap();
    }
    let texts = cloud.take_from(&queue).await.unwrap();
    texts.iter().position(|text| text == "one").unwrap()
}

#[tokio::test(start_paused = true)]
async fn queues_may_not_be_fair_at_once() {
    assert!(received_before(0).await < 10);
    assert_eq!(received_before(1_000_000).await, 30);
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_may_come_again_and_is_not_delivered_again() {
    let queues = QueueOptions { undeleted: 1_000_000, ..QueueOptions::default() };
    let (cloud, key, queue) = region(Options { queues, ..options() }).await;
    create(&cloud, &key, &job(&queue, 130)).await;
    cloud.until_instant(began_at() + chrono::Duration::seconds(130 + 600)).await;
    assert!(cloud.invoked(Function::Handler).begun >= 3, "{:?}", cloud.invoked(Function::Handler));
    let arrivals = cloud.arrivals.of(CLIENT);
    assert!(arrivals.len() == 1 && arrivals[0].times == 1, "{arrivals:?}");
}

/// How long a call takes that releases all tokens of a policy, while DynamoDB is slow; and how many are in flight afterwards.
async fn released(tokens: usize) -> (Duration, Value) {
    let (cloud, key, queue) = region(options()).await;
    let policy = json!({"max_in_flight": tokens, "lease_seconds": 600});
    let mut batch = job(&queue, 1);
    (batch["policy_id"], batch["count"]) = (json!("wide"), json!(tokens));
    for (path, body) in [("/v1/policies/wide", &policy), ("/v1/jobs/batch", &batch)] {
        let (status, answer) = cloud.caller().call("PUT", path, &key, body).await.unwrap();
        assert!(status.is_success(), "{answer}");
    }
    cloud.until_instant(began_at() + chrono::Duration::seconds(90)).await;
    let events = cloud.take_from(&queue).await.unwrap();
    let token = |text: &String| serde_json::from_str::<Value>(text).unwrap()["token"].clone();
    let all: Vec<Value> = events.iter().map(token).collect();
    assert_eq!(all.len(), tokens);
    // So that no environment is new to it.
    cloud.caller().call("POST", "/v1/tokens/extend", &key, &json!({"tokens": all})).await.unwrap();
    let slow = Trouble::Slow(Duration::from_millis(500));
    let from = cloud.now();
    cloud.weather.trouble(Service::DynamoDb, slow, from, from + chrono::Duration::minutes(1));
    let release = json!({"tokens": all});
    let (status, answer) = cloud.caller().call("POST", "/v1/tokens/release", &key, &release).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{answer}");
    let took = (cloud.now() - from).to_std().unwrap();
    let (_, load) = cloud.caller().call("GET", "/v1/policies/wide", &key, &Value::Null).await.unwrap();
    (took, load["in_flight"].clone())
}

#[tokio::test(start_paused = true)]
async fn tokens_of_several_groups_are_released_side_by_side() {
    let ((one, left), (four, left_of_four)) = (released(12).await, released(48).await);
    assert_eq!((left, left_of_four), (json!(0), json!(0)));
    assert!(four < one.mul_f64(1.5), "{four:?} for four groups, {one:?} for one");
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_finds_nothing_slowly_leaves_the_rest_to_workers() {
    let (cloud, key, queue) = region(options()).await;
    // Zones that the index knows, and that nothing is left in.
    let zones = chrono_tz::TZ_VARIANTS.iter().filter(|zone| zone.name().contains("America/")).take(60);
    for (number, zone) in zones.enumerate() {
        let path = format!("/v1/jobs/zone-{number}");
        let trigger = json!({"cron": "* * * * *", "zone": zone.name()});
        let job = json!({"trigger": trigger, "target": {"sqs": {"queue_url": queue}}});
        for (method, body) in [("PUT", &job), ("DELETE", &Value::Null)] {
            let (status, answer) = cloud.caller().call(method, &path, &key, body).await.unwrap();
            assert!(status.is_success(), "{answer}");
        }
    }
    let from = cloud.now();
    let slow = Trouble::Slow(Duration::from_millis(2_900));
    cloud.weather.trouble(Service::DynamoDb, slow, from, from + chrono::Duration::minutes(8));
    cloud.until_instant(from + chrono::Duration::minutes(8)).await;
    let emitter = cloud.invoked(Function::Emitter);
    assert!(emitter.begun >= 6 && emitter.timed_out == 0, "{emitter:?}");
}

#[tokio::test(start_paused = true)]
async fn what_throttles_for_a_while_loses_nothing() {
    let (cloud, key, queue) = region(options()).await;
    create(&cloud, &key, &job(&queue, 130)).await;
    let from = began_at() + chrono::Duration::seconds(20);
    for service in [Service::DynamoDb, Service::Sqs] {
        cloud.weather.trouble(service, Trouble::Throttled, from, from + chrono::Duration::minutes(5));
    }
    cloud.until_instant(from + chrono::Duration::minutes(5)).await;
    assert_eq!(cloud.arrivals.count_of(CLIENT), 0);
    let came = |cloud: &Cloud| cloud.arrivals.count_of(CLIENT) == 1;
    assert!(cloud.until(Duration::from_secs(600), came).await.is_some());
}

/// What only a watched job has functions do, their roles allow.
#[tokio::test(start_paused = true)]
async fn launches_that_should_be_over_are_looked_at() {
    let (cloud, key, queue) = region(options()).await;
    let put = async |path: &str, body: Value| {
        let (status, answer) = cloud.caller().call("PUT", path, &key, &body).await.unwrap();
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    };
    put("/v1/policies/small", json!({"max_in_flight": 2, "lease_seconds": 3600})).await;
    let mut watched = json!({
        "trigger": {"cron": "* * * * *"}, "target": {"sqs": {"queue_url": queue}}, "expect": {"within_seconds": 60},
    });
    put("/v1/jobs/in-time", watched.clone()).await;
    watched["policy_id"] = json!("small");
    put("/v1/jobs/never-released", watched).await;
    cloud.until_instant(began_at() + chrono::Duration::minutes(10)).await;
    let (_, listed) = cloud.caller().call("GET", "/v1/overdue", &key, &Value::Null).await.unwrap();
    let launches = listed["launches"].as_array().unwrap();
    assert!(launches.len() >= 5, "{listed}");
    assert!(launches.iter().all(|launch| launch["job_id"] == "never-released"), "{listed}");
    assert_eq!(cloud.not_allowed(), std::collections::BTreeSet::new());
    assert!(cloud.dead_letters().await.unwrap().is_empty());
}
