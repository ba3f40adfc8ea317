//! Real schedules, created through the API and emitted over the windows of a reference that uses no cron library (I6).
//!
//! Every job of a window lives in one world. The clock is moved by hand, in steps that the emitter catches up; what it
//! emits is read from the dispatch queue. Each occurrence must come exactly once, and together they must be the
//! reference. What the API refuses is listed beside the schedules, by id, with the reason.

mod api;
mod data;
mod emitted;
mod refused;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use http::StatusCode;
use serde_json::json;
use tidegate_domain::time::zone_database_version;
use tidegate_simulation::World;

use api::Api;
use data::{Row, Schedule};

/// How long before its window a job is created: long enough for the emitter to own the whole window.
const LEAD_MINUTES: i64 = 10;
/// How far the clock moves between two ticks.
const STEP_HOURS: i64 = 23;

/// Creates every schedule as a job; tells which were refused, and why.
async fn create_all(api: &Api, queue: &str, schedules: &[Schedule]) -> BTreeMap<String, String> {
    let mut refused = BTreeMap::new();
    for schedule in schedules {
        let mut trigger = json!({"cron": schedule.expression});
        // A prefix in the expression names the zone by itself.
        if !schedule.expression.contains("TZ=") {
            trigger["zone"] = schedule.zone.as_str().into();
        }
        let job = json!({
            "job_id": schedule.id,
            "trigger": trigger,
            "target": {"sqs": {"queue_url": queue}},
            "history": "failures",
            "misfire": {"rule": "all", "max": 10_000},
        });
        let (status, body) = api.post("/v1/jobs", &job).await;
        match status {
            StatusCode::CREATED => {}
            StatusCode::UNPROCESSABLE_ENTITY => {
                let message = body["errors"][0]["message"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{}: {body}", schedule.id));
                refused.insert(schedule.id.clone(), message.to_owned());
            }
            other => panic!("{}: {other} {body}", schedule.id),
        }
    }
    refused
}

/// Deletes the jobs that the reference does not compute, but for those that were refused: intervals, and forms with
/// seconds.
async fn delete_uncomputed(
    api: &Api,
    schedules: &[Schedule],
    rows: &[Row],
    refused: &BTreeMap<String, String>,
) {
    let computed: BTreeSet<&str> = rows.iter().map(|row| &*row.id).collect();
    for schedule in schedules {
        if !computed.contains(&*schedule.id) && !refused.contains_key(&schedule.id) {
            api.delete(&format!("/v1/jobs/{}", schedule.id)).await;
        }
    }
}

/// Emits a window and compares it with the reference.
async fn compare(name: &str, from: &str, to: &str) {
    let midnight = |date: &str| -> DateTime<Utc> { format!("{date}T00:00:00Z").parse().unwrap() };
    let (from, to) = (midnight(from), midnight(to));
    let schedules = data::schedules(name);
    let rows = data::rows(name, from, to);
    assert!(!rows.is_empty(), "the reference has this window");
    let world = World::at(from - Duration::minutes(LEAD_MINUTES)).await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let api = Api::over(&world).await;
    let refused = create_all(&api, &queue, &schedules).await;
    refused::check(name, &refused);
    delete_uncomputed(&api, &schedules, &rows, &refused).await;

    let mut emitted = emitted::Emitted::default();
    let mut now = from;
    while now < to + Duration::hours(STEP_HOURS) {
        world.clock.set(now);
        assert!(world.engine.tick().await.unwrap().won);
        emitted.collect(&world).await;
        now += Duration::hours(STEP_HOURS);
    }
    world.clock.set(now);
    emitted.collect(&world).await;

    let known = rows.iter().filter(|row| !refused.contains_key(&row.id));
    let differences: Vec<String> =
        known.clone().filter_map(|row| row.difference(&emitted.launches(&row.id, from, to))).collect();
    assert!(differences.is_empty(), "zone database {}:\n{}", zone_database_version(), differences.join("\n"));
    assert!(known.count() > 0);
}

#[tokio::test]
async fn spring_in_america() {
    compare("public", "2026-03-06", "2026-03-16").await;
}

#[ignore = "as `spring_in_america`, with the clocks of more zones: run it after a change of the time index"]
#[tokio::test]
async fn spring_in_europe() {
    compare("public", "2026-03-27", "2026-04-07").await;
}

#[tokio::test]
async fn spring_in_australia() {
    compare("public", "2026-10-02", "2026-10-08").await;
}

#[tokio::test]
async fn autumn() {
    compare("public", "2026-10-23", "2026-11-03").await;
}

#[tokio::test]
async fn the_turn_of_a_year() {
    compare("public", "2027-12-30", "2028-01-03").await;
}

#[tokio::test]
async fn a_leap_day() {
    compare("public", "2028-02-27", "2028-03-02").await;
}
