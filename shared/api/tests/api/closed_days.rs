//! Launches that are moved off closed days: made where they are moved to, and told alike by all that says when a job launches.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Client, Job, OnClosedDay, Target, Trigger};

use crate::world::{QUEUE, World, cron_job};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
/// From when the tests begin to Thursday, 29 July 2027 at noon: the first of August is a Sunday.
const TO_JULY_MS: i64 = 250 * 86_400_000;
const FRIDAY: &str = "2027-07-30T09:00:00Z";
const SUNDAY: &str = "2027-08-01T09:00:00Z";
const MONDAY: &str = "2027-08-02T09:00:00Z";

/// A client with a calendar of weekends, in July.
async fn in_july() -> (World, String) {
    let world = World::new().await;
    world.clock.advance_ms(TO_JULY_MS);
    let key = world.register("acme").await;
    put_closed(&world, &key, json!([])).await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 3600})).await;
    (world, key)
}

/// The calendar, of weekends and some dates.
fn closed(dates: Value) -> Value {
    json!({"weekdays": ["sat", "sun"], "dates": dates})
}

async fn put_closed(world: &World, key: &str, dates: Value) {
    let put = world.put("/v1/calendars/closed", key, &closed(dates)).await;
    assert!(put.status.is_success(), "{}", put.text);
}

fn on(cron: &str, on_closed_day: &str) -> Value {
    let mut job = cron_job();
    job["trigger"] = json!({"cron": cron, "zone": "UTC"});
    job["calendars"] = json!(["closed"]);
    job["on_closed_day"] = json!(on_closed_day);
    job
}

async fn put(world: &World, key: &str, id: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{id}"), key, job).await;
    assert!(made.status.is_success(), "{}", made.text);
    assert_eq!(made.json["on_closed_day"], job["on_closed_day"], "{}", made.text);
}

/// The same, eight minutes before a launch. A job that is put then knows nothing of the days before.
async fn before(launch_at: &str) -> (World, String) {
    let (world, key) = in_july().await;
    let now = tidegate_domain::clock::Clock::now(&*world.clock);
    let to_go = launch_at.parse::<DateTime<Utc>>().unwrap() - now;
    world.clock.advance_ms(to_go.num_milliseconds() - 480_000);
    (world, key)
}

/// What is delivered in the minutes around that launch: jobs and launches.
async fn delivered(world: &World) -> Vec<(String, String)> {
    world.minutes(10).await;
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    let events = world.receive().await;
    let mut launches: Vec<_> =
        events.iter().map(|event| (text(event, "job_id"), text(event, "launch_at"))).collect();
    launches.sort();
    launches
}

fn launch(job: &str, at: &str) -> (String, String) {
    (job.to_owned(), at.to_owned())
}

/// The launches to come of a job that are made, as things stand.
async fn to_come(world: &World, key: &str, id: &str, count: usize) -> Vec<String> {
    let upcoming = world.get(&format!("/v1/jobs/{id}/upcoming?count={count}"), key).await;
    let firings = upcoming.json["upcoming"].as_array().unwrap_or_else(|| panic!("{}", upcoming.text)).iter();
    let made = firings.filter(|firing| firing["skipped"].is_null());
    made.map(|firing| firing["launch_at"].as_str().unwrap().to_owned()).collect()
}

/// The runs of a job: launch, state and reason, the latest first.
async fn runs(world: &World, key: &str, id: &str) -> Vec<(String, Value)> {
    let listed = world.get(&format!("/v1/jobs/{id}/runs"), key).await;
    let runs = listed.json["runs"].as_array().unwrap_or_else(|| panic!("{}", listed.text)).iter();
    runs.map(|run| (run["launch_at"].as_str().unwrap().to_owned(), run["reason"].clone())).collect()
}

#[tokio::test]
async fn the_first_of_a_month_is_launched_on_the_next_or_the_previous_business_day() {
    for (at, made) in [
        (FRIDAY, vec!["previous"]),
        ("2027-07-31T09:00:00Z", vec![]),
        (SUNDAY, vec![]),
        (MONDAY, vec!["changed", "next"]),
        ("2027-08-03T09:00:00Z", vec![]),
    ] {
        let (world, key) = before(at).await;
        for (id, rule) in
            [("left", "leave_out"), ("next", "next_open_day"), ("previous", "previous_open_day")]
        {
            put(&world, &key, id, &on("0 9 1 * *", rule)).await;
        }
        // One whose row in the time index is another from then on.
        put(&world, &key, "changed", &on("0 9 1 * *", "leave_out")).await;
        let patch = json!({"on_closed_day": "next_open_day"}).to_string();
        let patched = world.send(Method::PATCH, "/v1/jobs/changed", Some(&key), &JSON, &patch).await;
        assert_eq!(patched.json["on_closed_day"], "next_open_day", "{}", patched.text);
        let expected: Vec<_> = made.iter().map(|id| launch(id, at)).collect();
        assert_eq!(delivered(&world).await, expected, "{at}");
        for id in ["left", "next", "previous"] {
            // What the trigger says is recorded as left out, where it says it, and nothing else is.
            let reason = if at == SUNDAY { json!("excluded") } else { Value::Null };
            let is_there = at == SUNDAY || made.contains(&id);
            let recorded: Vec<_> = is_there.then(|| (at.to_owned(), reason)).into_iter().collect();
            assert_eq!(runs(&world, &key, id).await, recorded, "{id} {at}");
        }
    }
}

