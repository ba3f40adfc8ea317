//! The bus of a deployment: what runs and events came to is published, under ids that repeats have too; a bus that is away costs
//! nothing but records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::Handled;
use tidegate_protocol::{BusKind, BusRecord, BusState};
use tokio::net::TcpListener;

use crate::log::Lines;
use crate::world::{DiesAt, QUEUE, QueueAway, World, at_job, batch};

const SCHEMA: &str = include_str!("../../../../docs/schemas/bus.json");

fn bus_queue() -> String {
    QUEUE.replace("jobs", "done")
}

/// A world that publishes to a queue, its client's key, and a policy of two tokens.
async fn with_queue() -> (World, String) {
    let world = World::with_bus(&format!("sqs:{}", bus_queue())).await;
    let key = with_policy(&world).await;
    (world, key)
}

async fn with_policy(world: &World) -> String {
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 60})).await;
    key
}

async fn put(world: &World, key: &str, id: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{id}"), key, job).await;
    assert!(made.status.is_success(), "{}", made.text);
}

fn records_in(text: &str) -> Vec<BusRecord> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What was published to the queue since it was asked last.
async fn published(world: &World) -> Vec<BusRecord> {
    world.take_all(&bus_queue()).await.iter().flat_map(|body| records_in(body)).collect()
}

/// The ids, without what all of them begin with, in their order.
fn ids(records: &[BusRecord]) -> Vec<&str> {
    let mut ids: Vec<&str> =
        records.iter().map(|record| record.id.strip_prefix("acme/").unwrap_or(&record.id)).collect();
    ids.sort_unstable();
    ids
}

fn record<'r>(records: &'r [BusRecord], end_of_id: &str) -> &'r BusRecord {
    records.iter().find(|record| record.id.ends_with(end_of_id)).unwrap_or_else(|| panic!("no {end_of_id}"))
}

async fn release(world: &World, key: &str, event: &Value, outcome: &str) {
    let body = json!({"tokens": [{"token": event["token"], "outcome": outcome}]});
    let released = world.post("/v1/tokens/release", key, &body).await;
    assert_eq!(released.status, StatusCode::OK, "{}", released.text);
}

