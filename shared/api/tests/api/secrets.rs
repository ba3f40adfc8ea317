//! Secrets that headers of HTTP targets name: put, listed and deleted, sent and never shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tidegate_domain::limits::SECRETS;
use tokio::net::TcpListener;

use crate::log::Lines;
use crate::world::{World, at_job};

const SECRET: &str = "/v1/secrets/shop-token";

/// An endpoint that answers with a status and with the headers that it got.
#[derive(Clone)]
struct Endpoint {
    url: String,
    statuses: Arc<Mutex<VecDeque<u16>>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    /// Answers with these statuses in turn, then with 200.
    async fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let statuses = Arc::new(Mutex::new(statuses.iter().copied().collect()));
        let endpoint = Self { url, statuses, calls: Arc::default() };
        let routes = Router::new().fallback(called).with_state(endpoint.clone());
        tokio::spawn(axum::serve(listener, routes).into_future());
        endpoint
    }

    /// The `authorization` of the calls since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    /// A job for noon, when the tests begin, that sends a token and is tried again after a minute.
    fn job(&self) -> Value {
        let mut job = at_job("2026-11-21T12:00:00Z");
        job["target"] =
            json!({"http": {"url": self.url, "headers": {"Authorization": "Bearer {{secret:shop-token}}"}}});
        job["retry"] = json!({"backoff": "fixed", "wait_seconds": 60});
        job
    }
}

async fn called(State(endpoint): State<Endpoint>, headers: HeaderMap) -> (StatusCode, String) {
    let given = headers.get("authorization").map_or("", |value| value.to_str().unwrap());
    endpoint.calls.lock().unwrap().push(given.to_owned());
    let status = endpoint.statuses.lock().unwrap().pop_front().unwrap_or(200);
    (StatusCode::from_u16(status).unwrap(), format!("you sent {headers:?}"))
}

async fn put(world: &World, key: &str, value: &str) -> Value {
    let answer = world.put(SECRET, key, &json!({"value": value})).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer.json
}