#[tokio::test]
async fn a_job_that_moves_launches_no_more_leaves_no_row_for_every_day() {
    let (world, key) = in_july().await;
    let rows = async || {
        let rows = world.everything().await;
        let rows: Vec<_> = rows.into_iter().filter(|row| row.starts_with("Launch: ")).collect();
        let of_every_day = rows.iter().filter(|row| row.contains("UTC|H:")).count();
        (rows.iter().filter(|row| row.contains("|acme|next")).count(), of_every_day)
    };
    put(&world, &key, "next", &on("0 9 1 * *", "next_open_day")).await;
    assert_eq!(rows().await, (1, 1));
    let patch = json!({"on_closed_day": null}).to_string();
    let patched = world.send(Method::PATCH, "/v1/jobs/next", Some(&key), &JSON, &patch).await;
    assert_eq!(patched.json["on_closed_day"], "leave_out", "{}", patched.text);
    assert_eq!(rows().await, (1, 0));
    assert_eq!(to_come(&world, &key, "next", 2).await, ["2027-09-01T09:00:00Z"]);
}

#[tokio::test]
async fn launches_that_meet_are_one_run() {
    let (world, key) = before(MONDAY).await;
    put(&world, &key, "daily", &on("0 9 * * *", "next_open_day")).await;
    put(&world, &key, "weekend", &on("0 9 * * SAT,SUN", "next_open_day")).await;
    assert_eq!(delivered(&world).await, [launch("daily", MONDAY), launch("weekend", MONDAY)]);
    assert_eq!(runs(&world, &key, "daily").await, [(MONDAY.to_owned(), Value::Null)]);
}

