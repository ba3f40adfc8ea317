//! Exclusion calendars: put, read, listed and deleted.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, cron_job};

#[tokio::test]
async fn a_calendar_is_put_read_listed_and_deleted_under_its_revision() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = json!({
        "dates": ["12-25", "2026-12-24", "2026-12-24"], "zone": "Europe/Berlin",
        "intervals": [{"from": "2026-12-31T23:00:00+01:00", "to": "2027-01-01T12:00:00Z"}]
    });
    let put = world.put("/v1/calendars/holidays", &key, &body).await;
    assert_eq!((put.status, put.header("etag")), (StatusCode::CREATED, "\"1\""), "{}", put.text);
    let shown = json!({
        "calendar_id": "holidays", "revision": 1, "zone": "Europe/Berlin", "dates": ["2026-12-24", "12-25"],
        "intervals": [{"from": "2026-12-31T22:00:00Z", "to": "2027-01-01T12:00:00Z"}]
    });
    assert_eq!(put.json, shown);
    assert_eq!(world.put("/v1/calendars/holidays", &key, &body).await.header("etag"), "\"1\"");
    let read = world.get("/v1/calendars/holidays", &key).await;
    assert_eq!((read.status, &read.json, read.header("etag")), (StatusCode::OK, &shown, "\"1\""));
    let list = world.get("/v1/calendars", &key).await;
    assert_eq!(list.json, json!({"calendars": [shown], "next_cursor": null}));
    let other = json!({"dates": ["02-29"]}).to_string();
    let put_at = |revision: &'static str| {
        let (world, key, text) = (&world, &key, other.clone());
        let headers = [("content-type", "application/json"), ("if-match", revision)];
        async move { world.send(Method::PUT, "/v1/calendars/holidays", Some(key), &headers, &text).await }
    };
    assert_eq!(put_at("\"9\"").await.status, StatusCode::PRECONDITION_FAILED);
    let replaced = put_at("\"1\"").await;
    assert_eq!((replaced.status, replaced.header("etag")), (StatusCode::OK, "\"2\""), "{}", replaced.text);
    assert_eq!((&replaced.json["dates"], &replaced.json["zone"]), (&json!(["02-29"]), &Value::Null));
    let stale =
        world.send(Method::DELETE, "/v1/calendars/holidays", Some(&key), &[("if-match", "\"1\"")], "").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(world.delete("/v1/calendars/holidays", &key).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/calendars/holidays", &key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.delete("/v1/calendars/holidays", &key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(put_at("\"2\"").await.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn a_calendar_that_a_job_names_stays() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/calendars/holidays", &key, &json!({"dates": ["12-25"]})).await;
    for field in ["calendars", "only_on"] {
        let mut job = cron_job();
        job[field] = json!(["holidays"]);
        assert_eq!(world.put("/v1/jobs/nightly", &key, &job).await.status, StatusCode::CREATED);
        let refused = world.delete("/v1/calendars/holidays", &key).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{field}");
        assert_eq!(
            refused.json["detail"],
            "calendar 'holidays' is named by the job 'nightly'; delete that, or leave the calendar out of it"
        );
        world.delete("/v1/jobs/nightly", &key).await;
    }
    assert_eq!(world.delete("/v1/calendars/holidays", &key).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_calendar_with_a_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
    let many: Vec<String> = first.iter_days().take(1_001).map(|day| day.to_string()).collect();
    let interval = |from: &str, to: &str| json!({"intervals": [{"from": from, "to": to}]});
    for (body, field, says) in [
        (json!({}), "dates", "calendar is empty: give 'dates', 'intervals' or both"),
        (
            json!({"dates": ["2026-02-29"]}),
            "dates[0]",
            "date '2026-02-29' is no day; write 2026-12-25, or 12-25",
        ),
        (json!({"dates": ["12-25", "13-01"]}), "dates[1]", "date '13-01' is no day"),
        (json!({"dates": ["02-30"]}), "dates[0]", "is no day"),
        (json!({"dates": ["christmas"]}), "dates[0]", "is no day"),
        (json!({"dates": ["25.12.2026"]}), "dates[0]", "is no day"),
        (json!({"dates": ["12-25"], "zone": "Europe/Berln"}), "zone", "did you mean 'Europe/Berlin'?"),
        (json!({"dates": many}), "dates", "calendar has 1001 dates and intervals; 1000 is the most"),
        (
            interval("2026-12-01", "2026-12-02T00:00:00Z"),
            "intervals[0].from",
            "from '2026-12-01' has no time of day; write 2026-12-01T00:00:00Z",
        ),
        (interval("2026-12-01T00:00:00Z", "2026-12-02T00:00"), "intervals[0].to", "has no offset"),
        (interval("2026-12-02T00:00:00Z", "2026-12-02T00:00:00Z"), "intervals[0].to", "is not after from"),
        (json!({"days": ["12-25"]}), "days", "the body has no field 'days': write 'dates'"),
        (json!({"dates": ["12-25"], "calendar_id": "other"}), "calendar_id", "but the path says 'holidays'"),
    ] {
        let answer = world.put("/v1/calendars/holidays", &key, &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", answer.text);
        assert_eq!(answer.json["errors"][0]["field"], field, "{body}: {}", answer.text);
        let message = answer.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{body}: {message}");
    }
    let named = world.put("/v1/calendars/a%20b", &key, &json!({"dates": ["12-25"]})).await;
    assert_eq!(named.json["errors"][0]["field"], "calendar_id", "{}", named.text);
    assert_eq!(world.everything().await, before);
}
