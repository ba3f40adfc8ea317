//! PATCH: JSON merge patches of jobs and policies.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, QUEUE, World, at_job, cron_job};

async fn patch(world: &World, path: &str, key: &str, body: &Value) -> Answer {
    patch_with(world, path, key, &[("content-type", "application/merge-patch+json")], &body.to_string()).await
}

async fn patch_with(world: &World, path: &str, key: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    world.send(Method::PATCH, path, Some(key), headers, body).await
}

async fn world() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    let policy = json!({"max_in_flight": 3, "lease_seconds": 90, "rate": {"events": 10, "per": "second", "burst": 20}});
    world.put("/v1/policies/small", &key, &policy).await;
    (world, key)
}

#[tokio::test]
async fn a_changed_limit_leaves_the_rate() {
    let (world, key) = world().await;
    let changed = patch(&world, "/v1/policies/small", &key, &json!({"max_in_flight": 6})).await;
    assert_eq!((changed.status, changed.header("etag")), (StatusCode::OK, "\"2\""), "{}", changed.text);
    let rate = json!({"events": 10, "per": "second", "burst": 20});
    assert_eq!((&changed.json["max_in_flight"], &changed.json["rate"]), (&json!(6), &rate));
    let slower =
        patch(&world, "/v1/policies/small", &key, &json!({"rate": {"events": 5, "burst": null}})).await;
    assert_eq!(slower.json["rate"], json!({"events": 5, "per": "second", "burst": null}), "{}", slower.text);
    let plain =
        patch(&world, "/v1/policies/small", &key, &json!({"rate": null, "lease_seconds": null})).await;
    assert_eq!((&plain.json["rate"], &plain.json["lease_seconds"]), (&Value::Null, &json!(60)));
    assert_eq!((&plain.json["max_in_flight"], &plain.json["revision"]), (&json!(6), &json!(4)));
    let same = patch(&world, "/v1/policies/small", &key, &json!({})).await;
    assert_eq!((same.status, &same.json["revision"]), (StatusCode::OK, &json!(4)), "{}", same.text);
}

