//! What is stored and cannot be read: lists show the rest and name it, and whoever asks for it is told why.

use http::StatusCode;
use serde_json::json;

use crate::world::{World, batch, cron_job};

impl World {
    /// Makes the row unreadable that has these keys: an attribute is not what any version writes.
    async fn spoil(&self, table: &str, key: (&str, &str), attribute: &str) {
        let (dynamodb, table) = (self.embedded.dynamodb(), format!("test-{table}"));
        let rows = dynamodb.scan().table_name(&table).send().await.unwrap().items.unwrap();
        let mut rows = rows.into_iter();
        let mut row = rows
            .find(|row| row["pk"].as_s().unwrap() == key.0 && row["sk"].as_s().unwrap() == key.1)
            .unwrap();
        row.insert(attribute.to_owned(), row["pk"].clone());
        dynamodb.put_item().table_name(&table).set_item(Some(row)).send().await.unwrap();
    }
}

#[tokio::test]
async fn a_list_shows_what_can_be_read_and_names_what_cannot() {
    let world = World::new().await;
    let (key, _) = (world.register("acme").await, world.register("beta").await);
    for name in ["a", "b"] {
        let put = async |path: String, body| {
            assert_eq!(world.put(&path, &key, &body).await.status, StatusCode::CREATED, "{path}");
        };
        put(format!("/v1/jobs/{name}"), cron_job()).await;
        put(format!("/v1/policies/{name}"), json!({"max_in_flight": 1})).await;
        put(format!("/v1/calendars/{name}"), json!({"dates": ["12-25"]})).await;
    }
    world.spoil("jobs", ("acme", "a"), "terms").await;
    world.spoil("policies", ("acme", "policy|a"), "shares").await;
    world.spoil("clients", ("calendar|acme", "a"), "excluded").await;
    world.spoil("clients", ("client", "acme"), "created_at").await;
    for (list, id, key, sound, spoiled) in [
        ("jobs", "job_id", &key, "b", "a"),
        ("policies", "policy_id", &key, "b", "a"),
        ("calendars", "calendar_id", &key, "b", "a"),
        ("clients", "client_id", &world.admin_key, "beta", "acme"),
    ] {
        let answer = world.get(&format!("/v1/{list}"), key).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let shown = answer.json[list].as_array().unwrap();
        assert!(shown.len() == 1 && shown[0][id] == sound, "{}", answer.text);
        let unreadable = answer.json["unreadable"].as_array().unwrap();
        assert!(unreadable.len() == 1 && unreadable[0]["id"] == spoiled, "{}", answer.text);
        assert!(unreadable[0]["reason"].as_str().unwrap().contains("cannot be read"), "{}", answer.text);
        if list != "clients" {
            let alone = world.get(&format!("/v1/{list}/{spoiled}"), key).await;
            assert_eq!(alone.status, StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(alone.json["type"], "urn:tidegate:problem:unreadable");
            assert_eq!(alone.json["detail"].as_str().unwrap().find("row '"), Some(0), "{}", alone.text);
        }
    }
    // Whether a job uses it that cannot be read, nobody knows.
    for list in ["policies", "calendars"] {
        assert_eq!(world.delete(&format!("/v1/{list}/b"), &key).await.status, StatusCode::CONFLICT);
    }
}

#[tokio::test]
async fn a_run_or_a_row_of_its_history_that_cannot_be_read_spoils_no_list() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut free = batch(3);
    free.as_object_mut().unwrap().remove("policy_id");
    world.put("/v1/jobs/batch", &key, &free).await;
    world.receive().await;
    let runs = world.get("/v1/jobs/batch/runs", &key).await;
    let run = runs.json["runs"][0]["run_id"].as_str().unwrap().to_owned();
    assert!(runs.json.get("unreadable").is_none(), "{}", runs.text);
    world.spoil("events", (&format!("acme|{run}"), "c0000000"), "upto").await;
    let events = world.get(&format!("/v1/jobs/batch/runs/{run}/events"), &key).await;
    assert_eq!(events.json["events"].as_array().unwrap().len(), 3, "{}", events.text);
    assert_eq!(events.json["unreadable"][0]["id"], "c0000000");
    let place = format!("{:012}|{:010}", run.split('.').nth(2).unwrap().parse::<u64>().unwrap(), 1);
    world.spoil("runs", ("acme|batch", &place), "terms").await;
    let runs = world.get("/v1/jobs/batch/runs", &key).await;
    assert_eq!(
        (runs.json["runs"].as_array().unwrap().len(), &runs.json["unreadable"][0]["id"]),
        (0, &json!(run))
    );
}

#[tokio::test]
async fn a_policy_says_what_was_set_aside_of_its_line_and_can_be_sent_back() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let mut later = batch(3);
    later["trigger"]["at"] = json!("2026-11-21T12:00:30Z");
    world.put("/v1/jobs/batch", &key, &later).await;
    let place = "5|001795262430|batch.1.1795262430";
    world.spoil("policies", ("acme|small|line", place), "n").await;
    world.clock.advance_ms(31_000);
    world.receive().await;
    let policy = world.get("/v1/policies/small", &key).await;
    assert_eq!(policy.json["set_aside"][0]["id"], place, "{}", policy.text);
    assert_eq!(world.put("/v1/policies/small", &key, &policy.json).await.status, StatusCode::OK);
    let runs = world.get("/v1/jobs/batch/runs", &key).await;
    assert_eq!(runs.json["runs"][0]["reason"], "not_emittable", "{}", runs.text);
}
