//! What GET answers can be PUT back, and nothing changes.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{QUEUE, World, at_job, cron_job};

/// A job of each kind, with each rule.
fn jobs() -> Vec<(&'static str, Value)> {
    let with = |trigger: Value, more: Value| {
        let mut body = cron_job();
        body["trigger"] = trigger;
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let rules = json!({
        "start_at": "2026-12-01T00:00:00Z", "end_at": "2027-12-01T00:00:00Z", "jitter_seconds": 60,
        "misfire": {"rule": "latest"}, "relevancy_seconds": 3_600, "calendars": ["days"], "only_on": ["open"]
    });
    let flow = json!({
        "policy_id": "small", "cost": 2, "priority": 3, "fair_by": "/report", "overlap": "buffer_one", "max_failures": 4,
        "window": {"seconds": 600, "on_deadline": "expire", "pace": "even"}, "history": "failures", "max_attempts": 2,
        "on_completion": {"http": {"url": "https://example.com/done"}}, "count": 10,
    });
    let list = json!({"payload": null, "payloads": [1, {"b": [null]}, "three"]});
    let mut template =
        with(json!({"cron": "@daily"}), json!({"payload_template": {"page": "{{index1}}"}, "count": 7}));
    template.as_object_mut().unwrap().remove("payload");
    let http = json!({"policy_id": "small", "target": {"http": {"url": "https://example.com/h", "release": "on_response"}}});
    let cron = |text: &str| json!({"cron": text, "zone": "Europe/London"});
    let dst = |gap: &str, overlap: &str| json!({"cron": "30 1 * * *", "zone": "Europe/London", "dst": {"gap": gap, "overlap": overlap}});
    let fields = json!({"Month": "*", "DayOfMonth": "*", "DayOfWeek": "*", "Hour": "3,6,9", "Minute": "0"});
    vec![
        ("cron", cron_job()),
        ("interval", with(cron("*/15 * * * *"), json!({}))),
        ("aws", with(json!({"cron": "cron(0 9 ? * MON-FRI *)"}), json!({}))),
        ("seconds", with(json!({"cron": "*/10 * * * * *"}), json!({}))),
        ("fields", with(json!({"cron": fields}), json!({}))),
        ("dst-own", with(dst("skip", "both"), json!({}))),
        ("dst-same", with(dst("next_valid", "first"), json!({}))),
        ("rate", with(json!({"rate": "5 minutes"}), json!({}))),
        ("rate-in-cron", with(json!({"cron": "rate(5 minutes)"}), json!({}))),
        (
            "anchored",
            with(json!({"rate": {"every_seconds": 90}, "anchor": "2026-11-21T00:00:07Z"}), json!({})),
        ),
        ("once", at_job("2026-12-01T00:00:00.5Z")),
        ("set", with(json!({"at": ["2026-12-01T00:00:00Z", "2026-12-02T01:00:00+01:00"]}), json!({}))),
        ("local", with(json!({"at": "2026-12-01T00:00", "zone": "Asia/Tokyo"}), json!({}))),
        (
            "until",
            with(
                json!({"at": "2026-12-01T00:00:00Z"}),
                json!({"policy_id": "small", "window": {"until": "2026-12-01T01:00:00Z"}}),
            ),
        ),
        ("past", with(json!({"at": "2026-11-21T11:00:00Z", "past": "fire"}), json!({}))),
        ("rules", with(cron("0 9 * * *"), rules)),
        ("skip", with(cron("0 9 * * *"), json!({"misfire": {"rule": "skip"}, "overlap": "allow"}))),
        ("flow", with(cron("0 9 * * *"), flow)),
        ("list", with(cron("0 9 * * *"), list)),
        ("template", template),
        ("http", with(cron("0 9 * * *"), http)),
    ]
}

async fn world() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    for calendar in ["days", "open"] {
        world.put(&format!("/v1/calendars/{calendar}"), &key, &json!({"dates": ["2026-12-25"]})).await;
    }
    (world, key)
}

