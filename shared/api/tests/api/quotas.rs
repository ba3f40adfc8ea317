//! What a client may take at the most, by its quota.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Client, ClientChange, Quotas};

use crate::world::{Answer, World, at_job, cron_job};

const SOON: &str = "2026-11-22T12:00:00Z";

pub async fn limit(world: &World, quotas: Value) -> Answer {
    let body = json!({"quotas": quotas}).to_string();
    let headers = [("content-type", "application/json")];
    let changed =
        world.send(Method::PATCH, "/v1/clients/acme", Some(&world.admin_key), &headers, &body).await;
    // Until then the former quota may be believed.
    world.clock.advance_ms(10_000);
    changed
}

async fn limited(creates_per_minute: u32) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    let changed = limit(&world, json!({"creates_per_minute": creates_per_minute})).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    assert_eq!(changed.json["quotas"], json!({"creates_per_minute": creates_per_minute}));
    (world, key)
}

fn writes(world: &World) -> f64 {
    world.embedded.meter().snapshot().capacity.values().map(|units| units.write).sum()
}

#[tokio::test]
async fn what_is_over_the_quota_is_told_when_to_come_again() {
    let (world, key) = limited(2).await;
    assert_eq!(world.post("/v1/jobs", &key, &at_job(SOON)).await.status, StatusCode::CREATED);
    assert_eq!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status, StatusCode::CREATED);
    let before = world.everything().await;
    for refused in [
        world.post("/v1/jobs", &key, &at_job(SOON)).await,
        world.put("/v1/jobs/nightly", &key, &cron_job()).await,
    ] {
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
        assert_eq!(refused.json["type"], "urn:tidegate:problem:over-quota");
        assert_eq!(refused.header("retry-after"), "50");
        assert!(refused.text.contains("may write 2 jobs a minute"), "{}", refused.text);
    }
    assert_eq!(world.everything().await, before);
    // What is wrong is told as such, and takes nothing; reading is free.
    let wrong = world.post("/v1/jobs", &key, &json!({"trigger": {}})).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.get("/v1/jobs/nightly", &key).await.status, StatusCode::OK);
    world.clock.advance_ms(50_000);
    assert_eq!(world.post("/v1/jobs", &key, &at_job(SOON)).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn of_a_bulk_call_the_first_jobs_are_written_and_the_others_told() {
    let (world, key) = limited(3).await;
    let mut jobs = vec![at_job(SOON); 5];
    jobs[1] = json!({"trigger": {}});
    let answer = world.post("/v1/jobs/bulk", &key, &json!({"jobs": jobs})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let statuses: Vec<u64> = answer.json["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 422, 201, 201, 429]);
    let again = world.post("/v1/jobs/bulk", &key, &json!({"jobs": [at_job(SOON)]})).await;
    assert_eq!(again.json["results"][0]["status"], 429, "{}", again.text);
}

#[tokio::test]
async fn a_quota_changes_while_its_client_writes_and_another_has_its_own() {
    let (world, key) = limited(1).await;
    let other = world.register("other").await;
    let create = async |key: &str| world.post("/v1/jobs", key, &at_job(SOON)).await.status;
    assert_eq!(
        (create(&key).await, create(&key).await),
        (StatusCode::CREATED, StatusCode::TOO_MANY_REQUESTS)
    );
    assert_eq!((create(&other).await, create(&other).await), (StatusCode::CREATED, StatusCode::CREATED));
    limit(&world, json!({"creates_per_minute": 2})).await;
    assert_eq!(
        (create(&key).await, create(&key).await),
        (StatusCode::CREATED, StatusCode::TOO_MANY_REQUESTS)
    );
    limit(&world, json!({})).await;
    assert_eq!((create(&key).await, create(&key).await), (StatusCode::CREATED, StatusCode::CREATED));
    for most in [0, 1_000_001] {
        let refused = limit(&world, json!({"creates_per_minute": most})).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "quotas.creates_per_minute");
    }
}

#[tokio::test]
async fn a_payload_over_the_quota_is_refused_in_the_field_that_it_is_in() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let changed = limit(&world, json!({"payload_bytes": 12})).await;
    assert_eq!(changed.json["quotas"], json!({"payload_bytes": 12}), "{}", changed.text);
    for (field, within, over) in [
        ("payload", json!("x".repeat(10)), json!("x".repeat(11))),
        ("payloads", json!(["abc", "def"].map(|text| &text[..2])), json!(["abc", "def"])),
        ("payload_template", json!("{{index}}x"), json!("{{index}}xx")),
    ] {
        let job = |payload: &Value| {
            let mut job = at_job(SOON);
            job.as_object_mut().unwrap().remove("payload");
            job.as_object_mut().unwrap().remove("count");
            job[field] = payload.clone();
            job
        };
        let before = world.everything().await;
        let refused = world.post("/v1/jobs", &key, &job(&over)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field);
        let says = "the payload is 13 bytes of JSON; client 'acme' may send 12 (quotas.payload_bytes)";
        assert!(refused.text.contains(says), "{}", refused.text);
        assert_eq!(world.everything().await, before);
        let taken = world.post("/v1/jobs", &key, &job(&within)).await;
        assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text);
    }
    for most in [3, 65_537] {
        let refused = limit(&world, json!({"payload_bytes": most})).await;
        assert_eq!(refused.json["errors"][0]["field"], "quotas.payload_bytes", "{}", refused.text);
    }
}

