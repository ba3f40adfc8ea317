//! Bad input: each gets its status and a sentence that helps; nothing is half written.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, QUEUE, World, at_job, cron_job};

/// A body that is refused, and how.
pub struct Case {
    pub what: &'static str,
    pub body: Value,
    status: StatusCode,
    field: &'static str,
    value: Value,
    says: &'static str,
}

impl Case {
    /// The same where another value is echoed.
    pub fn given(self, value: Value) -> Self {
        Self { value, ..self }
    }
}

pub fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap()[name] = value;
    body
}

pub fn invalid(
    what: &'static str,
    body: Value,
    field: &'static str,
    value: Value,
    says: &'static str,
) -> Case {
    Case { what, body, status: StatusCode::UNPROCESSABLE_ENTITY, field, value, says }
}

fn job_cases() -> Vec<Case> {
    let cron = |text: &str| with(cron_job(), "/trigger/cron", json!(text));
    let fields = |fields: Value| with(cron_job(), "/trigger/cron", fields);
    let at = |text: &str| at_job(text);
    let set = |pointer: &str, value: Value| with(cron_job(), pointer, value);
    vec![
        invalid(
            "an unknown zone",
            set("/trigger/zone", json!("Europe/Lundon")),
            "trigger.zone",
            json!("Europe/Lundon"),
            "zone 'Europe/Lundon' is unknown: did you mean 'Europe/London'?",
        ),
        invalid(
            "a fixed offset as a zone",
            set("/trigger/zone", json!("GMT+3")),
            "trigger.zone",
            json!("GMT+3"),
            "zone 'GMT+3' is a fixed offset, not a zone: write the zone of a city, or 'Etc/GMT-3'",
        ),
        invalid(
            "two zones",
            cron("CRON_TZ=Asia/Tokyo 0 9 * * *"),
            "trigger.zone",
            json!("Europe/London"),
            "zone is 'Europe/London', but the expression begins with the zone 'Asia/Tokyo'; leave one of them out",
        ),
        invalid(
            "a cron that never fires",
            cron("0 0 30 2 *"),
            "trigger.cron",
            json!("0 0 30 2 *"),
            "cron expression '0 0 30 2 *' never fires: none of its years has such a day; change the day, the month or the year",
        ),
        invalid(
            "a field out of range",
            cron("61 * * * *"),
            "trigger.cron",
            json!("61 * * * *"),
            "minute: '61' is outside 0-59: write a value in that range",
        ),
        invalid(
            "a field of the object out of range",
            fields(json!({"Hour": "25", "Minute": "0"})),
            "trigger.cron.Hour",
            json!("25"),
            "hour: '25' is outside 0-23: write a value in that range",
        ),
        invalid(
            "an object without its minute",
            fields(json!({"Hour": "3"})),
            "trigger.cron.Minute",
            Value::Null,
            "minute is missing: write Minute ('0' for on the hour, '*' for every one)",
        ),
        invalid(
            "an object with a field that there is not",
            fields(json!({"Hour": "3", "Minute": "0", "Second": "0"})),
            "trigger.cron.Second",
            json!("0"),
            "trigger.cron has no field 'Second': the object has no seconds and no years; write 'cron' as text with six or seven",
        ),
        invalid(
            "a cron that is no text",
            fields(json!(5)),
            "trigger.cron",
            json!(5),
            "trigger.cron must be a string such as \"0 9 * * MON-FRI\", or a JSON object such as {\"Hour\": \"3\", \"Minute\": \"0\"}, not 5",
        ),
        invalid(
            "no trigger",
            set("/trigger", json!({})),
            "trigger",
            Value::Null,
            "trigger has none of 'cron', 'rate' and 'at'; give {\"cron\":",
        ),
        invalid(
            "two triggers",
            set("/trigger/at", json!("2026-12-01T00:00:00Z")),
            "trigger",
            Value::Null,
            "trigger has both 'cron' and 'at'; give one, or make several jobs",
        ),
        invalid(
            "an instant without its offset",
            at("2026-12-01T12:00:00"),
            "trigger.at",
            json!("2026-12-01T12:00:00"),
            "at '2026-12-01T12:00:00' has no offset; end it in Z for UTC or in an offset such as +01:00, or name its zone in 'zone'",
        ),
        invalid(
            "no instant",
            at("tomorrow"),
            "trigger.at",
            json!("tomorrow"),
            "at 'tomorrow' is no instant in ISO 8601; write it as 2026-11-21T12:00:00Z",
        ),
        invalid(
            "an instant of the past",
            at("2026-11-20T12:00:00Z"),
            "trigger.at",
            json!("2026-11-20T12:00:00Z"),
            "at '2026-11-20T12:00:00Z' is 24 hours ago (it is 2026-11-21T12:00:00Z now); give an instant that is to come",
        ),
        invalid(
            "an instant beyond the horizon",
            at("2040-01-01T00:00:00Z"),
            "trigger.at",
            json!("2040-01-01T00:00:00Z"),
            "ahead; 3660 days is the most",
        ),
        invalid(
            "an instant with a zone",
            with(at("2026-12-01T12:00:00Z"), "/trigger/zone", json!("Asia/Tokyo")),
            "trigger.zone",
            json!("Asia/Tokyo"),
            "zone goes with 'cron' and with local times in 'at'; the offset of each instant says which one is meant",
        ),
        invalid(
            "no events",
            set("/count", json!(0)),
            "count",
            json!(0),
            "count is 0; it must lie between 1 and 1000000",
        ),
        invalid(
            "too many events",
            set("/count", json!(1_000_001)),
            "count",
            json!(1_000_001),
            "count is 1000001; it must lie between 1 and 1000000",
        ),
        invalid(
            "less than no events",
            set("/count", json!(-1)),
            "count",
            json!(-1),
            "count is -1; it must lie between 1 and 1000000",
        ),
        invalid(
            "a number of events that is no number",
            set("/count", json!("ten")),
            "count",
            json!("ten"),
            "count must be a whole number, not \"ten\"",
        ),
        invalid(
            "too many attempts",
            set("/max_attempts", json!(201)),
            "max_attempts",
            json!(201),
            "max_attempts is 201; it must lie between 1 and 200",
        ),
        invalid(
            "a payload over 64 KiB",
            set("/payload", json!("x".repeat(64 * 1024 - 1))),
            "payload",
            Value::Null,
            "payload is 65537 bytes of JSON; 65536 is the most: store the data elsewhere and send its address",
        ),
        invalid(
            "a queue that does not exist",
            set("/target/sqs/queue_url", json!("http://localhost:9324/000000000000/nowhere")),
            "target.sqs.queue_url",
            json!("http://localhost:9324/000000000000/nowhere"),
            "no queue has the URL 'http://localhost:9324/000000000000/nowhere'; create it, or check its account and region",
        ),
        invalid(
            "a queue by its name",
            set("/target/sqs/queue_url", json!("jobs")),
            "target.sqs.queue_url",
            json!("jobs"),
            "queue_url 'jobs' is not a URL; give one that begins with https:// or http:// and names a host",
        ),
        invalid(
            "an endpoint with a password",
            set("/target", json!({"http": {"url": "https://me:secret@acme.example/"}})),
            "target.http.url",
            json!("https://me:secret@acme.example/"),
            "url carries a user name or password before its host; remove it, signatures prove who calls",
        ),
        invalid(
            "two targets",
            set("/target/http", json!({"url": "https://acme.example/"})),
            "target",
            Value::Null,
            "target has both 'sqs' and 'http'; give one, or make two jobs",
        ),
        invalid(
            "no target",
            set("/target", json!({})),
            "target",
            Value::Null,
            "target has neither 'sqs' nor 'http'",
        ),
        invalid(
            "an unknown policy",
            set("/policy_id", json!("nightly-limit")),
            "policy_id",
            json!("nightly-limit"),
            "client 'acme' has no policy 'nightly-limit'; create it first, or leave policy_id out",
        ),
        invalid(
            "a policy's name with a blank",
            set("/policy_id", json!("my policy")),
            "policy_id",
            json!("my policy"),
            "policy_id 'my policy' has the character ' '; use letters, digits, '-' or '_'",
        ),
        invalid(
            "a job's name with a dot",
            set("/job_id", json!("night ly")),
            "job_id",
            json!("night ly"),
            "job_id 'night ly' has the character ' '; use letters, digits and - _ . : @ / + ~ = ,",
        ),
        invalid(
            "a job's name that is kept",
            set("/job_id", json!("at_noon")),
            "job_id",
            json!("at_noon"),
            "job_id 'at_noon' begins with 'at_', which is kept for generated ids; choose another name",
        ),
        invalid(
            "a field that there is not",
            set("/polcy_id", json!("small")),
            "polcy_id",
            json!("small"),
            "the body has no field 'polcy_id': did you mean 'policy_id'?",
        ),
        invalid(
            "a history that there is not",
            set("/history", json!("some")),
            "history",
            json!("some"),
            "history must be \"all\", \"failures\" or \"none\", not \"some\"",
        ),
        invalid(
            "a list",
            json!([]),
            "(body)",
            Value::Null,
            "the body must be a JSON object, not an array; many jobs go to POST /v1/jobs/bulk",
        ),
    ]
}

