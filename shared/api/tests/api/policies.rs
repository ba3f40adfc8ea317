//! Policies: created, repeated, replaced, read, listed and deleted.

use http::{Method, StatusCode};
use serde_json::json;

use crate::world::{World, cron_job};

#[tokio::test]
async fn a_policy_is_created_once_and_read_with_what_it_holds() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = json!({"policy_id": "small", "max_in_flight": 3});
    let answer = world.post("/v1/policies", &key, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(answer.header("location"), "/v1/policies/small");
    let shown = json!({"policy_id": "small", "revision": 1, "max_in_flight": 3, "lease_seconds": 60});
    assert_eq!(answer.json, shown);
    assert_eq!(world.post("/v1/policies", &key, &body).await.json, shown);
    let other = world.post("/v1/policies", &key, &json!({"policy_id": "small", "max_in_flight": 4})).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(world.get("/v1/policies", &key).await.json, json!({"policies": [shown], "next_cursor": null}));
    let read = world.get("/v1/policies/small", &key).await;
    assert_eq!(read.header("etag"), "\"1\"");
    assert_eq!(
        read.json,
        json!({
            "policy_id": "small", "revision": 1, "max_in_flight": 3, "lease_seconds": 60,
            "in_flight": 0, "waiting": 0, "waiting_runs": 0, "draining": false
        })
    );
}

#[tokio::test]
async fn a_put_creates_then_replaces_under_its_revision() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let limit = |max: u32| json!({"max_in_flight": max, "lease_seconds": 30}).to_string();
    let put = |revision: Option<&'static str>, max: u32| {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(revision.map(|revision| ("if-match", revision)));
        let (world, key, body) = (&world, &key, limit(max));
        async move { world.send(Method::PUT, "/v1/policies/small", Some(key), &headers, &body).await }
    };
    assert_eq!(put(Some("\"1\""), 2).await.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(put(None, 2).await.status, StatusCode::CREATED);
    let replaced = put(None, 5).await;
    assert_eq!((replaced.status, replaced.header("etag")), (StatusCode::OK, "\"2\""));
    let stale = put(Some("\"1\""), 9).await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(
        stale.json["detail"],
        "policy 'small' is at revision 2, not at the one in If-Match; read it again and decide anew"
    );
    assert_eq!(world.get("/v1/policies/small", &key).await.json["max_in_flight"], 5);
}

#[tokio::test]
async fn a_policy_that_a_job_names_stays() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let mut job = cron_job();
    job["policy_id"] = json!("small");
    assert_eq!(world.put("/v1/jobs/nightly", &key, &job).await.json["policy_id"], "small");
    let answer = world.delete("/v1/policies/small", &key).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(
        answer.json["detail"],
        "policy 'small' is named by the jobs 'nightly'; delete them or give them another policy"
    );
    world.delete("/v1/jobs/nightly", &key).await;
    assert_eq!(world.delete("/v1/policies/small", &key).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/policies/small", &key).await.status, StatusCode::NOT_FOUND);
}
