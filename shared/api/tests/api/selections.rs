//! Jobs that are paused, resumed and deleted by what they have in common.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Client, Job, Selection, Target, Trigger};

use crate::world::{Answer, QUEUE, World, at_job, cron_job};

/// A client with jobs by day and by night, of which every other one is under a policy.
async fn with_jobs(by_day: u32, by_night: u32) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    for (prefix, count) in [("day", by_day), ("night", by_night)] {
        for number in 0..count {
            let mut job = cron_job();
            job["policy_id"] = if number % 2 == 0 { json!("small") } else { Value::Null };
            let made = world.put(&format!("/v1/jobs/{prefix}-{number:03}"), &key, &job).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
    }
    (world, key)
}

async fn act(world: &World, key: &str, what: &str, body: Value) -> Answer {
    world.post(&format!("/v1/jobs/bulk/{what}"), key, &body).await
}

/// The jobs that an answer names, each with its status.
fn told(answer: &Answer) -> Vec<(String, u64)> {
    let results = answer.json["results"].as_array().unwrap_or_else(|| panic!("{}", answer.text));
    let of =
        |result: &Value| (result["job_id"].as_str().unwrap().to_owned(), result["status"].as_u64().unwrap());
    results.iter().map(of).collect()
}

/// The ids of the jobs that are paused.
async fn paused(world: &World, key: &str) -> Vec<String> {
    let jobs = world.get("/v1/jobs", key).await.json;
    let jobs = jobs["jobs"].as_array().unwrap().iter().filter(|job| job["paused"] == true);
    jobs.map(|job| job["job_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn jobs_are_paused_and_resumed_by_prefix_policy_and_state() {
    let (world, key) = with_jobs(2, 4).await;
    let night = json!({"prefix": "night-"});
    let before = world.everything().await;
    let mut dry = night.clone();
    dry["dry_run"] = json!(true);
    let meant = act(&world, &key, "pause", dry).await;
    let all = ["night-000", "night-001", "night-002", "night-003"].map(|id| (id.to_owned(), 200));
    assert_eq!((told(&meant), &meant.json["dry_run"]), (all.to_vec(), &json!(true)), "{}", meant.text);
    assert_eq!(world.everything().await, before);

    let done = act(&world, &key, "pause", json!({"prefix": "night-", "policy_id": "small"})).await;
    assert_eq!(
        done.json["results"][0],
        json!({"status": 200, "job_id": "night-000", "revision": 2}),
        "{}",
        done.text
    );
    assert_eq!(paused(&world, &key).await, ["night-000", "night-002"]);
    // Those that are paused already are left as they are.
    let again = act(&world, &key, "pause", night.clone()).await;
    let revisions: Vec<&Value> =
        again.json["results"].as_array().unwrap().iter().map(|result| &result["revision"]).collect();
    assert_eq!(revisions, [2; 4]);
    let resumed = act(&world, &key, "resume", json!({"prefix": "", "paused": true})).await;
    assert_eq!(told(&resumed).len(), 4, "{}", resumed.text);
    assert!(paused(&world, &key).await.is_empty());
}

#[tokio::test]
async fn jobs_are_listed_by_what_they_have_in_common() {
    let (world, key) = with_jobs(130, 4).await;
    let mut hook = cron_job();
    hook["target"] = json!({"http": {"url": "https://hooks.acme.example/a"}});
    world.put("/v1/jobs/night-hook", &key, &hook).await;
    act(&world, &key, "pause", json!({"prefix": "night-00"})).await;
    let listed = async |query: &str, most: usize| {
        let (mut ids, mut pages, mut next) = (Vec::new(), 0, String::new());
        loop {
            let page = world.get(&format!("/v1/jobs?{query}&limit={most}{next}"), &key).await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.text);
            let jobs = page.json["jobs"].as_array().unwrap();
            assert!(jobs.len() <= most, "{query}: {} of {most}", jobs.len());
            ids.extend(jobs.iter().map(|job| job["job_id"].as_str().unwrap().to_owned()));
            pages += 1;
            match page.json["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => return (ids, pages),
            }
        }
    };
    let night = ["night-000", "night-001", "night-002", "night-003"];
    // What lies behind 130 others is on the first page.
    assert_eq!(listed("paused=true", 100).await, (night.map(str::to_owned).to_vec(), 1));
    assert_eq!(listed("paused=true&policy_id=small", 1).await.0, [night[0], night[2]]);
    for target in ["https://hooks.acme.example/*", "https://hooks.acme.example/a"] {
        assert_eq!(listed(&format!("target={target}"), 100).await, (vec!["night-hook".to_owned()], 1));
    }
    let (small, pages) = listed("policy_id=small", 10).await;
    assert_eq!((small.len(), pages), (67, 7));
    assert_eq!(listed("policy_id=nobody", 100).await.0, [""; 0]);
    let all = listed("", 7).await.0;
    assert!(all.len() == 135 && all.is_sorted(), "{all:?}");
    for (query, says) in [
        ("policy_id=no policy", "policy_id"),
        ("target=hooks", "target is 'hooks', which no address matches"),
        ("paused=yes", "not `true` or `false`"),
    ] {
        let refused = world.get(&format!("/v1/jobs?{}", query.replace(' ', "%20")), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(refused.text.contains(says), "{}", refused.text);
    }
}

/// A page that begins with jobs that were deleted shows those that are there.
#[tokio::test]
async fn deleted_jobs_leave_no_empty_pages() {
    let (world, key) = with_jobs(130, 2).await;
    let mut body = json!({"prefix": "day-"});
    while !body["cursor"].is_null() || body.get("cursor").is_none() {
        let answer = act(&world, &key, "delete", body.clone()).await;
        body["cursor"] = answer.json["next_cursor"].clone();
    }
    let left = world.get("/v1/jobs?limit=1", &key).await.json;
    assert_eq!(left["jobs"][0]["job_id"], "night-000", "{left}");
}

/// Those whose events go to a host that is in trouble.
#[tokio::test]
async fn jobs_are_paused_by_their_target() {
    let (world, key) = with_jobs(2, 0).await;
    let mut hook = cron_job();
    hook["target"] = json!({"http": {"url": "https://hooks.acme.example/a"}});
    world.put("/v1/jobs/hook", &key, &hook).await;
    let body = json!({"prefix": "", "target": "https://hooks.acme.example/*"});
    assert_eq!(told(&act(&world, &key, "pause", body).await), [("hook".to_owned(), 200)]);
    assert_eq!(paused(&world, &key).await, ["hook"]);
    let client = Client::new(world.serve().await, key).unwrap();
    let target = Some("https://hooks.acme.example/*".to_owned());
    let meant = Selection { target, paused: Some(true), ..Selection::of_prefix("h") };
    let found = client.selected_jobs(&meant).await.unwrap();
    assert_eq!((found.rows.len(), &*found.rows[0].job_id, found.next_cursor), (1, "hook", None));
    let by_day = Selection { policy_id: Some("small".to_owned()), ..Selection::of_prefix("day-") };
    assert_eq!(client.selected_jobs(&by_day).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn more_than_a_page_of_jobs_is_deleted_page_by_page_and_no_others() {
    let (world, key) = with_jobs(130, 2).await;
    let (mut deleted, mut calls, mut body) = (0, 0, json!({"prefix": "day-"}));
    loop {
        let answer = act(&world, &key, "delete", body.clone()).await;
        assert!(told(&answer).iter().all(|(_, status)| *status == 204), "{}", answer.text);
        (deleted, calls) = (deleted + told(&answer).len(), calls + 1);
        if answer.json["next_cursor"].is_null() {
            break;
        }
        body["cursor"] = answer.json["next_cursor"].clone();
    }
    assert_eq!((deleted, calls), (130, 2));
    // What was deleted is left out of a page, and no other job is in its place.
    let left = world.get("/v1/jobs?prefix=night-", &key).await.json;
    let left: Vec<&Value> = left["jobs"].as_array().unwrap().iter().map(|job| &job["job_id"]).collect();
    assert_eq!(left, ["night-000", "night-001"]);
    assert!(told(&act(&world, &key, "delete", json!({"prefix": "day-"})).await).is_empty());
}

#[tokio::test]
async fn what_is_meant_must_be_said() {
    let (world, key) = with_jobs(1, 0).await;
    let before = world.everything().await;
    for (body, field) in [
        (json!({}), "prefix"),
        (json!({"prefix": "x".repeat(201)}), "prefix"),
        (json!({"prefix": "", "policy_id": "no policy"}), "policy_id"),
        (json!({"prefix": "", "target": "hooks"}), "target"),
        (json!({"prefix": "", "tag": "two words"}), "tag"),
        (json!({"prefix": "", "label": "x"}), "label"),
        (json!({"prefix": "", "paused": "yes"}), "paused"),
    ] {
        let refused = act(&world, &key, "delete", body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{}", refused.text);
    }
    let refused = act(&world, &key, "delete", json!({"prefix": "", "cursor": "?"})).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn the_library_has_the_calls() {
    let (world, key) = with_jobs(1, 2).await;
    let client = Client::new(world.serve().await, key).unwrap();
    let night = Selection::of_prefix("night-");
    assert_eq!(client.pause_jobs(&night).await.unwrap().results.len(), 2);
    let one = Selection { policy_id: Some("small".to_owned()), ..night.clone() };
    assert_eq!(client.resume_jobs(&one).await.unwrap().results.len(), 1);
    let dry = client.delete_jobs(&Selection { dry_run: true, paused: Some(true), ..night }).await.unwrap();
    assert_eq!((dry.dry_run, dry.results.len(), dry.next_cursor), (true, 1, None));
    assert_eq!(client.jobs(None).await.unwrap().rows.len(), 3);
}

#[tokio::test]
async fn jobs_are_found_by_their_tags() {
    let (world, key) = with_jobs(3, 2).await;
    for (id, tags) in [("day-000", json!(["team:books", "b", "b"])), ("day-002", json!(["team:books"]))] {
        let mut job = cron_job();
        job["tags"] = tags;
        let put = world.put(&format!("/v1/jobs/{id}"), &key, &job).await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.text);
    }
    let mut once = at_job("2026-11-22T12:00:00Z");
    once["tags"] = json!(["team:books"]);
    let once = world.post("/v1/jobs", &key, &once).await.json;
    let path = format!("/v1/jobs/{}", once["job_id"].as_str().unwrap());
    assert_eq!(world.get(&path, &key).await.json["tags"], json!(["team:books"]));
    world.send(Method::POST, &format!("{path}/pause"), Some(&key), &[], "").await;
    assert_eq!(world.get(&path, &key).await.json["tags"], json!(["team:books"]), "a change keeps them");

    let found = async |path: &str, rows: &str| {
        let page = world.get(path, &key).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let ids =
            page.json[rows].as_array().unwrap().iter().map(|row| row["job_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(found("/v1/jobs?tag=team:books", "jobs").await, ["day-000", "day-002"]);
    assert_eq!(found("/v1/jobs?tag=b", "jobs").await, ["day-000"]);
    assert_eq!(
        found("/v1/upcoming?tag=team:books&until=2026-11-24T00:00:00Z", "jobs").await,
        ["day-000", "day-002", once["job_id"].as_str().unwrap()]
    );
    assert_eq!(found("/v1/runs?tag=nothing", "runs").await, [""; 0]);
    // The world begins on a Saturday: the next launches are on Monday, but of one that a calendar leaves out and one that is earlier.
    world.put("/v1/calendars/monday", &key, &json!({"dates": ["2026-11-23"]})).await;
    let (mut left_out, mut earlier) = (cron_job(), cron_job());
    left_out["calendars"] = json!(["monday"]);
    earlier["trigger"] = json!({"cron": "0 9 * * SUN", "zone": "UTC"});
    world.put("/v1/jobs/left-out", &key, &left_out).await;
    world.put("/v1/jobs/earlier", &key, &earlier).await;
    let next = async |before: &str| found(&format!("/v1/jobs?next_before={before}"), "jobs").await;
    assert_eq!(next("2026-11-22T09:00:00Z").await, [""; 0]);
    assert_eq!(next("2026-11-22T09:00:01Z").await, ["earlier"]);
    let by_monday = next("2026-11-23T12:00:00Z").await;
    assert!(by_monday.contains(&"day-000".to_owned()) && !by_monday.contains(&"left-out".to_owned()));
    assert!(next("2026-11-24T12:00:00Z").await.contains(&"left-out".to_owned()));
    for id in ["left-out", "earlier"] {
        world.delete(&format!("/v1/jobs/{id}"), &key).await;
    }
    let refused = world.get("/v1/jobs?next_before=soon", &key).await;
    assert_eq!(
        (refused.status, &refused.json["errors"][0]["field"]),
        (StatusCode::BAD_REQUEST, &json!("next_before"))
    );
    assert_eq!(world.get("/v1/jobs/day-000", &key).await.json["tags"], json!(["b", "team:books"]));

    let paused = act(&world, &key, "pause", json!({"prefix": "", "tag": "team:books"})).await;
    assert_eq!(told(&paused), [("day-000".to_owned(), 200), ("day-002".to_owned(), 200)]);
    let patch = json!({"tags": []}).to_string();
    let headers = [("content-type", "application/json")];
    let patched = world.send(Method::PATCH, "/v1/jobs/day-000", Some(&key), &headers, &patch).await;
    assert_eq!((patched.status, &patched.json["tags"]), (StatusCode::OK, &json!([])), "{}", patched.text);
    assert_eq!(patched.json["paused"], true);
    assert_eq!(found("/v1/jobs?tag=team:books", "jobs").await, ["day-002"]);

    let client = Client::new(world.serve().await, &key).unwrap();
    let mut job = Job::new(Trigger::cron("0 9 * * *", "UTC"), Target::sqs(QUEUE));
    job.tags = vec!["from:library".to_owned()];
    assert_eq!(client.put_job("tagged", &job, None).await.unwrap().tags, ["from:library"]);
    let tagged = Selection { tag: Some("from:library".to_owned()), ..Selection::default() };
    assert_eq!(client.selected_jobs(&tagged).await.unwrap().rows.len(), 1);

    let many: Vec<String> = (0..11).map(|number| format!("t{number}")).collect();
    for (tags, field) in
        [(json!(["two words"]), "tags[0]"), (json!(["a", ""]), "tags[1]"), (json!(many), "tags")]
    {
        let mut job = cron_job();
        job["tags"] = tags;
        let refused = world.put("/v1/jobs/wrong", &key, &job).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{}", refused.text);
    }
    let refused = world.get("/v1/jobs?tag=two%20words", &key).await;
    assert_eq!(
        (refused.status, &refused.json["errors"][0]["field"]),
        (StatusCode::BAD_REQUEST, &json!("tag"))
    );
}