#[tokio::test]
async fn a_batch_is_told_of_from_its_launch_to_its_end() {
    let (world, key) = with_queue().await;
    put(&world, &key, "mails", &batch(3)).await;
    let first = world.receive().await;
    assert_eq!(first.len(), 2);
    let run = "mails.1.1795262400";
    let records = published(&world).await;
    let launched = format!("{run}/launched");
    assert_eq!(
        ids(&records),
        [&*format!("{run}/0/delivered/1"), &*format!("{run}/1/delivered/1"), &*launched]
    );
    let of_run = record(&records, "/launched");
    assert_eq!((of_run.kind, of_run.state, of_run.count), (BusKind::Run, BusState::Launched, Some(3)));
    let delivered = record(&records, "/1/delivered/1");
    assert_eq!((delivered.kind, delivered.index, delivered.attempt), (BusKind::Event, Some(1), Some(1)));
    assert_eq!((&*delivered.job_id, delivered.policy_id.as_deref()), ("mails", Some("small")));
    assert_eq!((&*delivered.at, delivered.late_ms), ("2026-11-21T12:00:00.000Z", 0));
    release(&world, &key, &first[0], "succeeded").await;
    release(&world, &key, &first[1], "failed").await;
    let last = world.receive().await;
    release(&world, &key, &last[0], "succeeded").await;
    world.minutes(1).await;
    let records = published(&world).await;
    let expected = ["0/succeeded/1", "1/failed/1", "2/delivered/1", "2/succeeded/1", "finished"];
    let expected: BTreeSet<String> = expected.iter().map(|end| format!("{run}/{end}")).collect();
    assert_eq!(ids(&records).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    let finished = record(&records, "/finished");
    assert_eq!((finished.count, finished.succeeded, finished.failed), (Some(3), Some(2), Some(1)));
    assert_eq!((finished.expired, finished.dead, finished.left_out), (Some(0), Some(0), Some(0)));
    assert_eq!(finished.reason, None);
}

#[tokio::test]
async fn single_events_of_a_policy_are_named_by_their_own_runs() {
    let (world, key) = with_queue().await;
    for name in ["one", "two"] {
        put(&world, &key, name, &batch(1)).await;
    }
    for event in world.receive().await {
        release(&world, &key, &event, "succeeded").await;
    }
    world.minutes(1).await;
    let records = published(&world).await;
    for name in ["one", "two"] {
        for end in ["delivered", "succeeded"] {
            record(&records, &format!("acme/{name}.1.1795262400/0/{end}/1"));
        }
    }
}

#[tokio::test]
async fn an_event_that_is_never_released_has_expired_after_its_last_delivery() {
    let (world, key) = with_queue().await;
    let mut job = batch(1);
    job["max_attempts"] = json!(2);
    put(&world, &key, "silent", &job).await;
    world.minutes(6).await;
    let records = published(&world).await;
    for end in ["delivered/1", "delivered/2", "expired/2"] {
        record(&records, &format!("/0/{end}"));
    }
}

#[tokio::test]
async fn what_its_target_does_not_take_is_dead_with_the_reason() {
    let (world, key) = with_queue().await;
    world.embedded.inject(QueueAway);
    for throttled in [false, true] {
        let mut job = if throttled { batch(1) } else { at_job("2026-11-21T12:00:00Z") };
        job["max_attempts"] = json!(1);
        put(&world, &key, if throttled { "throttled" } else { "plain" }, &job).await;
    }
    world.minutes(2).await;
    let records = published(&world).await;
    for job in ["plain", "throttled"] {
        let dead = record(&records, &format!("{job}.1.1795262400/0/dead/1"));
        assert!(dead.reason.is_some(), "{dead:?}");
        assert_eq!(dead.policy_id.is_some(), job == "throttled");
    }
    assert!(records.iter().all(|record| record.state != BusState::Delivered), "{records:?}");
}

#[tokio::test]
async fn what_is_skipped_stopped_or_overdue_is_told_with_its_reason() {
    let (world, key) = with_queue().await;
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["trigger"] = json!({"cron": "*/5 * * * *", "zone": "UTC"});
    put(&world, &key, "paused", &job).await;
    let paused = world.post("/v1/jobs/paused/pause", &key, &json!({})).await;
    assert_eq!(paused.status, StatusCode::OK, "{}", paused.text);
    let mut slow = batch(5);
    slow["trigger"] = json!({"at": "2026-11-21T12:02:00Z"});
    slow["expect"] = json!({"within_seconds": 60});
    put(&world, &key, "slow", &slow).await;
    world.minutes(6).await;
    let run = "slow.1.1795262520";
    let cancelled = world.post(&format!("/v1/jobs/slow/runs/{run}/cancel"), &key, &json!({})).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.text);
    let records = published(&world).await;
    let skipped = record(&records, ".1795262700/skipped");
    assert_eq!((&*skipped.job_id, skipped.reason.as_deref()), ("paused", Some("paused")));
    assert_eq!((skipped.launches, skipped.until.as_deref()), (Some(1), Some("2026-11-21T12:05:00Z")));
    assert_eq!(record(&records, &format!("{run}/overdue")).reason.as_deref(), Some("running"));
    assert_eq!(record(&records, &format!("{run}/stopped")).reason.as_deref(), Some("cancelled"));
}

/// The records are there before the chunk's mark: whoever dies anywhere leaves them, or a message that comes again.
#[tokio::test]
async fn a_delivery_that_dies_anywhere_is_told_of_under_the_same_ids() {
    for at in 0.. {
        let (world, key) = with_queue().await;
        let mut job = at_job("2026-11-21T12:00:00Z");
        job["count"] = json!(3);
        put(&world, &key, "plain", &job).await;
        let messages = world.take_all(world.deployment.dispatch_url()).await;
        assert_eq!(messages.len(), 1);
        published(&world).await;
        world.embedded.inject(DiesAt::after(at));
        let handled = world.engine.handle_all(&[(&messages[0], 1)]).await;
        world.embedded.inject_nothing();
        world.engine.handle_all(&[(&messages[0], 2)]).await;
        world.minutes(2).await;
        let mut counts = BTreeMap::<String, usize>::new();
        for record in published(&world).await {
            *counts.entry(record.id).or_default() += 1;
        }
        let of = |index| format!("acme/plain.1.1795262400/{index}/delivered/1");
        let expected: Vec<String> = (0..3).map(of).collect();
        assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), expected, "died at {at}");
        if handled == [Handled::Done] && at > 2 {
            assert!(counts.values().all(|count| *count == 1), "nothing went wrong: {counts:?}");
            return;
        }
    }
}

#[tokio::test]
async fn a_release_that_dies_anywhere_is_told_of_in_the_end() {
    for at in 0.. {
        let (world, key) = with_queue().await;
        put(&world, &key, "mails", &batch(2)).await;
        let events = world.receive().await;
        release(&world, &key, &events[0], "failed").await;
        world.embedded.inject(DiesAt::after(at));
        let body = json!({"tokens": [events[1]["token"]]});
        let released = world.post("/v1/tokens/release", &key, &body).await;
        world.embedded.inject_nothing();
        world.post("/v1/tokens/release", &key, &body).await;
        world.minutes(3).await;
        let records = published(&world).await;
        for end in ["0/failed/1", "1/succeeded/1", "finished"] {
            record(&records, &format!("mails.1.1795262400/{end}"));
        }
        if released.status == StatusCode::OK && at > 3 {
            return;
        }
    }
}

