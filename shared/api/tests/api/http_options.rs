//! How a job may have its endpoint called: method, headers, body, time-out, and what answers mean.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;

use crate::world::{World, at_job};

#[derive(Clone)]
struct Call {
    method: Method,
    headers: HeaderMap,
    body: String,
}

impl Call {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// What its signature has to be.
    fn signature(&self, secret: &str) -> String {
        let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        let (id, at) = (self.header("webhook-id").unwrap(), self.header("webhook-timestamp").unwrap());
        mac.update(format!("{id}.{at}.{}", self.body).as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// An endpoint that answers with the status that its path names, and never below `/silent`.
#[derive(Clone)]
struct Endpoint {
    url: String,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Endpoint {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let endpoint = Self { url, calls: Arc::default() };
        let routes = Router::new().fallback(called).with_state(endpoint.clone());
        tokio::spawn(axum::serve(listener, routes).into_future());
        endpoint
    }

    fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

async fn called(
    State(endpoint): State<Endpoint>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let body = String::from_utf8(body.to_vec()).unwrap();
    endpoint.calls.lock().unwrap().push(Call { method, headers, body });
    match uri.path().trim_start_matches('/') {
        "silent" => std::future::pending().await,
        status => status.parse().unwrap(),
    }
}

struct Stage {
    world: World,
    endpoint: Endpoint,
    key: String,
    secret: String,
}

impl Stage {
    async fn new() -> Self {
        let world = World::new().await;
        let made = world.post("/v1/clients", &world.admin_key, &json!({"client_id": "acme"})).await;
        let text = |name: &str| made.json[name].as_str().unwrap().to_owned();
        let (key, secret) = (text("api_key"), text("webhook_secret"));
        let policy = json!({"max_in_flight": 2, "lease_seconds": 60});
        assert_eq!(world.put("/v1/policies/small", &key, &policy).await.status, StatusCode::CREATED);
        Self { endpoint: Endpoint::new().await, world, key, secret }
    }

    /// A job for noon, when the tests begin, that calls `path` as `options` say and is not tried again for a minute.
    fn job(&self, path: &str, options: &Value) -> Value {
        let mut job = at_job("2026-11-21T12:00:00Z");
        let mut http = options.clone();
        http["url"] = json!(format!("{}/{path}", self.endpoint.url));
        job["target"] = json!({"http": http});
        job["payload"] = json!({"report": "daily"});
        job["retry"] = json!({"backoff": "fixed", "wait_seconds": 60});
        job
    }

    /// Puts a job, delivers it and answers with its calls.
    async fn deliver(&self, name: &str, job: &Value) -> Vec<Call> {
        let made = self.world.put(&format!("/v1/jobs/{name}"), &self.key, job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        self.world.dispatch().await;
        self.endpoint.take()
    }

    async fn run(&self, name: &str) -> Value {
        self.world.get(&format!("/v1/jobs/{name}/runs"), &self.key).await.json["runs"][0].clone()
    }

    /// The status and the reason of the only event of a job.
    async fn event(&self, name: &str) -> (Value, String) {
        let run = self.run(name).await["run_id"].as_str().unwrap().to_owned();
        let events = self.world.get(&format!("/v1/jobs/{name}/runs/{run}/events"), &self.key).await;
        let event = events.json["events"][0].clone();
        (event["status"].clone(), event["reason"].as_str().unwrap_or_default().to_owned())
    }
}

#[tokio::test]
async fn an_endpoint_is_called_with_the_method_and_the_headers_of_its_job() {
    let stage = Stage::new().await;
    for method in ["POST", "PUT", "PATCH"] {
        let options = json!({
            "method": method,
            "headers": {"Authorization": "Bearer k", "X-Page": "{{index1}}/{{count}} of {{event_id}}", "Content-Type": "text/x-events"},
        });
        let name = method.to_lowercase();
        let calls = stage.deliver(&name, &stage.job("200", &options)).await;
        let [call] = calls.as_slice() else { panic!("{} calls", calls.len()) };
        let event: Value = serde_json::from_str(&call.body).unwrap();
        let page = format!("1/1 of {}", event["event_id"].as_str().unwrap());
        assert_eq!((call.method.as_str(), call.header("authorization")), (method, Some("Bearer k")));
        assert_eq!(
            (call.header("x-page"), call.header("content-type")),
            (Some(&*page), Some("text/x-events"))
        );
        assert_eq!(call.header("webhook-signature"), Some(&*call.signature(&stage.secret)));
        // What the body says is not said again.
        assert_eq!(
            (&event["payload"], call.header("tidegate-event-id")),
            (&json!({"report": "daily"}), None)
        );
    }
}

#[tokio::test]
async fn a_body_that_is_the_payload_alone_is_signed_and_the_event_is_in_headers() {
    let stage = Stage::new().await;
    let mut job = stage.job("200", &json!({"body": "payload"}));
    job["policy_id"] = json!("small");
    job["count"] = json!(2);
    job.as_object_mut().unwrap().remove("payload");
    job["payload_template"] = json!({"page": "{{index}}", "id": "{{event_id}}"});
    let mut calls = stage.deliver("pages", &job).await;
    calls.sort_by_key(|call| call.body.clone());
    assert_eq!(calls.len(), 2);
    let run = stage.run("pages").await;
    for (index, call) in calls.iter().enumerate() {
        let id = call.header("webhook-id").unwrap();
        assert_eq!(call.body, format!("{{\"id\":\"{id}\",\"page\":{index}}}"));
        assert_eq!(call.header("webhook-signature"), Some(&*call.signature(&stage.secret)));
        for (name, value) in [
            ("content-type", "application/json"),
            ("tidegate-event-id", id),
            ("tidegate-job-id", "pages"),
            ("tidegate-client-id", "acme"),
            ("tidegate-run-id", run["run_id"].as_str().unwrap()),
            ("tidegate-index", &index.to_string()),
            ("tidegate-count", "2"),
            ("tidegate-launch-at", "2026-11-21T12:00:00Z"),
            ("tidegate-attempt", "1"),
            ("tidegate-lease-expires-at", "2026-11-21T12:01:00Z"),
        ] {
            assert_eq!(call.header(name), Some(value), "{name}");
        }
        let token = json!({"tokens": [call.header("tidegate-token").unwrap()]});
        let released = stage.world.post("/v1/tokens/release", &stage.key, &token).await;
        assert_eq!(released.json["results"][0]["status"], "released");
    }
}

#[tokio::test]
async fn get_and_delete_have_no_body_and_say_in_headers_what_the_event_says() {
    let stage = Stage::new().await;
    for method in ["GET", "DELETE"] {
        let name = method.to_lowercase();
        let calls = stage.deliver(&name, &stage.job("204", &json!({"method": method}))).await;
        let [call] = calls.as_slice() else { panic!("{} calls", calls.len()) };
        assert_eq!((call.method.as_str(), &*call.body), (method, ""));
        assert_eq!((call.header("content-type"), call.header("content-length")), (None, None));
        assert_eq!(call.header("tidegate-job-id"), Some(&*name));
        assert_eq!((call.header("tidegate-token"), call.header("tidegate-lease-expires-at")), (None, None));
        assert_eq!(call.header("webhook-signature"), Some(&*call.signature(&stage.secret)));
        assert_eq!(stage.event(&name).await.0, "delivered");
    }
}

#[tokio::test]
async fn an_answer_means_what_the_job_says() {
    for (name, path, options, status) in [
        ("taken", "404", json!({"expected_statuses": ["2xx", "404"]}), "delivered"),
        ("taken-after-all", "503", json!({"expected_statuses": ["503"]}), "delivered"),
        ("not-taken", "200", json!({"expected_statuses": ["204"]}), "dead"),
        ("again", "404", json!({"retry_statuses": ["404"]}), "sent again"),
        ("not-again", "503", json!({"retry_statuses": ["404"]}), "dead"),
        ("never-again", "429", json!({"retry_statuses": []}), "dead"),
        ("as-ever", "503", json!({}), "sent again"),
    ] {
        let stage = Stage::new().await;
        let calls = stage.deliver(name, &stage.job(path, &options)).await;
        assert_eq!(calls.len(), 1, "{name}");
        let is_sent_again = status == "sent again";
        if !is_sent_again {
            let (ended, reason) = stage.event(name).await;
            assert_eq!(ended, status, "{name}: {reason}");
            assert_eq!(reason.is_empty(), status == "delivered", "{name}: {reason}");
        }
        stage.world.clock.advance_ms(61_000);
        stage.world.dispatch().await;
        assert_eq!(stage.endpoint.take().len(), usize::from(is_sent_again), "{name}");
    }
}

#[tokio::test]
async fn an_expected_answer_releases_and_another_does_not() {
    let stage = Stage::new().await;
    for (name, path, succeeded) in [("gone", "404", 1), ("fine", "200", 0)] {
        let options = json!({"expected_statuses": ["404"], "release": "on_response"});
        let mut job = stage.job(path, &options);
        job["policy_id"] = json!("small");
        assert_eq!(stage.deliver(name, &job).await.len(), 1);
        let run = stage.run(name).await;
        assert_eq!((&run["succeeded"], &run["dead"]), (&json!(succeeded), &json!(1 - succeeded)), "{run}");
    }
}

#[tokio::test]
async fn a_call_takes_no_longer_than_its_job_allows() {
    let stage = Stage::new().await;
    let mut job = stage.job("silent", &json!({"timeout_seconds": 1}));
    job["retry"] = json!({"backoff": "none"});
    assert_eq!(stage.deliver("slow", &job).await.len(), 1);
    assert_eq!(stage.event("slow").await, (json!("dead"), "no answer within 1 s".to_owned()));
}

#[tokio::test]
async fn what_is_said_of_a_call_is_answered_and_can_be_sent_back() {
    let stage = Stage::new().await;
    let options = json!({
        "method": "PUT",
        "headers": {"X-Key": "k"},
        "body": "payload",
        "timeout_seconds": 3,
        "expected_statuses": ["2xx", "404"],
        "retry_statuses": ["503"],
    });
    let mut job = stage.job("200", &options);
    job["trigger"] = json!({"cron": "@daily", "zone": "UTC"});
    let made = stage.world.put("/v1/jobs/all", &stage.key, &job).await;
    assert_eq!((made.status, &made.json["target"]), (StatusCode::CREATED, &job["target"]), "{}", made.text);
    let again = stage.world.put("/v1/jobs/all", &stage.key, &made.json).await;
    assert_eq!((again.status, &again.json["revision"]), (StatusCode::OK, &json!(1)), "{}", again.text);
    // What is said as it is by default is not answered, and a patch takes single headers away.
    let by_default = json!({
        "method": "POST", "body": "event", "timeout_seconds": 10, "headers": {"X-Key": null, "X-Other": "o"},
        "expected_statuses": null, "retry_statuses": null,
    });
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = json!({"target": {"http": by_default}}).to_string();
    let patched = stage.world.send(Method::PATCH, "/v1/jobs/all", Some(&stage.key), &merge, &patch).await;
    assert_eq!(
        patched.json["target"],
        json!({"http": {"url": job["target"]["http"]["url"], "headers": {"X-Other": "o"}}}),
        "{}",
        patched.text
    );
}

#[tokio::test]
async fn what_no_call_can_have_is_refused_with_its_field() {
    let stage = Stage::new().await;
    let many: Value = (0..21).map(|n| (format!("x-{n}"), json!(""))).collect();
    let header = |name: &str, value: &str| json!({"headers": {name: value}});
    for (options, field, says) in [
        (
            json!({"method": "HEAD"}),
            "method",
            "must be \"POST\", \"PUT\", \"PATCH\", \"GET\" or \"DELETE\", not \"HEAD\"",
        ),
        (json!({"method": "GET", "body": "event"}), "body", "GET has no body; leave it out"),
        (json!({"body": "text"}), "body", "must be \"event\" or \"payload\", not \"text\""),
        (
            header("Host", "x"),
            "headers",
            "'Host', which Tidegate or the connection sets itself; leave it out",
        ),
        (header("webhook-id", "x"), "headers", "'webhook-id', which Tidegate"),
        (header("x y", "x"), "headers", "the name 'x y', which is none"),
        (header("x", "é"), "headers", "a value for 'x' that is not visible ASCII"),
        (
            header("x", "{{page}}"),
            "headers",
            "the placeholder '{{page}}' in the value of 'x', which is not known",
        ),
        (json!({"headers": many}), "headers", "headers has 21 of them; 20 is the most"),
        (header("x", &"v".repeat(3_000)), "headers", "headers may come to 3001 bytes"),
        (json!({"headers": {"x": 1}}), "headers.x", "must be a string, not 1"),
        (json!({"timeout_seconds": 11}), "timeout_seconds", "it must lie between 1 and 10"),
        (json!({"timeout_seconds": 0}), "timeout_seconds", "it must lie between 1 and 10"),
        (json!({"expected_statuses": []}), "expected_statuses", "holds 0; it must be 1 to 20 statuses"),
        (
            json!({"expected_statuses": ["1xx"]}),
            "expected_statuses",
            "'1xx' is no status; give a code from 200 to 599",
        ),
        (json!({"retry_statuses": [404]}), "retry_statuses[0]", "must be a string, not 404"),
        (
            json!({"expected_statuses": ["404"], "retry_statuses": ["4xx"]}),
            "retry_statuses",
            "retry_statuses has 4xx, which expected_statuses covers with 404",
        ),
        (json!({"timeout": 3}), "timeout", "write 'timeout_seconds'"),
    ] {
        let refused = stage.world.put("/v1/jobs/bad", &stage.key, &stage.job("200", &options)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{options}: {}", refused.text);
        let error = &refused.json["errors"][0];
        assert_eq!(error["field"], format!("target.http.{field}"), "{options}");
        assert!(error["message"].as_str().unwrap().contains(says), "{options}: {}", refused.text);
    }
    let job =
        stage.job("200", &header("X-A", "1")).to_string().replace(r#""X-A":"1""#, r#""X-A":"1","X-A":"2""#);
    let json = [("content-type", "application/json")];
    let twice = stage.world.send(Method::PUT, "/v1/jobs/bad", Some(&stage.key), &json, &job).await;
    assert_eq!(twice.json["errors"][0]["message"], "target.http.headers.X-A is given twice; give it once");
    // The value of a header may be a secret.
    let refused =
        stage.world.put("/v1/jobs/bad", &stage.key, &stage.job("200", &header("x", "sécret"))).await;
    assert!(!refused.text.contains("cret"), "{}", refused.text);
}

#[tokio::test]
async fn a_completion_is_posted_as_it_is() {
    let stage = Stage::new().await;
    let mut job = stage.job("200", &json!({"method": "PUT", "release": "on_response"}));
    job["policy_id"] = json!("small");
    for (option, value) in [
        ("method", json!("PUT")),
        ("body", json!("payload")),
        ("timeout_seconds", json!(3)),
        ("expected_statuses", json!(["404"])),
        ("retry_statuses", json!(["404"])),
    ] {
        job["on_completion"] = json!({"http": {"url": "https://acme.example/done", option: value}});
        let refused = stage.world.put("/v1/jobs/told", &stage.key, &job).await;
        let error = &refused.json["errors"][0];
        assert_eq!(error["field"], format!("on_completion.http.{option}"), "{}", refused.text);
        let says = format!(
            "on_completion.http.{option} says how events are delivered, and a completion is always a POST of its JSON; leave it out"
        );
        assert_eq!(error["message"], says);
    }
    job["on_completion"] = json!({"http": {"url": format!("{}/200", stage.endpoint.url)}});
    let calls = stage.deliver("told", &job).await;
    let methods: Vec<&str> = calls.iter().map(|call| call.method.as_str()).collect();
    assert_eq!(methods, ["PUT", "POST"]);
    let told: Value = serde_json::from_str(&calls[1].body).unwrap();
    assert_eq!((&told["type"], calls[1].header("tidegate-event-id")), (&json!("run.completed"), None));
}
