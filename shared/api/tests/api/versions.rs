//! The versions of a job, going back to one, pauses with a reason, and other times.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Client, Job, Selection, Target, Trigger};
use tidegate_domain::clock::Clock as _;

use crate::world::{Answer, QUEUE, World, at_job, cron_job};

const SOON: &str = "2026-11-22T12:00:00Z";

async fn started() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    (world, key)
}

fn counting(count: u32) -> Value {
    let mut job = cron_job();
    job["count"] = json!(count);
    job
}

async fn rolled_back(world: &World, key: &str, revision: u32) -> Answer {
    world.post("/v1/jobs/nightly/rollback", key, &json!({"revision": revision})).await
}

#[tokio::test]
async fn versions_are_told_back_to_the_first_over_a_deletion_in_pages_of_any_size() {
    let (world, key) = started().await;
    for count in 1..=3 {
        assert!(world.put("/v1/jobs/nightly", &key, &counting(count)).await.status.is_success());
        world.clock.advance_ms(10);
    }
    assert_eq!(world.delete("/v1/jobs/nightly", &key).await.status, StatusCode::NO_CONTENT);
    let made = world.put("/v1/jobs/nightly", &key, &counting(5)).await;
    assert_eq!((made.status, &made.json["revision"]), (StatusCode::CREATED, &json!(5)));
    let list = world.get("/v1/jobs/nightly/versions", &key).await;
    assert_eq!(list.status, StatusCode::OK, "{}", list.text);
    assert!(list.json["next_cursor"].is_null(), "{}", list.text);
    let all = list.json["versions"].as_array().unwrap().clone();
    let short = |version: &Value| json!([version["revision"], version["what"], version["job"]["count"]]);
    assert_eq!(
        all.iter().map(short).collect::<Vec<_>>(),
        [
            json!([5, "created", 5]),
            json!([4, "deleted", null]),
            json!([3, "changed", 3]),
            json!([2, "changed", 2]),
            json!([1, "created", 1]),
        ]
    );
    assert_eq!(all[0]["job"], made.json, "a version is the job as it was shown");
    assert!(all[1]["job"].is_null());
    for most in [1, 2, 4] {
        let (mut rows, mut next) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/v1/jobs/nightly/versions?limit={most}{next}"), &key).await;
            let versions = page.json["versions"].as_array().unwrap();
            assert!(versions.len() <= most);
            rows.extend(versions.iter().cloned());
            match page.json["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(rows, all, "by {most}");
    }
    for version in &all {
        let one = world.get(&format!("/v1/jobs/nightly/versions/{}", version["revision"]), &key).await;
        assert_eq!((one.status, &one.json), (StatusCode::OK, version));
    }
    for none in ["0", "6", "-1", "latest", "4294967296"] {
        let refused = world.get(&format!("/v1/jobs/nightly/versions/{none}"), &key).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{}", refused.text);
        let says = format!("no revision {none} of job 'nightly' is kept");
        assert!(refused.text.contains(&says), "{}", refused.text);
    }
    assert_eq!(world.get("/v1/jobs/never/versions", &key).await.status, StatusCode::NOT_FOUND);
    let foreign = world.get("/v1/changes?limit=1", &key).await.json["next_cursor"].clone();
    let path = format!("/v1/jobs/other/versions?cursor={}", foreign.as_str().unwrap());
    assert_eq!(world.get(&path, &key).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_page_has_25_versions_and_a_read_for_each() {
    let (world, key) = started().await;
    for count in 1..=40 {
        assert!(world.put("/v1/jobs/nightly", &key, &counting(count)).await.status.is_success());
    }
    let before = world.embedded.meter().snapshot();
    let page = world.get("/v1/jobs/nightly/versions", &key).await;
    let units = world.embedded.meter().snapshot().since(&before).read_units();
    assert_eq!(page.json["versions"].as_array().unwrap().len(), 25);
    assert!(units <= 27.0, "{units}");
    let rest = page.json["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/v1/jobs/nightly/versions?cursor={rest}"), &key).await;
    assert_eq!(rest.json["versions"].as_array().unwrap().len(), 15);
    assert!(rest.json["next_cursor"].is_null());
}

#[tokio::test]
async fn a_job_says_again_what_it_said_under_a_new_revision_and_a_pause_stays() {
    let (world, key) = started().await;
    let first = world.put("/v1/jobs/nightly", &key, &counting(1)).await.json;
    assert!(world.put("/v1/jobs/nightly", &key, &at_job(SOON)).await.status.is_success());
    assert_eq!(rolled_back(&world, &key, 2).await.json["revision"], 2, "it says that already");
    assert!(
        world.post("/v1/jobs/nightly/pause", &key, &json!({"because": "books"})).await.status.is_success()
    );
    let back = rolled_back(&world, &key, 1).await;
    assert_eq!((back.status, back.header("etag")), (StatusCode::OK, "\"4\""), "{}", back.text);
    let mut expected = first.clone();
    expected["revision"] = json!(4);
    expected["paused"] = json!(true);
    expected["paused_because"] = json!("books");
    expected["changed_at"] = back.json["changed_at"].clone();
    assert_eq!(back.json, expected);
    assert_eq!(world.get("/v1/jobs/nightly", &key).await.json, expected);
    let again = rolled_back(&world, &key, 1).await;
    assert_eq!((again.status, &again.json["revision"]), (StatusCode::OK, &json!(4)), "repeating it is safe");
    for (revision, status) in [(9, StatusCode::NOT_FOUND), (0, StatusCode::UNPROCESSABLE_ENTITY)] {
        assert_eq!(rolled_back(&world, &key, revision).await.status, status);
    }
    let headers = [("if-match", "\"3\""), ("content-type", "application/json")];
    let body = json!({"revision": 2}).to_string();
    let late = world.send(Method::POST, "/v1/jobs/nightly/rollback", Some(&key), &headers, &body).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED, "{}", late.text);
}

#[tokio::test]
async fn a_deleted_job_comes_back_and_its_deletion_does_not() {
    let (world, key) = started().await;
    assert!(world.put("/v1/jobs/nightly", &key, &counting(1)).await.status.is_success());
    assert!(world.put("/v1/jobs/nightly", &key, &counting(2)).await.status.is_success());
    assert_eq!(world.delete("/v1/jobs/nightly", &key).await.status, StatusCode::NO_CONTENT);
    let deletion = rolled_back(&world, &key, 3).await;
    assert_eq!(deletion.status, StatusCode::NOT_FOUND);
    assert!(deletion.text.contains("revision 3 of job 'nightly' is its deletion"), "{}", deletion.text);
    let back = rolled_back(&world, &key, 1).await;
    assert_eq!((back.status, &back.json["revision"]), (StatusCode::CREATED, &json!(4)), "{}", back.text);
    assert_eq!(back.json["count"], 1);
    assert_eq!(
        world.get("/v1/jobs/nightly/upcoming", &key).await.json["upcoming"].as_array().unwrap().len(),
        10
    );
}

#[tokio::test]
async fn what_a_version_refers_to_must_be_there_and_allowed_still() {
    let (world, key) = started().await;
    assert!(world.put("/v1/policies/small", &key, &json!({"max_in_flight": 1})).await.status.is_success());
    let mut throttled = cron_job();
    throttled["policy_id"] = json!("small");
    assert!(world.put("/v1/jobs/nightly", &key, &throttled).await.status.is_success());
    assert!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status.is_success());
    assert_eq!(world.delete("/v1/policies/small", &key).await.status, StatusCode::NO_CONTENT);
    let before = world.everything().await;
    let refused = rolled_back(&world, &key, 1).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "policy_id");
    let change = json!({"allowed_targets": ["https://example.com/*"]}).to_string();
    let json = [("content-type", "application/json")];
    let narrowed =
        world.send(Method::PATCH, "/v1/clients/acme", Some(&world.admin_key), &json, &change).await;
    assert_eq!(narrowed.status, StatusCode::OK, "{}", narrowed.text);
    world.clock.advance_ms(10_000);
    assert_eq!(rolled_back(&world, &key, 1).await.status, StatusCode::FORBIDDEN);
    let kept = |rows: Vec<String>| rows.into_iter().filter(|row| row.starts_with("Jobs")).collect::<Vec<_>>();
    let of_jobs = |rows: Vec<String>| {
        kept(rows).into_iter().filter(|row| !row.contains("|client|")).collect::<Vec<_>>()
    };
    assert_eq!(of_jobs(world.everything().await), of_jobs(before));
    // Its instants are over.
    let mut once = at_job("2026-11-21T12:01:00Z");
    once["target"] = json!({"http": {"url": "https://example.com/hook"}});
    assert!(world.put("/v1/jobs/once", &key, &once).await.status.is_success());
    once["trigger"] = json!({"rate": "1 hour"});
    assert!(world.put("/v1/jobs/once", &key, &once).await.status.is_success());
    world.clock.advance_ms(3_600_000);
    let over = world.post("/v1/jobs/once/rollback", &key, &json!({"revision": 1})).await;
    assert_eq!(over.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", over.text);
    assert_eq!(over.json["errors"][0]["field"], "trigger.at");
}

