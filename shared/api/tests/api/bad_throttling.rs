//! Throttling that is refused: by its field, with what was given and what would do; nothing is half written.

use http::StatusCode;
use serde_json::{Value, json};

use crate::bad_input::{Case, assert_refused, invalid, with};
use crate::world::{QUEUE, World, at_job, batch, cron_job};

/// A field of a job under a policy of three tokens that is refused.
fn job(what: &'static str, field: &'static str, value: Value, at: &'static str, says: &'static str) -> Case {
    let given = if value.is_object() || value.is_array() { Value::Null } else { value.clone() };
    invalid(what, with(throttled(), &format!("/{field}"), value), at, given, says)
}

fn throttled() -> Value {
    with(cron_job(), "/policy_id", json!("small"))
}

fn policies() -> Vec<Case> {
    let policy = |pointer: &str, value: Value| {
        let plain = json!({"policy_id": "other", "max_in_flight": 3, "rate": {"events": 5, "per": "second"}});
        with(plain, pointer, value)
    };
    vec![
        invalid(
            "no tokens",
            policy("/max_in_flight", json!(0)),
            "max_in_flight",
            json!(0),
            "max_in_flight is 0; it must lie between 1 and 10000; pause the policy to let nothing through",
        ),
        invalid(
            "less than no tokens",
            policy("/max_in_flight", json!(-1)),
            "max_in_flight",
            json!(-1),
            "max_in_flight is -1",
        ),
        invalid(
            "a lease shorter than a delivery",
            policy("/lease_seconds", json!(9)),
            "lease_seconds",
            json!(9),
            "lease_seconds is 9; it must lie between 10 and 43200; 10 seconds is what one delivery may take",
        ),
        invalid(
            "another end of a lease",
            policy("/on_expiry", json!("forget")),
            "on_expiry",
            json!("forget"),
            "on_expiry must be \"reclaim\" or \"hold\", not \"forget\"",
        ),
        invalid(
            "a rate of nothing",
            policy("/rate/events", json!(0)),
            "rate.events",
            json!(0),
            "rate.events is 0; it must lie between 1 and 100000",
        ),
        invalid(
            "a burst beyond the maximum",
            policy("/rate/burst", json!(10_001)),
            "rate.burst",
            json!(10_001),
            "rate.burst is 10001; it must lie between 1 and 10000",
        ),
        invalid(
            "a rate by the week",
            policy("/rate/per", json!("week")),
            "rate.per",
            json!("week"),
            "rate.per must be \"second\", \"minute\", \"hour\" or \"day\", not \"week\"",
        ),
        invalid(
            "half an event a second",
            policy("/rate", json!({"events": 0.5, "per": "second"})),
            "rate.events",
            json!(0.5),
            "0.5 a second is {\"events\": 30, \"per\": \"minute\"}",
        ),
        invalid("a rate that is a number", policy("/rate", json!(0.5)), "rate", json!(0.5), "rate must be"),
        invalid(
            "a rate without its time",
            policy("/rate", json!({"events": 5})),
            "rate.per",
            Value::Null,
            "rate.per is missing; give \"second\", \"minute\", \"hour\" or \"day\"",
        ),
        invalid(
            "a line without a place",
            policy("/max_waiting_runs", json!(0)),
            "max_waiting_runs",
            json!(0),
            "max_waiting_runs is 0; it must lie between 1 and 10000",
        ),
    ]
}