pub fn assert_refused(answer: &Answer, case: &Case) {
    let what = case.what;
    assert_eq!(answer.status, case.status, "{what}: {}", answer.text);
    assert_eq!(answer.header("content-type"), "application/problem+json", "{what}");
    assert_eq!(answer.json["status"], case.status.as_u16(), "{what}");
    let error = &answer.json["errors"][0];
    assert_eq!(error["field"], case.field, "{what}: {}", answer.text);
    assert_eq!(error.get("value").unwrap_or(&Value::Null), &case.value, "{what}: {}", answer.text);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(case.says), "{what}: {message}");
    assert_eq!(answer.json["detail"], message, "{what}");
}

#[tokio::test]
async fn a_job_with_one_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    for case in job_cases() {
        assert_refused(&world.post("/v1/jobs", &key, &case.body).await, &case);
        if case.what != "a job's name that is kept" && case.what != "a job's name with a dot" {
            assert_refused(&world.put("/v1/jobs/nightly", &key, &case.body).await, &case);
        }
    }
    assert_eq!(world.everything().await, before);
    assert_eq!(world.post("/v1/jobs", &key, &cron_job()).await.status, StatusCode::CREATED);
    assert_ne!(world.everything().await, before);
}

#[tokio::test]
async fn all_faults_of_a_job_are_told_at_once() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = json!({
        "trigger": {"cron": "61 * * * *", "zone": "Mars/Olympus"}, "count": 0, "max_attempts": 0,
        "policy_id": "a b", "target": {"sqs": {"queue_url": "jobs"}}
    });
    let answer = world.post("/v1/jobs", &key, &body).await;
    let fields: Vec<&str> =
        answer.json["errors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
    let expected =
        ["trigger.cron", "trigger.zone", "count", "policy_id", "target.sqs.queue_url", "max_attempts"];
    assert_eq!(fields, expected);
    assert!(answer.json["detail"].as_str().unwrap().ends_with("(and 5 more, see errors)"));
    let body =
        with(with(cron_job(), "/policy_id", json!("none")), "/target/sqs/queue_url", json!("http://h/1/q"));
    let answer = world.post("/v1/jobs", &key, &body).await;
    assert_eq!(answer.json["errors"].as_array().unwrap().len(), 2, "{}", answer.text);
}

