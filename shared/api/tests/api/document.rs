//! The OpenAPI document: complete, and equal to its copy in `docs/`.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_api::openapi_json;
use tidegate_domain::change::{Kind, What};
use tidegate_domain::occurrence::{SkipReason, StopReason};
use tidegate_embedded::{Call, Fault, FaultPlan};

use crate::links::repository;
use crate::world::{World, cron_job};

/// Set to write the copy anew: `TIDEGATE_UPDATE=1 cargo nextest run -p tidegate-api document`.
const UPDATE: &str = "TIDEGATE_UPDATE";

#[test]
fn the_copy_in_docs_is_the_document() {
    let path = repository().join("docs/openapi.json");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, openapi_json()).unwrap();
    }
    let copy = std::fs::read_to_string(path).unwrap_or_default();
    assert!(copy == openapi_json(), "docs/openapi.json is not the document; {UPDATE}=1 writes it anew");
}

#[tokio::test]
async fn every_route_is_in_the_document_and_the_document_names_no_other() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let mut described = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let real = path.replace("{run_id}", "nightly.1.1790000000").replace(['{', '}'], "");
        for method in ["get", "post", "put", "delete", "patch"] {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let answer = world.send(method.clone(), &real, None, &[], "").await;
            let is_described = methods.get(method.as_str().to_lowercase()).is_some();
            let is_routed = answer.status != StatusCode::METHOD_NOT_ALLOWED
                && answer.json["type"] != "urn:tidegate:problem:unknown-route";
            assert_eq!(is_described, is_routed, "{method} {path}");
            if is_described {
                described.push(format!("{method} {path}"));
            }
        }
    }
    described.sort();
    let expected = [
        "DELETE /v1/calendars/{calendar_id}",
        "DELETE /v1/clients/{client_id}",
        "DELETE /v1/clients/{client_id}/keys/{key_id}",
        "DELETE /v1/jobs/{job_id}",
        "DELETE /v1/keys/{key_id}",
        "DELETE /v1/policies/{policy_id}",
        "DELETE /v1/secrets/{secret_id}",
        "GET /v1/calendars",
        "GET /v1/calendars/{calendar_id}",
        "GET /v1/changes",
        "GET /v1/client",
        "GET /v1/clients",
        "GET /v1/clients/{client_id}",
        "GET /v1/clients/{client_id}/keys",
        "GET /v1/clients/{client_id}/lateness",
        "GET /v1/clients/{client_id}/sideline",
        "GET /v1/clients/{client_id}/usage",
        "GET /v1/dead-letters",
        "GET /v1/dead-letters/count",
        "GET /v1/dead-letters/{event_id}",
        "GET /v1/docs",
        "GET /v1/events",
        "GET /v1/events/{event_id}/explain",
        "GET /v1/events/{event_id}/failures",
        "GET /v1/health",
        "GET /v1/index",
        "GET /v1/jobs",
        "GET /v1/jobs/{job_id}",
        "GET /v1/jobs/{job_id}/runs",
        "GET /v1/jobs/{job_id}/runs/{run_id}",
        "GET /v1/jobs/{job_id}/runs/{run_id}/events",
        "GET /v1/jobs/{job_id}/upcoming",
        "GET /v1/jobs/{job_id}/versions",
        "GET /v1/jobs/{job_id}/versions/{revision}",
        "GET /v1/keys",
        "GET /v1/lateness",
        "GET /v1/one-time-jobs",
        "GET /v1/openapi.json",
        "GET /v1/overdue",
        "GET /v1/policies",
        "GET /v1/policies/{policy_id}",
        "GET /v1/policies/{policy_id}/holders",
        "GET /v1/policies/{policy_id}/samples",
        "GET /v1/runs",
        "GET /v1/runs/count",
        "GET /v1/secrets",
        "GET /v1/sideline",
        "GET /v1/targets",
        "GET /v1/upcoming",
        "GET /v1/usage",
        "PATCH /v1/clients/{client_id}",
        "PATCH /v1/jobs/{job_id}",
        "PATCH /v1/policies/{policy_id}",
        "POST /v1/calendars/{calendar_id}/preview",
        "POST /v1/clients",
        "POST /v1/clients/{client_id}/drain",
        "POST /v1/clients/{client_id}/keys",
        "POST /v1/clients/{client_id}/resume",
        "POST /v1/clients/{client_id}/sideline",
        "POST /v1/clients/{client_id}/suspend",
        "POST /v1/dead-letters/discard",
        "POST /v1/dead-letters/redrive",
        "POST /v1/drain",
        "POST /v1/jobs",
        "POST /v1/jobs/bulk",
        "POST /v1/jobs/bulk/delete",
        "POST /v1/jobs/bulk/pause",
        "POST /v1/jobs/bulk/resume",
        "POST /v1/jobs/{job_id}/backfill",
        "POST /v1/jobs/{job_id}/drain",
        "POST /v1/jobs/{job_id}/pause",
        "POST /v1/jobs/{job_id}/reschedule",
        "POST /v1/jobs/{job_id}/resume",
        "POST /v1/jobs/{job_id}/rollback",
        "POST /v1/jobs/{job_id}/runs/{run_id}/cancel",
        "POST /v1/jobs/{job_id}/sideline",
        "POST /v1/jobs/{job_id}/skip",
        "POST /v1/jobs/{job_id}/trigger",
        "POST /v1/keys",
        "POST /v1/policies",
        "POST /v1/policies/{policy_id}/close",
        "POST /v1/policies/{policy_id}/open",
        "POST /v1/policies/{policy_id}/pause",
        "POST /v1/policies/{policy_id}/resume",
        "POST /v1/runs/cancel",
        "POST /v1/schedules/preview",
        "POST /v1/sideline",
        "POST /v1/tokens/extend",
        "POST /v1/tokens/free",
        "POST /v1/tokens/release",
        "POST /v1/webhook-secret/rotate",
        "PUT /v1/calendars/{calendar_id}",
        "PUT /v1/index/shards",
        "PUT /v1/jobs/{job_id}",
        "PUT /v1/policies/{policy_id}",
        "PUT /v1/secrets/{secret_id}",
    ];
    assert_eq!(described, expected);
}

