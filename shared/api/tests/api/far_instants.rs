//! Instants at the ends of what a calendar can write: refused by name and value, and no request or stored row with one
//! ends the process.

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_domain::rules::Rules;
use tidegate_engine::JobDraft;

use crate::world::{World, at_job, cron_job};

const FAR: [&str; 4] =
    ["-262143-01-01T00:00:00Z", "+262142-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2200-01-01T00:00:01Z"];

fn set(mut body: Value, pointer: &str, value: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap()[name] = json!(value);
    body
}

fn assert_out_of_range(answer: &crate::world::Answer, field: &str, given: &str) {
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{given}: {}", answer.text);
    let errors = answer.json["errors"].as_array().unwrap();
    let error = errors.iter().find(|error| error["field"] == field);
    let error = error.unwrap_or_else(|| panic!("no error about {field}: {}", answer.text));
    let name = field.rsplit('.').next().unwrap().split('[').next().unwrap();
    let message = format!(
        "'{given}' is out of range; it must lie between 1970-01-01T00:00:00Z and 2200-01-01T00:00:00Z"
    );
    assert!(error["message"].as_str().unwrap().contains(&message), "{name}: {error}");
    assert_eq!(error["value"], given);
}

#[tokio::test]
async fn every_instant_of_a_job_is_bounded() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 1})).await;
    let mut rate = cron_job();
    rate["trigger"] = json!({"rate": "1h", "anchor": ""});
    let mut until = at_job("2026-12-01T00:00:00Z");
    (until["policy_id"], until["window"]) = (json!("small"), json!({"until": ""}));
    let mut fire = at_job("");
    fire["trigger"]["past"] = json!("fire");
    let before = world.everything().await;
    for far in FAR {
        for (body, pointer) in [
            (cron_job(), "/start_at"),
            (cron_job(), "/end_at"),
            (rate.clone(), "/trigger/anchor"),
            (until.clone(), "/window/until"),
            (fire.clone(), "/trigger/at"),
        ] {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let body = set(body, pointer, far);
            assert_out_of_range(&world.put("/v1/jobs/job", &key, &body).await, &field, far);
            assert_out_of_range(&world.post("/v1/jobs", &key, &body).await, &field, far);
            let bulk = world.post("/v1/jobs/bulk", &key, &json!({"jobs": [body]})).await;
            assert_eq!(bulk.json["results"][0]["status"], 422, "{}", bulk.text);
        }
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn every_instant_of_a_preview_is_bounded() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for far in FAR {
        for pointer in ["/start_at", "/end_at", "/after", "/trigger/at"] {
            let body = match pointer {
                "/trigger/at" => json!({"trigger": {}}),
                _ => json!({"trigger": {"cron": "* * * * *", "zone": "Asia/Tokyo"}}),
            };
            let answer = world.post("/v1/schedules/preview", &key, &set(body, pointer, far)).await;
            assert_out_of_range(&answer, &pointer.trim_start_matches('/').replace('/', "."), far);
        }
        let local = far.trim_end_matches('Z');
        for zone in ["Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Pago_Pago"] {
            let body = json!({"trigger": {"at": local, "zone": zone}});
            let answer = world.post("/v1/schedules/preview", &key, &body).await;
            assert_out_of_range(&answer, "trigger.at", local);
        }
    }
    // Within the bounds by the clock of the zone, beyond them in UTC.
    let body = json!({"trigger": {"at": "1970-01-01T05:00", "zone": "Asia/Tokyo"}});
    let answer = world.post("/v1/schedules/preview", &key, &body).await;
    assert_out_of_range(&answer, "trigger.at", "1970-01-01T05:00");
}

#[tokio::test]
async fn every_day_and_stretch_of_a_calendar_is_bounded() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for far in ["1969-12-31", "2200-01-02", "0000-01-01", "9999-12-31"] {
        let answer = world.put("/v1/calendars/days", &key, &json!({"dates": [far]})).await;
        assert_out_of_range(&answer, "dates[0]", far);
    }
    for far in FAR {
        for (name, other) in [("from", "to"), ("to", "from")] {
            let body = json!({"intervals": [{name: far, other: "2027-01-01T00:00:00Z"}]});
            let answer = world.put("/v1/calendars/days", &key, &body).await;
            assert_out_of_range(&answer, &format!("intervals[0].{name}"), far);
        }
    }
}

#[tokio::test]
async fn the_ends_themselves_are_taken() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let dates = json!({"dates": ["1970-01-01", "2200-01-01"],
        "intervals": [{"from": "1970-01-01T00:00:00Z", "to": "2200-01-01T00:00:00Z"}]});
    assert_eq!(world.put("/v1/calendars/all", &key, &dates).await.status, StatusCode::CREATED);
    let mut body =
        set(set(cron_job(), "/start_at", "1970-01-01T00:00:00Z"), "/end_at", "2200-01-01T00:00:00Z");
    body["jitter_seconds"] = json!(3_600);
    body["calendars"] = json!(["all"]);
    let put = world.put("/v1/jobs/job", &key, &body).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text);
    let next = world.get("/v1/jobs/job/upcoming?count=1000", &key).await;
    assert_eq!(next.json["upcoming"].as_array().unwrap().len(), 1_000, "{}", next.text);
    let preview = json!({"trigger": {"rate": "366 days", "anchor": "1970-01-01T00:00:00Z"}, "count": 1_000});
    let preview = world.post("/v1/schedules/preview", &key, &preview).await;
    assert_eq!(preview.json["firings"].as_array().unwrap().len(), 1_000, "{}", preview.text);
}

/// A row that an older version let in.
#[tokio::test]
async fn a_stored_job_that_starts_or_ends_at_the_end_of_time_is_still_shown() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let (_, draft) = tidegate_api::documents::read_job(cron_job(), chrono::DateTime::UNIX_EPOCH).unwrap();
    let client = "acme".parse().unwrap();
    let (min, max) = (chrono::DateTime::<chrono::Utc>::MIN_UTC, chrono::DateTime::<chrono::Utc>::MAX_UTC);
    for (id, start_at, end_at) in
        [("early", Some(min), None), ("late", None, Some(max)), ("never", Some(max), None)]
    {
        let rules = Rules { start_at, end_at, ..Rules::default() };
        let draft = JobDraft { rules, ..draft.clone() };
        world.engine.jobs().replace(&client, id.parse().unwrap(), draft, None).await.unwrap();
        for path in
            [format!("/v1/jobs/{id}"), format!("/v1/jobs/{id}/upcoming"), format!("/v1/jobs/{id}/runs")]
        {
            let answer = world.get(&path, &key).await;
            assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn names_of_runs_and_events_out_of_range_are_not_found() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for second in ["-8334601228800", "8210266876799", "-1", "7258118401"] {
        for path in [
            format!("/v1/events/job.1.{second}.0/explain"),
            format!("/v1/jobs/job/runs/job.1.{second}"),
            format!("/v1/jobs/job/runs/job.1.{second}/events"),
        ] {
            assert_eq!(world.get(&path, &key).await.status, StatusCode::NOT_FOUND, "{path}");
        }
    }
}
