//! A client that an admin suspends: its keys are refused, nothing of it is delivered, and nothing is lost.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::Client;

use crate::hook::Hook;
use crate::world::{Answer, World, batch, cron_job};

async fn by_admin(world: &World, path: &str, body: Value) -> Answer {
    world.post(&format!("/v1/clients/acme/{path}"), &world.admin_key, &body).await
}

async fn suspend(world: &World) {
    let done = by_admin(world, "suspend", json!({"because": "it calls strangers"})).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert_eq!(
        done.json["suspended"],
        json!({"since": "2026-11-21T12:00:00Z", "because": "it calls strangers"})
    );
}

/// The admin in the place of the client.
async fn in_place(world: &World, method: Method, path: &str, body: &Value) -> Answer {
    let headers = [("tidegate-client", "acme"), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send(method, path, Some(&world.admin_key), &headers, &body).await
}

async fn put(world: &World, name: &str, job: &Value) {
    let made = in_place(world, Method::PUT, &format!("/v1/jobs/{name}"), job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

async fn pass(world: &World, seconds: i64) {
    for _ in 0..seconds {
        world.clock.advance_ms(1_000);
        world.dispatch().await;
    }
}

#[tokio::test]
async fn its_keys_are_refused_within_ten_seconds_but_for_releases() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let zeta = world.register("zeta").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 1, "lease_seconds": 600})).await;
    world.put("/v1/jobs/batch", &key, &batch(2)).await;
    let held = world.receive().await;
    assert_eq!(held.len(), 1);
    suspend(&world).await;
    world.clock.advance_ms(11_000);
    for (method, path) in [
        (Method::GET, "/v1/jobs"),
        (Method::POST, "/v1/jobs/batch/pause"),
        (Method::GET, "/v1/client"),
        (Method::POST, "/v1/drain"),
        (Method::GET, "/v1/keys"),
    ] {
        let refused = world.send(method, path, Some(&key), &[], "").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path} {}", refused.text);
        assert_eq!(refused.json["type"], "urn:tidegate:problem:client-suspended", "{path}");
        assert!(refused.text.contains("since 2026-11-21T12:00:00Z: it calls strangers"), "{}", refused.text);
    }
    assert_eq!(world.get("/v1/jobs", &zeta).await.status, StatusCode::OK, "no other client");
    let tokens = json!({"tokens": [held[0]["token"]]});
    let extended = world.post("/v1/tokens/extend", &key, &tokens).await;
    assert_eq!(extended.json["results"][0]["status"], "extended", "{}", extended.text);
    let released = world.post("/v1/tokens/release", &key, &tokens).await;
    assert_eq!(released.json["results"][0]["status"], "released", "{}", released.text);
    assert!(world.receive().await.is_empty(), "its token goes to no other event");
}

#[tokio::test]
async fn nothing_is_delivered_meanwhile_and_all_of_it_once_it_is_resumed() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 8, "lease_seconds": 600})).await;
    suspend(&world).await;
    let hook = Hook::answering(&[]).await;
    put(&world, "single", &hook.job(1)).await;
    put(&world, "throttled", &hook.throttled_job(3)).await;
    pass(&world, 60).await;
    world.engine.tick().await.unwrap();
    pass(&world, 60).await;
    assert!(hook.calls().is_empty());
    // The client cannot let itself go, with a key that is still believed or without.
    let drained = by_admin(&world, "drain", json!({"per_second": 9})).await;
    assert_eq!(drained.status, StatusCode::FORBIDDEN, "{}", drained.text);

    let resumed = by_admin(&world, "resume", json!({"per_second": 100})).await;
    assert_eq!(
        (resumed.status, &resumed.json["suspended"]),
        (StatusCode::OK, &Value::Null),
        "{}",
        resumed.text
    );
    pass(&world, 20).await;
    assert_eq!(hook.calls().len(), 4);
    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::OK);
    assert_eq!(world.get("/v1/sideline", &key).await.json["client"], Value::Null);
    let again = by_admin(&world, "resume", json!({"per_second": 100})).await;
    assert_eq!(again.json["revision"], resumed.json["revision"], "nothing is left to resume");
}

#[tokio::test]
async fn the_admin_sees_and_stops_what_a_suspended_client_has() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 1})).await;
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    world.put("/v1/jobs/batch", &key, &batch(2)).await;
    world.dispatch().await;
    suspend(&world).await;
    world.clock.advance_ms(11_000);
    let listed = in_place(&world, Method::GET, "/v1/jobs", &Value::Null).await;
    assert_eq!(listed.json["jobs"].as_array().unwrap().len(), 2, "{}", listed.text);
    let runs = in_place(&world, Method::GET, "/v1/jobs/batch/runs", &Value::Null).await.json;
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    for (method, path) in [
        (Method::POST, "/v1/jobs/nightly/pause"),
        (Method::POST, "/v1/policies/small/pause"),
        (Method::POST, &*format!("/v1/jobs/batch/runs/{run}/cancel")),
        (Method::DELETE, "/v1/jobs/nightly"),
    ] {
        let done = in_place(&world, method, path, &Value::Null).await;
        assert!(done.status.is_success(), "{path} {}", done.text);
    }
}

#[tokio::test]
async fn a_client_that_was_sidelined_before_stays_so_and_a_repeated_call_changes_the_reason() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.post("/v1/sideline", &key, &json!({"because": "repairs"})).await;
    suspend(&world).await;
    world.clock.advance_ms(5_000);
    let again = by_admin(&world, "suspend", json!({"because": "it does not pay"})).await.json;
    assert_eq!(again["suspended"], json!({"since": "2026-11-21T12:00:00Z", "because": "it does not pay"}));
    world.clock.advance_ms(6_000);
    by_admin(&world, "resume", json!({"per_second": 9})).await;
    world.dispatch().await;
    let shown = world.get("/v1/sideline", &key).await.json;
    assert_eq!(
        (&shown["client"]["because"], &shown["client"]["per_second"]),
        (&json!("repairs"), &Value::Null)
    );
}

#[tokio::test]
async fn only_the_admin_suspends_and_says_why() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let because = json!({"because": "abuse"});
    let own = world.post("/v1/clients/acme/suspend", &key, &because).await;
    assert_eq!(own.status, StatusCode::UNAUTHORIZED);
    for path in ["suspend", "resume"] {
        let body = if path == "suspend" { because.clone() } else { json!({"per_second": 1}) };
        let nobody = world.post(&format!("/v1/clients/nobody/{path}"), &world.admin_key, &body).await;
        assert_eq!(nobody.status, StatusCode::NOT_FOUND, "{}", nobody.text);
    }
    for wrong in [json!({}), json!({"because": ""}), json!({"because": "x".repeat(201)})] {
        let refused = by_admin(&world, "suspend", wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "because", "{}", refused.text);
    }
}

#[tokio::test]
async fn the_client_library_has_the_calls() {
    let world = World::new().await;
    world.register("acme").await;
    let admin = Client::new(&*world.serve().await, &*world.admin_key).unwrap();
    let suspended = admin.suspend_client("acme", "abuse").await.unwrap();
    assert_eq!(suspended.suspended.unwrap().because, "abuse");
    assert_eq!(admin.resume_client("acme", 9).await.unwrap().suspended, None);
}