/// Counts the calls of the bus, which fail.
struct BusAway(Arc<AtomicU64>);

impl FaultPlan for BusAway {
    fn on_request(&self, call: &Call) -> Fault {
        if !call.resource().ends_with("done") {
            return Fault::None;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Fault::DropBefore
    }
}

#[tokio::test]
async fn a_bus_that_is_away_costs_records_which_are_counted_and_nothing_else() {
    let (world, key) = with_queue().await;
    let calls = Arc::new(AtomicU64::new(0));
    world.embedded.inject(BusAway(Arc::clone(&calls)));
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
    let logging = tracing::subscriber::set_default(subscriber);
    for name in ["one", "two", "three"] {
        put(&world, &key, name, &at_job("2026-11-21T12:00:00Z")).await;
        assert_eq!(world.receive().await.len(), 1, "{name}");
    }
    drop(logging);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "it is left alone for a while");
    let log = lines.text();
    let dropped = log.lines().filter(|line| line.contains("bus_dropped=1"));
    assert_eq!(dropped.count(), 3, "{log}");
    world.embedded.inject_nothing();
    // Half a minute later it is asked again.
    world.clock.advance_ms(30_000);
    put(&world, &key, "four", &at_job("2026-11-21T12:00:30Z")).await;
    assert_eq!(world.receive().await.len(), 1);
    let records = published(&world).await;
    assert_eq!(ids(&records), ["four.1.1795262430/0/delivered/1"], "what was dropped stays so");
}

type Calls = Arc<Mutex<Vec<(String, String)>>>;

async fn heard(State(calls): State<Calls>, head: HeaderMap, body: String) -> StatusCode {
    let kind = head.get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
    calls.lock().unwrap().push((kind, body));
    StatusCode::ACCEPTED
}

#[tokio::test]
async fn an_endpoint_gets_lines_of_json_in_one_call_for_a_batch() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let calls = Calls::default();
    let routes = Router::new().route("/books", post(heard)).with_state(Arc::clone(&calls));
    tokio::spawn(axum::serve(listener, routes).into_future());
    let world = World::with_bus(&format!("http://{address}/books?key=hidden")).await;
    let key = with_policy(&world).await;
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["count"] = json!(100);
    put(&world, &key, "plain", &job).await;
    world.dispatch().await;
    let calls = calls.lock().unwrap();
    let told: Vec<(&str, usize)> =
        calls.iter().map(|(kind, body)| (&**kind, records_in(body).len())).collect();
    assert_eq!(told, [("application/x-ndjson", 1), ("application/x-ndjson", 100)]);
}

/// A record with all that one may have.
fn whole_record() -> BusRecord {
    BusRecord {
        bus: "tidegate".to_owned(),
        id: String::new(),
        kind: BusKind::Event,
        state: BusState::Dead,
        client_id: String::new(),
        job_id: String::new(),
        run_id: String::new(),
        index: Some(0),
        attempt: Some(1),
        policy_id: Some(String::new()),
        reason: Some(String::new()),
        launch_at: String::new(),
        at: String::new(),
        late_ms: 0,
        count: Some(1),
        launches: Some(1),
        until: Some(String::new()),
        succeeded: Some(0),
        failed: Some(0),
        expired: Some(0),
        dead: Some(0),
        left_out: Some(0),
    }
}

#[test]
fn the_schema_and_the_guide_have_each_member_and_each_state() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let guide = include_str!("../../../../docs/operations.md");
    let of_record = serde_json::to_value(whole_record()).unwrap();
    let members: BTreeSet<&String> = of_record.as_object().unwrap().keys().collect();
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<BTreeSet<_>>(), members);
    let bare = BusRecord {
        index: None,
        attempt: None,
        policy_id: None,
        reason: None,
        count: None,
        launches: None,
        until: None,
        succeeded: None,
        failed: None,
        expired: None,
        dead: None,
        left_out: None,
        ..whole_record()
    };
    let bare = serde_json::to_value(bare).unwrap();
    let required: BTreeSet<&str> =
        schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(required, bare.as_object().unwrap().keys().map(String::as_str).collect());
    for word in schema["properties"]["state"]["enum"].as_array().unwrap() {
        assert_ne!(serde_json::from_value::<BusState>(word.clone()).unwrap(), BusState::Other, "{word}");
        assert!(guide.contains(&format!("| `{}` |", word.as_str().unwrap())), "{word}");
    }
    for member in members {
        assert!(guide.contains(&format!("`{member}`")), "{member}");
    }
}