async fn create(world: &World, key: &str, name: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{name}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

/// The failures of the only event of a job, which launches when the tests begin.
async fn failures(world: &World, key: &str, name: &str) -> Value {
    world.get(&format!("/v1/events/{name}.1.1795262400.0/failures"), key).await.json
}

#[tokio::test]
async fn a_secret_is_put_listed_and_deleted_under_its_revision_and_its_value_is_in_no_answer() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let made = world.put(SECRET, &key, &json!({"value": "k-4711"})).await;
    let shown = json!({"secret_id": "shop-token", "revision": 1, "changed_at": "2026-11-21T12:00:00Z"});
    assert_eq!((made.status, made.header("etag"), &made.json), (StatusCode::CREATED, "\"1\"", &shown));
    world.clock.advance_ms(60_000);
    let again = world.put(SECRET, &key, &json!({"value": "k-4712"})).await;
    let shown = json!({"secret_id": "shop-token", "revision": 2, "changed_at": "2026-11-21T12:01:00Z"});
    assert_eq!((again.status, again.header("etag"), &again.json), (StatusCode::OK, "\"2\"", &shown));
    let list = world.get("/v1/secrets", &key).await;
    assert_eq!(list.json, json!({"secrets": [shown], "next_cursor": null}));
    assert_eq!(world.get(SECRET, &key).await.status, StatusCode::METHOD_NOT_ALLOWED);
    let json_type = ("content-type", "application/json");
    for expected in [("if-match", "\"1\""), ("if-none-match", "*")] {
        let body = json!({"value": "k-4713"}).to_string();
        let refused = world.send(Method::PUT, SECRET, Some(&key), &[json_type, expected], &body).await;
        assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED, "{}", refused.text);
    }
    let stale = world.send(Method::DELETE, SECRET, Some(&key), &[("if-match", "\"1\"")], "").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(world.delete(SECRET, &key).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.delete(SECRET, &key).await.status, StatusCode::NOT_FOUND);
    let body = json!({"value": "k"}).to_string();
    let absent = [json_type, ("if-match", "\"2\"")];
    let absent = world.send(Method::PUT, SECRET, Some(&key), &absent, &body).await;
    assert_eq!(absent.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn a_value_that_no_header_can_carry_is_refused_and_no_refusal_repeats_what_was_sent() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    for (body, field, says) in [
        (json!({"value": ""}), "value", "value has 0 bytes; it must have 1 to 4096"),
        (json!({"value": "x4711".repeat(820)}), "value", "value has 4100 bytes"),
        (json!({"value": "k-4711\n"}), "value", "value is not visible ASCII"),
        (json!({"value": 4711}), "value", "value must be a string, not what is given"),
        (json!({"value": ["k-4711"]}), "value", "value must be a string, not an array"),
        (json!({"vlaue": "k-4711"}), "vlaue", "the body has no field 'vlaue': its fields are 'value'"),
        (
            json!({"value": "k-4711", "more": "k-4711"}),
            "more",
            "the body has no field 'more': its fields are",
        ),
        (json!({}), "value", "value is missing; give"),
    ] {
        let refused = world.put(SECRET, &key, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let errors = refused.json["errors"].as_array().unwrap();
        let error = errors.iter().find(|error| error["field"] == field);
        let message = error.unwrap_or_else(|| panic!("{}", refused.text))["message"].as_str().unwrap();
        assert!(message.starts_with(says), "{}", refused.text);
        assert!(!refused.text.contains("4711"), "{}", refused.text);
    }
    let refused = world.put("/v1/secrets/a%20b", &key, &json!({"value": "k-4711"})).await;
    assert_eq!(refused.json["errors"][0]["field"], "secret_id", "{}", refused.text);
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_job_names_secrets_of_its_own_client_only() {
    let world = World::new().await;
    let (acme, umbrella) = (world.register("acme").await, world.register("umbrella").await);
    put(&world, &umbrella, "k-4711").await;
    assert_eq!(world.get("/v1/secrets", &acme).await.json["secrets"], json!([]));
    assert_eq!(world.delete(SECRET, &acme).await.status, StatusCode::NOT_FOUND);
    let endpoint = Endpoint::answering(&[]).await;
    let refused = world.put("/v1/jobs/mine", &acme, &endpoint.job()).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    let error = &refused.json["errors"][0];
    assert_eq!((&error["field"], &error["value"]), (&json!("target.http.headers"), &json!("shop-token")));
    assert_eq!(
        error["message"],
        "client 'acme' has no secret 'shop-token'; put it first, PUT /v1/secrets/shop-token, or leave its placeholder out"
    );
    // Its own has the same name.
    put(&world, &acme, "k-mine").await;
    create(&world, &acme, "mine", &endpoint.job()).await;
    create(&world, &umbrella, "theirs", &endpoint.job()).await;
    world.dispatch().await;
    let mut sent = endpoint.take();
    sent.sort();
    assert_eq!(sent, ["Bearer k-4711", "Bearer k-mine"]);
}

#[tokio::test]
async fn a_call_carries_the_value_which_is_in_no_row_no_answer_and_no_log_whatever_becomes_of_the_call() {
    let world = World::new().await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    let logging = tracing::subscriber::set_default(subscriber);
    let key = world.register("acme").await;
    put(&world, &key, "k-sw0rdfish").await;
    // It is called again after a minute, then refuses for good.
    let endpoint = Endpoint::answering(&[500, 403]).await;
    create(&world, &key, "mine", &endpoint.job()).await;
    let mut answers = vec![world.get("/v1/jobs/mine", &key).await.text];
    assert!(answers[0].contains("Bearer {{secret:shop-token}}"), "{}", answers[0]);
    world.dispatch().await;
    world.clock.advance_ms(61_000);
    world.dispatch().await;
    assert_eq!(endpoint.take(), ["Bearer k-sw0rdfish", "Bearer k-sw0rdfish"]);
    let failed = failures(&world, &key, "mine").await;
    assert!(
        failed.to_string().contains("[secret shop-token]"),
        "what the endpoint said is kept without it: {failed}"
    );
    answers.push(failed.to_string());
    let dead = world.get("/v1/dead-letters", &key).await;
    assert_eq!(dead.json["dead_letters"].as_array().map(Vec::len), Some(1), "{}", dead.text);
    let event = dead.json["dead_letters"][0]["event_id"].as_str().unwrap();
    answers.push(world.get(&format!("/v1/dead-letters/{event}"), &key).await.text);
    answers.push(dead.text.clone());
    answers.push(world.get("/v1/secrets", &key).await.text);
    answers.push(world.get(&format!("/v1/events/{event}/explain"), &key).await.text);
    answers.extend(world.everything().await);
    drop(logging);
    answers.push(lines.text());
    for answer in answers {
        assert!(!answer.contains("sw0rdfish"), "{answer}");
    }
}

#[tokio::test]
async fn another_value_is_sent_at_once_here_and_within_seconds_by_other_processes() {
    let world = World::new().await;
    let key = world.register("acme").await;
    put(&world, &key, "k-1").await;
    let endpoint = Endpoint::answering(&[]).await;
    let send = async |name: &str| {
        let mut job = endpoint.job();
        job["trigger"]["past"] = json!("fire");
        create(&world, &key, name, &job).await;
        world.dispatch().await;
        endpoint.take()
    };
    assert_eq!(send("first").await, ["Bearer k-1"]);
    put(&world, &key, "k-2").await;
    assert_eq!(send("second").await, ["Bearer k-2"]);
    // Another process replaces it, which this one cannot know at once.
    let other = world.deployment.process().start(world.clock.clone());
    let (client, id) = ("acme".parse().unwrap(), "shop-token".parse().unwrap());
    let value = tidegate_domain::secret::SecretValue::new("k-3").unwrap();
    other.secrets().put(&client, id, value, None).await.unwrap();
    assert_eq!(send("third").await, ["Bearer k-2"]);
    world.clock.advance_ms(5_000);
    assert_eq!(send("fourth").await, ["Bearer k-3"]);
}

#[tokio::test]
async fn without_its_secret_an_event_fails_with_the_reason_and_waits_for_it_while_others_go_on() {
    let world = World::new().await;
    let key = world.register("acme").await;
    put(&world, &key, "k-1").await;
    let endpoint = Endpoint::answering(&[]).await;
    create(&world, &key, "mine", &endpoint.job()).await;
    let mut plain = endpoint.job();
    plain["target"]["http"]["headers"] = json!({"authorization": "none"});
    create(&world, &key, "other", &plain).await;
    // In use, and gone at once all the same: somebody may know it.
    assert_eq!(world.delete(SECRET, &key).await.status, StatusCode::NO_CONTENT);
    world.dispatch().await;
    assert_eq!(endpoint.take(), ["none"], "the call is not made without its secret");
    let failed = failures(&world, &key, "mine").await.to_string();
    let reason =
        "headers name the secret 'shop-token', which is not there: put it, PUT /v1/secrets/shop-token";
    assert!(failed.contains(reason), "{failed}");
    put(&world, &key, "k-2").await;
    world.clock.advance_ms(61_000);
    world.dispatch().await;
    assert_eq!(endpoint.take(), ["Bearer k-2"]);
}

#[tokio::test]
async fn a_row_that_was_moved_or_changed_is_not_opened() {
    let world = World::new().await;
    let (acme, umbrella) = (world.register("acme").await, world.register("umbrella").await);
    put(&world, &umbrella, "k-4711").await;
    put(&world, &acme, "k-mine").await;
    let dynamodb = world.embedded.dynamodb();
    let rows = dynamodb.scan().table_name("test-clients").send().await.unwrap().items.unwrap();
    let row = |pk: &str| rows.iter().find(|row| row["pk"].as_s().unwrap() == pk).unwrap().clone();
    let (mut mine, theirs) = (row("client-secret|acme"), row("client-secret|umbrella"));
    mine.insert("sealed".to_owned(), theirs["sealed"].clone());
    dynamodb.put_item().table_name("test-clients").set_item(Some(mine)).send().await.unwrap();
    let endpoint = Endpoint::answering(&[]).await;
    create(&world, &acme, "mine", &endpoint.job()).await;
    create(&world, &umbrella, "theirs", &endpoint.job()).await;
    world.dispatch().await;
    assert_eq!(endpoint.take(), ["Bearer k-4711"], "only where it was sealed for");
    let failed = failures(&world, &acme, "mine").await.to_string();
    assert!(failed.contains("which cannot be opened: it was not encrypted by this deployment"), "{failed}");
    // Its client puts it anew.
    put(&world, &acme, "k-mine").await;
    world.clock.advance_ms(61_000);
    world.dispatch().await;
    assert_eq!(endpoint.take(), ["Bearer k-mine"]);
}

#[tokio::test]
async fn a_completion_carries_secrets_too() {
    let world = World::new().await;
    let key = world.register("acme").await;
    put(&world, &key, "k-4711").await;
    let endpoint = Endpoint::answering(&[]).await;
    let policy = json!({"max_in_flight": 1, "lease_seconds": 60});
    assert_eq!(world.put("/v1/policies/small", &key, &policy).await.status, StatusCode::CREATED);
    let mut job = endpoint.job();
    job["policy_id"] = json!("small");
    job["target"]["http"] = json!({"url": endpoint.url, "release": "on_response"});
    let on_completion = |headers: Value| json!({"http": {"url": endpoint.url, "headers": headers}});
    job["on_completion"] = on_completion(json!({"Authorization": "Bearer {{secret:other}}"}));
    let refused = world.put("/v1/jobs/mine", &key, &job).await;
    assert_eq!(refused.json["errors"][0]["field"], "on_completion.http.headers", "{}", refused.text);
    job["on_completion"] = on_completion(json!({"x-event": "{{event_id}}"}));
    let refused = world.put("/v1/jobs/mine", &key, &job).await;
    assert!(refused.text.contains("which an event has and the end of a run has not"), "{}", refused.text);
    let named = json!({"Authorization": "{{run_id}} {{secret:shop-token}}"});
    job["on_completion"] = on_completion(named.clone());
    create(&world, &key, "mine", &job).await;
    let shown = world.get("/v1/jobs/mine", &key).await.json;
    assert_eq!(shown["on_completion"]["http"]["headers"], named);
    world.dispatch().await;
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let run = world.get("/v1/jobs/mine/runs", &key).await.json["runs"][0]["run_id"].clone();
    assert_eq!(endpoint.take(), ["".to_owned(), format!("{} k-4711", run.as_str().unwrap())]);
}

#[tokio::test]
async fn a_client_has_a_bounded_number_of_secrets() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let one =
        async |number: u32| world.put(&format!("/v1/secrets/s{number}"), &key, &json!({"value": "k"})).await;
    for number in 0..SECRETS {
        assert_eq!(one(number).await.status, StatusCode::CREATED);
    }
    let refused = one(SECRETS).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert_eq!(
        refused.json["detail"],
        "client 'acme' has 100 secrets, which is the most; delete one that no job names"
    );
    assert_eq!(one(0).await.status, StatusCode::OK, "one that is there gets another value");
    let first = world.get("/v1/secrets", &key).await.json;
    assert_eq!(first["secrets"].as_array().map(Vec::len), Some(100));
    assert_eq!(world.delete("/v1/secrets/s0", &key).await.status, StatusCode::NO_CONTENT);
    assert_eq!(one(SECRETS).await.status, StatusCode::CREATED);
    assert_eq!(one(0).await.status, StatusCode::CONFLICT);
}
