//! A client or a job that is sidelined: nothing of it is delivered, nothing is lost, and it drains at a pace.

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_domain::sideline::Sidelines;

use crate::hook::Hook;
use crate::world::{Answer, World, batch};

async fn after(world: &World, seconds: i64) {
    world.clock.advance_ms(seconds * 1_000);
    world.dispatch().await;
}

async fn put(world: &World, key: &str, name: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{name}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

async fn done(world: &World, key: &str, path: &str, body: Value) -> Value {
    let answer = world.post(path, key, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json
}

async fn run(world: &World, key: &str, job: &str) -> Value {
    world.get(&format!("/v1/jobs/{job}/runs"), key).await.json["runs"][0].clone()
}

fn release(events: &[Value]) -> Value {
    json!({"tokens": events.iter().map(|event| &event["token"]).collect::<Vec<_>>()})
}

async fn tick(world: &World) {
    world.engine.tick().await.unwrap();
    world.dispatch().await;
}

#[tokio::test]
async fn what_nothing_throttles_is_set_aside_and_drains_at_its_pace() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let held = done(&world, &key, "/v1/sideline", json!({"because": "repairs"})).await;
    assert_eq!(
        (&held["client"]["because"], &held["client"]["per_second"]),
        (&json!("repairs"), &Value::Null)
    );
    let hook = Hook::answering(&[]).await;
    put(&world, &key, "batch", &hook.job(5)).await;
    put(&world, &key, "one", &hook.job(1)).await;
    after(&world, 600).await;
    assert!(hook.calls().is_empty(), "it is sidelined");
    let again = done(&world, &key, "/v1/sideline", json!({"because": "repairs"})).await;
    assert_eq!(again["client"]["since"], "2026-11-21T12:00:00Z", "repeated without harm");
    assert_eq!((&again["client"]["set_aside"], &again["client"]["has_more"]), (&json!(6), &json!(false)));
    let explained = world.get("/v1/events/batch.1.1795262400.2/explain", &key).await.json;
    assert_eq!(explained["because_code"], "sidelined", "{explained}");

    let draining = done(&world, &key, "/v1/drain", json!({"per_second": 2})).await;
    assert_eq!(draining["client"]["per_second"], 2);
    world.dispatch().await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        calls.push(hook.calls().len());
        after(&world, 1).await;
    }
    // The row of one event comes first, and pieces of two follow at half seconds, rounded up.
    assert_eq!(calls, [1, 3, 5, 6, 6, 6, 6, 6]);
    assert_eq!(hook.calls().len(), 6, "each came once");
    assert!(hook.attempts().iter().all(|attempt| *attempt == 1), "no delivery was counted before");
    assert_eq!(run(&world, &key, "batch").await["delivered"], 5);
    let drained = world.get("/v1/sideline", &key).await.json;
    assert_eq!(drained, json!({"client": null, "jobs": {}}));
}

#[tokio::test]
async fn a_job_is_sidelined_without_the_others_and_sidelined_anew_while_it_drains() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let (hook, other) = (Hook::answering(&[]).await, Hook::answering(&[]).await);
    let mut job = hook.job(6);
    job["trigger"] = json!({"at": "2026-11-21T12:01:00Z"});
    put(&world, &key, "held", &job).await;
    let held = done(&world, &key, "/v1/jobs/held/sideline", json!({})).await;
    assert_eq!((&held["client"], &held["jobs"]["held"]["set_aside"]), (&Value::Null, &json!(0)));
    put(&world, &key, "other", &other.job(2)).await;
    assert_eq!(other.calls().len(), 2);
    tick(&world).await;
    after(&world, 60).await;
    tick(&world).await;
    assert!(hook.calls().is_empty());

    done(&world, &key, "/v1/jobs/held/drain", json!({"per_second": 1})).await;
    world.dispatch().await;
    assert_eq!(hook.calls().len(), 1);
    done(&world, &key, "/v1/jobs/held/sideline", json!({})).await;
    for _ in 0..20 {
        after(&world, 1).await;
    }
    let shown = world.get("/v1/sideline", &key).await.json;
    assert_eq!((hook.calls().len(), &shown["jobs"]["held"]["set_aside"]), (1, &json!(5)), "{shown}");
    done(&world, &key, "/v1/jobs/held/drain", json!({"per_second": 100})).await;
    for _ in 0..20 {
        after(&world, 1).await;
    }
    assert_eq!((hook.calls().len(), run(&world, &key, "held").await["delivered"].clone()), (6, json!(6)));
    assert_eq!(world.get("/v1/sideline", &key).await.json["jobs"], json!({}));
}