#[tokio::test]
async fn every_kind_of_job_is_put_back_and_stays_as_it_was() {
    let (world, key) = world().await;
    for (name, body) in jobs() {
        let path = format!("/v1/jobs/{name}");
        let made = world.put(&path, &key, &body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{name}: {}", made.text);
        // Later than the job was made, so that whatever follows from the clock would differ.
        world.clock.advance_ms(61_000);
        let shown = world.get(&path, &key).await;
        let before = world.everything().await;
        let headers = [("content-type", "application/json")];
        let back = world.send(Method::PUT, &path, Some(&key), &headers, &shown.text).await;
        assert_eq!(back.status, StatusCode::OK, "{name}: {}", back.text);
        assert_eq!((back.json["revision"].clone(), back.header("etag")), (json!(1), "\"1\""), "{name}");
        assert_eq!(world.get(&path, &key).await.text, shown.text, "{name}");
        assert_eq!(world.everything().await, before, "{name}");
        let mut posted = shown.json.clone();
        posted.as_object_mut().unwrap().remove("revision");
        assert_eq!(world.post("/v1/jobs", &key, &posted).await.status, StatusCode::OK, "{name}");
    }
}

#[tokio::test]
async fn a_job_that_fires_no_more_and_one_that_is_paused_are_put_back_too() {
    let (world, key) = world().await;
    let mut over = cron_job();
    over["end_at"] = json!("2026-11-24T00:00:00Z");
    for (name, body) in [("over", over), ("once", at_job("2026-11-21T13:00:00Z")), ("paused", cron_job())] {
        assert_eq!(world.put(&format!("/v1/jobs/{name}"), &key, &body).await.status, StatusCode::CREATED);
    }
    world.send(Method::POST, "/v1/jobs/paused/pause", Some(&key), &[], "").await;
    world.clock.advance_ms(10 * 86_400_000);
    for name in ["over", "once", "paused"] {
        let path = format!("/v1/jobs/{name}");
        let shown = world.get(&path, &key).await.json;
        let back = world.put(&path, &key, &shown).await;
        assert_eq!(
            (back.status, &back.json["revision"]),
            (StatusCode::OK, &shown["revision"]),
            "{}",
            back.text
        );
        assert_eq!(back.json["paused"], json!(name == "paused"));
    }
    // What is changed is checked as ever.
    let mut shown = world.get("/v1/jobs/over", &key).await.json;
    shown["end_at"] = json!("2026-11-25T00:00:00Z");
    let refused = world.put("/v1/jobs/over", &key, &shown).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "end_at");
}

#[tokio::test]
async fn policies_and_calendars_are_put_back() {
    let (world, key) = world().await;
    for (path, body) in [
        ("/v1/policies/plain", json!({"max_in_flight": 3})),
        (
            "/v1/policies/held",
            json!({"max_in_flight": 24, "lease_seconds": 300, "on_expiry": "hold", "max_waiting_runs": 5}),
        ),
        ("/v1/policies/rated", json!({"max_in_flight": 3, "rate": {"events": 5, "per": "minute"}})),
        (
            "/v1/policies/burst",
            json!({"max_in_flight": 3, "rate": {"events": 5, "per": "second", "burst": 9}}),
        ),
        ("/v1/calendars/dates", json!({"dates": ["2026-12-25", "01-01"], "zone": "Europe/Berlin"})),
        (
            "/v1/calendars/week",
            json!({"weekdays": ["sun", "mon"], "early_close": [{"date": "12-24", "from": "13:00"}]}),
        ),
        (
            "/v1/calendars/stretch",
            json!({"intervals": [{"from": "2026-12-01T00:00:00Z", "to": "2026-12-02T00:00:00Z"}]}),
        ),
    ] {
        assert_eq!(world.put(path, &key, &body).await.status, StatusCode::CREATED, "{path}");
        let shown = world.get(path, &key).await;
        let back = world.put(path, &key, &shown.json).await;
        assert_eq!(
            (back.status, &back.json["revision"]),
            (StatusCode::OK, &json!(1)),
            "{path}: {}",
            back.text
        );
        assert_eq!(world.get(path, &key).await.text, shown.text, "{path}");
    }
    world.send(Method::POST, "/v1/policies/plain/pause", Some(&key), &[], "").await;
    let shown = world.get("/v1/policies/plain", &key).await.json;
    let back = world.put("/v1/policies/plain", &key, &shown).await;
    assert_eq!((back.status, &back.json["paused"]), (StatusCode::OK, &json!(true)), "{}", back.text);
}