#[tokio::test]
async fn what_is_to_come_says_where_launches_are_moved_from_and_to() {
    let (world, key) = in_july().await;
    let client = Client::new(world.serve().await, &*key).unwrap();
    let next = Job {
        calendars: vec!["closed".to_owned()],
        on_closed_day: OnClosedDay::NextOpenDay,
        ..Job::new(Trigger::cron("0 9 1 * *", "UTC"), Target::sqs(QUEUE))
    };
    client.put_job("next", &next, None).await.unwrap();
    assert_eq!(client.job("next").await.unwrap().on_closed_day, OnClosedDay::NextOpenDay);
    put(&world, &key, "previous", &on("0 9 1 * *", "previous_open_day")).await;
    let told = async |id: &str| {
        let upcoming = client.upcoming(id, Some(3)).await.unwrap().upcoming.into_iter();
        upcoming.map(|one| (one.launch_at, one.moved_from, one.moved_to, one.skipped)).collect::<Vec<_>>()
    };
    let (left, third) = (Some("excluded".to_owned()), "2027-09-01T09:00:00Z".to_owned());
    let at = |text: &str| text.to_owned();
    assert_eq!(
        told("next").await,
        [
            (at(SUNDAY), None, Some(at(MONDAY)), left.clone()),
            (at(MONDAY), Some(at(SUNDAY)), None, None),
            (third.clone(), None, None, None),
        ]
    );
    assert_eq!(
        told("previous").await,
        [
            (at(FRIDAY), Some(at(SUNDAY)), None, None),
            (at(SUNDAY), None, Some(at(FRIDAY)), left),
            (third, None, None, None),
        ]
    );
    // Found by their next launch, and counted among all.
    let before = async |instant: &str| {
        let listed = world.get(&format!("/v1/jobs?next_before={instant}"), &key).await.json;
        let jobs = listed["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["job_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(before(FRIDAY).await, [""; 0]);
    assert_eq!(before(MONDAY).await, ["previous"]);
    assert_eq!(before("2027-08-02T09:00:01Z").await, ["next", "previous"]);
    let path = "/v1/upcoming?since=2027-07-30T00:00:00Z&until=2027-08-03T00:00:00Z";
    let ahead = world.get(path, &key).await.json;
    let jobs = ahead["jobs"].as_array().unwrap().iter();
    let fields = ["job_id", "launches", "skipped", "first_launch_at", "last_launch_at"];
    let counted: Vec<_> = jobs.map(|job| fields.map(|field| job[field].clone())).collect();
    let expected = [
        [json!("next"), json!(1), json!(1), json!(SUNDAY), json!(MONDAY)],
        [json!("previous"), json!(1), json!(1), json!(FRIDAY), json!(SUNDAY)],
    ];
    assert_eq!(counted, expected, "{ahead}");
}

#[tokio::test]
async fn launches_that_are_over_are_those_that_were_made() {
    let (world, key) = before(MONDAY).await;
    let mut next = on("0 9 1 * *", "next_open_day");
    next["expect"] = json!({"within_seconds": 120});
    next["policy_id"] = json!("small");
    put(&world, &key, "next", &next).await;
    put(&world, &key, "previous", &on("0 9 1 * *", "previous_open_day")).await;
    assert_eq!(delivered(&world).await, [launch("next", MONDAY)]);
    let over = json!({"since": "2027-07-29T00:00:00Z", "until": "2027-08-02T09:01:00Z", "dry_run": true});
    for (id, made) in [("next", MONDAY), ("previous", FRIDAY)] {
        let past = world.post(&format!("/v1/jobs/{id}/backfill"), &key, &over).await;
        let launches = past.json["launches"].as_array().unwrap_or_else(|| panic!("{}", past.text)).iter();
        let launches: Vec<_> = launches.map(|launch| launch["launch_at"].as_str().unwrap()).collect();
        assert_eq!(launches, [made], "{id}");
        let mut missed = over.clone();
        missed["only_missed"] = json!(true);
        let missed = world.post(&format!("/v1/jobs/{id}/backfill"), &key, &missed).await;
        assert_eq!(missed.json["launches"], json!([]), "{}", missed.text);
    }
    // Nobody released it: that is noticed of the launch where it was moved to, and of no other day.
    world.minutes(1).await;
    let overdue = world.get("/v1/overdue?since=2027-07-29T00:00:00Z&until=2027-08-03T00:00:00Z", &key).await;
    let overdue = overdue.json["launches"].as_array().unwrap_or_else(|| panic!("{}", overdue.text)).clone();
    assert_eq!(overdue.iter().map(|one| &one["launch_at"]).collect::<Vec<_>>(), [MONDAY]);
    assert_eq!(overdue[0]["state"], "running");
    // The next look is due on the next day: a launch may be moved there.
    let rows = world.everything().await;
    assert_eq!(rows.iter().filter(|row| row.contains("WATCH|")).count(), 1);
}

#[tokio::test]
async fn a_launch_that_is_moved_is_left_out_by_where_it_is_moved_to() {
    let (world, key) = before(MONDAY).await;
    put(&world, &key, "next", &on("0 9 1 * *", "next_open_day")).await;
    let other = json!({"launch_at": "2027-08-03T09:00:00Z"});
    let other = world.post("/v1/jobs/next/skip", &key, &other).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", other.text);
    let skipped = world.post("/v1/jobs/next/skip", &key, &json!({})).await;
    assert_eq!(skipped.json["launch_at"], MONDAY, "{}", skipped.text);
    // It is not moved on.
    assert_eq!(to_come(&world, &key, "next", 2).await, ["2027-09-01T09:00:00Z"]);
    assert_eq!(delivered(&world).await, []);
    assert_eq!(runs(&world, &key, "next").await, [(MONDAY.to_owned(), json!("skipped_on_request"))]);
}

#[tokio::test]
async fn a_day_that_is_closed_at_the_last_moment_moves_the_launch_on() {
    let (world, key) = before(MONDAY).await;
    put(&world, &key, "next", &on("0 9 1 * *", "next_open_day")).await;
    // The launch is emitted, and is not due yet.
    world.minutes(7).await;
    put_closed(&world, &key, json!(["2027-08-02"])).await;
    assert_eq!(delivered(&world).await, []);
    assert_eq!(to_come(&world, &key, "next", 1).await, ["2027-08-03T09:00:00Z"]);
}

#[tokio::test]
async fn nothing_open_in_31_days_is_left_out() {
    let (world, key) = in_july().await;
    put(&world, &key, "next", &on("0 9 1 * *", "next_open_day")).await;
    let first: chrono::NaiveDate = "2027-08-01".parse().unwrap();
    let dates = |count: usize| {
        json!(first.iter_days().take(count).map(|day| day.to_string()).collect::<Vec<String>>())
    };
    // All of August, and one day more.
    put_closed(&world, &key, dates(31)).await;
    assert_eq!(to_come(&world, &key, "next", 2).await, ["2027-09-01T09:00:00Z"]);
    put_closed(&world, &key, dates(32)).await;
    let upcoming = world.get("/v1/jobs/next/upcoming?count=3", &key).await.json["upcoming"].clone();
    let told: Vec<_> = upcoming
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["launch_at"].as_str().unwrap(), &one["moved_to"], &one["moved_from"]))
        .collect();
    let (second, september) = ("2027-09-02T09:00:00Z", "2027-09-01T09:00:00Z");
    assert_eq!(
        told,
        [
            (SUNDAY, &Value::Null, &Value::Null),
            (september, &json!(second), &Value::Null),
            (second, &Value::Null, &json!(september)),
        ]
    );
}

