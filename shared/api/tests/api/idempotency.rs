//! Calls that are made again with the same `Idempotency-Key` create nothing twice.

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
