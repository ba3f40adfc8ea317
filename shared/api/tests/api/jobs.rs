//! ScheduleJobs: created, repeated, replaced, read, listed and deleted.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{QUEUE, World, at_job, cron_job};

#[tokio::test]
async fn a_job_is_answered_as_it_was_understood() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["job_id"] = json!("nightly");
    let answer = world.post("/v1/jobs", &key, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(answer.header("etag"), "\"1\"");
    assert_eq!(answer.header("location"), "/v1/jobs/nightly");
    assert!(answer.header("x-request-id").starts_with("req_"));
    let mut expected = json!({
        "job_id": "nightly", "revision": 1,
        "trigger": {
            "cron": "0 9 * * MON-FRI", "zone": "Europe/London", "dst": {"gap": "next_valid", "overlap": "first"}
        },
        "count": 1, "policy_id": null, "target": {"sqs": {"queue_url": QUEUE}},
        "cost": 1, "priority": 5, "fair_by": null, "overlap": "allow", "window": null, "max_failures": null, "on_completion": null, "heartbeat_url": null,
        "payload": {"report": "daily"}, "history": "all", "max_attempts": null,
        "retry": {"backoff": "exponential", "wait_seconds": 2, "ceiling_seconds": 3600, "max_age_seconds": 86400},
        "start_at": null, "end_at": null, "jitter_seconds": 0, "misfire": {"rule": "all", "max": 100},
        "relevancy_seconds": null, "calendars": [], "only_on": [], "on_closed_day": "leave_out", "skip": [], "tags": [], "expect": null, "paused": false, "changed_at": "2026-11-21T12:00:00Z", "warnings": []
    });
    let description = answer.json["description"].as_str().unwrap();
    assert!(
        description.contains("09:00") && description.ends_with("Friday (Europe/London)"),
        "{description}"
    );
    expected["description"] = json!(description);
    assert_eq!(answer.json, expected);
    let read = world.get("/v1/jobs/nightly", &key).await;
    assert_eq!((read.status, &read.json, read.header("etag")), (StatusCode::OK, &expected, "\"1\""));
    assert_eq!(world.get("/v1/jobs", &key).await.json, json!({"jobs": [expected], "next_cursor": null}));
}

#[tokio::test]
async fn the_same_post_twice_is_one_job_and_a_different_one_is_refused() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["job_id"] = json!("nightly");
    let first = world.post("/v1/jobs", &key, &body).await;
    let before = world.everything().await;
    let again = world.post("/v1/jobs", &key, &body).await;
    assert_eq!((again.status, &again.json), (StatusCode::OK, &first.json));
    body["count"] = json!(2);
    let other = world.post("/v1/jobs", &key, &body).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(other.json["errors"][0]["field"], "job_id");
    assert_eq!(
        other.json["detail"],
        "job 'nightly' exists already and says something else; PUT replaces it, or choose another id"
    );
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_put_creates_then_replaces_then_leaves_alone() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    assert_eq!(world.put("/v1/jobs/nightly", &key, &body).await.status, StatusCode::CREATED);
    body["count"] = json!(20);
    let replaced = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!((replaced.status, replaced.header("etag")), (StatusCode::OK, "\"2\""));
    assert_eq!(replaced.json["count"], 20);
    let same = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!((same.status, same.header("etag")), (StatusCode::OK, "\"2\""));
    body["job_id"] = json!("daily");
    let other = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        other.json["detail"],
        "job_id is 'daily', but the path says 'nightly'; leave it out of the body"
    );
}

