//! Calls that are made again with the same `Idempotency-Key` create nothing twice.

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, World, at_job, cron_job};

async fn post(world: &World, key: &str, path: &str, name: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", name), ("content-type", "application/json")];
    world.send(Method::POST, path, Some(key), &headers, &body.to_string()).await
}

#[tokio::test]
async fn a_job_without_an_id_is_created_once_for_a_key() {
    let world = World::new().await;
    let (key, other) = (world.register("acme").await, world.register("other").await);
    let mut once = at_job("2026-11-21T12:00:30Z");
    once["payload"] = json!({"n": 1});
    for (name, job) in [("cron", cron_job()), ("at", once.clone())] {
        let first = post(&world, &key, "/v1/jobs", name, &job).await;
        assert_eq!(
            (first.status, first.header("idempotent-replayed")),
            (StatusCode::CREATED, ""),
            "{}",
            first.text
        );
        let again = post(&world, &key, "/v1/jobs", name, &job).await;
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (StatusCode::OK, "true"),
            "{}",
            again.text
        );
        assert_eq!(again.json["job_id"], first.json["job_id"]);
        let theirs = post(&world, &other, "/v1/jobs", name, &job).await;
        assert_eq!(theirs.status, StatusCode::CREATED, "a key is its client's: {}", theirs.text);
        let mut changed = job.clone();
        changed["payload"] = json!("other");
        let refused = post(&world, &key, "/v1/jobs", name, &changed).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    }
    // Its instant is past by now, and the call is still answered as the first one was.
    world.clock.advance_ms(60_000);
    let late = post(&world, &key, "/v1/jobs", "at", &once).await;
    assert_eq!((late.status, late.header("idempotent-replayed")), (StatusCode::OK, "true"), "{}", late.text);
    let both: Vec<Value> = world.receive().await;
    assert_eq!(both.len(), 2, "one of each client: {both:?}");
    let named = post(
        &world,
        &key,
        "/v1/jobs",
        "cron",
        &json!({"job_id": "mine", "trigger": {"cron": "0 9 * * *"}, "target": cron_job()["target"]}),
    )
    .await;
    assert_eq!(
        (named.status, &named.json["job_id"]),
        (StatusCode::CREATED, &json!("mine")),
        "an id comes first"
    );
}

#[tokio::test]
async fn a_bulk_call_that_is_made_again_creates_nothing_twice() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let jobs = json!({"jobs": [at_job("2026-11-21T12:05:00Z"), at_job("2026-11-21T12:05:00Z"), cron_job()]});
    let ids = |answer: &Answer| -> Vec<Value> {
        answer.json["results"].as_array().unwrap().iter().map(|result| result["job_id"].clone()).collect()
    };
    let first = post(&world, &key, "/v1/jobs/bulk", "herd", &jobs).await;
    let again = post(&world, &key, "/v1/jobs/bulk", "herd", &jobs).await;
    assert_eq!(ids(&first), ids(&again), "{}", again.text);
    let statuses = |answer: &Answer| {
        answer.json["results"].as_array().unwrap().iter().map(|r| r["status"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((statuses(&first), statuses(&again)), (vec![json!(201); 3], vec![json!(200); 3]));
    assert_ne!(ids(&first)[0], ids(&first)[1]);
    world.minutes(6).await;
    assert_eq!(world.receive().await.len(), 2);
}

/// Sixty-four of the same call at once, with an idempotency key of their own.
async fn at_once(world: &World, key: &str, path: &str, body: &Value) -> Vec<Answer> {
    join_all((0..64).map(|_| post(world, key, path, path, body))).await
}

/// How many of the answers say that something was made, and that it had been; the others would be refusals.
fn made(answers: &[Answer], done: StatusCode) -> (usize, usize) {
    let is_replayed = |answer: &&Answer| answer.header("idempotent-replayed") == "true";
    let again = answers.iter().filter(is_replayed).count();
    let first = answers.iter().filter(|answer| answer.status == done && !is_replayed(answer)).count();
    (first, again)
}

#[tokio::test]
async fn sixty_four_calls_at_once_with_one_key_make_one_thing() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    for (path, by, body, shown) in [
        ("/v1/jobs", &key, cron_job(), "job_id"),
        ("/v1/jobs/nightly/trigger", &key, json!({}), "run_id"),
        ("/v1/keys", &key, json!({"scopes": ["release"]}), "api_key"),
        ("/v1/clients/acme/keys", &world.admin_key, json!({"note": "by the admin"}), "api_key"),
        ("/v1/clients", &world.admin_key, json!({"client_id": "zeta"}), "api_key"),
        ("/v1/webhook-secret/rotate", &key, json!({}), "webhook_secret"),
    ] {
        let answers = at_once(&world, by, path, &body).await;
        let done =
            answers.iter().find(|answer| answer.header("idempotent-replayed") != "true").unwrap().status;
        assert_eq!(made(&answers, done), (1, 63), "{path} {}", answers[0].text);
        assert!(answers.iter().all(|answer| answer.json[shown] == answers[0].json[shown]), "{path}");
        assert!(answers[0].json[shown].is_string(), "{path} {}", answers[0].text);
    }
    let keys = world.get("/v1/keys", &key).await.json;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 3, "{keys}");
}