/// By the library, in whose place the admin calls too.
#[tokio::test]
async fn a_quota_holds_under_sixty_four_writers() {
    let (world, key) = limited(100).await;
    let url = world.serve().await;
    let admin = Client::new(&url, &world.admin_key).unwrap();
    let change = ClientChange {
        quotas: Some(Quotas { creates_per_minute: Some(150), ..Quotas::default() }),
        ..ClientChange::default()
    };
    let changed = admin.change_client("acme", &change, None).await.unwrap();
    assert_eq!(changed.quotas.creates_per_minute, Some(150));
    world.clock.advance_ms(10_000);
    let world = Arc::new(world);
    let writers = (0..64).map(|writer| {
        let (world, key) = (Arc::clone(&world), key.clone());
        tokio::spawn(async move {
            let mut created = 0;
            for number in 0..5 {
                let answer = match (writer + number) % 3 {
                    0 => world.put(&format!("/v1/jobs/job-{writer}-{number}"), &key, &cron_job()).await,
                    1 => world.post("/v1/jobs", &key, &at_job(SOON)).await,
                    _ => {
                        let jobs = json!({"jobs": [at_job(SOON), at_job(SOON)]});
                        world.post("/v1/jobs/bulk", &key, &jobs).await
                    }
                };
                created += match answer.json["results"].as_array() {
                    Some(results) => results.iter().filter(|result| result["status"] == 201).count(),
                    None => usize::from(answer.status == StatusCode::CREATED),
                };
            }
            created
        })
    });
    let mut created = 0;
    for writer in writers.collect::<Vec<_>>() {
        created += writer.await.unwrap();
    }
    assert_eq!(created, 150);
}

#[tokio::test]
async fn a_quota_costs_one_write_unit_a_call_and_nothing_where_there_is_none() {
    let cost = async |quotas: Value| {
        let world = World::new().await;
        let key = world.register("acme").await;
        limit(&world, quotas).await;
        let mut costs = Vec::new();
        for number in 0..4 {
            let before = writes(&world);
            let answer = match number {
                3 => world.post("/v1/jobs/bulk", &key, &json!({"jobs": vec![at_job(SOON); 20]})).await,
                _ => world.post("/v1/jobs", &key, &at_job(SOON)).await,
            };
            assert!(answer.status.is_success(), "{}", answer.text);
            costs.push(writes(&world) - before);
        }
        costs
    };
    let (without, with) = (cost(json!({})).await, cost(json!({"creates_per_minute": 1000})).await);
    let more: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with - without).collect();
    // The first call of a minute finds that it is the first.
    assert_eq!(more, [2.0, 1.0, 1.0, 1.0]);
}
