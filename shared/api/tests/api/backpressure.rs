//! Consumers that cannot keep up: their policies and targets are slowed or closed, and recover; nobody else is.

use http::StatusCode;
use serde_json::{Value, json};

use crate::hook::Hook;
use crate::world::{Answer, World, batch};

const NOON: &str = "2026-11-21T12:00:00Z";

async fn client(world: &World, max_in_flight: u32) -> String {
    let key = world.register("acme").await;
    let policy = json!({"max_in_flight": max_in_flight});
    assert_eq!(world.put("/v1/policies/small", &key, &policy).await.status, StatusCode::CREATED);
    key
}

async fn put(world: &World, key: &str, name: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{name}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

async fn after(world: &World, seconds: i64) {
    world.clock.advance_ms(seconds * 1_000);
    world.dispatch().await;
}

async fn minutes(world: &World, minutes: u32) {
    for _ in 0..minutes {
        for _ in 0..6 {
            after(world, 10).await;
        }
        world.engine.tick().await.unwrap();
        world.dispatch().await;
    }
}

async fn small(world: &World, key: &str) -> Value {
    world.get("/v1/policies/small", key).await.json
}

async fn run(world: &World, key: &str, job: &str) -> Value {
    world.get(&format!("/v1/jobs/{job}/runs"), key).await.json["runs"][0].clone()
}

async fn close(world: &World, key: &str, body: Value) -> Answer {
    world.post("/v1/policies/small/close", key, &body).await
}

#[tokio::test]
async fn an_endpoint_that_is_busy_slows_its_own_policy_which_recovers_by_steps() {
    let world = World::new().await;
    let key = client(&world, 8).await;
    assert_eq!(
        world.put("/v1/policies/other", &key, &json!({"max_in_flight": 8})).await.status,
        StatusCode::CREATED
    );
    let busy = Hook::answering(&[503; 8]).await;
    put(&world, &key, "busy", &busy.throttled_job(40)).await;
    let policy = small(&world, &key).await;
    assert_eq!(
        policy["backpressure"],
        json!({
            "closed_until": null, "closed_by": null, "limit": 4,
            "because": "the endpoint answered 503 Service Unavailable", "eases_at": "2026-11-21T12:00:30Z",
        })
    );
    let says = "slowed, because the endpoint answered 503 Service Unavailable; 0 in flight, limit 4";
    assert_eq!((&policy["status"], &policy["max_in_flight"]), (&json!(says), &json!(8)));
    assert_eq!(policy["revision"], 1, "its client changed nothing");
    let listed = world.get("/v1/policies", &key).await.json;
    let of =
        |name: &str| listed["policies"].as_array().unwrap().iter().find(|p| p["policy_id"] == name).cloned();
    assert_eq!(of("small").unwrap()["backpressure"], policy["backpressure"]);
    assert!(of("other").unwrap().get("backpressure").is_none(), "{listed}");

    // Another one keeps its pace.
    let quick = Hook::answering(&[]).await;
    let mut job = quick.throttled_job(40);
    job["policy_id"] = json!("other");
    put(&world, &key, "quick", &job).await;
    assert_eq!(quick.calls().len(), 40);

    minutes(&world, 2).await;
    let policy = small(&world, &key).await;
    assert_eq!((policy.get("backpressure"), &policy["status"]), (None, &json!("0 in flight, limit 8")));
    assert_eq!(busy.calls().len(), 48, "40 events, and 8 of them twice");
    assert!(world.get("/v1/targets", &key).await.json["targets"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_retry_after_closes_the_policy_until_then_and_it_says_so() {
    let world = World::new().await;
    let key = client(&world, 1).await;
    let hook = Hook::answering(&[]).await;
    hook.then_ask(429, 120);
    put(&world, &key, "busy", &hook.throttled_job(3)).await;
    for _ in 0..11 {
        after(&world, 10).await;
    }
    assert_eq!(hook.calls().len(), 1, "nothing is sent before 12:02:00");
    let status = small(&world, &key).await["status"].clone();
    let because = "because the endpoint answered 429 Too Many Requests";
    assert_eq!(status, format!("closed until 2026-11-21T12:02:00Z, {because}; 0 in flight, limit 1"));
    let explained = world.get("/v1/events/busy.1.1795262400.2/explain", &key).await.json;
    assert_eq!(explained["because_code"], "policy_closed", "{explained}");
    assert_eq!(explained["because"], format!("its policy is closed until 12:02:00 UTC, {because}"));
    let id = run(&world, &key, "busy").await["run_id"].as_str().unwrap().to_owned();
    let detail = world.get(&format!("/v1/jobs/busy/runs/{id}"), &key).await.json;
    let codes = detail["reasoning_codes"].as_array().unwrap();
    assert!(codes.contains(&json!("policy_closed")), "{detail}");

    after(&world, 10).await;
    after(&world, 2).await;
    after(&world, 2).await;
    assert_eq!(hook.calls().len(), 4, "it went on by itself");
    assert_eq!(run(&world, &key, "busy").await["succeeded"], 3);
}

#[tokio::test]
async fn a_limit_that_cannot_be_halved_is_tried_again_after_longer_and_longer() {
    let world = World::new().await;
    let key = client(&world, 1).await;
    let hook = Hook::answering(&[503; 1_000]).await;
    put(&world, &key, "busy", &hook.throttled_job(100)).await;
    minutes(&world, 10).await;
    let calls = hook.calls().len();
    assert!((8..=20).contains(&calls), "{calls} calls in ten minutes; every 64 s in the end");
    hook.answer_well();
    minutes(&world, 5).await;
    assert_eq!(run(&world, &key, "busy").await["succeeded"], 100);
}

#[tokio::test]
async fn a_call_closes_a_policy_until_an_instant_and_another_opens_it() {
    let world = World::new().await;
    let key = client(&world, 2).await;
    let closed = close(&world, &key, json!({"until": "2026-11-21T12:10:00Z", "because": "they move"})).await;
    assert_eq!(closed.status, StatusCode::OK, "{}", closed.text);
    assert_eq!((&closed.json["revision"], closed.header("etag")), (&json!(2), "\"2\""));
    assert_eq!(
        closed.json["backpressure"],
        json!({
            "closed_until": "2026-11-21T12:10:00Z", "closed_by": "client", "limit": 2, "because": "they move",
            "eases_at": "2026-11-21T12:10:00Z",
        })
    );
    put(&world, &key, "batch", &batch(4)).await;
    assert_eq!(world.receive().await.len(), 0);

    // What is answered can be put back, and opens nothing.
    let shown = small(&world, &key).await;
    let put_back = world.put("/v1/policies/small", &key, &shown).await;
    assert_eq!(put_back.status, StatusCode::OK, "{}", put_back.text);
    assert_eq!(put_back.json["backpressure"], closed.json["backpressure"]);

    let opened = world.post("/v1/policies/small/open", &key, &json!({})).await;
    assert_eq!((opened.status, opened.json.get("backpressure")), (StatusCode::OK, None), "{}", opened.text);
    assert_eq!(world.receive().await.len(), 2);

    // By itself, at the instant and not before it.
    close(&world, &key, json!({"until": "2026-11-21T12:00:30Z"})).await;
    let tokens: Vec<Value> = small_tokens(&world, &key).await;
    world.post("/v1/tokens/release", &key, &json!({"tokens": tokens})).await;
    after(&world, 29).await;
    assert_eq!(world.receive().await.len(), 0);
    after(&world, 1).await;
    assert_eq!(world.receive().await.len(), 2);
    assert_eq!(small(&world, &key).await.get("backpressure"), None);
}

async fn small_tokens(world: &World, key: &str) -> Vec<Value> {
    let held = world.get("/v1/policies/small/holders", key).await.json;
    held["holders"].as_array().unwrap().iter().map(|holder| holder["token"].clone()).collect()
}

#[tokio::test]
async fn what_cannot_close_a_policy_is_refused_with_the_fix() {
    let world = World::new().await;
    let key = client(&world, 2).await;
    for (until, says) in [
        ("2026-11-21T11:59:59Z", "to open a policy, call its /open"),
        (NOON, "to open a policy, call its /open"),
        ("2026-11-29T12:00:00Z", "is 8 days ahead; 7 days is the most: pause the policy"),
        ("2026-11-21T12:10:00", "has no offset"),
        ("soon", "until 'soon'"),
    ] {
        let refused = close(&world, &key, json!({"until": until})).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{until}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "until", "{}", refused.text);
        assert!(refused.text.contains(says), "{until}: {}", refused.text);
    }
    let long =
        close(&world, &key, json!({"until": "2026-11-21T12:10:00Z", "because": "x".repeat(201)})).await;
    assert_eq!(long.json["errors"][0]["field"], "because", "{}", long.text);
    let headers = [("content-type", "application/json"), ("if-match", "\"7\"")];
    let body = json!({"until": "2026-11-21T12:10:00Z"}).to_string();
    let path = "/v1/policies/small/close";
    let stale = world.send(http::Method::POST, path, Some(&key), &headers, &body).await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED, "{}", stale.text);
    let absent = world.post("/v1/policies/none/open", &key, &json!({})).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND, "{}", absent.text);
    assert_eq!(small(&world, &key).await.get("backpressure"), None, "nothing of that closed it");
}

#[tokio::test]
async fn a_target_without_a_policy_is_closed_by_itself() {
    let world = World::new().await;
    let key = client(&world, 1).await;
    let (busy, quick) = (Hook::answering(&[]).await, Hook::answering(&[]).await);
    busy.then_ask(503, 600);
    put(&world, &key, "first", &busy.job(1)).await;
    let listed = world.get("/v1/targets", &key).await.json;
    assert_eq!(listed["targets"][0]["address"], busy.url);
    let backpressure = &listed["targets"][0]["backpressure"];
    assert_eq!(
        (&backpressure["closed_until"], &backpressure["closed_by"], &backpressure["because"]),
        (
            &json!("2026-11-21T12:10:00Z"),
            &json!("consumer"),
            &json!("the endpoint answered 503 Service Unavailable")
        )
    );
    let other = world.register("other").await;
    assert_eq!(world.get("/v1/targets", &other).await.json["targets"], json!([]), "it is one client's");

    // Twenty more for it, and one for another: in one chunk, or in several.
    let mut jobs = vec![busy.job(20), quick.job(1)];
    jobs.extend((0..3).map(|_| busy.job(1)));
    for (number, job) in jobs.iter().enumerate() {
        put(&world, &key, &format!("more{number}"), job).await;
    }
    minutes(&world, 9).await;
    assert_eq!((busy.calls().len(), quick.calls().len()), (1, 1), "held back until 12:10:00");
    minutes(&world, 3).await;
    assert_eq!(busy.calls().len(), 1 + 1 + 20 + 3, "each once more");
    for (job, delivered) in [("first", 1), ("more0", 20), ("more1", 1), ("more2", 1), ("more4", 1)] {
        assert_eq!(run(&world, &key, job).await["delivered"], delivered, "{job}");
    }
    assert_eq!(world.get("/v1/targets", &key).await.json["targets"], json!([]), "it recovered");
}

#[tokio::test]
async fn what_is_held_back_is_still_cancelled_and_may_grow_too_old() {
    let world = World::new().await;
    let key = client(&world, 1).await;
    let busy = Hook::answering(&[]).await;
    busy.then_ask(503, 600);
    put(&world, &key, "first", &busy.job(1)).await;
    let mut old = busy.job(1);
    old["relevancy_seconds"] = json!(300);
    put(&world, &key, "old", &old).await;
    put(&world, &key, "cancelled", &busy.job(1)).await;
    after(&world, 60).await;
    assert_eq!(world.delete("/v1/jobs/cancelled", &key).await.status, StatusCode::NO_CONTENT);
    minutes(&world, 12).await;
    assert_eq!(busy.calls().len(), 2, "the first one again, and nothing else: {:?}", busy.calls());
    let old = run(&world, &key, "old").await;
    assert_eq!(old["reason"], "expired", "{old}");
}