#[tokio::test]
async fn a_job_keeps_for_how_long_its_client_keeps_what_happened() {
    let (world, key) = started().await;
    let json = [("content-type", "application/json")];
    let change = json!({"defaults": {"history_days": 200}}).to_string();
    let set = world.send(Method::PATCH, "/v1/clients/acme", Some(&world.admin_key), &json, &change).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text);
    world.clock.advance_ms(10_000);
    assert!(world.put("/v1/jobs/nightly", &key, &counting(1)).await.status.is_success());
    let patch = json!({"count": 2}).to_string();
    assert!(
        world.send(Method::PATCH, "/v1/jobs/nightly", Some(&key), &json, &patch).await.status.is_success()
    );
    assert!(rolled_back(&world, &key, 1).await.status.is_success());
    let jobs = world.engine.store().all_of_jobs(None).await.unwrap();
    assert_eq!(jobs.rows[0].terms.history_days.get(), 200);
    let expires = (world.clock.now().timestamp() + 200 * 86_400).to_string();
    let mut recorded =
        world.everything().await.into_iter().filter(|row| row.contains("|job|nightly|0000000003"));
    assert!(recorded.next().unwrap().contains(&expires));
}

#[tokio::test]
async fn a_pause_has_a_reason_while_it_lasts() {
    let (world, key) = started().await;
    assert!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status.is_success());
    let pause = async |body: Value| world.post("/v1/jobs/nightly/pause", &key, &body).await.json;
    let shown = async || world.get("/v1/jobs/nightly", &key).await.json;
    let paused = pause(json!({"because": "the books are closed"})).await;
    assert_eq!((&paused["revision"], &paused["paused_because"]), (&json!(2), &json!("the books are closed")));
    assert_eq!(shown().await, paused);
    // What GET answers can be put back.
    let put = world.put("/v1/jobs/nightly", &key, &shown().await).await;
    assert_eq!((put.status, &put.json), (StatusCode::OK, &paused), "{}", put.text);
    assert_eq!(pause(json!({})).await, paused, "it keeps its reason");
    assert_eq!(pause(json!({"because": "the books are closed"})).await, paused);
    let other = pause(json!({"because": "a migration"})).await;
    assert_eq!((&other["revision"], &other["paused_because"]), (&json!(3), &json!("a migration")));
    let mut changed = cron_job();
    changed["count"] = json!(2);
    let changed = world.put("/v1/jobs/nightly", &key, &changed).await.json;
    assert_eq!((&changed["revision"], &changed["paused_because"]), (&json!(4), &json!("a migration")));
    let resumed = world.send(Method::POST, "/v1/jobs/nightly/resume", Some(&key), &[], "").await.json;
    assert_eq!((&resumed["revision"], resumed.get("paused_because")), (&json!(5), None));
    let plain = world.send(Method::POST, "/v1/jobs/nightly/pause", Some(&key), &[], "").await;
    assert_eq!((&plain.json["paused"], plain.json.get("paused_because")), (&json!(true), None));
    let long = json!({"because": "x".repeat(201)});
    let refused = world.post("/v1/jobs/nightly/pause", &key, &long).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.json["errors"][0]["field"], "because");
    let typo = world.post("/v1/jobs/nightly/pause", &key, &json!({"reason": "books"})).await;
    assert_eq!(typo.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", typo.text);
}