fn flows() -> Vec<Case> {
    let until = |until: &str| with(batch(5), "/window", json!({"until": until}));
    vec![
        job("no weight", "cost", json!(0), "cost", "cost is 0; it must lie between 1 and 10"),
        job("too heavy", "cost", json!(11), "cost", "cost is 11; it must lie between 1 and 10"),
        job(
            "heavier than its policy",
            "cost",
            json!(4),
            "cost",
            "cost is 4, but the max_in_flight of policy 'small' is 3, so an event never fits; lower the cost, or raise \
                max_in_flight first",
        ),
        job(
            "no such place",
            "priority",
            json!(10),
            "priority",
            "priority is 10; it must lie between 0 and 9",
        ),
        job(
            "no pointer",
            "fair_by",
            json!("customer_id"),
            "fair_by",
            "fair_by is 'customer_id'; it must be a JSON pointer into the payload of 2 to 256 bytes, such as /customer_id, in \
                which '~' is written as ~0 and '/' within a name as ~1",
        ),
        job(
            "nothing to be fair by",
            "fair_by",
            json!("/customer_id"),
            "fair_by",
            "fair_by is '/customer_id', and payload has nothing there; it must be a string, a number or a boolean",
        ),
        job(
            "no such overlap",
            "overlap",
            json!("queue"),
            "overlap",
            "overlap must be \"allow\", \"skip\" or \"buffer_one\", not \"queue\"",
        ),
        job(
            "no failure",
            "max_failures",
            json!(0),
            "max_failures",
            "max_failures is 0; it must lie between 1 and 1000000",
        ),
        job(
            "a window of nothing",
            "window",
            json!({"seconds": 0}),
            "window.seconds",
            "window.seconds is 0; it must lie between 1 and 604800",
        )
        .given(json!(0)),
        job(
            "a pace without a window",
            "window",
            json!({"pace": "even"}),
            "window.pace",
            "window.pace 'even' spreads events over a window, and none is given: give window.seconds, or window.until",
        ),
        job(
            "an end without a window",
            "window",
            json!({"on_deadline": "expire"}),
            "window.on_deadline",
            "'expire' acts at a window's end, and none is given",
        ),
        job("an empty window", "window", json!({}), "window", "window says nothing, and none is given"),
        job(
            "two ends of a window",
            "window",
            json!({"seconds": 5, "until": "2026-12-01T00:00:00Z"}),
            "window",
            "window has both 'seconds' and 'until'; give one",
        ),
        job(
            "an end that is an instant, of a cron",
            "window",
            json!({"until": "2026-12-01T00:00:00Z"}),
            "window.until",
            "window.until goes with the trigger 'at' only",
        )
        .given(json!("2026-12-01T00:00:00Z")),
        invalid(
            "an end before the launch",
            until("2026-11-21T11:00:00Z"),
            "window.until",
            json!("2026-11-21T11:00:00Z"),
            "window.until is 2026-11-21T11:00:00Z, which is not after the launch at 2026-11-21T12:00:00Z; give a later \
                instant",
        ),
        invalid(
            "an end at the launch",
            until("2026-11-21T12:00:00Z"),
            "window.until",
            json!("2026-11-21T12:00:00Z"),
            "which is not after the launch at 2026-11-21T12:00:00Z",
        ),
        invalid(
            "an end before the last of the launches",
            with(
                until("2026-11-21T13:00:00Z"),
                "/trigger/at",
                json!(["2026-11-21T12:00:00Z", "2026-11-21T14:00:00Z"]),
            ),
            "window.until",
            json!("2026-11-21T13:00:00Z"),
            "not after the launch at 2026-11-21T14:00:00Z",
        ),
        invalid(
            "an end that the jitter may pass",
            with(until("2026-11-21T12:05:00Z"), "/jitter_seconds", json!(600)),
            "window.until",
            json!("2026-11-21T12:05:00Z"),
            "not after the launch at 2026-11-21T12:10:00Z with its jitter",
        ),
        invalid(
            "an end that is far",
            until("2027-01-21T12:00:00Z"),
            "window.until",
            json!("2027-01-21T12:00:00Z"),
            "window.until is 61 days after the launch at 2026-11-21T12:00:00Z; 7 days is the most",
        ),
        invalid(
            "an end without its offset",
            until("2026-11-21T13:00:00"),
            "window.until",
            json!("2026-11-21T13:00:00"),
            "has no offset",
        ),
    ]
}

fn without_a_policy() -> Vec<Case> {
    let plain = |pointer: &str, value: Value| with(cron_job(), pointer, value);
    let hook = json!({"http": {"url": "https://acme.example/", "release": "on_response"}});
    let says = "and this job names none: give the job a policy_id, or leave";
    vec![
        invalid("a cost", plain("/cost", json!(2)), "cost", Value::Null, says),
        invalid("a place", plain("/priority", json!(0)), "priority", Value::Null, says),
        invalid("an overlap", plain("/overlap", json!("skip")), "overlap", Value::Null, says),
        invalid("a window", plain("/window", json!({"seconds": 60})), "window", Value::Null, says),
        invalid("a failure limit", plain("/max_failures", json!(3)), "max_failures", Value::Null, says),
        invalid(
            "a callback",
            plain("/on_completion", json!({"sqs": {"queue_url": QUEUE}})),
            "on_completion",
            Value::Null,
            says,
        ),
        invalid(
            "a heartbeat",
            plain("/heartbeat_url", json!("https://hc-ping.com/uuid")),
            "heartbeat_url",
            Value::Null,
            says,
        ),
        invalid("a release", plain("/target", hook), "target.http.release", Value::Null, says),
    ]
}

fn targets() -> Vec<Case> {
    let missing = "http://localhost:9324/000000000000/nowhere";
    let callback = |callback: Value| with(throttled(), "/on_completion", callback);
    vec![
        invalid(
            "a queue that answers",
            with(throttled(), "/target/sqs/release", json!("on_response")),
            "target.sqs.release",
            json!("on_response"),
            "target.sqs.release is 'on_response', but a queue gives no answer that says the work is done; leave it out",
        ),
        invalid(
            "another way to release",
            with(throttled(), "/target", json!({"http": {"url": "https://acme.example/", "release": "now"}})),
            "target.http.release",
            json!("now"),
            "target.http.release must be \"on_response\" or \"by_consumer\", not \"now\"",
        ),
        invalid(
            "a callback to nowhere",
            callback(json!({})),
            "on_completion",
            Value::Null,
            "on_completion has neither 'sqs' nor 'http'",
        ),
        invalid(
            "a callback that is no URL",
            callback(json!({"http": {"url": "acme"}})),
            "on_completion.http.url",
            json!("acme"),
            "url 'acme' is not a URL",
        ),
        invalid(
            "a callback to a queue that does not exist",
            callback(json!({"sqs": {"queue_url": missing}})),
            "on_completion.sqs.queue_url",
            json!(missing),
            "no queue has the URL",
        ),
        invalid(
            "a callback that releases",
            callback(json!({"http": {"url": "https://acme.example/", "release": "on_response"}})),
            "on_completion.http.release",
            json!("on_response"),
            "on_completion.http.release says when a token is released, and nothing holds one here; leave it out",
        ),
    ]
}

