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
    let shown = json!({
        "policy_id": "small", "revision": 1, "max_in_flight": 3, "lease_seconds": 60, "on_expiry": "reclaim", "rate": null,
        "max_waiting_runs": null, "paused": false
    });
    assert_eq!(answer.json, shown);
    assert_eq!(world.post("/v1/policies", &key, &body).await.json, shown);
    let other = world.post("/v1/policies", &key, &json!({"policy_id": "small", "max_in_flight": 4})).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(
        world.get("/v1/policies", &key).await.json,
        json!({"policies": [&shown], "next_cursor": null})
    );
    let read = world.get("/v1/policies/small", &key).await;
    assert_eq!(read.header("etag"), "\"1\"");
    let mut with_load = shown;
    for (field, value) in [
        ("in_flight", json!(0)),
        ("waiting", json!(0)),
        ("waiting_runs", json!(0)),
        ("draining", json!(false)),
        ("status", json!("0 in flight, limit 3")),
    ] {
        with_load[field] = value;
    }
    assert_eq!(read.json, with_load);
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
        "policy 'small' is at revision 2, not at the one that If-Match or the body expects; read it again and decide anew"
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

#[tokio::test]
async fn every_field_of_a_policy_comes_back() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = json!({
        "max_in_flight": 8, "lease_seconds": 10, "on_expiry": "hold",
        "rate": {"events": 100, "per": "minute", "burst": 20}, "max_waiting_runs": 50
    });
    let made = world.put("/v1/policies/small", &key, &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(&made.json[field], value, "{field}");
    }
    let read = world.get("/v1/policies/small", &key).await.json;
    assert_eq!(read["rate"], json!({"events": 100, "per": "minute", "burst": 20}));
    let without = json!({"max_in_flight": 8, "lease_seconds": 10, "rate": {"events": 5, "per": "second"}});
    let changed = world.put("/v1/policies/small", &key, &without).await;
    assert_eq!(changed.json["rate"], json!({"events": 5, "per": "second", "burst": null}));
    assert_eq!((&changed.json["on_expiry"], &changed.json["revision"]), (&json!("reclaim"), &json!(2)));
}

#[tokio::test]
async fn pausing_and_resuming_are_idempotent_and_take_the_revision() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let act = |what: &'static str, revision: Option<&'static str>| {
        let headers: Vec<_> = revision.map(|revision| ("if-match", revision)).into_iter().collect();
        let (world, key) = (&world, &key);
        async move {
            world.send(Method::POST, &format!("/v1/policies/small/{what}"), Some(key), &headers, "").await
        }
    };
    assert_eq!(act("resume", None).await.json["paused"], false);
    assert_eq!(act("pause", Some("\"9\"")).await.status, StatusCode::PRECONDITION_FAILED);
    let paused = act("pause", Some("\"1\"")).await;
    assert_eq!((paused.status, &paused.json["paused"]), (StatusCode::OK, &json!(true)), "{}", paused.text);
    let again = act("pause", None).await;
    assert_eq!((again.status, &again.json), (StatusCode::OK, &paused.json));
    let shown = world.get("/v1/policies/small", &key).await.json;
    assert_eq!(
        (&shown["status"], &shown["draining"]),
        (&json!("paused, 0 in flight, limit 3"), &json!(false))
    );
    let resumed = act("resume", None).await;
    assert_eq!((resumed.status, &resumed.json["paused"]), (StatusCode::OK, &json!(false)));
    assert_eq!(world.get("/v1/policies/small", &key).await.json["status"], "0 in flight, limit 3");
    for what in ["pause", "resume"] {
        let answer =
            world.send(Method::POST, &format!("/v1/policies/none/{what}"), Some(&key), &[], "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(world.get("/v1/policies/none/holders", &key).await.status, StatusCode::NOT_FOUND);
}
