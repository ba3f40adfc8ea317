//! One-time jobs with generated ids, by their instant.

use http::StatusCode;
use serde_json::Value;
use tidegate_client::Client;

use crate::world::{World, at_job};

async fn create(world: &World, key: &str, at: &str) -> String {
    let made = world.post("/v1/jobs", key, &at_job(at)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    made.json["job_id"].as_str().unwrap().to_owned()
}

/// The ids of all pages of a list.
async fn listed(world: &World, key: &str, query: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), String::new());
    for _ in 0..50 {
        let page = world.get(&format!("/v1/one-time-jobs?{query}{next}"), key).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let of = |job: &Value| job["job_id"].as_str().unwrap().to_owned();
        found.extend(page.json["jobs"].as_array().unwrap().iter().map(of));
        match page.json["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return found,
        }
    }
    panic!("{query} does not end: {found:?}");
}

#[tokio::test]
async fn one_time_jobs_are_listed_by_their_instant_before_and_after_it() {
    let world = World::new().await;
    let (key, other) = (world.register("acme").await, world.register("acme-2").await);
    create(&world, &other, "2026-11-21T12:05:00Z").await;
    let mut named = at_job("2026-11-21T12:05:00Z");
    named["job_id"] = "named".into();
    world.post("/v1/jobs", &key, &named).await;
    let mut ids = Vec::new();
    for at in ["12:05:00", "12:05:30", "12:05:31", "12:40:00", "12:59:59"] {
        ids.push(create(&world, &key, &format!("2026-11-21T{at}Z")).await);
    }
    let later = create(&world, &key, "2026-11-21T13:00:00Z").await;
    // Of the next hour, whatever the size of the pages.
    for query in ["limit=100", "limit=1", "limit=2"] {
        assert_eq!(listed(&world, &key, query).await, ids, "{query}");
    }
    assert_eq!(listed(&world, &other, "limit=9").await.len(), 1, "a client sees its own");
    let cut = "since=2026-11-21T12:05:30Z&until=2026-11-21T12:40:00Z";
    assert_eq!(listed(&world, &key, cut).await, ids[1..3]);
    // One that is deleted is gone; those that are over stay.
    assert_eq!(world.delete(&format!("/v1/jobs/{}", ids[1]), &key).await.status, StatusCode::NO_CONTENT);
    world.minutes(7).await;
    assert_eq!(world.receive().await.len(), 4);
    assert_eq!(listed(&world, &key, "until=2026-11-21T12:30:00Z").await, [""; 0]);
    let over = listed(&world, &key, "since=2026-11-21T12:00:00Z&limit=2").await;
    assert_eq!(over, [&ids[..1], &ids[2..]].concat());
    assert_eq!(listed(&world, &key, "since=2026-11-21T13:00:00Z").await, [later]);
    let client = Client::new(world.serve().await, key).unwrap();
    let page = client.one_time_jobs("2026-11-21T12:40:00Z", "2026-11-21T12:41:00Z", None).await.unwrap();
    assert_eq!((page.rows[0].job_id.as_str(), page.next_cursor), (&*ids[3], None));
}

#[tokio::test]
async fn a_stretch_is_an_hour_at_the_most_and_a_page_reads_ten_minutes() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for query in [
        "since=2026-11-21T12:00:00Z&until=2026-11-21T13:00:01Z",
        "since=2026-11-21T12:00:00Z&until=2026-11-21T12:00:00Z",
        "since=soon",
        "cursor=eA",
    ] {
        let refused = world.get(&format!("/v1/one-time-jobs?{query}"), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}: {}", refused.text);
    }
    let before = world.embedded.meter().snapshot();
    let page = world.get("/v1/one-time-jobs", &key).await;
    let units = world.embedded.meter().snapshot().since(&before).read_units();
    assert!(page.json["next_cursor"].is_string(), "{}", page.text);
    assert!(units <= 321.0, "{units} read units of ten minutes in 64 partitions");
}
