//! What all jobs did, and what they are going to do.

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_client::{AheadQuery, Client, LimitedBy, RunsWanted};

use crate::world::{QUEUE, World};

fn job(cron: &str, count: u32, policy: Option<&str>) -> Value {
    json!({
        "trigger": {"cron": cron, "zone": "UTC"}, "count": count, "policy_id": policy,
        "target": {"sqs": {"queue_url": QUEUE}},
    })
}

async fn put(world: &World, key: &str, id: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{id}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

async fn client_of(world: &World, key: &str) -> Client {
    Client::new(world.serve().await, key).unwrap()
}

/// All pages of a list, and how many there were.
async fn all(world: &World, key: &str, path: &str, rows: &str) -> (Vec<Value>, usize) {
    let (mut found, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let page = world.get(&format!("{path}{next}"), key).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        found.extend(page.json[rows].as_array().unwrap().iter().cloned());
        pages += 1;
        match page.json["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return (found, pages),
        }
    }
}

fn ids(rows: &[Value], field: &str) -> Vec<String> {
    rows.iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
}

/// Half an hour of three jobs, of which one is throttled in singles, one in batches and one not at all, and one that was paused.
async fn with_history() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.clock.advance_ms(60_000);
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 3_600})).await;
    put(&world, &key, "a-singles", &job("*/10 * * * *", 1, Some("small"))).await;
    put(&world, &key, "b-batches", &job("*/15 * * * *", 3, Some("small"))).await;
    put(&world, &key, "c-plain", &job("*/10 * * * *", 1, None)).await;
    put(&world, &key, "d-paused", &job("*/5 * * * *", 1, None)).await;
    world.post("/v1/jobs/bulk/pause", &key, &json!({"prefix": "d-"})).await;
    world.minutes(30).await;
    (world, key)
}