#[tokio::test]
async fn a_job_keeps_what_the_patch_does_not_name_byte_for_byte() {
    let (world, key) = world().await;
    let text = r#"{"trigger": {"rate": "5 minutes"}, "payload": { "b" : 1.50, "a":"\u00e9" }, "policy_id": "small",
        "window": {"seconds": 60, "pace": "even"}, "target": {"sqs": {"queue_url": "QUEUE"}}}"#;
    let headers = [("content-type", "application/json")];
    let text = text.replace("QUEUE", QUEUE);
    let put = world.send(Method::PUT, "/v1/jobs/job", Some(&key), &headers, &text).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text);
    world.clock.advance_ms(61_000);
    let body = json!({"count": 9, "window": {"seconds": 90}, "priority": 1});
    let changed = patch(&world, "/v1/jobs/job", &key, &body).await;
    assert_eq!((changed.status, changed.header("etag")), (StatusCode::OK, "\"2\""), "{}", changed.text);
    assert!(changed.text.contains(r#"{ "b" : 1.50, "a":"\u00e9" }"#), "{}", changed.text);
    let window = json!({"seconds": 90, "on_deadline": "continue", "pace": "even"});
    assert_eq!((&changed.json["count"], &changed.json["window"]), (&json!(9), &window));
    assert_eq!(changed.json["trigger"], put.json["trigger"], "the beat goes on");
    let removed =
        patch(&world, "/v1/jobs/job", &key, &json!({"window": null, "count": null, "priority": null})).await;
    let expected = (&Value::Null, &json!(1), &json!(5));
    assert_eq!((&removed.json["window"], &removed.json["count"], &removed.json["priority"]), expected);
}

#[tokio::test]
async fn the_kind_of_a_trigger_of_a_target_and_of_a_payload_can_change() {
    let (world, key) = world().await;
    world.put("/v1/jobs/job", &key, &cron_job()).await;
    for body in [
        json!({"trigger": {"zone": "Asia/Tokyo"}}),
        json!({"trigger": {"cron": "0 10 * * *"}}),
        json!({"trigger": {"cron": null, "zone": null, "rate": "1h"}}),
        json!({"trigger": {"rate": {"every_seconds": 60}}}),
        json!({"trigger": {"rate": null, "at": "2026-12-01T00:00:00Z"}}),
        json!({"target": {"sqs": null, "http": {"url": "https://example.com/h"}}}),
        json!({"payload": null, "payloads": [1, 2]}),
        json!({"payloads": [1, 2, 3]}),
        json!({"payloads": null, "payload_template": {"page": "{{index}}"}, "count": 4}),
        json!({"payload_template": null, "payload": {"a": {"b": 1}}}),
        json!({"payload": {"a": {"c": 2}}}),
    ] {
        let changed = patch(&world, "/v1/jobs/job", &key, &body).await;
        assert_eq!(changed.status, StatusCode::OK, "{body}: {}", changed.text);
    }
    let shown = world.get("/v1/jobs/job", &key).await.json;
    assert_eq!(shown["payload"], json!({"a": {"b": 1, "c": 2}}));
    assert_eq!((&shown["revision"], &shown["count"]), (&json!(12), &json!(4)));
}

#[tokio::test]
async fn what_comes_of_a_patch_is_checked_like_a_put() {
    let (world, key) = world().await;
    world.put("/v1/jobs/job", &key, &cron_job()).await;
    let before = world.everything().await;
    for (path, body, field) in [
        ("/v1/jobs/job", json!({"count": 0}), "count"),
        ("/v1/jobs/job", json!({"trigger": {"cron": "60 * * * *"}}), "trigger.cron"),
        ("/v1/jobs/job", json!({"trigger": {"rate": "1h"}}), "trigger"),
        ("/v1/jobs/job", json!({"trigger": null}), "trigger"),
        ("/v1/jobs/job", json!({"policy_id": "none"}), "policy_id"),
        ("/v1/jobs/job", json!({"job_id": "other"}), "job_id"),
        ("/v1/jobs/job", json!({"paused": true}), "paused"),
        ("/v1/jobs/job", json!({"colour": 1}), "colour"),
        ("/v1/policies/small", json!({"max_in_flight": 0}), "max_in_flight"),
        ("/v1/policies/small", json!({"max_in_flight": null}), "max_in_flight"),
        ("/v1/policies/small", json!({"rate": {"per": "fortnight"}}), "rate.per"),
        ("/v1/policies/small", json!({"policy_id": "other"}), "policy_id"),
        ("/v1/policies/small", json!({"paused": true}), "paused"),
    ] {
        let refused = patch(&world, path, &key, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{body}: {}", refused.text);
    }
    for path in ["/v1/jobs/none", "/v1/policies/none", "/v1/jobs/no%20job"] {
        assert_eq!(patch(&world, path, &key, &json!({})).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let other = world.register("other").await;
    assert_eq!(
        patch(&world, "/v1/jobs/job", &other, &json!({"count": 2})).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        world.everything().await.len(),
        before.len() + 4,
        "but for the other client, and the record of it"
    );
    assert_eq!(world.get("/v1/jobs/job", &key).await.json["revision"], 1);
}

#[tokio::test]
async fn a_body_that_is_no_patch_is_refused() {
    let (world, key) = world().await;
    for (kind, body, status) in [
        ("application/json", "{}", 200),
        ("application/merge-patch+json; charset=utf-8", "{}", 200),
        ("application/json-patch+json", "[]", 415),
        ("text/plain", "{}", 415),
        ("application/json", "", 400),
        ("application/json", "{", 400),
        ("application/json", "[]", 422),
        ("application/json", "null", 422),
        ("application/json", "7", 422),
    ] {
        let answer = patch_with(&world, "/v1/policies/small", &key, &[("content-type", kind)], body).await;
        assert_eq!(answer.status.as_u16(), status, "{kind} {body}: {}", answer.text);
    }
    let undeclared = patch_with(&world, "/v1/policies/small", &key, &[], "{}").await;
    assert_eq!(undeclared.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{}", undeclared.text);
    let deep = format!("{}1{}", r#"{"payload":"#.repeat(5_000), "}".repeat(5_000));
    world.put("/v1/jobs/job", &key, &cron_job()).await;
    let kind = [("content-type", "application/json")];
    let refused = patch_with(&world, "/v1/jobs/job", &key, &kind, &deep).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
}

#[tokio::test]
async fn an_expected_revision_is_honoured_by_header_and_body() {
    let (world, key) = world().await;
    world.put("/v1/jobs/job", &key, &cron_job()).await;
    for (path, body) in
        [("/v1/jobs/job", json!({"count": 2})), ("/v1/policies/small", json!({"max_in_flight": 4}))]
    {
        let kind = ("content-type", "application/merge-patch+json");
        let stale = patch_with(&world, path, &key, &[kind, ("if-match", "\"7\"")], &body.to_string()).await;
        assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED, "{}", stale.text);
        let mut with = body.clone();
        with["revision"] = json!(7);
        assert_eq!(patch(&world, path, &key, &with).await.status, StatusCode::PRECONDITION_FAILED);
        let right = patch_with(&world, path, &key, &[kind, ("if-match", "\"1\"")], &body.to_string()).await;
        assert_eq!((right.status, &right.json["revision"]), (StatusCode::OK, &json!(2)), "{}", right.text);
    }
}

/// Each of them changes another field; none is lost.
#[tokio::test]
async fn patches_at_once_are_all_made() {
    let (world, key) = world().await;
    world.put("/v1/jobs/job", &key, &cron_job()).await;
    let (count, attempts, jitter) =
        (json!({"count": 7}), json!({"max_attempts": 3}), json!({"jitter_seconds": 30}));
    let answers = tokio::join!(
        patch(&world, "/v1/jobs/job", &key, &count),
        patch(&world, "/v1/jobs/job", &key, &attempts),
        patch(&world, "/v1/jobs/job", &key, &jitter),
    );
    for answer in [answers.0, answers.1, answers.2] {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
    let shown = world.get("/v1/jobs/job", &key).await.json;
    let fields = (&shown["count"], &shown["max_attempts"], &shown["jitter_seconds"], &shown["revision"]);
    assert_eq!(fields, (&json!(7), &json!(3), &json!(30), &json!(4)));
    let (limit, lease) = (json!({"max_in_flight": 9}), json!({"lease_seconds": 120}));
    let answers = tokio::join!(
        patch(&world, "/v1/policies/small", &key, &limit),
        patch(&world, "/v1/policies/small", &key, &lease),
    );
    assert_eq!((answers.0.status, answers.1.status), (StatusCode::OK, StatusCode::OK));
    let shown = world.get("/v1/policies/small", &key).await.json;
    assert_eq!((&shown["max_in_flight"], &shown["lease_seconds"]), (&json!(9), &json!(120)));
}

#[tokio::test]
async fn a_one_time_job_moves_by_its_key_and_not_by_a_generated_id() {
    let (world, key) = world().await;
    world.put("/v1/jobs/once", &key, &at_job("2026-12-01T00:00:00Z")).await;
    let moved =
        patch(&world, "/v1/jobs/once", &key, &json!({"trigger": {"at": "2026-12-02T00:00:00Z"}})).await;
    assert_eq!(moved.json["trigger"]["at"], "2026-12-02T00:00:00Z", "{}", moved.text);
    let made = world.post("/v1/jobs", &key, &at_job("2026-12-01T00:00:00Z")).await;
    let path = format!("/v1/jobs/{}", made.json["job_id"].as_str().unwrap());
    let refused = patch(&world, &path, &key, &json!({"count": 2})).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert!(refused.json["detail"].as_str().unwrap().contains("has a generated id"), "{}", refused.text);
}