#[tokio::test]
async fn the_policies_of_a_sidelined_client_hold_what_waits_and_drain_it_at_the_pace() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.put("/v1/policies/small", &key, &json!({"max_in_flight": 8})).await;
    assert_eq!(before.status, StatusCode::CREATED);
    done(&world, &key, "/v1/sideline", json!({"because": "repairs"})).await;
    let hook = Hook::answering(&[]).await;
    put(&world, &key, "batch", &hook.throttled_job(5)).await;
    after(&world, 60).await;
    tick(&world).await;
    assert!(hook.calls().is_empty());
    let policy = world.get("/v1/policies/small", &key).await.json;
    assert_eq!(policy["sidelined"]["because"], "repairs", "{policy}");
    assert_eq!(policy["status"], "sidelined since 2026-11-21T12:00:00Z, 0 in flight, limit 8");
    let explained = world.get("/v1/events/batch.1.1795262400.2/explain", &key).await.json;
    assert_eq!(explained["because_code"], "sidelined", "{explained}");
    let later = world.put("/v1/policies/later", &key, &json!({"max_in_flight": 8})).await;
    assert_eq!(later.json["sidelined"]["because"], "repairs", "one that is made now is held as well");

    done(&world, &key, "/v1/drain", json!({"per_second": 1})).await;
    world.dispatch().await;
    assert_eq!(hook.calls().len(), 1, "one in the first second");
    for calls in 2..=5 {
        after(&world, 1).await;
        assert_eq!(hook.calls().len(), calls);
    }
    assert_eq!(run(&world, &key, "batch").await["succeeded"], 5);
    after(&world, 60).await;
    tick(&world).await;
    let policy = world.get("/v1/policies/small", &key).await.json;
    assert_eq!((policy.get("sidelined"), &policy["rate"]), (None, &Value::Null), "{policy}");
    let mut next = hook.throttled_job(5);
    next["trigger"]["past"] = json!("fire");
    put(&world, &key, "next", &next).await;
    assert_eq!(hook.calls().len(), 10, "it has its own pace again");
}

#[tokio::test]
async fn a_job_under_a_policy_waits_beside_others_that_go_on() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let made = world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    assert_eq!(made.status, StatusCode::CREATED);
    for (count, at, launch) in
        [(1, "2026-11-21T12:30:00Z", 1_795_264_200), (5, "2026-11-21T13:30:00Z", 1_795_267_800)]
    {
        let (held, other) = (format!("held-{count}"), format!("other-{count}"));
        let (hook, free) = (Hook::answering(&[]).await, Hook::answering(&[]).await);
        let mut job = hook.throttled_job(count);
        job["trigger"]["at"] = json!(at);
        put(&world, &key, &held, &job).await;
        done(&world, &key, &format!("/v1/jobs/{held}/sideline"), json!({"because": "repairs"})).await;
        world.minutes(60).await;
        let mut next = free.throttled_job(3);
        next["trigger"]["past"] = json!("fire");
        put(&world, &key, &other, &next).await;
        after(&world, 60).await;
        tick(&world).await;
        assert_eq!((hook.calls().len(), free.calls().len()), (0, 3), "{count}: the policy is not held up");
        let shown = world.get("/v1/sideline", &key).await.json;
        assert_eq!(shown["jobs"][&held]["set_aside"], json!(count), "{shown}");
        let explained = world.get(&format!("/v1/events/{held}.1.{launch}.0/explain"), &key).await.json;
        assert_eq!(explained["because_code"], "sidelined", "{explained}");
        let policy = world.get("/v1/policies/small", &key).await.json;
        assert_eq!((&policy["in_flight"], &policy["waiting_runs"]), (&json!(0), &json!(1)), "{policy}");

        done(&world, &key, &format!("/v1/jobs/{held}/drain"), json!({"per_second": 1})).await;
        for calls in 1..=count {
            world.dispatch().await;
            assert_eq!(hook.calls().len(), calls as usize, "one in a second");
            after(&world, 1).await;
        }
        after(&world, 60).await;
        tick(&world).await;
        assert!(hook.attempts().iter().all(|attempt| *attempt == 1), "no delivery was counted before");
        assert_eq!(run(&world, &key, &held).await["succeeded"], json!(count));
        assert_eq!(world.get("/v1/sideline", &key).await.json["jobs"], json!({}));
    }
}

#[tokio::test]
async fn what_is_in_flight_of_a_sidelined_job_goes_on_and_what_its_groups_took_waits() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 600})).await;
    put(&world, &key, "batch", &batch(5)).await;
    let first = world.receive().await;
    assert_eq!(first.len(), 2);
    done(&world, &key, "/v1/jobs/batch/sideline", json!({})).await;
    world.post("/v1/tokens/release", &key, &release(&first)).await;
    after(&world, 30).await;
    assert_eq!(world.receive().await.len(), 0, "the range that its slot group had is set aside");
    let shown = world.get("/v1/sideline", &key).await.json;
    assert_eq!(shown["jobs"]["batch"]["set_aside"], 3, "{shown}");
    let detail = world.get("/v1/jobs/batch/runs/batch.1.1795262400", &key).await.json;
    assert_eq!((&detail["succeeded"], &detail["waiting"]), (&json!(2), &json!(3)), "{detail}");
    let refused = world.delete("/v1/policies/small", &key).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    done(&world, &key, "/v1/jobs/batch/drain", json!({"per_second": 10})).await;
    world.dispatch().await;
    after(&world, 1).await;
    let second = world.receive().await;
    world.post("/v1/tokens/release", &key, &release(&second)).await;
    world.dispatch().await;
    let third = world.receive().await;
    assert_eq!((second.len(), third.len()), (2, 1));
    world.post("/v1/tokens/release", &key, &release(&third)).await;
    assert_eq!(run(&world, &key, "batch").await["succeeded"], 5);
}

