//! Leaving out a launch of a job.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, World, at_job, cron_job};

const NIGHTLY: &str = "/v1/jobs/nightly";

async fn skip(world: &World, key: &str, body: Value) -> Answer {
    world.post("/v1/jobs/nightly/skip", key, &body).await
}

/// A client with a job `nightly`: at nine on weekdays, and it is Saturday.
async fn with_job(job: &Value) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    let made = world.put(NIGHTLY, &key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    (world, key)
}

/// Its next launches, and why each is not made.
async fn upcoming(world: &World, key: &str) -> Vec<(String, Option<String>)> {
    let answer = world.get("/v1/jobs/nightly/upcoming?count=3", key).await.json;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let launches = answer["upcoming"].as_array().unwrap().iter();
    launches.map(|launch| (text(&launch["launch_at"]).unwrap(), text(&launch["skipped"]))).collect()
}

#[tokio::test]
async fn the_next_launch_is_left_out_and_those_after_it_are_made() {
    let (world, key) = with_job(&cron_job()).await;
    let first = skip(&world, &key, json!({})).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text);
    assert_eq!(first.json, json!({"job_id": "nightly", "revision": 2, "launch_at": "2026-11-23T09:00:00Z"}));
    assert_eq!(first.header("etag"), "\"2\"");
    let second = skip(&world, &key, json!({})).await;
    assert_eq!(second.json["launch_at"], "2026-11-24T09:00:00Z", "{}", second.text);
    let reason = || Some("skipped_on_request".to_owned());
    let shown = upcoming(&world, &key).await;
    let expected = [
        ("2026-11-23T09:00:00Z".to_owned(), reason()),
        ("2026-11-24T09:00:00Z".to_owned(), reason()),
        ("2026-11-25T09:00:00Z".to_owned(), None),
    ];
    assert_eq!(shown, expected);
    let job = world.get(NIGHTLY, &key).await.json;
    assert_eq!(job["skip"], json!(["2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"]));
    // What was answered may be sent again, and what is taken out of the list is made after all.
    let again = world.put(NIGHTLY, &key, &job).await;
    assert_eq!((again.status, &again.json["revision"]), (StatusCode::OK, &json!(3)), "{}", again.text);
    let patch = json!({"skip": ["2026-11-24T10:00:00+01:00"]}).to_string();
    let headers = [("content-type", "application/json")];
    let patched = world.send(Method::PATCH, NIGHTLY, Some(&key), &headers, &patch).await;
    assert_eq!(patched.json["skip"], json!(["2026-11-24T09:00:00Z"]), "{}", patched.text);
    let made: Vec<bool> = upcoming(&world, &key).await.iter().map(|(_, skipped)| skipped.is_none()).collect();
    assert_eq!(made, [true, false, true]);
}

#[tokio::test]
async fn a_launch_that_is_named_is_left_out_once_with_its_jitter() {
    let mut job = cron_job();
    job["jitter_seconds"] = json!(600);
    let (world, key) = with_job(&job).await;
    let second = upcoming(&world, &key).await[1].0.clone();
    assert_ne!(second, "2026-11-24T09:00:00Z", "the job has an offset");
    for _ in 0..2 {
        let left_out = skip(&world, &key, json!({"launch_at": second})).await;
        assert_eq!((&left_out.json["launch_at"], &left_out.json["revision"]), (&json!(second), &json!(2)));
    }
    let made: Vec<bool> = upcoming(&world, &key).await.iter().map(|(_, skipped)| skipped.is_none()).collect();
    assert_eq!(made, [true, false, true]);
    assert_eq!(world.get(NIGHTLY, &key).await.json["skip"], json!(["2026-11-24T09:00:00Z"]));
}

#[tokio::test]
async fn what_cannot_be_left_out_is_said_and_changes_nothing() {
    let (world, key) = with_job(&cron_job()).await;
    let before = world.everything().await;
    for (body, field, says) in [
        (
            json!({"launch_at": "2026-11-22T09:00:00Z"}),
            "launch_at",
            "has no launch to come at '2026-11-22T09:00:00Z'",
        ),
        (json!({"launch_at": "2026-11-20T09:00:00Z"}), "launch_at", "has no launch to come"),
        (json!({"launch_at": "tomorrow"}), "launch_at", "tomorrow"),
        (json!({"at": "2026-11-23T09:00:00Z"}), "at", "the body has no field 'at'"),
    ] {
        let refused = skip(&world, &key, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field);
        assert!(refused.text.contains(says), "{says}: {}", refused.text);
    }
    let headers = [("content-type", "application/json"), ("if-match", "\"7\"")];
    let other = world.send(Method::POST, "/v1/jobs/nightly/skip", Some(&key), &headers, "{}").await;
    assert_eq!(other.status, StatusCode::PRECONDITION_FAILED, "{}", other.text);
    assert_eq!(world.post("/v1/jobs/other/skip", &key, &json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.everything().await, before);

    let once = world.post("/v1/jobs", &key, &at_job("2026-11-21T13:00:00Z")).await.json;
    let once = format!("/v1/jobs/{}/skip", once["job_id"].as_str().unwrap());
    world.post("/v1/jobs/nightly/pause", &key, &json!({})).await;
    for path in [&*once, "/v1/jobs/nightly/skip"] {
        let refused = world.post(path, &key, &json!({})).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{path}: {}", refused.text);
        assert_eq!(refused.json["type"], "urn:tidegate:problem:not-skipped");
    }
}

#[tokio::test]
async fn a_job_leaves_out_fifty_launches_and_no_more() {
    let mut job = cron_job();
    job["trigger"] = json!({"cron": "0 * * * *", "zone": "UTC"});
    let (world, key) = with_job(&job).await;
    for _ in 0..50 {
        assert_eq!(skip(&world, &key, json!({})).await.status, StatusCode::OK);
    }
    let refused = skip(&world, &key, json!({})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert!(refused.text.contains("leaves out 50 launches"), "{}", refused.text);
    // Once the first of them is over, another may be.
    world.clock.advance_ms(2 * 3_600_000);
    assert_eq!(skip(&world, &key, json!({})).await.status, StatusCode::OK);
    let skipped = world.get(NIGHTLY, &key).await.json["skip"].as_array().unwrap().len();
    assert_eq!(skipped, 50);
    job["skip"] = json!((0..51).map(|minute| format!("2026-11-23T09:{minute:02}:00Z")).collect::<Vec<_>>());
    let refused = world.put(NIGHTLY, &key, &job).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "skip");
}