fn payloads() -> Vec<Case> {
    let bare = || with(at_job("2026-12-01T00:00:00Z"), "/policy_id", json!("small"));
    let list = |payloads: Value| with(bare(), "/payloads", payloads);
    let template = |template: Value| with(bare(), "/payload_template", template);
    vec![
        invalid(
            "an empty list",
            list(json!([])),
            "payloads",
            Value::Null,
            "payloads is empty; give one for each event",
        ),
        invalid(
            "no list",
            list(json!("one")),
            "payloads",
            json!("one"),
            "payloads must be an array, not \"one\"",
        ),
        invalid(
            "a list and a payload",
            with(list(json!([1])), "/payload", json!(1)),
            "payloads",
            Value::Null,
            "the job has both 'payloads' and 'payload'; give one of the three",
        ),
        invalid(
            "a list and a template",
            with(list(json!([1])), "/payload_template", json!(1)),
            "payloads",
            Value::Null,
            "the job has both 'payloads' and 'payload_template'",
        ),
        invalid(
            "a template and a payload",
            with(template(json!({"page": "{{index}}"})), "/payload", json!(1)),
            "payload_template",
            Value::Null,
            "the job has both 'payload_template' and 'payload'",
        ),
        invalid(
            "another number of events than of payloads",
            with(list(json!([1, 2, 3])), "/count", json!(4)),
            "count",
            json!(4),
            "count is 4, but payloads holds 3, one for each event; leave count out, or give as many",
        ),
        invalid(
            "a list over 64 KiB",
            list(json!(["x".repeat(40_000), "x".repeat(40_000)])),
            "payloads",
            Value::Null,
            "80007 bytes of JSON; 65536 is the most",
        ),
        invalid(
            "a placeholder that there is not",
            template(json!({"page": ["{{index1}}", "of {{total}}"]})),
            "payload_template",
            Value::Null,
            "payload_template has the placeholder '{{total}}'",
        ),
    ]
}

#[tokio::test]
async fn a_policy_with_a_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    for case in policies() {
        assert_refused(&world.post("/v1/policies", &key, &case.body).await, &case);
        assert_refused(&world.put("/v1/policies/other", &key, &case.body).await, &case);
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_throttled_job_with_a_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let before = world.everything().await;
    for case in [flows(), without_a_policy(), targets(), payloads()].into_iter().flatten() {
        assert_refused(&world.post("/v1/jobs", &key, &case.body).await, &case);
        assert_refused(&world.put("/v1/jobs/nightly", &key, &case.body).await, &case);
    }
    assert_eq!(world.everything().await, before);
    assert_eq!(world.post("/v1/jobs", &key, &throttled()).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_template_s_known_placeholders_are_listed() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = with(at_job("2026-12-01T00:00:00Z"), "/payload_template", json!("{{nothing}}"));
    let answer = world.post("/v1/jobs", &key, &body).await;
    let message = answer.json["errors"][0]["message"].as_str().unwrap();
    for known in ["index", "index1", "count", "event_id", "run_id", "job_id", "launch_at"] {
        assert!(message.contains(&format!("{{{{{known}}}}}")), "{known}: {message}");
    }
}

#[tokio::test]
async fn a_callback_off_the_allow_list_is_forbidden() {
    let world = World::new().await;
    let body = json!({"client_id": "narrow", "allowed_targets": [QUEUE]});
    let client = world.post("/v1/clients", &world.admin_key, &body).await;
    let key = client.json["api_key"].as_str().unwrap();
    world.put("/v1/policies/small", key, &json!({"max_in_flight": 3})).await;
    let before = world.everything().await;
    let done = QUEUE.replace("jobs", "done");
    let body = with(throttled(), "/on_completion", json!({"sqs": {"queue_url": done}}));
    let answer = world.post("/v1/jobs", key, &body).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    assert_eq!(answer.json["errors"][0]["field"], "on_completion.sqs.queue_url");
    assert!(answer.json["detail"].as_str().unwrap().contains(&format!("may not target '{done}'")));
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn the_jobs_of_a_bulk_call_are_checked_alike() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let jobs = [with(throttled(), "/cost", json!(3)), with(throttled(), "/cost", json!(4)), throttled()];
    let answer = world.post("/v1/jobs/bulk", &key, &json!({"jobs": jobs})).await;
    let results = answer.json["results"].as_array().unwrap();
    let statuses: Vec<u64> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 422, 201], "{}", answer.text);
    assert_eq!(results[1]["errors"][0]["field"], "cost");
}