#[tokio::test]
async fn a_revision_in_the_body_is_the_one_that_is_expected() {
    let (world, key) = world().await;
    for (path, body) in [
        ("/v1/jobs/job", cron_job()),
        ("/v1/policies/other", json!({"max_in_flight": 3})),
        ("/v1/calendars/other", json!({"dates": ["2026-12-25"]})),
    ] {
        let with = |revision: Value| {
            let mut body = body.clone();
            body["revision"] = revision;
            body
        };
        let missing = world.put(path, &key, &with(json!(1))).await;
        assert_eq!(missing.status, StatusCode::PRECONDITION_FAILED, "{path}: {}", missing.text);
        assert_eq!(world.put(path, &key, &body).await.status, StatusCode::CREATED);
        assert_eq!(world.put(path, &key, &with(json!(1))).await.status, StatusCode::OK);
        let other = world.put(path, &key, &with(json!(2))).await;
        assert_eq!(other.status, StatusCode::PRECONDITION_FAILED, "{path}: {}", other.text);
        let headers = [("content-type", "application/json"), ("if-match", "\"1\"")];
        let text = with(json!(2)).to_string();
        let both = world.send(Method::PUT, path, Some(&key), &headers, &text).await;
        assert_eq!(both.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {}", both.text);
        assert_eq!(both.json["detail"], "revision is 2, but If-Match says 1; send one of them");
        let headers = [("content-type", "application/json"), ("if-none-match", "*")];
        let created = world.send(Method::PUT, path, Some(&key), &headers, &text).await;
        assert_eq!(created.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {}", created.text);
        for wrong in [json!(0), json!(-1), json!(5_000_000_000_i64)] {
            let refused = world.put(path, &key, &with(wrong)).await;
            assert_eq!(refused.json["errors"][0]["field"], "revision", "{path}: {}", refused.text);
        }
    }
}

/// A word of the body that the call would not follow is refused, not swallowed.
#[tokio::test]
async fn a_body_that_wants_to_pause_or_to_rename_is_refused() {
    let (world, key) = world().await;
    for (path, body, name) in [
        ("/v1/jobs/job", cron_job(), "job_id"),
        ("/v1/policies/other", json!({"max_in_flight": 3}), "policy_id"),
    ] {
        let mut paused = body.clone();
        paused["paused"] = json!(true);
        let refused = world.put(path, &key, &paused).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(
            refused.json["detail"],
            format!(
                "paused is true, and it is false at present, which this call does not change: leave it out, and call POST {path}/pause"
            )
        );
        let mut renamed = body.clone();
        renamed[name] = json!("another");
        let refused = world.put(path, &key, &renamed).await;
        assert_eq!(refused.json["errors"][0]["field"], name, "{}", refused.text);
    }
    let mut posted = cron_job();
    posted["paused"] = json!(true);
    let refused = world.post("/v1/jobs", &key, &posted).await;
    assert_eq!(refused.json["errors"][0]["field"], "paused", "{}", refused.text);
    let unknown =
        world.put("/v1/jobs/job", &key, &json!({"target": {"sqs": {"queue_url": QUEUE}}, "colour": 1})).await;
    assert!(unknown.text.contains("colour"), "{}", unknown.text);
}