#[tokio::test]
async fn jobs_are_paused_for_a_reason_together() {
    let (world, key) = started().await;
    for name in ["shop-a", "shop-b", "other"] {
        assert!(world.put(&format!("/v1/jobs/{name}"), &key, &cron_job()).await.status.is_success());
    }
    let client = Client::new(world.serve().await, &key).unwrap();
    let because = Some("the shop moves".to_owned());
    let shops = Selection { because, ..Selection::of_prefix("shop-") };
    let paused = client.pause_jobs(&shops).await.unwrap();
    assert_eq!(paused.results.len(), 2);
    for (name, because) in
        [("shop-a", Some("the shop moves")), ("shop-b", Some("the shop moves")), ("other", None)]
    {
        assert_eq!(client.job(name).await.unwrap().paused_because.as_deref(), because);
    }
    let refused = client.resume_jobs(&shops).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().errors[0].field, "because");
    client.resume_jobs(&Selection::of_prefix("shop-")).await.unwrap();
    assert_eq!(client.job("shop-a").await.unwrap().paused_because, None);
}

#[tokio::test]
async fn a_job_is_given_other_times_and_all_else_of_it_stays() {
    let (world, key) = started().await;
    let mut job = counting(4);
    job["tags"] = json!(["books"]);
    let first = world.put("/v1/jobs/nightly", &key, &job).await.json;
    let reschedule = async |body: Value| world.post("/v1/jobs/nightly/reschedule", &key, &body).await;
    let moved = reschedule(json!({"trigger": {"at": [SOON, "2026-11-23T12:00:00Z"]}})).await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.text);
    let mut expected = first.clone();
    for member in ["revision", "trigger", "description", "changed_at"] {
        expected[member] = moved.json[member].clone();
    }
    assert_eq!(moved.json, expected);
    assert_eq!(moved.json["trigger"], json!({"at": [SOON, "2026-11-23T12:00:00Z"]}));
    world.clock.advance_ms(86_400_000 + 60_000);
    let delayed = reschedule(json!({"delay_seconds": 600})).await;
    assert_eq!(delayed.json["trigger"], json!({"at": [SOON, "2026-11-23T12:10:00Z"]}), "{}", delayed.text);
    assert_eq!(reschedule(json!({"trigger": {"rate": "1 hour"}})).await.status, StatusCode::OK);
    let refused = reschedule(json!({"delay_seconds": 600})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.json["type"], "urn:tidegate:problem:not-rescheduled");
    assert!(refused.text.contains("job 'nightly' launches at a rate"), "{}", refused.text);
    for (body, field) in [
        (json!({}), "trigger"),
        (json!({"trigger": {"rate": "1 hour"}, "delay_seconds": 60}), "trigger"),
        (json!({"delay_seconds": 0}), "delay_seconds"),
        (json!({"delay_seconds": 366 * 86_400 + 1}), "delay_seconds"),
        (json!({"trigger": {"cron": "61 * * * *"}}), "trigger.cron"),
        (json!({"trigger": {"at": "2026-11-01T00:00:00Z"}}), "trigger.at"),
        (json!({"cron": "0 3 * * *"}), "cron"),
    ] {
        let refused = reschedule(body.clone()).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{body}: {}", refused.text);
    }
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let body = json!({"trigger": {"rate": "2 hours"}}).to_string();
    let late = world.send(Method::POST, "/v1/jobs/nightly/reschedule", Some(&key), &headers, &body).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED, "{}", late.text);
    let missing = world.post("/v1/jobs/never/reschedule", &key, &json!({"delay_seconds": 1})).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_job_that_says_where_it_lies_is_neither_moved_nor_rolled_back() {
    let (world, key) = started().await;
    let made = world.post("/v1/jobs", &key, &at_job(SOON)).await.json;
    let path = format!("/v1/jobs/{}", made["job_id"].as_str().unwrap());
    let refused = world.post(&format!("{path}/reschedule"), &key, &json!({"delay_seconds": 60})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert!(refused.text.contains("delete it and create it anew"), "{}", refused.text);
    let refused = world.post(&format!("{path}/rollback"), &key, &json!({"revision": 1})).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
}

#[tokio::test]
async fn the_client_library_reads_versions_and_goes_back_to_one() {
    let (world, key) = started().await;
    let client = Client::new(world.serve().await, &key).unwrap().with_pages_of(2);
    let job = Job::new(Trigger::cron("0 9 * * *", "Europe/London"), Target::sqs(QUEUE));
    client.put_job("nightly", &job, None).await.unwrap();
    let hourly = Trigger::every_seconds(3_600);
    assert_eq!(client.reschedule_job("nightly", &hourly, Some(1)).await.unwrap().revision, 2);
    let once = Trigger::at(SOON);
    client.reschedule_job("nightly", &once, None).await.unwrap();
    let later = client.delay_job("nightly", 60, Some(3)).await.unwrap();
    assert_eq!(serde_json::to_value(&later.trigger).unwrap(), json!({"at": "2026-11-22T12:01:00Z"}));
    let versions = client.versions("nightly", None).await.unwrap();
    let revisions: Vec<u32> = versions.rows.iter().map(|version| version.revision).collect();
    assert_eq!(revisions, [4, 3]);
    let rest = client.versions("nightly", versions.next_cursor.as_deref()).await.unwrap();
    assert_eq!(rest.rows.len(), 2);
    let first = client.version("nightly", 1).await.unwrap();
    let back = client.roll_back_job("nightly", 1, Some(4)).await.unwrap();
    assert_eq!((back.revision, back.trigger), (5, first.job.unwrap().trigger));
}