#[tokio::test]
async fn a_write_against_another_revision_changes_nothing() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    let before = world.everything().await;
    let mut body = cron_job();
    body["count"] = json!(2);
    let json = ("content-type", "application/json");
    let put = |path: &'static str, revision: &'static str| {
        let (world, key, text) = (&world, &key, body.to_string());
        async move { world.send(Method::PUT, path, Some(key), &[json, ("if-match", revision)], &text).await }
    };
    let answer = put("/v1/jobs/nightly", "\"7\"").await;
    assert_eq!(answer.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(
        answer.json["detail"],
        "job 'nightly' is at revision 1, not at the one that If-Match or the body expects; read it again and decide anew"
    );
    assert_eq!(put("/v1/jobs/other", "\"1\"").await.status, StatusCode::PRECONDITION_FAILED);
    let answer =
        world.send(Method::DELETE, "/v1/jobs/nightly", Some(&key), &[("if-match", "\"7\"")], "").await;
    assert_eq!(answer.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(world.everything().await, before);
    assert_eq!(put("/v1/jobs/nightly", "\"1\"").await.json["revision"], 2);
    let answer =
        world.send(Method::DELETE, "/v1/jobs/nightly", Some(&key), &[("if-match", "\"2\"")], "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(world.delete("/v1/jobs/nightly", &key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/v1/jobs/nightly", &key).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn every_form_of_a_trigger_is_read() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let cron = |cron: &str, zone: &str| json!({"cron": cron, "zone": zone, "dst": {"gap": "next_valid", "overlap": "first"}});
    let interval =
        |cron: &str| json!({"cron": cron, "zone": "UTC", "dst": {"gap": "skip", "overlap": "both"}});
    let rate = |every: u32, anchor: &str| json!({"rate": {"every_seconds": every}, "anchor": anchor});
    for (given, understood) in [
        (json!({"cron": "@daily"}), cron("0 0 * * *", "UTC")),
        (json!({"cron": "*/15 * * * *"}), interval("*/15 * * * *")),
        (
            json!({"cron": "*/15 * * * *", "dst": {"overlap": "first"}}),
            json!({"cron": "*/15 * * * *", "zone": "UTC", "dst": {"gap": "skip", "overlap": "first"}}),
        ),
        (
            json!({"cron": "30 2 * * *", "dst": {"gap": "skip", "overlap": "both"}}),
            json!({"cron": "30 2 * * *", "zone": "UTC", "dst": {"gap": "skip", "overlap": "both"}}),
        ),
        (json!({"cron": "CRON_TZ=Asia/Tokyo 0 9 * * *"}), cron("0 9 * * *", "Asia/Tokyo")),
        (json!({"cron": "TZ=Asia/Tokyo 0 9 * * *", "zone": "Asia/Tokyo"}), cron("0 9 * * *", "Asia/Tokyo")),
        (
            json!({"cron": {"Month": "*", "DayOfMonth": "*", "DayOfWeek": "*", "Hour": "3,6,9", "Minute": "0"}}),
            cron("0 3,6,9 * * *", "UTC"),
        ),
        (
            json!({"cron": {"Hour": "3", "Minute": "30"}, "zone": "Asia/Kolkata"}),
            cron("30 3 * * *", "Asia/Kolkata"),
        ),
        (json!({"cron": "cron(0 9 ? * 2#1 *)"}), cron("0 9 * * MON#1", "UTC")),
        (json!({"cron": "5 0 9 * * MON-FRI"}), cron("5 0 9 * * MON-FRI", "UTC")),
        (json!({"cron": "\t00 00  1 * *"}), cron("00 00 1 * *", "UTC")),
        (json!({"cron": "0 8-23,0-1 * * sun,0,7"}), cron("0 8-23,0-1 * * SUN,0,7", "UTC")),
        (json!({"cron": "rate(5 minutes)", "zone": "Europe/Berlin"}), rate(300, "2026-11-21T12:05:00Z")),
        (json!({"cron": "@every 90s"}), rate(90, "2026-11-21T12:01:30Z")),
        (json!({"rate": "5 minutes", "anchor": "2026-11-21T00:00:00Z"}), rate(300, "2026-11-21T00:00:00Z")),
        (json!({"rate": {"every_seconds": 1}}), rate(1, "2026-11-21T12:00:01Z")),
        (json!({"rate": "2d"}), rate(172_800, "2026-11-23T12:00:00Z")),
        (json!({"at": "2026-12-01T13:00:00+01:00"}), json!({"at": "2026-12-01T12:00:00Z"})),
        (json!({"at": "2026-12-01T12:00:00.001Z"}), json!({"at": "2026-12-01T12:00:01Z"})),
        (json!({"at": "2026-11-21T11:59:00Z"}), json!({"at": "2026-11-21T11:59:00Z"})),
        (json!({"at": "2026-11-20T11:59:00Z", "past": "fire"}), json!({"at": "2026-11-20T11:59:00Z"})),
        (json!({"at": ["2026-12-01T12:00:00Z"]}), json!({"at": "2026-12-01T12:00:00Z"})),
        (
            json!({"at": ["2026-12-02T00:00:00Z", "2026-12-01T12:00:00Z", "2026-12-01T13:00:00+01:00"]}),
            json!({"at": ["2026-12-01T12:00:00Z", "2026-12-02T00:00:00Z"]}),
        ),
        (
            json!({"at": ["2026-12-01 12:00", "2026-12-02T00:00:00Z"], "zone": "Asia/Kolkata"}),
            json!({"at": ["2026-12-01T06:30:00Z", "2026-12-02T00:00:00Z"]}),
        ),
    ] {
        let mut body = cron_job();
        body["trigger"] = given.clone();
        let answer = world.put("/v1/jobs/job", &key, &body).await;
        assert!(answer.status.is_success(), "{given}: {}", answer.text);
        assert_eq!(answer.json["trigger"], understood, "{given}");
        assert_eq!(world.get("/v1/jobs/job", &key).await.json["trigger"], understood, "{given}");
    }
}

#[tokio::test]
async fn what_often_surprises_is_warned_of() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["trigger"]["cron"] = json!("0 9 13 * FRI");
    let answer = world.put("/v1/jobs/friday", &key, &body).await;
    let warnings = answer.json["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{}", answer.text);
    assert!(
        warnings[0].as_str().unwrap().contains("it fires on days that match either one"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_payload_is_kept_to_the_byte() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let payload = r#"{"z": 1.10, "a": 12345678901234567890123, "text": "\u00e9 "}"#;
    let body = format!(
        r#"{{"trigger": {{"cron": "@daily"}}, "target": {{"sqs": {{"queue_url": "{QUEUE}"}}}}, "payload": {payload}}}"#
    );
    let json = ("content-type", "application/json");
    let answer = world.send(Method::PUT, "/v1/jobs/exact", Some(&key), &[json], &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert!(world.get("/v1/jobs/exact", &key).await.text.contains(payload));
    let largest = format!("\"{}\"", "x".repeat(64 * 1024 - 2));
    let body = body.replace(payload, &largest);
    let answer = world.send(Method::PUT, "/v1/jobs/large", Some(&key), &[json], &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert!(world.get("/v1/jobs/large", &key).await.text.contains(&largest));
}

#[tokio::test]
async fn a_one_time_job_without_an_id_gets_one() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let answer = world.post("/v1/jobs", &key, &at_job("2026-12-01T12:00:00Z")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(answer.json["description"], "Once, at 2026-12-01T12:00:00Z");
    let id = answer.json["job_id"].as_str().unwrap();
    let path = format!("/v1/jobs/{id}");
    assert_eq!(answer.header("location"), path);
    assert_eq!(world.get(&path, &key).await.json["trigger"], json!({"at": "2026-12-01T12:00:00Z"}));
    assert_eq!(world.delete(&path, &key).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get(&path, &key).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_list_goes_on_where_its_page_ended() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for number in 0..101 {
        world.put(&format!("/v1/jobs/job{number:03}"), &key, &cron_job()).await;
    }
    let first = world.get("/v1/jobs", &key).await;
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/v1/jobs?cursor={cursor}"), &key).await;
    assert_eq!(second.json["next_cursor"], Value::Null);
    let jobs = [&first, &second].map(|page| page.json["jobs"].as_array().unwrap().clone()).concat();
    let ids: Vec<&str> = jobs.iter().map(|job| job["job_id"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..101).map(|number| format!("job{number:03}")).collect();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_job_that_has_not_run_has_no_runs() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    let answer = world.get("/v1/jobs/nightly/runs", &key).await;
    assert_eq!(answer.json, json!({"runs": [], "next_cursor": null}));
    for run in ["nightly.1.1790000000", "other.1.1790000000", "nonsense"] {
        let answer = world.get(&format!("/v1/jobs/nightly/runs/{run}/events"), &key).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{run}");
    }
}

#[tokio::test]
async fn the_events_of_a_run_are_paged_and_belong_to_their_job_and_client() {
    let world = World::new().await;
    let (acme, other) = (world.register("acme").await, world.register("other").await);
    let mut body = at_job("2026-11-21T12:00:00Z");
    body["count"] = json!(150);
    assert_eq!(world.put("/v1/jobs/batch", &acme, &body).await.status, StatusCode::CREATED);
    world.dispatch().await;
    let runs = world.get("/v1/jobs/batch/runs", &acme).await;
    let run = runs.json["runs"][0]["run_id"].as_str().unwrap();
    assert_eq!(runs.json["runs"][0]["delivered"], 150, "{}", runs.text);
    let path = format!("/v1/jobs/batch/runs/{run}/events");
    let first = world.get(&path, &acme).await;
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("{path}?cursor={cursor}"), &acme).await;
    assert_eq!(second.json["next_cursor"], Value::Null);
    let events = [&first, &second].map(|page| page.json["events"].as_array().unwrap().clone()).concat();
    let indexes: Vec<u64> = events.iter().map(|event| event["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..150).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event["status"] == "delivered"), "{}", first.text);
    let refused = world.get(&format!("{path}?cursor=bm9uc2Vuc2U"), &acme).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert_eq!(world.get(&path, &other).await.status, StatusCode::NOT_FOUND);
    let elsewhere = world.get(&path.replace("/jobs/batch/", "/jobs/other/"), &acme).await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND, "{}", elsewhere.text);
}

#[tokio::test]
async fn jobs_whose_ids_begin_alike_are_listed_without_reading_the_others() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (prefix, count) in [("day", 130), ("night", 3)] {
        for number in 0..count {
            let made = world.put(&format!("/v1/jobs/{prefix}-{number:03}"), &key, &cron_job()).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
    }
    let ids = async |query: &str| -> Vec<String> {
        let (mut ids, mut path) = (Vec::new(), format!("/v1/jobs{query}"));
        loop {
            let page = world.get(&path, &key).await;
            let listed = page.json["jobs"].as_array().unwrap_or_else(|| panic!("{}", page.text));
            ids.extend(listed.iter().map(|job| job["job_id"].as_str().unwrap().to_owned()));
            let Some(next) = page.json["next_cursor"].as_str() else { return ids };
            let joint = if query.is_empty() { "?" } else { "&" };
            path = format!("/v1/jobs{query}{joint}cursor={next}");
        }
    };
    let before = world.embedded.meter().snapshot();
    assert_eq!(ids("?prefix=night-").await, ["night-000", "night-001", "night-002"]);
    let read: f64 =
        world.embedded.meter().snapshot().since(&before).capacity.values().map(|units| units.read).sum();
    assert!(read <= 1.0, "three jobs of 133 cost {read} units");
    assert_eq!(ids("?prefix=day-").await.len(), 130);
    assert_eq!(ids("?prefix=day-12").await.len(), 10);
    assert_eq!(ids("?prefix=noon").await, [""; 0]);
    assert_eq!((ids("").await.len(), ids("?prefix=").await.len()), (133, 133));
    let long = world.get(&format!("/v1/jobs?prefix={}", "x".repeat(201)), &key).await;
    assert_eq!((long.status, &long.json["errors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("prefix")));
    let other = world.get("/v1/jobs?label=night", &key).await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST, "{}", other.text);
}
