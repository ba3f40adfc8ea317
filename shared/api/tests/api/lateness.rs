//! How late the events of a client came: counted where they are delivered, by hour.

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_client::Client;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::lateness::{BOUNDS_MS, HOUR, Lateness};
use tidegate_domain::time::milliseconds;
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::{Engine, Handled};
use tidegate_testkit::queue;

use crate::hook::Hook;
use crate::links::repository;
use crate::world::{World, at_job, batch};

const NONE: &str = r#"{"events":0,"p50_ms":null,"p95_ms":null,"p99_ms":null,"max_ms":null}"#;

async fn with_client() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 600})).await;
    (world, key)
}

async fn put(world: &World, key: &str, id: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{id}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

async fn release(world: &World, key: &str, events: &[Value]) {
    let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
    world.post("/v1/tokens/release", key, &json!({ "tokens": tokens })).await;
}

async fn lateness(world: &World, key: &str) -> Value {
    let answer = world.get("/v1/lateness", key).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json
}

/// How many events are counted, throttled and not.
async fn events(world: &World, key: &str) -> (u64, u64) {
    let shown = lateness(world, key).await;
    let of = |kind: &str| shown[kind]["events"].as_u64().unwrap();
    (of("throttled"), of("unthrottled"))
}

fn spread(events: u64, [p50_ms, p95_ms, p99_ms, max_ms]: [u64; 4]) -> Value {
    json!({"events": events, "p50_ms": p50_ms, "p95_ms": p95_ms, "p99_ms": p99_ms, "max_ms": max_ms})
}

/// A job of so many events that nothing throttles.
fn plain(at: &str, count: u32) -> Value {
    let mut job = at_job(at);
    job["count"] = json!(count);
    job
}

fn write_units(world: &World) -> f64 {
    world.embedded.meter().snapshot().write_units()
}

#[tokio::test]
async fn events_are_in_the_hour_in_which_they_came_and_in_the_step_of_how_late_they_were() {
    let (world, key) = with_client().await;
    put(&world, &key, "plain", &plain("2026-11-21T12:10:00Z", 3)).await;
    put(&world, &key, "later", &plain("2026-11-21T12:59:00Z", 1)).await;
    // Two at once, two when the first are released, the last one with the next release.
    put(&world, &key, "throttled", &batch(5)).await;
    let first = world.receive().await;
    world.clock.advance_ms(59_000);
    release(&world, &key, &first).await;
    let second = world.receive().await;
    world.clock.advance_ms(91_000);
    release(&world, &key, &second).await;
    let last = world.receive().await;
    assert_eq!((first.len(), second.len(), last.len()), (2, 2, 1));
    release(&world, &key, &last).await;
    world.clock.advance_ms(330_000);
    world.minutes(1).await;
    // The events of 12:10 wait in the queue for a second and a half longer.
    world.clock.advance_ms(61_500);
    assert_eq!(world.receive().await.len(), 3);
    world.minutes(48).await;
    world.clock.advance_ms(241_000);
    assert_eq!(world.receive().await.len(), 1);
    world.minutes(5).await;
    let throttled = spread(5, [60_000, 300_000, 300_000, 300_000]);
    let noon =
        json!({"hour": "2026-11-21T12:00:00Z", "throttled": throttled, "unthrottled": spread(3, [2_000; 4])});
    let none: Value = serde_json::from_str(NONE).unwrap();
    let one =
        json!({"hour": "2026-11-21T13:00:00Z", "throttled": none, "unthrottled": spread(1, [300_000; 4])});
    let shown = lateness(&world, &key).await;
    assert_eq!(
        shown,
        json!({
            "client_id": "acme", "since": "2026-11-20T13:00:00Z", "until": "2026-11-21T14:00:00Z",
            "throttled": throttled, "unthrottled": spread(4, [2_000, 300_000, 300_000, 300_000]),
            "hours": [noon, one],
        })
    );
    // An hour of it, through the client library; and all of it for the admin, but nothing for another client.
    let acme = Client::new(world.serve().await, &*key).unwrap();
    let hour = acme.own_lateness("2026-11-21T13:20:00Z", "2026-11-21T14:00:00Z").await.unwrap();
    assert_eq!((&*hour.since, &*hour.until), ("2026-11-21T13:00:00Z", "2026-11-21T14:00:00Z"));
    assert_eq!((hour.hours.len(), hour.throttled.events, hour.unthrottled.p50_ms), (1, 0, Some(300_000)));
    let admin = Client::new(world.serve().await, &*world.admin_key).unwrap();
    let of = admin.lateness_of("acme", "2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z").await.unwrap();
    assert_eq!((of.hours.len(), of.throttled.events, of.unthrottled.events), (1, 5, 3));
    let other = world.register("other").await;
    assert_eq!(
        (events(&world, &other).await, lateness(&world, &other).await["hours"].clone()),
        ((0, 0), json!([]))
    );
}

/// How late events come cannot be told.
struct Untellable;

impl FaultPlan for Untellable {
    fn on_request(&self, call: &Call) -> Fault {
        let tells = call.operation == "UpdateItem" && call.resource().ends_with("policies");
        if tells { Fault::DropBefore } else { Fault::None }
    }
}

async fn handle_next(world: &World, engine: &Engine) {
    let (sqs, url) = (&world.deployment.sqs, world.deployment.dispatch_url());
    let messages = queue::receive(sqs, url).await.unwrap();
    let (first, rest) = messages.split_first().unwrap();
    assert_eq!(engine.handle(first.body().unwrap(), 1).await, Handled::Done);
    queue::delete(sqs, url, std::slice::from_ref(first)).await.unwrap();
    // The others are for whoever asks next.
    for message in rest {
        let handle = message.receipt_handle().unwrap();
        let shown = sqs.change_message_visibility().queue_url(url).receipt_handle(handle);
        shown.visibility_timeout(0).send().await.unwrap();
    }
}

#[tokio::test]
async fn what_processes_count_adds_up_and_what_cannot_be_told_is_kept() {
    let (world, key) = with_client().await;
    let start = || world.deployment.process().private_targets().samples().start(world.clock.clone());
    let (one, other) = (start(), start());
    put(&world, &key, "plain", &plain("2026-11-21T12:00:00Z", 300)).await;
    // Of three messages. A second later the hour has begun of which is asked.
    world.clock.advance_ms(1_000);
    handle_next(&world, &one).await;
    assert_eq!(events(&world, &key).await, (0, 100), "the first is told at once");
    handle_next(&world, &other).await;
    assert_eq!(events(&world, &key).await, (0, 200));
    // What comes then waits for five minutes, and for the next time where the tables do not answer.
    handle_next(&world, &one).await;
    world.clock.advance_ms(299_000);
    one.publish().await;
    assert_eq!(events(&world, &key).await, (0, 200));
    world.embedded.inject(Untellable);
    world.clock.advance_ms(1_000);
    one.publish().await;
    world.embedded.inject_nothing();
    one.publish().await;
    assert_eq!(events(&world, &key).await, (0, 200), "it is not tried again with each call");
    world.clock.advance_ms(300_000);
    one.publish().await;
    assert_eq!(events(&world, &key).await, (0, 300));
}

#[tokio::test]
async fn an_event_counts_when_its_target_has_it_for_the_first_time_and_once() {
    let (world, key) = with_client().await;
    let (sqs, url) = (&world.deployment.sqs, world.deployment.dispatch_url());
    // A message that comes twice.
    put(&world, &key, "plain", &plain("2026-11-21T12:00:00Z", 2)).await;
    let messages = queue::receive(sqs, url).await.unwrap();
    let body = messages[0].body().unwrap();
    for received in [1, 2] {
        assert_eq!(world.engine.handle(body, received).await, Handled::Done);
    }
    queue::delete(sqs, url, &messages).await.unwrap();
    // An event whose lease runs out, and one that its target takes at the second time.
    put(&world, &key, "throttled", &batch(1)).await;
    let hook = Hook::answering(&[500, 410]).await;
    put(&world, &key, "retried", &hook.job(1)).await;
    put(&world, &key, "refused", &hook.job(1)).await;
    world.minutes(25).await;
    let deliveries = world.receive().await;
    assert!(deliveries.len() > 2 + 1, "the lease ran out: {deliveries:?}");
    assert_eq!(hook.calls().len(), 3);
    assert_eq!(events(&world, &key).await, (1, 2 + 1), "{}", lateness(&world, &key).await);
    // The one that was refused is redriven: as late as somebody asked for it.
    let letters = world.get("/v1/dead-letters?status=dead", &key).await.json;
    let event = letters["dead_letters"][0]["event_id"].as_str().unwrap().to_owned();
    let redriven = world.post("/v1/dead-letters/redrive", &key, &json!({"event_ids": [event]})).await;
    assert_eq!(redriven.status, StatusCode::OK, "{}", redriven.text);
    world.minutes(10).await;
    assert_eq!(hook.calls().len(), 4);
    assert_eq!(events(&world, &key).await, (1, 2 + 1));
}

/// Write units of some minutes of a client with a launch in each, and of a herd of 3,000 events at one instant; with what is kept
/// beside it, or without.
async fn units(keeps: bool) -> (f64, f64) {
    let (mut world, key) = with_client().await;
    if !keeps {
        world.engine = world.deployment.process().private_targets().start(world.clock.clone());
    }
    let mut minutely = plain("2026-11-21T12:00:00Z", 1);
    minutely["trigger"] = json!({"cron": "* * * * *", "zone": "UTC"});
    put(&world, &key, "minutely", &minutely).await;
    for id in ["herd-1", "herd-2", "herd-3"] {
        put(&world, &key, id, &plain("2026-11-21T13:10:30Z", 1_000)).await;
    }
    let before = write_units(&world);
    world.minutes(60).await;
    let steady = write_units(&world) - before;
    world.minutes(10).await;
    let before = write_units(&world);
    world.clock.advance_ms(30_000);
    world.dispatch().await;
    let herd = write_units(&world) - before;
    if keeps {
        assert!(events(&world, &key).await.1 >= 3_000, "a herd is told though its process ends then");
    }
    (steady, herd)
}

#[tokio::test]
async fn a_client_costs_a_write_unit_for_five_minutes_and_a_herd_one_for_some_hundreds() {
    let ((steady, herd), (plain_steady, plain_herd)) = (units(true).await, units(false).await);
    // And for what is emitted, of which the first waits as well: one in six minutes.
    assert_eq!(steady - plain_steady, 12.0 + 10.0, "{steady} and {plain_steady} write units in an hour");
    assert!((1.0..=3_000.0 / 250.0).contains(&(herd - plain_herd)), "{herd} and {plain_herd} write units");
}

#[tokio::test]
async fn a_day_costs_two_read_units_and_a_week_ten_however_much_came() {
    let (world, key) = with_client().await;
    let acme = "acme".parse().unwrap();
    let mut all = Lateness::default();
    for late_ms in BOUNDS_MS.into_iter().chain([100_000_000]) {
        let late = milliseconds(late_ms as i64);
        all.throttled.count(late, 1_000_000);
        all.unthrottled.count(late, 1_000_000);
    }
    for hour in 0..7 * 24 {
        let at = world.clock.now() + HOUR * hour;
        world.engine.store().add_lateness(&acme, at, &all).await.unwrap();
    }
    world.clock.advance_ms(7 * 24 * 3_600_000);
    // The key and its client are known by then.
    lateness(&world, &key).await;
    for (path, hours, most) in [
        ("/v1/lateness", 24, 2.0),
        ("/v1/lateness?since=2026-11-21T12:00:00Z&until=2026-11-28T12:00:00Z", 7 * 24, 10.5),
    ] {
        let before = world.embedded.meter().snapshot();
        let shown = world.get(path, &key).await.json;
        let units = world.embedded.meter().snapshot().since(&before).read_units();
        assert_eq!(shown["hours"].as_array().unwrap().len(), hours, "{path}");
        assert_eq!(
            (&shown["hours"][0]["throttled"]["events"], &shown["throttled"]["p99_ms"]),
            (&json!(20_000_000), &Value::Null)
        );
        assert!(units <= most, "{path}: {units} read units");
    }
}

#[tokio::test]
async fn what_is_asked_of_nobody_or_of_too_much_is_refused() {
    let (world, key) = with_client().await;
    for (path, key, status, says) in [
        ("/v1/lateness?since=yesterday", &key, StatusCode::BAD_REQUEST, "since"),
        ("/v1/lateness?from=2026-11-01T00:00:00Z", &key, StatusCode::BAD_REQUEST, "from"),
        (
            "/v1/lateness?since=2026-11-01T00:00:00Z&until=2026-11-09T00:00:00Z",
            &key,
            StatusCode::BAD_REQUEST,
            "more than 7 days apart",
        ),
        ("/v1/clients/acme/lateness", &key, StatusCode::UNAUTHORIZED, "admin"),
        ("/v1/clients/nobody/lateness", &world.admin_key, StatusCode::NOT_FOUND, "nobody"),
    ] {
        let refused = world.get(path, key).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text);
        assert!(refused.text.contains(says), "{path}: {}", refused.text);
    }
}

#[test]
fn the_steps_are_those_that_the_documents_say() {
    let steps = |unit_ms: u64, below_ms: u64| {
        let steps = BOUNDS_MS.into_iter().filter(|ms| (unit_ms..below_ms).contains(ms));
        steps.map(|ms| (ms / unit_ms).to_string()).collect::<Vec<_>>().join(", ")
    };
    let told = format!(
        "{} ms, {} s, {} min, {} h",
        steps(1, 1_000),
        steps(1_000, 60_000),
        steps(60_000, 3_600_000),
        steps(3_600_000, u64::MAX)
    );
    for document in ["docs/schedules.md", "docs/openapi.json"] {
        let text = std::fs::read_to_string(repository().join(document))
            .unwrap()
            .replace("\\n", " ")
            .replace('\n', " ");
        assert!(text.contains(&told), "{document} does not say {told}");
    }
}