#[tokio::test]
async fn a_policy_with_a_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let policy = |max: Value, lease: Value| json!({"policy_id": "small", "max_in_flight": max, "lease_seconds": lease});
    for case in [
        invalid(
            "no tokens",
            policy(json!(0), json!(60)),
            "max_in_flight",
            json!(0),
            "max_in_flight is 0; it must lie between 1 and 10000; pause the policy to let nothing through",
        ),
        invalid(
            "too many",
            policy(json!(10_001), json!(60)),
            "max_in_flight",
            json!(10_001),
            "it must lie between 1 and 10000",
        ),
        invalid(
            "too short a lease",
            policy(json!(1), json!(9)),
            "lease_seconds",
            json!(9),
            "lease_seconds is 9; it must lie between 10 and 43200; 10 seconds is what one delivery may take",
        ),
        invalid(
            "no name",
            json!({"max_in_flight": 1}),
            "policy_id",
            Value::Null,
            "policy_id is missing; give the policy a name",
        ),
        invalid(
            "no limit",
            json!({"policy_id": "small"}),
            "max_in_flight",
            Value::Null,
            "max_in_flight is missing; give a whole number such as 3",
        ),
    ] {
        assert_refused(&world.post("/v1/policies", &key, &case.body).await, &case);
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_client_with_a_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let before = world.everything().await;
    let long = "x".repeat(33);
    for case in [
        invalid(
            "no name",
            json!({}),
            "client_id",
            Value::Null,
            "client_id is missing; give a string such as \"acme\"",
        ),
        invalid(
            "too long a name",
            json!({"client_id": long}),
            "client_id",
            json!(long),
            "is 33 bytes long; 32 is the most",
        ),
        invalid(
            "too many targets",
            json!({"client_id": "a", "allowed_targets": vec!["*"; 51]}),
            "allowed_targets",
            Value::Null,
            "allowed_targets holds 51 patterns; 50 is the most (one '*' alone allows all)",
        ),
        invalid(
            "two stars",
            json!({"client_id": "a", "allowed_targets": ["*", "https://*/*"]}),
            "allowed_targets[1]",
            json!("https://*/*"),
            "has more than one '*'; list several patterns instead",
        ),
        invalid(
            "a pattern that covers nothing",
            json!({"client_id": "a", "allowed_targets": ["queue"]}),
            "allowed_targets[0]",
            json!("queue"),
            "which no address matches",
        ),
    ] {
        assert_refused(&world.post("/v1/clients", &world.admin_key, &case.body).await, &case);
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_target_off_the_allow_list_is_forbidden() {
    let world = World::new().await;
    let body = json!({"client_id": "narrow", "allowed_targets": ["https://hooks.acme.example/*"]});
    let key =
        world.post("/v1/clients", &world.admin_key, &body).await.json["api_key"].as_str().unwrap().to_owned();
    let before = world.everything().await;
    let case = Case {
        what: "off the list",
        body: cron_job(),
        status: StatusCode::FORBIDDEN,
        field: "target.sqs.queue_url",
        value: json!(QUEUE),
        says: "its allowed_targets are https://hooks.acme.example/*: use an address that they cover, or let the admin allow this \
            one (PATCH /v1/clients/narrow)",
    };
    assert_refused(&world.post("/v1/jobs", &key, &case.body).await, &case);
    assert_eq!(world.everything().await, before);
    let allowed = with(cron_job(), "/target", json!({"http": {"url": "https://hooks.acme.example/a"}}));
    assert_eq!(world.post("/v1/jobs", &key, &allowed).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_client_without_a_word_of_its_targets_may_name_any_here_and_none_on_aws() {
    let world = World::new().await;
    let key = world.register("open").await;
    assert_eq!(world.get("/v1/client", &key).await.json["allowed_targets"], json!(["*"]));
    let world = World::new().await.with_targets_named();
    let key = world.register("closed").await;
    assert_eq!(world.get("/v1/client", &key).await.json["allowed_targets"], json!([]));
    let refused = world.post("/v1/jobs", &key, &cron_job()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let says =
        "its allowed_targets are none: let the admin name those that it may use (PATCH /v1/clients/closed)";
    assert!(refused.text.contains(says), "{}", refused.text);
    let named = json!({"allowed_targets": [QUEUE]}).to_string();
    let headers = [("content-type", "application/json")];
    world.send(Method::PATCH, "/v1/clients/closed", Some(&world.admin_key), &headers, &named).await;
    world.clock.advance_ms(10_000);
    assert_eq!(world.post("/v1/jobs", &key, &cron_job()).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused_by_its_place_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    for (text, says) in [
        ("", "the body is empty; send a JSON object"),
        ("{\"count\": 1,\n  oops}", "the body is not JSON: key must be a string at line 2, column 3"),
        ("{\"count\": 1", "the body is not JSON: EOF while parsing an object at line 1, column 11"),
        ("{\"count\": 01}", "the body is not JSON: invalid number at line 1, column 12"),
        ("nope", "the body is not JSON: expected ident at line 1, column 2"),
    ] {
        let answer = world
            .send(Method::POST, "/v1/jobs", Some(&key), &[("content-type", "application/json")], text)
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{text}: {}", answer.text);
        assert_eq!(answer.json["type"], "urn:tidegate:problem:malformed-body", "{text}");
        assert_eq!(answer.json["detail"], says, "{text}");
    }
    let twice = format!("{} {{}}", cron_job());
    let answer = world
        .send(Method::POST, "/v1/jobs", Some(&key), &[("content-type", "application/json")], &twice)
        .await;
    assert!(answer.json["detail"].as_str().unwrap().contains("trailing characters"), "{}", answer.text);
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_body_over_256_kib_or_of_another_type_is_refused() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let large = with(cron_job(), "/payload", json!("x".repeat(256 * 1024)));
    let answer = world.post("/v1/jobs", &key, &large).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.json["detail"], "the body is over 262144 bytes, the most that is read; send less");
    for (headers, says) in [
        (
            vec![("content-type", "application/x-www-form-urlencoded")],
            "the body is declared as 'application/x-www-form-urlencoded'; send JSON with the header 'Content-Type: application/json'",
        ),
        (vec![], "the body is not declared; send JSON with the header 'Content-Type: application/json'"),
    ] {
        let answer =
            world.send(Method::POST, "/v1/jobs", Some(&key), &headers, &cron_job().to_string()).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(answer.json["detail"], says);
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn routes_methods_queries_and_headers_that_there_are_not_are_named() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let answer = world.get("/v1/job", &key).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json["detail"], "there is no route GET /v1/job; GET /v1/docs lists them all");
    let answer = world.send(Method::PATCH, "/v1/jobs", Some(&key), &[], "").await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.json["detail"], "/v1/jobs takes no PATCH; the header Allow names what it takes");
    assert_eq!(answer.header("allow"), "POST,GET,HEAD");
    let answer = world.get("/v1/jobs?page=2", &key).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.json["detail"].as_str().unwrap().contains("unknown field `page`"), "{}", answer.text);
    for path in ["/v1/jobs?cursor=%21", "/v1/policies?cursor=bm9uc2Vuc2U"] {
        let answer = world.get(path, &key).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(
            answer.json["detail"].as_str().unwrap().starts_with("cursor is not one of this list"),
            "{path}"
        );
    }
    let answer = world.send(Method::DELETE, "/v1/jobs/nightly", Some(&key), &[("if-match", "3")], "").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        answer.json["detail"],
        "the header If-Match is '3'; give the ETag of one answer, such as If-Match: \"3\""
    );
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused_as_a_problem() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for path in ["/v1/jobs/%ff", "/v1/jobs/%c3%28/runs/x/cancel", "/v1/policies/%ed%a0%80"] {
        for method in [Method::GET, Method::PUT, Method::POST] {
            let answer = world.send(method, path, Some(&key), &[], "").await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
            assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
            assert!(answer.json["detail"].as_str().unwrap().contains(path), "{}", answer.text);
        }
    }
}
