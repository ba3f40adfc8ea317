//! What a job says beside its trigger, and pausing.

use http::{Method, StatusCode};
use serde_json::json;

use crate::world::{World, cron_job};

#[tokio::test]
async fn rules_are_answered_as_they_were_given() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/calendars/holidays", &key, &json!({"dates": ["12-25"]})).await;
    world.put("/v1/calendars/open", &key, &json!({"dates": ["12-25", "12-28"]})).await;
    let mut body = cron_job();
    for (name, value) in [
        ("start_at", json!("2026-12-01T01:00:00+01:00")),
        ("end_at", json!("2027-12-01T00:00:00.5Z")),
        ("jitter_seconds", json!(60)),
        ("misfire", json!({"rule": "all", "max": 3})),
        ("relevancy_seconds", json!(600)),
        ("calendars", json!(["holidays", "holidays"])),
        ("only_on", json!(["open", "open"])),
    ] {
        body[name] = value;
    }
    let answer = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let read = world.get("/v1/jobs/nightly", &key).await;
    assert_eq!(read.json, answer.json);
    for (name, value) in [
        ("start_at", json!("2026-12-01T00:00:00Z")),
        ("end_at", json!("2027-12-01T00:00:01Z")),
        ("jitter_seconds", json!(60)),
        ("misfire", json!({"rule": "all", "max": 3})),
        ("relevancy_seconds", json!(600)),
        ("calendars", json!(["holidays"])),
        ("only_on", json!(["open"])),
        ("paused", json!(false)),
    ] {
        assert_eq!(read.json[name], value, "{name}");
    }
    for rule in [json!({"rule": "skip"}), json!({"rule": "latest"})] {
        body["misfire"] = rule.clone();
        assert_eq!(world.put("/v1/jobs/nightly", &key, &body).await.json["misfire"], rule);
    }
    body["misfire"] = json!({"rule": "all"});
    let defaulted = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!(defaulted.json["misfire"], json!({"rule": "all", "max": 100}));
}

#[tokio::test]
async fn a_job_is_paused_and_resumed_under_its_revision() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    let stale =
        world.send(Method::POST, "/v1/jobs/nightly/pause", Some(&key), &[("if-match", "\"7\"")], "").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED, "{}", stale.text);
    assert_eq!(world.get("/v1/jobs/nightly", &key).await.json["paused"], false);
    let pause = |revision: &'static str| {
        let (world, key) = (&world, &key);
        async move {
            world.send(Method::POST, "/v1/jobs/nightly/pause", Some(key), &[("if-match", revision)], "").await
        }
    };
    let paused = pause("\"1\"").await;
    assert_eq!((paused.status, &paused.json["paused"]), (StatusCode::OK, &json!(true)), "{}", paused.text);
    let etag = paused.header("etag").to_owned();
    let again = world.send(Method::POST, "/v1/jobs/nightly/pause", Some(&key), &[], "").await;
    assert_eq!((again.status, again.header("etag")), (StatusCode::OK, &*etag));
    let upcoming = world.get("/v1/jobs/nightly/upcoming?count=2", &key).await;
    assert_eq!(upcoming.json["upcoming"][0]["skipped"], "paused", "{}", upcoming.text);
    let mut body = cron_job();
    body["count"] = json!(2);
    let changed = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!((&changed.json["paused"], &changed.json["count"]), (&json!(true), &json!(2)));
    let resumed = world.send(Method::POST, "/v1/jobs/nightly/resume", Some(&key), &[], "").await;
    assert_eq!((resumed.status, &resumed.json["paused"]), (StatusCode::OK, &json!(false)));
    let upcoming = world.get("/v1/jobs/nightly/upcoming?count=2", &key).await;
    assert!(upcoming.json["upcoming"][0].get("skipped").is_none(), "{}", upcoming.text);
    let missing = world.send(Method::POST, "/v1/jobs/other/pause", Some(&key), &[], "").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_pause_leaves_out_is_listed_with_its_reason() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["trigger"] = json!({"cron": "* * * * *"});
    world.put("/v1/jobs/minutely", &key, &body).await;
    world.send(Method::POST, "/v1/jobs/minutely/pause", Some(&key), &[], "").await;
    world.clock.advance_ms(10 * 60_000);
    for _ in 0..10 {
        world.engine.tick().await.unwrap();
        world.dispatch().await;
        world.clock.advance_ms(60_000);
    }
    let runs = world.get("/v1/jobs/minutely/runs", &key).await;
    let run = runs.json["runs"].as_array().unwrap().iter().find(|run| run["reason"] == "paused").unwrap();
    assert_eq!((&run["state"], &run["delivered"]), (&json!("stopped"), &json!(0)), "{}", runs.text);
}

#[tokio::test]
async fn what_an_outage_missed_is_listed_with_how_many_it_was() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["trigger"] = json!({"cron": "* * * * *"});
    body["misfire"] = json!({"rule": "latest"});
    world.put("/v1/jobs/minutely", &key, &body).await;
    world.engine.tick().await.unwrap();
    world.clock.advance_ms(3_600_000);
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let runs = world.get("/v1/jobs/minutely/runs", &key).await;
    let runs = runs.json["runs"].as_array().unwrap();
    // Rows of one step of the catch-up are joined; the first of all was due after what the first tick had planned.
    let missed: Vec<_> = runs.iter().filter(|run| run["reason"] == "misfire_skipped").collect();
    let ends = (&missed[missed.len() - 1]["launch_at"], &missed[0]["skipped_until"]);
    assert_eq!(ends, (&json!("2026-11-21T12:04:00Z"), &json!("2026-11-21T12:56:00Z")), "{runs:?}");
    assert_eq!(missed.iter().filter_map(|run| run["skipped_count"].as_u64()).sum::<u64>(), 53, "{runs:?}");
    assert!(missed.iter().all(|run| run["state"] == "stopped" && run["delivered"] == 0), "{runs:?}");
    // The latest that was missed, and those that are not late enough to have been missed.
    let made_up_for = runs.iter().filter(|run| run["launch_at"].as_str() > Some("2026-11-21T12:56:00Z"));
    assert!(made_up_for.clone().all(|run| run["reason"].is_null() && run["delivered"] == 1), "{runs:?}");
    assert_eq!(made_up_for.count(), 4);
}