#[test]
fn what_endpoints_get_is_described_as_its_schemas_are() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    for (webhook, component, file) in [
        ("event", "DeliveredEvent", include_str!("../../../../docs/schemas/event.json")),
        ("completion", "Completion", include_str!("../../../../docs/schemas/completion.json")),
    ] {
        let described = &document["webhooks"][webhook]["post"];
        let body = &described["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(*body, format!("#/components/schemas/{component}"), "{described}");
        let schema: Value = serde_json::from_str(file).unwrap();
        let of = |schema: &Value, part: &str| -> Vec<String> {
            let mut names: Vec<String> = match &schema[part] {
                Value::Object(members) => members.keys().cloned().collect(),
                listed => serde_json::from_value(listed.clone()).unwrap(),
            };
            names.sort();
            names
        };
        let component = &document["components"]["schemas"][component];
        assert_eq!(of(component, "properties"), of(&schema, "properties"));
        let required = |schema| {
            let mut names = of(schema, "required");
            // A member that may be null is there all the same.
            names.retain(|name| !["reason", "started_at", "finished_at"].contains(&&**name));
            names
        };
        assert_eq!(required(component), required(&schema));
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_tells_of_its_problems() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    for reference in references(&document) {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert_eq!(responses["default"]["$ref"], "#/components/responses/Problem", "{method} {path}");
            for (status, response) in responses.iter().filter(|(status, _)| *status != "default") {
                assert!(response["description"].is_string(), "{method} {path} {status} has no description");
            }
        }
    }
}

/// Whoever gets no answer wants to know whether to send the call again.
#[test]
fn each_post_says_what_comes_of_a_call_that_is_made_again() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(post) = methods.get("post") else { continue };
        let text = ["summary", "description"].map(|part| post[part].as_str().unwrap_or_default()).join(" ");
        assert!(text.contains("epeat"), "{path} does not say whether it is safe to repeat: {text}");
        // One that takes an idempotency key says so.
        let has_key =
            post["parameters"].as_array().into_iter().flatten().any(|p| p["name"] == "idempotency-key");
        assert_eq!(has_key, text.contains("`Idempotency-Key`"), "{path}: {text}");
    }
}

#[test]
fn each_reason_why_a_run_is_not_delivered_is_in_the_document() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let reason = &document["components"]["schemas"]["Run"]["properties"]["reason"]["description"];
    let listed: BTreeSet<&str> = reason.as_str().unwrap().split('`').skip(1).step_by(2).collect();
    let reasons = SkipReason::ALL.map(SkipReason::as_str).into_iter();
    let reasons: BTreeSet<&str> = reasons.chain(StopReason::ALL.map(StopReason::as_str)).collect();
    assert_eq!(listed, reasons);
}

