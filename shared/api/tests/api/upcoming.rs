//! The upcoming firings of a job.

use http::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, cron_job};

async fn upcoming(world: &World, key: &str, body: &Value, query: &str) -> Value {
    let put = world.put("/v1/jobs/job", key, body).await;
    assert!(put.status.is_success(), "{}", put.text);
    let answer = world.get(&format!("/v1/jobs/job/upcoming{query}"), key).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json
}

#[tokio::test]
async fn the_next_firings_are_shown_in_utc_and_local_time() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let next = upcoming(&world, &key, &cron_job(), "?count=2").await;
    assert!(next["zone_database"].as_str().unwrap().starts_with("20"), "{next}");
    assert_eq!(next["zone"], "Europe/London");
    assert_eq!(
        next["upcoming"],
        json!([
            {"launch_at": "2026-11-23T09:00:00Z", "local": "2026-11-23T09:00:00+00:00", "dst": ""},
            {"launch_at": "2026-11-24T09:00:00Z", "local": "2026-11-24T09:00:00+00:00", "dst": ""}
        ])
    );
    let ten = upcoming(&world, &key, &cron_job(), "").await;
    assert_eq!(ten["upcoming"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn changes_of_the_clocks_calendars_and_ends_are_seen_ahead() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/calendars/easter", &key, &json!({"dates": ["2027-03-29"]})).await;
    let mut body = cron_job();
    body["trigger"] = json!({"cron": "30 2 * * *", "zone": "Europe/Berlin"});
    body["start_at"] = json!("2027-03-27T00:00:00Z");
    body["end_at"] = json!("2027-03-31T00:00:00Z");
    body["calendars"] = json!(["easter"]);
    let next = upcoming(&world, &key, &body, "").await;
    assert_eq!(
        next["upcoming"],
        json!([
            {"launch_at": "2027-03-27T01:30:00Z", "local": "2027-03-27T02:30:00+01:00", "dst": ""},
            {"launch_at": "2027-03-28T01:00:00Z", "local": "2027-03-28T03:00:00+02:00", "dst": "gap"},
            {
                "launch_at": "2027-03-29T00:30:00Z", "local": "2027-03-29T02:30:00+02:00", "dst": "",
                "skipped": "excluded"
            },
            {"launch_at": "2027-03-30T00:30:00Z", "local": "2027-03-30T02:30:00+02:00", "dst": ""}
        ])
    );
}

/// One calendar, which one job leaves out and another goes by.
#[tokio::test]
async fn a_calendar_is_left_out_by_one_job_and_gone_by_by_another() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/calendars/quarter", &key, &json!({"dates": ["2026-11-23", "2026-11-24"]})).await;
    world.put("/v1/calendars/second", &key, &json!({"dates": ["2026-11-24"]})).await;
    let skipped = async |fields: Value| {
        let mut body = cron_job();
        body["trigger"] = json!({"cron": "0 9 * * *", "zone": "Asia/Tokyo"});
        for (name, calendars) in fields.as_object().unwrap() {
            body[name] = calendars.clone();
        }
        let next = upcoming(&world, &key, &body, "?count=4").await;
        let launches = next["upcoming"].as_array().unwrap().iter();
        launches.map(|launch| launch["skipped"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    // 22 to 25 November.
    let (made, left) = (None, Some("excluded".to_owned()));
    let pattern = |open: [bool; 4]| open.map(|open| if open { made.clone() } else { left.clone() });
    for (fields, open) in [
        (json!({"calendars": ["quarter"]}), [true, false, false, true]),
        (json!({"only_on": ["quarter"]}), [false, true, true, false]),
        (json!({"only_on": ["quarter"], "calendars": ["second"]}), [false, true, false, false]),
        (json!({"only_on": ["quarter", "second"]}), [false, true, true, false]),
    ] {
        assert_eq!(skipped(fields.clone()).await, pattern(open), "{fields}");
    }
}

#[tokio::test]
async fn jitter_moves_every_launch_by_the_same_offset() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["jitter_seconds"] = json!(600);
    let next = upcoming(&world, &key, &body, "?count=3").await;
    let at = |value: &Value| value.as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let offsets = next["upcoming"].as_array().unwrap().iter();
    let offsets: Vec<i64> =
        offsets.map(|one| (at(&one["launch_at"]) - at(&one["scheduled_at"])).num_seconds()).collect();
    assert_eq!(offsets.len(), 3);
    assert!(
        (1..=600).contains(&offsets[0]) && offsets.iter().all(|offset| *offset == offsets[0]),
        "{offsets:?}"
    );
}

#[tokio::test]
async fn a_count_out_of_bounds_is_refused() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/jobs/job", &key, &cron_job()).await;
    for count in ["0", "1001", "-1", "ten", ""] {
        let answer = world.get(&format!("/v1/jobs/job/upcoming?count={count}"), &key).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{count}: {}", answer.text);
        assert_eq!(answer.json["errors"][0]["field"], "count", "{count}");
        assert_eq!(answer.json["detail"], format!("count is {count}; it must lie between 1 and 1000"));
    }
    let most = world.get("/v1/jobs/job/upcoming?count=1000", &key).await;
    assert_eq!(most.json["upcoming"].as_array().unwrap().len(), 1_000);
    let unknown = world.get("/v1/jobs/job/upcoming?limit=3", &key).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    assert!(unknown.json["detail"].as_str().unwrap().contains("unknown field `limit`"), "{}", unknown.text);
    assert_eq!(world.get("/v1/jobs/other/upcoming", &key).await.status, StatusCode::NOT_FOUND);
}
