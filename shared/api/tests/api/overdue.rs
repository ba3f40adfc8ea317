//! Launches that are expected to be over in time: those that are not are recorded and told, and no others.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::Client;
use tidegate_protocol::{LaunchOverdue, OverdueLaunch};

use crate::world::{DiesAt, QUEUE, QueueAway, World, at_job};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn alerts() -> String {
    QUEUE.replace("jobs", "done")
}

/// A world whose client is told of overdue launches by a queue, and has a policy of two tokens.
async fn with_alerts() -> (World, String) {
    let world = World::new().await;
    let client = json!({"client_id": "acme", "alerts": {"sqs": {"queue_url": alerts()}}});
    let made = world.post("/v1/clients", &world.admin_key, &client).await;
    assert_eq!(made.json["alerts"], client["alerts"], "{}", made.text);
    let key = made.json["api_key"].as_str().unwrap().to_owned();
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 3600})).await;
    (world, key)
}

/// A job of one launch, at 12:10, that should be over two minutes later.
fn expecting(count: u32, throttled: bool) -> Value {
    let mut job = at_job("2026-11-21T12:10:00Z");
    job["count"] = json!(count);
    job["expect"] = json!({"within_seconds": 120});
    if throttled {
        job["policy_id"] = json!("small");
    }
    job
}

async fn put(world: &World, key: &str, id: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{id}"), key, job).await;
    assert!(made.status.is_success(), "{}", made.text);
    assert_eq!(made.json["expect"], job["expect"], "{}", made.text);
}

async fn overdue(world: &World, key: &str) -> Vec<OverdueLaunch> {
    let listed = world.get("/v1/overdue", key).await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text);
    serde_json::from_value(listed.json["launches"].clone()).unwrap()
}

/// What the client was told since it was asked last.
async fn told(world: &World) -> Vec<LaunchOverdue> {
    let bodies = world.take_all(&alerts()).await;
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

fn words(launches: &[OverdueLaunch]) -> Vec<(&str, Value, Option<&str>)> {
    let word = |launch| serde_json::to_value(launch).unwrap()["state"].clone();
    launches.iter().map(|launch| (&*launch.run_id, word(launch), launch.reason.as_deref())).collect()
}

async fn release_all(world: &World, key: &str) {
    loop {
        let events = world.receive().await;
        let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
        if tokens.is_empty() {
            return;
        }
        world.post("/v1/tokens/release", key, &json!({ "tokens": tokens })).await;
    }
}

#[tokio::test]
async fn a_run_that_does_not_end_in_time_is_recorded_and_told_once() {
    let (world, key) = with_alerts().await;
    put(&world, &key, "slow", &expecting(3, true)).await;
    world.minutes(11).await;
    assert_eq!((overdue(&world, &key).await, told(&world).await), (vec![], vec![]), "it has a minute still");
    world.minutes(1).await;
    let run = "slow.1.1795263000";
    let listed = overdue(&world, &key).await;
    assert_eq!(words(&listed), [(run, json!("running"), None)]);
    assert_eq!((listed[0].job_id.as_str(), listed[0].launch_at.as_str()), ("slow", "2026-11-21T12:10:00Z"));
    assert_eq!((listed[0].within_seconds, listed[0].seen_at.as_str()), (120, "2026-11-21T12:12:00Z"));
    assert_eq!(
        (listed[0].told_at.as_deref(), &listed[0].told_failure),
        (Some("2026-11-21T12:12:00Z"), &None)
    );
    let messages = told(&world).await;
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].id.as_str(), messages[0].run_id.as_str()), ("slow.1.1795263000.overdue", run));
    assert_eq!((messages[0].client_id.as_str(), messages[0].state.as_str()), ("acme", "running"));
    let library = Client::new(world.serve().await, &*key).unwrap();
    let page = library.overdue("2026-11-21T12:10:00Z", "2026-11-21T12:10:01Z", None).await.unwrap();
    assert_eq!((page.rows, page.next_cursor), (listed.clone(), None));
    // It ends, and what was seen stays.
    release_all(&world, &key).await;
    world.minutes(5).await;
    assert_eq!((overdue(&world, &key).await, told(&world).await), (listed, vec![]));
}

