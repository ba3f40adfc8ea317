//! Keys: missing, wrong, the admin's and a client's, and what one client may see of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Method, StatusCode};
use serde_json::json;
use tidegate_embedded::{Call, Fault, FaultPlan};

use crate::world::{World, cron_job};

/// Every route that needs a client's key.
const ROUTES: [(Method, &str); 27] = [
    (Method::POST, "/v1/policies"),
    (Method::GET, "/v1/policies"),
    (Method::GET, "/v1/policies/small"),
    (Method::PUT, "/v1/policies/small"),
    (Method::DELETE, "/v1/policies/small"),
    (Method::POST, "/v1/jobs"),
    (Method::GET, "/v1/jobs"),
    (Method::GET, "/v1/jobs/nightly"),
    (Method::PUT, "/v1/jobs/nightly"),
    (Method::DELETE, "/v1/jobs/nightly"),
    (Method::POST, "/v1/jobs/bulk"),
    (Method::POST, "/v1/jobs/nightly/pause"),
    (Method::POST, "/v1/jobs/nightly/resume"),
    (Method::GET, "/v1/jobs/nightly/upcoming"),
    (Method::POST, "/v1/schedules/preview"),
    (Method::GET, "/v1/calendars"),
    (Method::GET, "/v1/calendars/holidays"),
    (Method::PUT, "/v1/calendars/holidays"),
    (Method::DELETE, "/v1/calendars/holidays"),
    (Method::GET, "/v1/secrets"),
    (Method::PUT, "/v1/secrets/shop-token"),
    (Method::DELETE, "/v1/secrets/shop-token"),
    (Method::GET, "/v1/jobs/nightly/runs"),
    (Method::GET, "/v1/jobs/nightly/runs/nightly.1.1790000000/events"),
    (Method::POST, "/v1/tokens/release"),
    (Method::POST, "/v1/tokens/extend"),
    (Method::GET, "/v1/clients"),
];

