//! An API of its own for each test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use chrono::DateTime;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidegate_api::{ApiState, router};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{Call, ClientOptions, Embedded, Fault, FaultPlan};
use tidegate_engine::{BusTarget, Engine, Services};
use tidegate_store::KeyHash;
use tidegate_store::tables::Table;
use tidegate_testkit::rows::Row;
use tidegate_testkit::{Deployment, PREFIX, queue};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

/// A queue that exists.
pub const QUEUE: &str = "http://localhost:9324/000000000000/jobs";

pub struct World {
    router: Router,
    pub clock: Arc<ManualClock>,
    pub admin_key: String,
    pub engine: Engine,
    pub embedded: Embedded,
    pub deployment: Deployment,
}

/// No request reaches any service.
struct Unreachable;

impl FaultPlan for Unreachable {
    fn on_request(&self, _: &Call) -> Fault {
        Fault::DropBefore
    }
}

pub struct Answer {
    pub status: StatusCode,
    headers: HeaderMap,
    pub json: Value,
    pub text: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl World {
    pub async fn new() -> Self {
        Self::reaching(Services::default()).await
    }

    /// The same, with other services of AWS that are reached so.
    pub async fn reaching(services: Services) -> Self {
        Self::made_of(services, BusTarget::Off).await
    }

    /// The same, with a bus that what runs and events came to is published to.
    pub async fn with_bus(bus: &str) -> Self {
        Self::made_of(Services::default(), bus.parse().unwrap()).await
    }

    async fn made_of(services: Services, bus: BusTarget) -> Self {
        let start = DateTime::parse_from_rfc3339("2026-11-21T12:00:00Z").unwrap().to_utc();
        let clock = Arc::new(ManualClock::new(start));
        let embedded = Embedded::in_memory(clock.clone()).unwrap();
        let deployment = Deployment::on(&embedded, &ClientOptions::without_retries()).await.unwrap();
        for name in ["jobs", "done"] {
            deployment.queue(name).await.unwrap();
        }
        let process = deployment.process().private_targets().samples().services(services).bus(bus);
        let engine = process.start(clock.clone());
        // Made by whoever needs it first: what a refused call leaves unchanged is then all there is.
        engine.tokens().key().await.unwrap();
        let admin_key = "the-admin-key".to_owned();
        let router = router(ApiState::new(engine.clone(), Some(KeyHash::of(&admin_key).as_str())));
        Self { router, clock, admin_key, engine, embedded, deployment }
    }

    /// The same, in which clients that are registered without a list of targets may name none, as on AWS.
    pub fn with_targets_named(self) -> Self {
        let hash = KeyHash::of(&self.admin_key);
        let state = ApiState::new(self.engine.clone(), Some(hash.as_str())).with_targets_named();
        Self { router: router(state), ..self }
    }

    pub async fn register(&self, client: &str) -> String {
        let answer = self.post("/v1/clients", &self.admin_key, &json!({"client_id": client})).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        answer.json["api_key"].as_str().unwrap().to_owned()
    }

    pub async fn get(&self, path: &str, key: &str) -> Answer {
        self.send(Method::GET, path, Some(key), &[], "").await
    }

    pub async fn delete(&self, path: &str, key: &str) -> Answer {
        self.send(Method::DELETE, path, Some(key), &[], "").await
    }

    pub async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, Some(key), &[("content-type", "application/json")], &body.to_string())
            .await
    }

    pub async fn put(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, Some(key), &[("content-type", "application/json")], &body.to_string())
            .await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.request(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub async fn request(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, json, text }
    }

    /// Serves the API on loopback for as long as the test lasts; its address.
    pub async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, self.router.clone()).into_future());
        format!("http://{address}")
    }

    /// Takes every message off a queue that is there now.
    pub async fn take_all(&self, queue: &str) -> Vec<String> {
        queue::take_all(&self.deployment.sqs, queue).await.unwrap()
    }

    /// Handles dispatch messages until there are none.
    pub async fn dispatch(&self) {
        let (sqs, dispatch_url) = (&self.deployment.sqs, self.deployment.dispatch_url());
        let pumped = queue::pump(&self.engine, sqs, dispatch_url).await.unwrap();
        assert_eq!(pumped.again, 0, "messages come again without any fault");
    }

    /// Minutes pass, each with its tick. After one the ends of events are kept.
    pub async fn minutes(&self, minutes: usize) {
        for _ in 0..minutes {
            self.clock.advance_ms(60_000);
            self.engine.tick().await.unwrap();
            self.dispatch().await;
        }
    }

    /// Delivers what is due and takes it off the consumer's queue.
    pub async fn receive(&self) -> Vec<Value> {
        self.dispatch().await;
        self.take_all(QUEUE).await.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// From now on neither tables nor queues answer.
    pub fn cut_off(&self) {
        self.embedded.inject(Unreachable);
    }

    /// Every row of every table, in order.
    pub async fn everything(&self) -> Vec<String> {
        let dynamodb = self.embedded.dynamodb();
        let mut rows = Vec::new();
        for table in Table::ALL {
            let name = format!("{PREFIX}-{}", table.name());
            let pages = dynamodb.scan().table_name(name).into_paginator().items().send();
            for row in pages.collect::<Result<Vec<_>, _>>().await.unwrap() {
                rows.push(format!("{table:?}: {}", shown(&row)));
            }
        }
        rows.sort();
        rows
    }
}

/// A row, with what is in it, in the order of the names.
fn shown(row: &Row) -> String {
    let members = row.iter().map(|(name, value)| match value.as_m() {
        Ok(row) => (name, format!("M({})", shown(row))),
        Err(value) => (name, format!("{value:?}")),
    });
    let members: BTreeMap<_, _> = members.collect();
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}", members.join(", "))
}

/// A job of one launch at noon, when the tests begin, under the policy `small`.
pub fn batch(count: u32) -> Value {
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["count"] = json!(count);
    job["policy_id"] = json!("small");
    job
}

pub fn cron_job() -> Value {
    json!({
        "trigger": {"cron": "0 9 * * MON-FRI", "zone": "Europe/London"},
        "target": {"sqs": {"queue_url": QUEUE}},
        "payload": {"report": "daily"}
    })
}

pub fn at_job(at: &str) -> Value {
    json!({"trigger": {"at": at}, "target": {"sqs": {"queue_url": QUEUE}}})
}

/// Kills the caller after one of its requests.
pub struct DiesAt {
    at: u64,
    seen: AtomicU64,
}

impl DiesAt {
    /// After the request of this number, from 0.
    pub fn after(at: u64) -> Self {
        Self { at, seen: AtomicU64::new(0) }
    }
}

impl FaultPlan for DiesAt {
    fn on_request(&self, _: &Call) -> Fault {
        match self.seen.fetch_add(1, Ordering::Relaxed) {
            seen if seen == self.at => Fault::CrashAfter,
            _ => Fault::None,
        }
    }
}

/// No event gets into the consumer's queue.
pub struct QueueAway;

impl FaultPlan for QueueAway {
    fn on_request(&self, call: &Call) -> Fault {
        let to_consumer = call.operation.starts_with("SendMessage") && call.resource().ends_with("jobs");
        if to_consumer { Fault::DropBefore } else { Fault::None }
    }
}