/// Whoever set it aside saw a job that was still sidelined, and died before it could tell that it was not any more.
#[tokio::test]
async fn what_was_set_aside_after_its_job_had_drained_is_drained_by_a_tick() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 600})).await;
    let mut job = batch(3);
    job["trigger"] = json!({"at": "2026-11-21T12:05:00Z"});
    put(&world, &key, "late", &job).await;
    done(&world, &key, "/v1/jobs/late/sideline", json!({})).await;
    world.minutes(7).await;
    assert!(world.receive().await.is_empty());
    let (store, client) = (world.engine.store(), "acme".parse().unwrap());
    let seen = store.recheck(&client).await.unwrap();
    store.replace_sidelines(&client, &Sidelines::default(), &seen, None).await.unwrap();
    world.minutes(5).await;
    let first = world.receive().await;
    world.post("/v1/tokens/release", &key, &release(&first)).await;
    assert_eq!((first.len(), world.receive().await.len()), (2, 1));
}

#[tokio::test]
async fn what_is_too_old_when_it_drains_is_recorded_and_not_sent() {
    let world = World::new().await;
    let key = world.register("acme").await;
    done(&world, &key, "/v1/sideline", json!({})).await;
    let hook = Hook::answering(&[]).await;
    let mut job = hook.job(3);
    job["relevancy_seconds"] = json!(60);
    put(&world, &key, "late", &job).await;
    after(&world, 61).await;
    done(&world, &key, "/v1/drain", json!({"per_second": 10})).await;
    for _ in 0..5 {
        after(&world, 1).await;
    }
    assert!(hook.calls().is_empty());
    assert_eq!(run(&world, &key, "late").await["reason"], "expired");
    assert_eq!(world.get("/v1/sideline", &key).await.json["client"], Value::Null);
}

#[tokio::test]
async fn a_retry_that_comes_due_is_set_aside_and_counts_on() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let hook = Hook::answering(&[503]).await;
    let mut job = hook.job(1);
    job["retry"] = json!({"backoff": "fixed", "wait_seconds": 30});
    put(&world, &key, "busy", &job).await;
    assert_eq!(hook.attempts(), [1]);
    done(&world, &key, "/v1/sideline", json!({})).await;
    after(&world, 120).await;
    assert_eq!(hook.attempts(), [1]);
    done(&world, &key, "/v1/drain", json!({"per_second": 1})).await;
    world.dispatch().await;
    assert_eq!(hook.attempts(), [1, 2]);
}

#[tokio::test]
async fn an_admin_does_it_to_any_client_and_nobody_else_notices() {
    let world = World::new().await;
    let (key, other) = (world.register("acme").await, world.register("other").await);
    done(&world, &world.admin_key, "/v1/clients/acme/sideline", json!({"because": "too much"})).await;
    let (hook, free) = (Hook::answering(&[]).await, Hook::answering(&[]).await);
    put(&world, &key, "held", &hook.job(1)).await;
    put(&world, &other, "free", &free.job(1)).await;
    assert_eq!((hook.calls().len(), free.calls().len()), (0, 1));
    let shown = world.get("/v1/clients/acme/sideline", &world.admin_key).await.json;
    assert_eq!((&shown["client"]["because"], &shown["client"]["set_aside"]), (&json!("too much"), &json!(1)));
    done(&world, &world.admin_key, "/v1/clients/acme/drain", json!({"per_second": 5})).await;
    world.dispatch().await;
    assert_eq!(hook.calls().len(), 1);
    let refused = world.post("/v1/clients/acme/sideline", &key, &json!({})).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text);
}

#[tokio::test]
async fn what_cannot_be_sidelined_is_refused_with_the_way_out() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let says = |answer: Answer, status: StatusCode, text: &str| {
        assert_eq!(answer.status, status, "{}", answer.text);
        assert!(answer.text.contains(text), "{}", answer.text);
    };
    let post = async |path: &str, body: Value| world.post(path, &key, &body).await;
    says(post("/v1/jobs/none/sideline", json!({})).await, StatusCode::NOT_FOUND, "no job 'none'");
    says(
        post("/v1/drain", json!({"per_second": 0})).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "per_second is 0",
    );
    let long = json!({"because": "x".repeat(201)});
    says(post("/v1/sideline", long).await, StatusCode::UNPROCESSABLE_ENTITY, "201 bytes");
    let none = world.post("/v1/clients/none/sideline", &world.admin_key, &json!({})).await;
    says(none, StatusCode::NOT_FOUND, "no client 'none'");
    let nothing = done(&world, &key, "/v1/drain", json!({"per_second": 5})).await;
    assert_eq!(nothing, json!({"client": null, "jobs": {}}), "there is nothing to drain");
}