#[tokio::test]
async fn what_is_over_in_time_is_not_overdue() {
    let (world, key) = with_alerts().await;
    put(&world, &key, "single", &expecting(1, true)).await;
    put(&world, &key, "batch", &expecting(3, true)).await;
    put(&world, &key, "plain", &expecting(1, false)).await;
    put(&world, &key, "plain-batch", &expecting(3, false)).await;
    let mut minutely = expecting(1, true);
    minutely["trigger"] = json!({"cron": "* * * * *", "zone": "UTC"});
    put(&world, &key, "minutely", &minutely).await;
    for _ in 0..20 {
        world.minutes(1).await;
        let events = world.receive().await;
        let tokens: Vec<&Value> =
            events.iter().map(|event| &event["token"]).filter(|token| token.is_string()).collect();
        if !tokens.is_empty() {
            world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        }
        release_all(&world, &key).await;
    }
    assert_eq!(overdue(&world, &key).await, []);
    // Nothing is left of those that launch no more.
    let watches: Vec<_> = world.everything().await.into_iter().filter(|row| row.contains("WATCH|")).collect();
    assert_eq!(watches.len(), 1, "{watches:?}");
}

#[tokio::test]
async fn each_launch_is_looked_at_and_what_its_client_asked_for_is_no_surprise() {
    let (world, key) = with_alerts().await;
    // After the launch at noon.
    world.minutes(1).await;
    let mut job = expecting(1, true);
    job["trigger"] = json!({"cron": "*/5 * * * *", "zone": "UTC"});
    job["skip"] = json!(["2026-11-21T12:05:00Z"]);
    put(&world, &key, "fives", &job).await;
    // 12:05 is left out; 12:10 and 12:15 are delivered and never released; 12:20 finds no token.
    world.minutes(23).await;
    let listed = overdue(&world, &key).await;
    let expected = [
        ("fives.1.1795263600", json!("waiting"), None),
        ("fives.1.1795263300", json!("running"), None),
        ("fives.1.1795263000", json!("running"), None),
    ];
    assert_eq!(words(&listed), expected);
    assert_eq!(told(&world).await.len(), 3);
    // A change begins anew, with what is due from then on.
    let paused = world.send(Method::POST, "/v1/jobs/fives/pause", Some(&key), &[], "").await;
    assert_eq!(paused.status, StatusCode::OK, "{}", paused.text);
    world.minutes(20).await;
    assert_eq!(overdue(&world, &key).await, listed, "paused is as it was asked for");
    assert_eq!(world.delete("/v1/jobs/fives", &key).await.status, StatusCode::NO_CONTENT);
    world.minutes(10).await;
    assert!(!world.everything().await.iter().any(|row| row.contains("WATCH|")), "nobody watches it any more");
}

#[tokio::test]
async fn what_is_not_delivered_is_unrecorded_until_it_is() {
    let (world, key) = with_alerts().await;
    put(&world, &key, "plain", &expecting(1, false)).await;
    world.minutes(8).await;
    world.embedded.inject(QueueAway);
    world.minutes(5).await;
    let listed = overdue(&world, &key).await;
    assert_eq!(words(&listed), [("plain.1.1795263000", json!("unrecorded"), None)]);
    assert_eq!(told(&world).await.len(), 1);
}

#[tokio::test]
async fn launches_that_an_outage_missed_are_overdue_with_the_reason() {
    let (world, key) = with_alerts().await;
    world.minutes(1).await;
    let mut job = expecting(1, true);
    job["trigger"] = json!({"cron": "*/10 * * * *", "zone": "UTC"});
    job["misfire"] = json!({"rule": "skip"});
    put(&world, &key, "tens", &job).await;
    world.minutes(1).await;
    // Nobody ticks for 35 minutes: one record stands for the launches at 12:10, 12:20 and 12:30.
    world.clock.advance_ms(35 * 60_000);
    world.minutes(2).await;
    let listed = overdue(&world, &key).await;
    let missed = |run| (run, json!("skipped"), Some("misfire_skipped"));
    let expected = ["tens.1.1795264200", "tens.1.1795263600", "tens.1.1795263000"].map(missed);
    assert_eq!(words(&listed), expected);
}