#[tokio::test]
async fn runs_of_all_jobs_are_listed_by_time_state_and_policy() {
    let (world, key) = with_history().await;
    let since = "/v1/runs?since=2026-11-21T12:00:00Z&until=2026-11-21T12:31:00Z";
    let (runs, _) = all(&world, &key, since, "runs").await;
    let of = |id: &str| {
        let of_job = runs.iter().filter(|run| run["job_id"] == id);
        of_job.map(|run| run["launch_at"].as_str().unwrap()[14..16].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("a-singles"), ["30", "20", "10"], "{runs:?}");
    assert_eq!(of("b-batches"), ["30", "15"]);
    assert_eq!(of("c-plain"), ["30", "20", "10"]);
    // Six launches that were skipped together share a record, at the first of them, or more where scans cut them.
    let paused: Vec<&Value> = runs.iter().filter(|run| run["job_id"] == "d-paused").collect();
    assert!(paused.iter().all(|run| run["reason"] == "paused" && run["state"] == "stopped"), "{paused:?}");
    assert!(ids(&runs, "job_id").is_sorted(), "{runs:?}");

    // Pages of any size hold the same, whatever the order in which jobs end and pages do.
    for limit in [1, 2, 3, 5] {
        let (paged, pages) = all(&world, &key, &format!("{since}&limit={limit}"), "runs").await;
        assert_eq!(ids(&paged, "run_id"), ids(&runs, "run_id"), "{limit}");
        assert!(pages >= runs.len() / limit);
    }

    let only =
        async |query: &str| ids(&all(&world, &key, &format!("{since}&{query}"), "runs").await.0, "job_id");
    assert_eq!(only("policy_id=small").await.len(), 5);
    assert!(only("state=stopped").await.iter().all(|id| id == "d-paused"));
    assert_eq!(only("state=finished").await, ["c-plain"; 3]);
    assert_eq!(only("state=waiting,running&prefix=b-").await, ["b-batches"; 2]);
    assert_eq!(only("prefix=nobody").await, [""; 0]);

    // A stretch begins with its first instant and ends before its last.
    let cut = "/v1/runs?since=2026-11-21T12:10:00Z&until=2026-11-21T12:20:00Z&prefix=a-";
    assert_eq!(ids(&all(&world, &key, cut, "runs").await.0, "launch_at"), ["2026-11-21T12:10:00Z"]);
    // Without one: the last 24 hours.
    assert_eq!(all(&world, &key, "/v1/runs?prefix=", "runs").await.0.len(), runs.len());
    world.clock.advance_ms(90_000_000);
    assert!(all(&world, &key, "/v1/runs?prefix=a-", "runs").await.0.is_empty());
}

#[tokio::test]
async fn runs_are_counted_by_state_reason_and_job_with_their_events() {
    let (world, key) = with_history().await;
    let path = "/v1/runs/count?since=2026-11-21T12:00:00Z&until=2026-11-21T12:31:00Z";
    let counts = world.get(path, &key).await;
    assert_eq!(counts.status, StatusCode::OK, "{}", counts.text);
    assert_eq!(counts.json["by_job"], json!({"a-singles": 3, "b-batches": 2, "c-plain": 3, "d-paused": 6}));
    assert_eq!((&counts.json["total"], &counts.json["by_reason"]), (&json!(14), &json!({"paused": 6})));
    assert_eq!(counts.json["by_state"]["stopped"], 6, "{}", counts.text);
    assert_eq!(counts.json["by_state"]["finished"], 3, "{}", counts.text);
    let events = &counts.json["events"];
    assert_eq!(
        (&events["total"], &events["delivered"], &events["left_out"]),
        (&json!(18), &json!(3), &json!(6)),
        "{events}"
    );
    // Pages add up to the same.
    let library = client_of(&world, &key).await.with_pages_of(1);
    let mut wanted = RunsWanted::between("2026-11-21T12:00:00Z", "2026-11-21T12:31:00Z");
    let (mut total, mut calls) = (0, 0);
    loop {
        let counts = library.count_runs(&wanted).await.unwrap();
        (total, calls) = (total + counts.total, calls + 1);
        let Some(next) = counts.next_cursor else { break };
        wanted.cursor = Some(next);
    }
    assert_eq!((total, calls > 1), (14, true), "{calls} calls");
    wanted = RunsWanted {
        prefix: "c-".to_owned(),
        ..RunsWanted::between("2026-11-21T12:10:00Z", "2026-11-21T12:20:00Z")
    };
    assert_eq!(library.count_runs(&wanted).await.unwrap().total, 1);
}

#[tokio::test]
async fn a_job_with_more_runs_than_a_page_is_gone_through_and_gone_jobs_are_passed_over() {
    let (world, key) = with_history().await;
    let since = "/v1/runs?since=2026-11-21T12:00:00Z&until=2026-11-21T12:31:00Z&limit=1";
    let first = world.get(since, &key).await.json;
    assert_eq!(first["runs"][0]["job_id"], "a-singles");
    world.delete("/v1/jobs/a-singles", &key).await;
    // The runs of the job that the page ended in are still told.
    let (mut jobs, mut next) = (Vec::new(), first["next_cursor"].clone());
    while let Some(cursor) = next.as_str() {
        let page = world.get(&format!("{since}&cursor={cursor}"), &key).await.json;
        jobs.extend(ids(page["runs"].as_array().unwrap(), "job_id"));
        next = page["next_cursor"].clone();
    }
    jobs.dedup();
    assert_eq!(jobs, ["a-singles", "b-batches", "c-plain", "d-paused"]);
}

#[tokio::test]
async fn runs_are_cancelled_by_what_they_have_in_common() {
    let (world, key) = with_history().await;
    let mut body = json!({
        "prefix": "", "since": "2026-11-21T12:00:00Z", "until": "2026-11-21T12:31:00Z", "policy_id": "small",
        "dry_run": true,
    });
    let before = world.everything().await;
    let told = world.post("/v1/runs/cancel", &key, &body).await;
    assert_eq!((told.status, &told.json["dry_run"]), (StatusCode::OK, &json!(true)), "{}", told.text);
    assert_eq!(told.json["results"].as_array().unwrap().len(), 5, "{}", told.text);
    assert_eq!(world.everything().await, before);
    body["dry_run"] = json!(false);
    body["prefix"] = json!("b-");
    let done = world.post("/v1/runs/cancel", &key, &body).await;
    let results = done.json["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|run| &run["status"]).collect::<Vec<_>>(), [200, 200], "{}", done.text);
    for run in results {
        let path = format!("/v1/jobs/b-batches/runs/{}", run["run_id"].as_str().unwrap());
        let shown = world.get(&path, &key).await.json;
        assert_eq!((&shown["state"], &shown["reason"]), (&json!("stopped"), &json!("cancelled")));
    }
    let again = world.post("/v1/runs/cancel", &key, &body).await;
    assert_eq!(again.json["results"], json!([]), "{}", again.text);
    for (field, value) in
        [("since", "yesterday"), ("until", "2026-11-21T11:00:00Z"), ("policy_id", "no policy")]
    {
        let mut wrong = body.clone();
        wrong[field] = json!(value);
        let refused = world.post("/v1/runs/cancel", &key, &wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{}", refused.text);
    }
}

#[tokio::test]
async fn what_is_due_is_counted_by_job_by_step_and_by_policy() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    put(&world, &key, "hourly", &job("30 * * * *", 10, Some("small"))).await;
    put(&world, &key, "nightly", &job("0 2 * * *", 1_000, Some("small"))).await;
    put(&world, &key, "plain", &job("*/10 * * * *", 1, None)).await;
    put(&world, &key, "yearly", &job("0 0 1 1 *", 1, None)).await;
    world.put("/v1/calendars/night", &key, &json!({"dates": ["2026-11-22"], "zone": "UTC"})).await;
    let mut shut = job("0 * * * *", 1, None);
    shut["calendars"] = json!(["night"]);
    put(&world, &key, "shut", &shut).await;

    let day = "/v1/upcoming?since=2026-11-22T00:00:00Z&until=2026-11-23T00:00:00Z";
    let ahead = world.get(day, &key).await.json;
    let row = |id: &str| ahead["jobs"].as_array().unwrap().iter().find(|job| job["job_id"] == id).cloned();
    assert_eq!(
        row("hourly").unwrap(),
        json!({"job_id": "hourly", "policy_id": "small", "launches": 24, "events": 240, "skipped": 0, "has_more": false,
            "first_launch_at": "2026-11-22T00:30:00Z", "last_launch_at": "2026-11-22T23:30:00Z"})
    );
    assert_eq!((row("plain").unwrap()["events"].clone(), row("yearly")), (json!(144), None));
    assert_eq!(
        (&row("shut").unwrap()["skipped"], &row("shut").unwrap()["launches"]),
        (&json!(24), &json!(0))
    );
    let steps = ahead["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 24);
    assert_eq!(steps[2], json!({"at": "2026-11-22T02:00:00Z", "launches": 8, "events": 1_016}));
    let policy = &ahead["policies"][0];
    assert_eq!((&policy["events"], &policy["most_at"]), (&json!(1_240), &json!("2026-11-22T02:00:00Z")));
    assert_eq!((&policy["most_events"], &policy["strain"]), (&json!(1_010), &Value::Null));

    // Two tokens, each held for ten seconds, let 720 events begin in an hour.
    let held = world.get(&format!("{day}&held_ms=10000"), &key).await.json;
    let strain = &held["policies"][0]["strain"];
    assert_eq!((&strain["limited_by"], &strain["events_per_step"]), (&json!("max_in_flight"), &json!(720.0)));
    assert_eq!(
        (&strain["begins_at"], &strain["most_waiting"]),
        (&json!("2026-11-22T03:00:00Z"), &json!(290))
    );
    assert_eq!(strain["ends_at"], "2026-11-22T04:00:00Z", "{strain}");
    assert_eq!(
        strain["warning"],
        "its max_in_flight lets 720 events begin in 60 min, and more are due: from 03:00:00 UTC on events wait, 290 of them at \
         03:00:00 UTC, until 04:00:00 UTC"
    );
    let rate = json!({"max_in_flight": 2, "rate": {"events": 20, "per": "hour"}});
    world.put("/v1/policies/small", &key, &rate).await;
    let slow = world.get(day, &key).await.json;
    let strain = &slow["policies"][0]["strain"];
    assert_eq!((&strain["limited_by"], &strain["ends_at"]), (&json!("rate"), &Value::Null), "{strain}");

    // Pages add up to the whole.
    let (jobs, pages) = all(&world, &key, &format!("{day}&limit=1"), "jobs").await;
    assert_eq!((json!(jobs), pages), (ahead["jobs"].clone(), 5));
    assert_eq!(world.get(&format!("{day}&prefix=p"), &key).await.json["jobs"].as_array().unwrap().len(), 1);
    let minutes = world.get("/v1/upcoming?step_seconds=60&prefix=plain", &key).await.json;
    assert_eq!(minutes["steps"].as_array().unwrap().len(), 144, "a day when no time is said");
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_refused_by_its_name() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (path, field) in [
        ("/v1/upcoming?since=soon", "since"),
        ("/v1/upcoming?until=2026-11-20T00:00:00Z", "until"),
        ("/v1/upcoming?since=2026-11-22T00:00:00Z&until=2026-12-24T00:00:01Z", "until"),
        ("/v1/upcoming?step_seconds=59", "step_seconds"),
        (
            "/v1/upcoming?since=2026-11-22T00:00:00Z&until=2026-11-24T00:00:00Z&step_seconds=60",
            "step_seconds",
        ),
        ("/v1/upcoming?held_ms=0", "held_ms"),
        ("/v1/upcoming?limit=0", "limit"),
        ("/v1/upcoming?policy_id=no%20policy", "policy_id"),
        ("/v1/runs?since=2026-11-22T00:00:00", "since"),
        ("/v1/runs?since=2026-11-22T00:00:00Z&until=2026-11-22T00:00:00Z", "until"),
        ("/v1/runs?state=done", "state"),
        ("/v1/runs?limit=101", "limit"),
    ] {
        let refused = world.get(path, &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{path}: {}", refused.text);
    }
    for path in ["/v1/runs?cursor=bm8gcGxhY2U", "/v1/upcoming?prefix=b&cursor=YQ", "/v1/runs?cursor=%"] {
        let refused = world.get(path, &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_job_of_every_second_is_counted_up_to_a_bound() {
    let world = World::new().await;
    let key = world.register("acme").await;
    put(
        &world,
        &key,
        "beat",
        &json!({"trigger": {"rate": {"every_seconds": 1}}, "target": {"sqs": {"queue_url": QUEUE}}}),
    )
    .await;
    let ahead = world.get("/v1/upcoming", &key).await.json;
    assert_eq!(
        (&ahead["jobs"][0]["launches"], &ahead["jobs"][0]["has_more"]),
        (&json!(50_000), &json!(true)),
        "{ahead}"
    );
}

#[tokio::test]
async fn the_client_library_has_the_calls() {
    let (world, key) = with_history().await;
    let client = client_of(&world, &key).await;
    let wanted = RunsWanted {
        policy_id: Some("small".to_owned()),
        states: vec!["waiting".to_owned(), "running".to_owned()],
        ..RunsWanted::between("2026-11-21T12:00:00Z", "2026-11-21T12:31:00Z")
    };
    assert_eq!(client.runs_across(&wanted).await.unwrap().rows.len(), 5);
    let dry = RunsWanted { dry_run: true, ..wanted.clone() };
    assert_eq!(client.cancel_runs(&dry).await.unwrap().results.len(), 5);
    let batches = RunsWanted { prefix: "b-".to_owned(), ..wanted };
    assert_eq!(client.cancel_runs(&batches).await.unwrap().results.len(), 2);
    assert!(client.runs_across(&batches).await.unwrap().rows.is_empty());
    let tomorrow = AheadQuery {
        since: Some("2026-11-22T00:00:00Z".to_owned()),
        step_seconds: Some(900),
        held_ms: Some(3_600_000),
        ..AheadQuery::default()
    };
    let ahead = client.ahead(&tomorrow).await.unwrap();
    assert_eq!((ahead.jobs.len(), ahead.steps.len(), ahead.until.as_str()), (4, 96, "2026-11-23T00:00:00Z"));
    let strain = ahead.policies[0].strain.as_ref().unwrap();
    assert_eq!(strain.limited_by, LimitedBy::MaxInFlight);
}