#[tokio::test]
async fn a_missing_or_wrong_key_opens_nothing() {
    let world = World::new().await;
    let before = world.everything().await;
    for (method, path) in ROUTES {
        let answer = world.send(method.clone(), path, None, &[], "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"tidegate\"", "{method} {path}");
        assert_eq!(answer.json["type"], "urn:tidegate:problem:missing-key", "{method} {path}");
        assert!(
            answer.json["detail"].as_str().unwrap().contains("in the header 'Authorization: Bearer <key>'")
        );
        let answer = world.send(method.clone(), path, Some("tg_acme_wrong"), &[], "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert_eq!(answer.json["type"], "urn:tidegate:problem:unknown-key", "{method} {path}");
        assert!(answer.header("www-authenticate").contains("invalid_token"), "{method} {path}");
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn the_header_must_hold_a_bearer_key() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (value, status) in [
        (format!("Bearer {key}"), StatusCode::OK),
        (format!("bearer {key}"), StatusCode::OK),
        (format!("Basic {key}"), StatusCode::UNAUTHORIZED),
        (key.clone(), StatusCode::UNAUTHORIZED),
        ("Bearer ".to_owned(), StatusCode::UNAUTHORIZED),
    ] {
        let answer = world.send(Method::GET, "/v1/jobs", None, &[("authorization", &value)], "").await;
        assert_eq!(answer.status, status, "{value}");
    }
}

#[tokio::test]
async fn two_keys_in_one_request_are_none() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let (right, wrong) = (format!("Bearer {key}"), "Bearer tg_acme_wrong".to_owned());
    for headers in [[("authorization", &*right), ("authorization", &*wrong)], [("authorization", &*right); 2]]
    {
        let answer = world.send(Method::GET, "/v1/jobs", None, &headers, "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(
            answer.json["detail"].as_str().unwrap().contains("several Authorization headers"),
            "{}",
            answer.text
        );
    }
}

/// Counts the requests that reach a table.
#[derive(Clone, Default)]
struct Reads(Arc<AtomicU32>);

impl FaultPlan for Reads {
    fn on_request(&self, _: &Call) -> Fault {
        self.0.fetch_add(1, Ordering::Relaxed);
        Fault::None
    }
}

/// H6: whoever sends garbage makes us read nothing, and a key that nobody has is looked up once.
#[tokio::test]
async fn garbage_is_refused_without_a_read_and_a_miss_is_remembered() {
    let world = World::new().await;
    let reads = Reads::default();
    world.embedded.inject(reads.clone());
    let random = "x".repeat(43);
    let short = format!("tg_acme_{}", &random[1..]);
    let odd = format!("tg_acme_{}!", &random[1..]);
    let nobody = format!("tg__{random}");
    for garbage in ["x", "tg_acme_wrong", &short, &odd, &nobody, "tgadmin_1"] {
        assert_eq!(world.get("/v1/jobs", garbage).await.status, StatusCode::UNAUTHORIZED, "{garbage}");
    }
    assert_eq!(reads.0.load(Ordering::Relaxed), 0);
    let unknown = format!("tg_acme_{random}");
    for _ in 0..3 {
        assert_eq!(world.get("/v1/jobs", &unknown).await.status, StatusCode::UNAUTHORIZED);
    }
    // One eventual read, and a consistent one before it is refused.
    assert_eq!(reads.0.load(Ordering::Relaxed), 2);
    let key = world.register("acme").await;
    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_admin_key_and_a_client_key_are_told_apart() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let answer = world.get("/v1/jobs", &world.admin_key).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.json["detail"].as_str().unwrap().starts_with("this is the admin key"), "{}", answer.text);
    let answer = world.post("/v1/clients", &key, &json!({"client_id": "other"})).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(
        answer.json["detail"].as_str().unwrap().starts_with("this is not the admin key"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_registration_shows_its_secrets_once() {
    let world = World::new().await;
    let answer = world.post("/v1/clients", &world.admin_key, &json!({"client_id": "acme"})).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let key = answer.json["api_key"].as_str().unwrap();
    let random = key.strip_prefix("tg_acme_").unwrap();
    assert_eq!(random.len(), 43);
    assert!(answer.json["webhook_secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(answer.json["allowed_targets"], json!(["*"]));
    let again = world.post("/v1/clients", &world.admin_key, &json!({"client_id": "acme"})).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(again.json["detail"], "client 'acme' is registered already; choose another client_id");
    assert_eq!(world.get("/v1/jobs", key).await.status, StatusCode::OK);
    let list = world.get("/v1/clients", &world.admin_key).await;
    assert_eq!(list.json["clients"].as_array().unwrap().len(), 1);
    assert!(!list.text.contains(random) && !list.text.contains("whsec_"), "{}", list.text);
    assert!(world.everything().await.iter().all(|row| !row.contains(random)), "keys are stored hashed");
}

#[tokio::test]
async fn what_is_another_clients_is_not_there() {
    let world = World::new().await;
    let (acme, other) = (world.register("acme").await, world.register("other").await);
    world.put("/v1/policies/small", &acme, &json!({"max_in_flight": 3})).await;
    world.put("/v1/jobs/nightly", &acme, &cron_job()).await;
    world.put("/v1/calendars/holidays", &acme, &json!({"dates": ["12-25"]})).await;
    let before = world.everything().await;
    for (method, path, says) in [
        (Method::GET, "/v1/jobs/nightly", "there is no job 'nightly' among those of this client"),
        (Method::DELETE, "/v1/jobs/nightly", "there is no job 'nightly' among those of this client"),
        (Method::GET, "/v1/jobs/nightly/runs", "there is no job 'nightly' among those of this client"),
        (
            Method::GET,
            "/v1/jobs/nightly/runs/nightly.1.1790000000/events",
            "there is no run 'nightly.1.1790000000' among those of this client",
        ),
        (Method::POST, "/v1/jobs/nightly/pause", "there is no job 'nightly' among those of this client"),
        (Method::POST, "/v1/jobs/nightly/resume", "there is no job 'nightly' among those of this client"),
        (Method::GET, "/v1/jobs/nightly/upcoming", "there is no job 'nightly' among those of this client"),
        (Method::GET, "/v1/calendars/holidays", "there is no calendar 'holidays' among those of this client"),
        (
            Method::DELETE,
            "/v1/calendars/holidays",
            "there is no calendar 'holidays' among those of this client",
        ),
        (Method::GET, "/v1/policies/small", "there is no policy 'small' among those of this client"),
        (Method::DELETE, "/v1/policies/small", "there is no policy 'small' among those of this client"),
    ] {
        let answer = world.send(method.clone(), path, Some(&other), &[], "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
        assert_eq!(answer.json["detail"], says, "{method} {path}");
    }
    let mut job = cron_job();
    job["policy_id"] = json!("small");
    let answer = world.post("/v1/jobs", &other, &job).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.json["errors"][0]["field"], "policy_id");
    let mut job = cron_job();
    job["calendars"] = json!(["holidays"]);
    let answer = world.post("/v1/jobs", &other, &job).await;
    assert_eq!(answer.json["errors"][0]["field"], "calendars", "{}", answer.text);
    assert_eq!(world.everything().await, before);
    for list in ["/v1/jobs", "/v1/policies", "/v1/calendars"] {
        let answer = world.get(list, &other).await;
        assert_eq!(answer.status, StatusCode::OK, "{list}");
        for name in ["nightly", "small", "holidays"] {
            assert!(!answer.text.contains(name), "{}", answer.text);
        }
    }
    assert_eq!(world.put("/v1/jobs/nightly", &other, &cron_job()).await.status, StatusCode::CREATED);
    assert_eq!(world.get("/v1/jobs/nightly", &acme).await.json["revision"], 1);
}

#[tokio::test]
async fn a_key_stays_known_for_ten_seconds_and_a_broken_store_is_said_to_be_one() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let nothing_to_do = json!({"tokens": ["nonsense"]});
    assert_eq!(world.post("/v1/tokens/release", &key, &nothing_to_do).await.status, StatusCode::OK);
    world.cut_off();
    world.clock.advance_ms(9_999);
    assert_eq!(world.post("/v1/tokens/release", &key, &nothing_to_do).await.status, StatusCode::OK);
    world.clock.advance_ms(1);
    let answer = world.post("/v1/tokens/release", &key, &nothing_to_do).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.json["type"], "urn:tidegate:problem:unavailable");
    assert_eq!(world.get("/v1/health", &key).await.status, StatusCode::SERVICE_UNAVAILABLE);
}