#[tokio::test]
async fn a_change_of_a_calendar_shows_what_is_moved_and_tells_the_truth() {
    let (world, key) = in_july().await;
    let ids = ["daily", "early", "next", "previous"];
    put(&world, &key, "daily", &on("0 9 * * *", "previous_open_day")).await;
    put(&world, &key, "early", &on("0 14 15 * *", "next_open_day")).await;
    put(&world, &key, "next", &on("0 9 1 * *", "next_open_day")).await;
    put(&world, &key, "previous", &on("0 9 1 * *", "previous_open_day")).await;
    let until = tidegate_domain::clock::Clock::now(&*world.clock) + chrono::TimeDelta::days(400);
    let launches = async |id: &str| -> BTreeSet<String> {
        let made = to_come(&world, &key, id, 600).await.into_iter();
        made.filter(|at| at.parse::<DateTime<Utc>>().unwrap() < until).collect()
    };
    for change in [
        closed(json!(["2027-08-02", "2027-08-16"])),
        json!({"weekdays": ["sun"]}),
        json!({"weekdays": ["sun", "mon"], "zone": "Pacific/Honolulu"}),
        json!({"weekdays": ["sat", "sun"], "early_close": [{"date": "12-15", "from": "13:00"}]}),
        json!({"dates": ["2020-01-01"]}),
        json!({"intervals": [{"from": "2027-08-25T00:00:00Z", "to": "2027-09-20T00:00:00Z"}]}),
        closed(json!([])),
    ] {
        let preview = world.post("/v1/calendars/closed/preview", &key, &change).await;
        let told = preview.json["jobs"].as_array().unwrap_or_else(|| panic!("{}", preview.text));
        let mut before = Vec::new();
        for id in ids {
            before.push(launches(id).await);
        }
        world.put("/v1/calendars/closed", &key, &change).await;
        let mut changed = 0;
        for ((id, before), told) in ids.iter().zip(before).zip(told) {
            let after = launches(id).await;
            let gained: Vec<&String> = after.difference(&before).collect();
            let lost: Vec<&String> = before.difference(&after).collect();
            assert_eq!(
                (&told["job_id"], &told["gained"], &told["lost"]),
                (&json!(id), &json!(gained.len()), &json!(lost.len())),
                "{change}"
            );
            assert_eq!(told["first_gained"], json!(gained[..gained.len().min(20)]), "{id} {change}");
            assert_eq!(told["first_lost"], json!(lost[..lost.len().min(20)]), "{id} {change}");
            changed += gained.len() + lost.len();
        }
        assert!(changed > 0, "{change}");
    }
}

#[tokio::test]
async fn what_cannot_be_moved_is_refused_by_its_field() {
    let (world, key) = in_july().await;
    let mut rate = on("0 9 1 * *", "next_open_day");
    rate["trigger"] = json!({"rate": "5 minutes"});
    let mut without = on("0 9 1 * *", "previous_open_day");
    without["calendars"] = json!([]);
    for (job, says) in [
        (
            rate,
            "on_closed_day is 'next_open_day', which goes with 'trigger.cron' only; leave it out, or give the trigger as 'cron'",
        ),
        (
            without,
            "on_closed_day is 'previous_open_day', and the job names no calendar; name one in 'calendars' or 'only_on', or leave it out",
        ),
        (
            on("0 9 1 * *", "monday"),
            "on_closed_day must be \"leave_out\", \"next_open_day\" or \"previous_open_day\", not \"monday\"",
        ),
    ] {
        let refused = world.put("/v1/jobs/next", &key, &job).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "on_closed_day", "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["message"], says);
    }
    put(&world, &key, "next", &on("0 9 1 * *", "next_open_day")).await;
    let patch = json!({"calendars": []}).to_string();
    let refused = world.send(Method::PATCH, "/v1/jobs/next", Some(&key), &JSON, &patch).await;
    assert_eq!(refused.json["errors"][0]["field"], "on_closed_day", "{}", refused.text);
    // An end that the trigger does not come to, and a launch that is moved before it does.
    let mut job = on("0 9 1 8 *", "previous_open_day");
    job["end_at"] = json!("2027-08-01T00:00:00Z");
    put(&world, &key, "next", &job).await;
    assert_eq!(to_come(&world, &key, "next", 1).await, [FRIDAY]);
}