#[test]
fn each_word_of_a_change_is_in_the_document() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let told = &document["components"]["schemas"]["Change"]["properties"];
    let words = |field: &str| -> Vec<String> {
        let description = told[field]["description"].as_str().unwrap();
        description.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    assert_eq!(words("what"), What::ALL.map(What::as_str));
    assert_eq!(words("kind"), Kind::ALL.map(Kind::as_str));
}

fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn health_says_since_when_launches_are_late_and_costs_little() {
    let world = World::new().await;
    world.engine.tick().await.unwrap();
    let health = async || world.send(Method::GET, "/v1/health", None, &[], "").await;
    let ok = health().await;
    assert_eq!(
        (ok.status, &ok.json["emission"]["planned_to"]),
        (StatusCode::OK, &json!("2026-11-21T12:02:00Z"))
    );
    // No tick comes for three minutes. What was read is believed for five seconds, so nobody reads the store dry.
    world.clock.advance_ms(4_000);
    world.cut_off();
    assert_eq!(health().await.status, StatusCode::OK);
    world.embedded.inject_nothing();
    world.clock.advance_ms(176_000);
    let late = health().await;
    assert_eq!(late.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(late.json["status"], "late");
    assert_eq!(late.json["emission"]["late_since"], "2026-11-21T12:02:00Z");
    assert_eq!(late.json["emission"]["late_seconds"], 60);
    world.engine.tick().await.unwrap();
    world.clock.advance_ms(5_000);
    assert_eq!(health().await.json["status"], "ok");
}

/// The first job of a deployment is often there before the first tick: until the launches that are left to ticks begin, the
/// API emits them itself.
#[tokio::test]
async fn before_the_first_tick_nothing_is_late_until_a_launch_is_left_to_it() {
    let world = World::new().await;
    let key = world.register("acme").await;
    assert_eq!(world.put("/v1/jobs/first", &key, &cron_job()).await.status, StatusCode::CREATED);
    let health = async || world.send(Method::GET, "/v1/health", None, &[], "").await;
    for _ in 0..4 {
        assert_eq!(health().await.status, StatusCode::OK);
        world.clock.advance_ms(59_000);
    }
    assert_eq!(health().await.status, StatusCode::OK);
    world.clock.advance_ms(6_000);
    let late = health().await;
    assert_eq!(late.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(late.json["emission"]["late_since"], "2026-11-21T12:04:00Z");
}

/// Panics where a request touches a service: stands for any fault of ours.
struct Panics;

impl FaultPlan for Panics {
    fn on_request(&self, _: &Call) -> Fault {
        panic!("a fault of ours")
    }
}

#[tokio::test]
async fn a_request_that_panics_is_answered_and_stops_no_other() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.embedded.inject(Panics);
    let answer = world.get("/v1/jobs/nightly", &key).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer.json["type"], "urn:tidegate:problem:internal");
    assert!(
        !answer.text.contains("a fault of ours") && !answer.header("x-request-id").is_empty(),
        "{}",
        answer.text
    );
    world.embedded.inject_nothing();
    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::OK);
    let health = world.send(Method::GET, "/v1/health", None, &[], "").await;
    assert_eq!(health.json["panics"], 1);
}

#[tokio::test]
async fn health_and_the_document_need_no_key() {
    let world = World::new().await;
    let health = world.send(Method::GET, "/v1/health", None, &[], "").await;
    assert_eq!(health.status, StatusCode::OK);
    assert_eq!(health.json["status"], "ok");
    assert_eq!(health.json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(health.json["emission"], json!({"planned_to": null, "late_since": null, "late_seconds": 0}));
    assert_eq!(health.json["panics"], 0);
    assert!(health.json["zone_database"].as_str().unwrap().starts_with("20"), "{}", health.text);
    let document = world.send(Method::GET, "/v1/openapi.json", None, &[], "").await;
    assert_eq!((document.status, document.header("content-type")), (StatusCode::OK, "application/json"));
    assert_eq!(document.text, openapi_json());
    let page = world.send(Method::GET, "/v1/docs", None, &[], "").await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    assert!(page.text.contains("<code>POST /v1/jobs</code>") && !page.text.contains("<script"));
}