#[tokio::test]
async fn a_key_whose_answer_was_lost_is_shown_again_to_its_caller_alone() {
    let world = World::new().await;
    let first = world.register("acme").await;
    let body = json!({"scopes": ["read", "admin"], "note": "ops"});
    let made = post(&world, &first, "/v1/keys", "lost", &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let again = post(&world, &first, "/v1/keys", "lost", &body).await;
    assert_eq!((again.status, &again.json), (StatusCode::OK, &made.json), "{}", again.text);
    let api_key = made.json["api_key"].as_str().unwrap();
    assert_eq!(world.get("/v1/jobs", api_key).await.status, StatusCode::OK);
    // Another name makes another key, and what is stored does not give it away: it is derived from what is stored nowhere.
    let other = post(&world, &first, "/v1/keys", "other", &body).await;
    assert_ne!(other.json["api_key"], made.json["api_key"]);
    for (by, body) in [(&*first, json!({"scopes": ["read"]})), (api_key, body.clone())] {
        let refused = post(&world, by, "/v1/keys", "lost", &body).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
        assert_eq!(refused.json["type"], "urn:tidegate:problem:already-made");
    }
    let id = made.json["key_id"].as_str().unwrap();
    let refused = post(&world, api_key, "/v1/keys", "lost", &body).await;
    assert!(refused.text.contains(id), "the key to revoke is named: {}", refused.text);
    // A revoked key does not come back.
    assert_eq!(world.delete(&format!("/v1/keys/{id}"), &first).await.status, StatusCode::NO_CONTENT);
    let revoked = post(&world, &first, "/v1/keys", "lost", &body).await;
    assert_eq!(revoked.status, StatusCode::CONFLICT, "{}", revoked.text);
    assert_eq!(world.get("/v1/jobs", api_key).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_client_and_a_webhook_secret_are_answered_again_as_they_were() {
    let world = World::new().await;
    let admin = &world.admin_key;
    let body = json!({"client_id": "acme"});
    let first = post(&world, admin, "/v1/clients", "lost", &body).await;
    let again = post(&world, admin, "/v1/clients", "lost", &body).await;
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::OK), "{}", again.text);
    assert_eq!(again.json, first.json);
    let unnamed = world.post("/v1/clients", admin, &body).await;
    assert_eq!(unnamed.json["type"], "urn:tidegate:problem:id-taken", "{}", unnamed.text);
    let key = first.json["api_key"].as_str().unwrap();
    let secret = post(&world, key, "/v1/webhook-secret/rotate", "lost", &json!({})).await;
    assert_eq!(secret.status, StatusCode::CREATED, "{}", secret.text);
    for _ in 0..4 {
        let again = post(&world, key, "/v1/webhook-secret/rotate", "lost", &json!({})).await;
        assert_eq!((again.status, &again.json), (StatusCode::OK, &secret.json), "{}", again.text);
    }
    let at_once = post(&world, key, "/v1/webhook-secret/rotate", "lost", &json!({"keep_seconds": 0})).await;
    assert_eq!(at_once.status, StatusCode::CONFLICT, "it would end the former secret: {}", at_once.text);
    let next = world.post("/v1/webhook-secret/rotate", key, &json!({})).await;
    assert_eq!(next.status, StatusCode::CREATED, "{}", next.text);
    let late = post(&world, key, "/v1/webhook-secret/rotate", "lost", &json!({})).await;
    assert_eq!(late.json["type"], "urn:tidegate:problem:already-made", "{}", late.text);
    // Who has the name of a deleted client is somebody else.
    world.delete("/v1/clients/acme", admin).await;
    for _ in 0..30 {
        world.minutes(1).await;
    }
    assert_eq!(world.get("/v1/clients/acme", admin).await.status, StatusCode::NOT_FOUND);
    let anew = post(&world, admin, "/v1/clients", "lost", &body).await;
    assert_eq!(anew.status, StatusCode::CREATED, "{}", anew.text);
    assert_ne!(anew.json["api_key"], first.json["api_key"]);
}
