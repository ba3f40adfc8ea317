//! `If-None-Match: *`: a PUT that creates and never replaces.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, World, at_job, cron_job};

async fn put(world: &World, path: &str, key: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers: Vec<_> =
        [("content-type", "application/json")].into_iter().chain(headers.to_vec()).collect();
    world.send(Method::PUT, path, Some(key), &headers, &body.to_string()).await
}

/// A path of each kind, with a body, and another that says something else.
fn bodies() -> Vec<(&'static str, Value, Value)> {
    let rate = |every: &str| {
        let mut body = cron_job();
        body["trigger"] = json!({"rate": every});
        body
    };
    vec![
        ("/v1/jobs/cron", cron_job(), rate("1h")),
        ("/v1/jobs/once", at_job("2026-12-01T00:00:00Z"), at_job("2026-12-02T00:00:00Z")),
        ("/v1/policies/small", json!({"max_in_flight": 3}), json!({"max_in_flight": 4})),
        ("/v1/calendars/days", json!({"dates": ["12-25"]}), json!({"dates": ["12-26"]})),
    ]
}

#[tokio::test]
async fn what_exists_is_not_replaced_whatever_it_says() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let create = [("if-none-match", "*")];
    for (path, body, other) in bodies() {
        let made = put(&world, path, &key, &create, &body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{path}: {}", made.text);
        let before = world.everything().await;
        for body in [&body, &other] {
            let refused = put(&world, path, &key, &create, body).await;
            assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED, "{path}: {}", refused.text);
            assert_eq!(refused.json["type"], "urn:tidegate:problem:already-exists");
            let detail = refused.json["detail"].as_str().unwrap();
            assert!(detail.contains("exists already, and If-None-Match: * replaces nothing"), "{detail}");
        }
        assert_eq!(world.everything().await, before, "{path}");
        assert_eq!(world.delete(path, &key).await.status, StatusCode::NO_CONTENT);
        let again = put(&world, path, &key, &create, &other).await;
        assert_eq!(again.status, StatusCode::CREATED, "{path}: {}", again.text);
    }
}

#[tokio::test]
async fn of_two_at_once_one_wins() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let create = [("if-none-match", "*")];
    for (path, body, other) in bodies() {
        let (one, two) =
            tokio::join!(put(&world, path, &key, &create, &body), put(&world, path, &key, &create, &other));
        let mut statuses = [one.status.as_u16(), two.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 412], "{path}: {} {}", one.text, two.text);
        let (winner, loser) = if one.status == 201 { (one, two) } else { (two, one) };
        let revision = world.get(path, &key).await.json["revision"].clone();
        assert_eq!((revision, &winner.json["revision"]), (json!(1), &json!(1)), "{path}: {}", loser.text);
    }
}

#[tokio::test]
async fn other_values_and_both_headers_are_refused_with_a_sentence() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    for (path, body, _) in bodies() {
        for value in ["\"3\"", "W/\"3\"", "", "**", "\"*\""] {
            let refused = put(&world, path, &key, &[("if-none-match", value)], &body).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path} {value}: {}", refused.text);
            let says = format!("the header If-None-Match is '{value}'; a PUT takes If-None-Match: * only");
            assert!(refused.json["detail"].as_str().unwrap().starts_with(&says), "{}", refused.text);
        }
        let both = [("if-none-match", "*"), ("if-match", "\"1\"")];
        let refused = put(&world, path, &key, &both, &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}: {}", refused.text);
        assert!(refused.json["detail"].as_str().unwrap().ends_with("send one"), "{}", refused.text);
    }
    assert_eq!(world.everything().await, before);
}
