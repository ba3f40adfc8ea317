//! The task guides: each call that they show is taken, and answered with the fields that they show.

use http::StatusCode;
use serde_json::{Value, json};

use crate::links::repository;
use crate::page::Page;
use crate::script::Script;
use crate::world::{QUEUE, World, at_job};

const INDEX: Page = Page(include_str!("../../../../docs/how-to/README.md"));
const WEBHOOK: Page = Page(include_str!("../../../../docs/how-to/webhook.md"));
const WEEKLY_BATCH: Page = Page(include_str!("../../../../docs/how-to/weekly-batch.md"));
const MAIL: Page = Page(include_str!("../../../../docs/how-to/limit-a-mail-provider.md"));
const REMINDERS: Page = Page(include_str!("../../../../docs/how-to/reminders.md"));
const INCIDENT: Page = Page(include_str!("../../../../docs/how-to/incident.md"));
const REPEAT: Page = Page(include_str!("../../../../docs/how-to/repeat-what-failed.md"));

/// A client and a guide that has the variables of all guides.
async fn begin(world: &World, page: Page) -> (String, Script<'_>) {
    let key = world.register("acme").await;
    let mut guide = Script::new(page, world, &key);
    guide.set("QUEUE", QUEUE);
    guide.set("DONE_QUEUE", QUEUE.replace("jobs", "done"));
    (key, guide)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("no text '{name}' in {value}"))
}

/// The latest run of a job.
async fn run_of(world: &World, key: &str, job: &str) -> String {
    let runs = world.get(&format!("/v1/jobs/{job}/runs"), key).await.json;
    text(&runs["runs"][0], "run_id").to_owned()
}

#[test]
fn the_index_names_the_guides() {
    let folder = repository().join("docs/how-to");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || INDEX.0.contains(&format!("({name})")), "{name}");
    }
}

#[tokio::test]
async fn a_webhook() {
    let world = World::new().await;
    let (_, mut guide) = begin(&world, WEBHOOK).await;
    guide.steps(4).await;
    // It fires at the quarter, and nobody listens there.
    world.clock.advance_ms(15 * 60_000);
    world.engine.tick().await.unwrap();
    let runs = guide.step().await;
    assert_eq!(runs.json["runs"][0]["count"], 1, "{}", runs.text);
    guide.end();
}

#[tokio::test]
async fn a_weekly_batch() {
    let world = World::new().await;
    let (key, mut guide) = begin(&world, WEEKLY_BATCH).await;
    guide.steps(3).await;
    // The world begins at a Saturday's noon; Berlin's 22:00 is nine hours away.
    world.clock.advance_ms(9 * 3_600_000);
    world.engine.tick().await.unwrap();
    assert_eq!(world.receive().await.len(), 1, "events are spread over the window");
    guide.set("RUN", run_of(&world, &key, "weekly").await);
    guide.steps(2).await;
    let cancelled = guide.step().await;
    assert_eq!((text(&cancelled.json, "state"), text(&cancelled.json, "reason")), ("stopped", "cancelled"));
    guide.end();
}

