//! How many events of a client go in a minute, how many wait, and how many turns its messages have, by its quotas; and what it
//! used.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_domain::usage::{MILLION_BATCHED, MILLION_SINGLES, MILLION_THROTTLED};
use tidegate_engine::Handled;

use crate::quotas::limit;
use crate::world::{DiesAt, QUEUE, World, at_job};

const LAUNCH: &str = "2026-11-21T12:10:00Z";

async fn limited(quotas: Value) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    let changed = limit(&world, quotas.clone()).await;
    assert_eq!((changed.status, &changed.json["quotas"]), (StatusCode::OK, &quotas), "{}", changed.text);
    // The next minute begins.
    world.clock.advance_ms(50_000);
    (world, key)
}

async fn put(world: &World, key: &str, id: &str, count: u32) {
    let mut job = at_job(LAUNCH);
    job["count"] = json!(count);
    let made = world.put(&format!("/v1/jobs/{id}"), key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

/// The ids of the events that the consumer is sent in the minute that begins now; the next one begins then.
async fn minute(world: &World) -> Vec<String> {
    world.engine.tick().await.unwrap();
    for _ in 0..10 {
        world.dispatch().await;
        world.clock.advance_ms(6_000);
    }
    ids_of(world).await
}

/// The ids of the events that the consumer was sent since it was asked last.
async fn ids_of(world: &World) -> Vec<String> {
    let bodies = world.take_all(QUEUE).await;
    let id = |body: &String| {
        let event: Value = serde_json::from_str(body).unwrap();
        event["event_id"].as_str().unwrap().to_owned()
    };
    bodies.iter().map(id).collect()
}

async fn usage(world: &World, key: &str) -> Value {
    let answer = world.get("/v1/usage", key).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json["quotas"].clone()
}

#[tokio::test]
async fn of_a_minute_no_more_events_go_than_the_quota_and_none_is_lost() {
    let (world, key) = limited(json!({"events_per_minute": 10, "waiting": 100})).await;
    put(&world, &key, "batch", 22).await;
    for n in 0..13 {
        put(&world, &key, &format!("single-{n}"), 1).await;
    }
    let (mut by_minute, mut ids) = (Vec::new(), BTreeSet::new());
    world.minutes(8).await;
    assert_eq!(usage(&world, &key).await[0]["used"], 0);
    world.minutes(1).await;
    let told = json!([
        {"quota": "events_per_minute", "most": 10, "used": 10, "counted_at": null},
        {"quota": "waiting", "most": 100, "used": 25, "counted_at": null},
    ]);
    assert_eq!(usage(&world, &key).await, told);
    for _ in 0..6 {
        let sent = minute(&world).await;
        by_minute.push(sent.len());
        ids.extend(sent);
    }
    assert_eq!((by_minute, ids.len()), (vec![10, 10, 10, 5, 0, 0], 35));
    let run = world.get("/v1/jobs/batch/runs", &key).await;
    assert_eq!(run.json["runs"][0]["delivered"], 22, "{}", run.text);
}

#[tokio::test]
async fn what_may_not_wait_is_skipped_with_the_reason() {
    let (world, key) = limited(json!({"events_per_minute": 10, "waiting": 5})).await;
    put(&world, &key, "fits", 15).await;
    world.minutes(9).await;
    assert_eq!((minute(&world).await.len(), minute(&world).await.len()), (10, 5));
    let mut job = at_job("2026-11-21T12:20:00Z");
    job["count"] = json!(16);
    assert_eq!(world.put("/v1/jobs/over", &key, &job).await.status, StatusCode::CREATED);
    world.minutes(10).await;
    assert_eq!(world.take_all(QUEUE).await, Vec::<String>::new());
    let runs = world.get("/v1/jobs/over/runs", &key).await;
    assert_eq!(runs.json["runs"][0]["reason"], "over_quota", "{}", runs.text);
    // The client makes up for it.
    let window =
        json!({"since": "2026-11-21T12:20:00Z", "until": "2026-11-21T12:21:00Z", "only_missed": true});
    let preview = world.post("/v1/jobs/over/backfill", &key, &window).await;
    assert!(preview.status.is_success(), "{}", preview.text);
}

#[tokio::test]
async fn another_quota_holds_from_the_next_chunk_on_and_other_clients_go_as_they_come() {
    let (world, key) = limited(json!({"events_per_minute": 1})).await;
    let other = world.register("other").await;
    put(&world, &key, "slow", 3).await;
    put(&world, &other, "free", 50).await;
    world.minutes(9).await;
    assert_eq!(minute(&world).await.len(), 51);
    let changed = limit(&world, json!({})).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    world.clock.advance_ms(50_000);
    let mut job = at_job("2026-11-21T12:13:00Z");
    job["count"] = json!(30);
    assert_eq!(world.put("/v1/jobs/late", &key, &job).await.status, StatusCode::CREATED);
    // What has a place keeps it: those of 12:11 and 12:12 go now.
    assert_eq!(minute(&world).await.len(), 2);
    assert_eq!(minute(&world).await.len(), 30);
}

#[tokio::test]
async fn each_policy_of_such_a_client_must_say_a_rate_and_how_many_runs_wait() {
    let (world, key) = limited(json!({"events_per_minute": 60, "waiting": 5})).await;
    let refused = world.put("/v1/policies/p", &key, &json!({"max_in_flight": 1})).await;
    let fields: Vec<&str> =
        refused.json["errors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["rate", "max_waiting_runs"], "{}", refused.text);
    assert!(refused.text.contains("more than 60 events a minute"), "{}", refused.text);
    for (events, waiting, status) in [
        (2, 5, StatusCode::UNPROCESSABLE_ENTITY),
        (1, 6, StatusCode::UNPROCESSABLE_ENTITY),
        (1, 5, StatusCode::CREATED),
    ] {
        let policy = json!({
            "max_in_flight": 1, "rate": {"events": events, "per": "second"}, "max_waiting_runs": waiting
        });
        let answer = world.put("/v1/policies/p", &key, &policy).await;
        assert_eq!(answer.status, status, "{}", answer.text);
    }
}

#[tokio::test]
async fn who_has_the_name_of_a_deleted_client_has_quotas_of_its_own() {
    let (world, _) = limited(json!({"events_per_minute": 1, "delivery_share": 3})).await;
    assert!(world.everything().await.iter().any(|row| row.contains("share|acme")));
    assert_eq!(world.delete("/v1/clients/acme", &world.admin_key).await.status, StatusCode::ACCEPTED);
    world.minutes(40).await;
    let key = world.register("acme").await;
    assert!(!world.everything().await.iter().any(|row| row.contains("share|acme")));
    let mut job = at_job("2026-11-21T13:10:00Z");
    job["count"] = json!(20);
    assert_eq!(world.put("/v1/jobs/free", &key, &job).await.status, StatusCode::CREATED);
    world.minutes(30).await;
    assert_eq!(world.take_all(QUEUE).await.len(), 20);
}

#[tokio::test]
async fn a_handler_that_dies_anywhere_lets_no_more_go_and_loses_none() {
    for at in 0.. {
        let (world, key) = limited(json!({"events_per_minute": 10})).await;
        put(&world, &key, "batch", 25).await;
        world.minutes(8).await;
        world.clock.advance_ms(60_000);
        world.engine.tick().await.unwrap();
        let waiting = world.take_all(world.deployment.dispatch_url()).await;
        let [chunk] = waiting.as_slice() else { panic!("{waiting:?}") };
        world.embedded.inject(DiesAt::after(at));
        let handled = world.engine.handle_all(&[(chunk, 1)]).await;
        world.embedded.inject_nothing();
        let is_over = handled == [Handled::Done];
        if !is_over {
            assert_eq!(world.engine.handle_all(&[(chunk, 2)]).await, [Handled::Done], "died at {at}");
        }
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for _ in 0..7 {
            let sent = minute(&world).await;
            assert!(sent.len() <= 10, "died at {at}: {} in a minute", sent.len());
            ids.extend(sent);
        }
        assert_eq!((ids.len(), minute(&world).await.len()), (25, 0), "died at {at}");
        if is_over {
            assert!(at > 4, "it made {at} requests");
            return;
        }
    }
}

#[tokio::test]
async fn a_share_of_three_has_three_turns_where_others_have_one() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let other = world.register("other").await;
    limit(&world, json!({"delivery_share": 3})).await;
    world.clock.advance_ms(50_000);
    put(&world, &key, "batch", 1_000).await;
    put(&world, &other, "batch", 1_000).await;
    world.minutes(8).await;
    world.clock.advance_ms(60_000);
    world.engine.tick().await.unwrap();
    let waiting = world.take_all(world.deployment.dispatch_url()).await;
    let of = |body: &String| {
        let message: Value = serde_json::from_str(body).unwrap();
        message["chunk"]["c"].as_str().map(str::to_owned)
    };
    let owners: Vec<String> = waiting.iter().filter_map(of).collect();
    let first = owners.iter().take(8).filter(|owner| *owner == "acme").count();
    assert_eq!((owners.len() > 12, first), (true, 6), "{waiting:?}");
}

#[tokio::test]
async fn what_was_used_is_shown_by_day_with_what_it_costs() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 3600})).await;
    put(&world, &key, "batch", 50).await;
    put(&world, &key, "single", 1).await;
    let mut throttled = at_job(LAUNCH);
    (throttled["count"], throttled["policy_id"]) = (json!(7), json!("small"));
    assert_eq!(world.put("/v1/jobs/throttled", &key, &throttled).await.status, StatusCode::CREATED);
    let mut skipped = at_job(LAUNCH);
    skipped["paused"] = json!(false);
    assert_eq!(world.put("/v1/jobs/skipped", &key, &skipped).await.status, StatusCode::CREATED);
    world.post("/v1/jobs/skipped/pause", &key, &json!({})).await;
    let days = async |key: &str| world.get("/v1/usage", key).await.json["days"].clone();
    world.minutes(12).await;
    assert_eq!(days(&key).await, json!([]), "it is told after five minutes");
    world.minutes(5).await;
    let told = json!([{
        "day": "2026-11-21", "launches": 3, "skipped": 1, "events": 58, "throttled_events": 7,
        "estimated_dollars": 0.000_015
    }]);
    assert_eq!(days(&key).await, told);
    // Nothing is told of a client that is idle, and another day is another row.
    world.minutes(10).await;
    assert_eq!(days(&key).await, told);
    let mut daily = at_job("2026-11-22T12:00:00Z");
    daily["trigger"] = json!({"cron": "0 3 * * *", "zone": "UTC"});
    assert_eq!(world.put("/v1/jobs/daily", &key, &daily).await.status, StatusCode::CREATED);
    world.clock.advance_ms(15 * 3_600_000);
    world.minutes(10).await;
    assert_eq!(days(&key).await[1]["day"], "2026-11-22");
    assert_eq!(world.get("/v1/usage", &world.register("other").await).await.json["days"], json!([]));
    let library = tidegate_client::Client::new(world.serve().await, &*key).unwrap();
    let usage = library.own_usage().await.unwrap();
    assert_eq!((usage.days.len(), usage.days[0].launches), (2, 3));
}

#[test]
fn what_events_cost_is_what_the_document_says() {
    let scale = include_str!("../../../../docs/scale.md");
    let row = |kind: &str| scale.lines().find(|line| line.starts_with(&format!("| {kind}"))).unwrap();
    for (kind, dollars) in [
        ("single events that nothing throttles", MILLION_SINGLES),
        ("a batch that nothing throttles", MILLION_BATCHED),
        ("single events under a policy", MILLION_THROTTLED),
    ] {
        assert!(row(kind).contains(&format!(" {dollars:.2} ")), "{kind}: {dollars}");
    }
}