#[tokio::test]
async fn a_look_that_dies_anywhere_loses_no_record_and_tells_at_least_once() {
    for at in 0.. {
        let (world, key) = with_alerts().await;
        put(&world, &key, "slow", &expecting(3, true)).await;
        world.minutes(11).await;
        world.clock.advance_ms(60_000);
        world.engine.tick().await.unwrap();
        world.embedded.inject(DiesAt::after(at));
        let message = json!({"v": 1, "look": {"client": "acme", "job": "slow", "due_s": 1_795_263_120}});
        let handled = world.engine.handle_all(&[(&message.to_string(), 1)]).await;
        world.embedded.inject_nothing();
        world.minutes(2).await;
        let listed = overdue(&world, &key).await;
        assert_eq!(words(&listed), [("slow.1.1795263000", json!("running"), None)], "died at {at}");
        assert!(!told(&world).await.is_empty(), "died at {at}");
        if handled == [tidegate_engine::Handled::Done] {
            assert!(at > 4, "it made {at} requests");
            return;
        }
    }
}

#[tokio::test]
async fn a_job_whose_events_leave_no_record_cannot_expect_anything() {
    let (world, key) = with_alerts().await;
    let mut job = expecting(1, false);
    job["history"] = json!("failures");
    let refused = world.put("/v1/jobs/plain", &key, &job).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.json["errors"][0]["field"], "expect", "{}", refused.text);
    assert!(refused.text.contains("set history to 'all'"), "{}", refused.text);
    job["policy_id"] = json!("small");
    put(&world, &key, "plain", &job).await;
    job["expect"] = json!({"within_seconds": 0});
    let refused = world.put("/v1/jobs/plain", &key, &job).await;
    assert_eq!(refused.json["errors"][0]["field"], "expect.within_seconds", "{}", refused.text);
    // What was there stays what it was.
    let read = world.get("/v1/jobs/plain", &key).await;
    assert_eq!(read.json["expect"], json!({"within_seconds": 120}));
    for (patch, expect) in
        [(r#"{"priority": 3}"#, json!({"within_seconds": 120})), (r#"{"expect": null}"#, Value::Null)]
    {
        let patched = world.send(Method::PATCH, "/v1/jobs/plain", Some(&key), &JSON, patch).await;
        assert_eq!(patched.json["expect"], expect, "{}", patched.text);
    }
    world.minutes(15).await;
    assert_eq!(overdue(&world, &key).await, []);
}

#[tokio::test]
async fn alerts_are_changed_by_the_admin_and_a_client_without_has_the_list() {
    let (world, key) = with_alerts().await;
    let patch = |body: &'static str| {
        let world = &world;
        async move { world.send(Method::PATCH, "/v1/clients/acme", Some(&world.admin_key), &JSON, body).await }
    };
    let refused =
        patch(r#"{"alerts": {"lambda": {"function_arn": "arn:aws:lambda:eu-west-1:1:function:f"}}}"#).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    let kept = patch(r#"{"quotas": {"payload_bytes": 4096}}"#).await;
    assert_eq!(kept.json["alerts"], json!({"sqs": {"queue_url": alerts()}}), "{}", kept.text);
    let gone = patch(r#"{"alerts": null}"#).await;
    assert_eq!(gone.json["alerts"], Value::Null, "{}", gone.text);
    put(&world, &key, "slow", &expecting(3, true)).await;
    world.minutes(13).await;
    let listed = overdue(&world, &key).await;
    assert_eq!((listed.len(), &listed[0].told_at), (1, &None));
    assert_eq!(told(&world).await, []);
    // Of another stretch of time there are none, and another client has none of them.
    let earlier = "/v1/overdue?since=2026-11-20T00:00:00Z&until=2026-11-21T12:10:00Z";
    assert_eq!(world.get(earlier, &key).await.json["launches"], json!([]));
    let other = world.register("other").await;
    assert_eq!(overdue(&world, &other).await, []);
}

#[tokio::test]
async fn a_page_costs_what_it_shows_and_the_next_goes_on() {
    let (world, key) = with_alerts().await;
    let mut job = expecting(1, true);
    job["trigger"] = json!({"cron": "* * * * *", "zone": "UTC"});
    put(&world, &key, "minutely", &job).await;
    world.minutes(13).await;
    let all = overdue(&world, &key).await;
    assert!(all.len() > 9, "{all:?}");
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/v1/overdue?limit=4{cursor}"), &key).await.json;
        let rows: Vec<OverdueLaunch> = serde_json::from_value(page["launches"].clone()).unwrap();
        assert!(rows.len() <= 4);
        paged.extend(rows);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
}