#[tokio::test]
async fn failures_are_found_and_sent_again() {
    let world = World::new().await;
    let (key, mut guide) = begin(&world, REPEAT).await;
    world.put("/v1/policies/crm", &key, &json!({"max_in_flight": 4})).await;
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["policy_id"] = json!("crm");
    job["payloads"] = json!([{"customer": 17}, {"customer": 18}, {"customer": 23}]);
    let made = world.put("/v1/jobs/sync", &key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let failed: Vec<Value> = world
        .receive()
        .await
        .iter()
        .map(|event| json!({"token": event["token"], "outcome": "failed", "error": "410"}))
        .collect();
    world.post("/v1/tokens/release", &key, &json!({"tokens": failed})).await;

    let counts = guide.step().await;
    assert_eq!(counts.json["by_status"], json!({"failed": 3}), "{}", counts.text);
    let letters = guide.step().await;
    assert_eq!(letters.json["dead_letters"].as_array().unwrap().len(), 3, "{}", letters.text);
    guide.set("EVENT", text(&letters.json["dead_letters"][2], "event_id"));
    let letter = guide.step().await;
    assert_eq!(letter.json["payload"], json!({"customer": 23}), "{}", letter.text);
    let redriven = guide.step().await;
    assert_eq!(redriven.json["results"][2]["status"], "redriven", "{}", redriven.text);
    guide.step().await;
    guide.end();
    world.clock.advance_ms(1_000);
    let again = world.receive().await;
    let payloads: Vec<&Value> = again.iter().map(|event| &event["payload"]["customer"]).collect();
    assert_eq!(payloads, [&json!(17), &json!(18), &json!(23)]);
    assert!(again.iter().all(|event| event["attempt"] == 2), "{again:?}");
}

#[tokio::test]
async fn a_mail_provider_is_kept_within_its_limit() {
    let world = World::new().await;
    let (key, mut guide) = begin(&world, MAIL).await;
    guide.steps(3).await;
    // The newsletter waits for Monday; another job of the policy is due now.
    let mut due = at_job("2026-11-21T12:00:00Z");
    due["policy_id"] = json!("mail");
    due["count"] = json!(300);
    world.put("/v1/jobs/due", &key, &due).await;
    let mails = world.receive().await;
    assert_eq!(mails.len(), 5);
    guide.set("TOKEN", text(&mails[0], "token"));
    let released = guide.step().await;
    assert_eq!(text(&released.json["results"][0], "status"), "released");
    let shown = guide.step().await;
    assert_eq!(text(&shown.json, "status"), "5 in flight, limit 5");

    let limit = guide.step().await.json;
    assert_eq!((&limit["max_in_flight"], &limit["rate"]["events"]), (&json!(6), &json!(10)));
    let rate = guide.step().await.json["rate"].clone();
    assert_eq!((&rate["events"], &rate["per"]), (&json!(20), &json!("second")));
    guide.step().await;
    guide.end();
    let policy = world.get("/v1/policies/mail", &key).await.json;
    assert_eq!((&policy["max_in_flight"], &policy["rate"]), (&json!(6), &Value::Null));
}

#[tokio::test]
async fn a_reminder_is_set_moved_and_cancelled() {
    let world = World::new().await;
    let (_, mut guide) = begin(&world, REMINDERS).await;
    let set = guide.step().await;
    assert_eq!(text(&set.json, "job_id"), "reminder:user@example.com");
    guide.step().await;
    guide.step().await;
    let upcoming = guide.step().await;
    assert_eq!(text(&upcoming.json["upcoming"][0], "launch_at"), "2027-01-16T08:00:00Z");
    assert_eq!(guide.step().await.status, StatusCode::NO_CONTENT);
    let bulk = guide.step().await;
    assert_eq!(bulk.json["results"][1]["status"], 201, "{}", bulk.text);
    guide.end();
}

#[tokio::test]
async fn an_incident_is_lived_through() {
    let world = World::new().await;
    let (key, mut guide) = begin(&world, INCIDENT).await;
    let rate = json!({"events": 100, "per": "second"});
    world.put("/v1/policies/shops", &key, &json!({"max_in_flight": 12, "rate": rate})).await;
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["policy_id"] = json!("shops");
    job["count"] = json!(300);
    let made = world.put("/v1/jobs/nightly", &key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let events = world.receive().await;
    let run = text(&events[0], "run_id").to_owned();

    guide.steps(2).await;
    let holders = guide.step().await;
    assert_eq!(holders.json["holders"].as_array().unwrap().len(), 12);
    guide.set("EVENT", format!("{run}.40"));
    let explained = guide.step().await;
    assert!(text(&explained.json, "because").starts_with("its policy is paused"), "{}", explained.text);
    let lowered = guide.step().await;
    assert_eq!((&lowered.json["max_in_flight"], &lowered.json["rate"]["events"]), (&json!(6), &json!(100)));
    guide.step().await;
    let draining = guide.step().await;
    assert_eq!(text(&draining.json, "status"), "12 in flight, limit 6, draining");
    guide.set("TOKEN", text(&holders.json["holders"][0], "token"));
    let freed = guide.step().await;
    assert_eq!(text(&freed.json["results"][0], "status"), "freed");
    guide.set("RUN", run);
    assert_eq!(guide.step().await.json["left_out"], 288);
    guide.step().await;
    guide.end();
}
