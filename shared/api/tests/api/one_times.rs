//! One-time jobs with generated ids, by the minutes of their instants, alone and after all others.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::Value;
use tidegate_client::Client;
use tidegate_domain::ids::JobId;
use tidegate_engine::{Repair, RepairOptions};
use tidegate_testkit::PREFIX;

use crate::world::{World, at_job};

async fn create(world: &World, key: &str, at: &str) -> String {
    let made = world.post("/v1/jobs", key, &at_job(at)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    made.json["job_id"].as_str().unwrap().to_owned()
}

/// Ids in the order of a list: those of a minute lie in one shard, where they are few.
fn in_order(ids: &[String]) -> Vec<String> {
    let mut ids = ids.to_vec();
    ids.sort();
    ids
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
async fn one_time_jobs_are_listed_by_their_minute_before_and_after_it() {
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
    // Of the next 24 hours, whatever the size of the pages.
    ids.push(later.clone());
    for query in ["limit=100", "limit=1", "limit=2"] {
        assert_eq!(listed(&world, &key, query).await, in_order(&ids), "{query}");
    }
    assert_eq!(listed(&world, &other, "limit=9").await.len(), 1, "a client sees its own");
    let cut = "since=2026-11-21T12:05:30Z&until=2026-11-21T12:40:00Z";
    assert_eq!(listed(&world, &key, cut).await, in_order(&ids[1..3]));
    ids.pop();
    // One that is deleted is gone; those that are over stay.
    assert_eq!(world.delete(&format!("/v1/jobs/{}", ids[1]), &key).await.status, StatusCode::NO_CONTENT);
    world.minutes(7).await;
    assert_eq!(world.receive().await.len(), 4);
    assert_eq!(listed(&world, &key, "until=2026-11-21T12:30:00Z").await, [""; 0]);
    let over = listed(&world, &key, "since=2026-11-21T12:00:00Z&until=2026-11-21T13:00:00Z&limit=2").await;
    assert_eq!(over, in_order(&[&ids[..1], &ids[2..]].concat()));
    assert_eq!(listed(&world, &key, "since=2026-11-21T13:00:00Z").await, [later]);
    let client = Client::new(world.serve().await, key).unwrap();
    let page = client.one_time_jobs("2026-11-21T12:40:00Z", "2026-11-21T12:41:00Z", None).await.unwrap();
    assert_eq!((page.rows[0].job_id.as_str(), page.next_cursor), (&*ids[3], None));
}

#[tokio::test]
async fn a_stretch_is_a_month_at_the_most_and_costs_what_lies_in_it() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for query in [
        "since=2026-11-21T12:00:00Z&until=2026-12-22T12:00:01Z",
        "since=2026-11-21T12:00:00Z&until=2026-11-21T12:00:00Z",
        "since=soon",
        "cursor=eA",
    ] {
        let refused = world.get(&format!("/v1/one-time-jobs?{query}"), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}: {}", refused.text);
    }
    let month = "/v1/one-time-jobs?since=2026-11-21T12:00:00Z&until=2026-12-22T12:00:00Z";
    let none = units(&world, month, &key).await;
    assert!(none <= 1.0, "{none} read units where there is none");
    create(&world, &key, "2026-12-01T12:00:00Z").await;
    let one = units(&world, month, &key).await;
    assert!(one <= none + 5.0, "{one} read units for one place of ten minutes");
}

#[tokio::test]
async fn what_ran_yesterday_and_what_runs_tomorrow_have_one_time_jobs_after_the_others() {
    let world = World::new().await;
    let (key, other) = (world.register("acme").await, world.register("acme-2").await);
    create(&world, &other, "2026-11-21T12:05:00Z").await;
    let (mut ids, mut named) = (vec!["zeta".to_owned()], at_job("2026-11-21T12:05:00Z"));
    // Its id comes after those that are generated.
    named["job_id"] = "zeta".into();
    named["tags"] = serde_json::json!(["night"]);
    world.post("/v1/jobs", &key, &named).await;
    for at in ["12:05:00", "12:05:30", "12:06:00"] {
        ids.push(create(&world, &key, &format!("2026-11-21T{at}Z")).await);
    }
    let half_past = ids[2..].to_vec();
    ids[1..].sort();
    let of_page = |page: &Value, name: &str| -> Vec<String> {
        let of = |one: &Value| one["job_id"].as_str().unwrap().to_owned();
        page[name].as_array().unwrap().iter().map(of).collect()
    };
    let all = async |path: &str, name: &str| {
        let (mut found, mut next) = (Vec::new(), String::new());
        for _ in 0..50 {
            let page = world.get(&format!("{path}{next}"), &key).await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.text);
            found.extend(of_page(&page.json, name));
            match page.json["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => return found,
            }
        }
        panic!("{path} does not end: {found:?}");
    };
    for limit in [1, 2, 3, 4, 100] {
        assert_eq!(all(&format!("/v1/upcoming?limit={limit}"), "jobs").await, ids, "{limit}");
    }
    assert_eq!(all("/v1/upcoming?limit=9&tag=night", "jobs").await, ids[..1]);
    assert_eq!(all("/v1/upcoming?limit=9&prefix=z", "jobs").await, ids[..1]);
    assert_eq!(all("/v1/upcoming?limit=9&prefix=at_", "jobs").await, ids[1..]);
    assert_eq!(all("/v1/upcoming?limit=9&since=2026-11-21T12:05:30Z", "jobs").await, in_order(&half_past));
    world.minutes(7).await;
    assert_eq!(world.receive().await.len(), 5);
    for limit in [1, 2, 3, 4, 100] {
        assert_eq!(all(&format!("/v1/runs?limit={limit}"), "runs").await, ids, "{limit}");
    }
    assert_eq!(all("/v1/runs?limit=9&tag=night", "runs").await, ids[..1]);
    let counted = world.get("/v1/runs/count", &key).await;
    assert_eq!(counted.json["total"], 4, "{}", counted.text);
    for query in ["cursor=fA", "cursor=fHNvb24"] {
        let refused = world.get(&format!("/v1/runs?{query}"), &key).await;
        let is_refused = refused.status == StatusCode::BAD_REQUEST;
        assert_eq!(is_refused, query.ends_with("24"), "{query}: {}", refused.text);
    }
}

#[tokio::test]
async fn many_jobs_of_one_client_are_spread_and_marked_before_they_are_stored() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let jobs: Vec<Value> = (0..300).map(|_| at_job("2026-11-22T12:00:00Z")).collect();
    let made = world.post("/v1/jobs/bulk", &key, &serde_json::json!({ "jobs": jobs })).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let stretch = "since=2026-11-22T12:00:00Z&until=2026-11-22T12:01:00Z&limit=100";
    let listed = listed(&world, &key, stretch).await;
    assert_eq!(listed.len(), 300);
    let shards: BTreeSet<u32> =
        listed.iter().map(|id| id.parse::<JobId>().unwrap().one_time_shard().unwrap().shard).collect();
    assert_eq!(shards.len(), 19, "16 jobs to a shard: {shards:?}");
    // What is marked costs no more than that: the next job lies where others do.
    let before = world.embedded.meter().snapshot();
    create(&world, &key, "2026-11-22T12:00:00Z").await;
    let units = world.embedded.meter().snapshot().since(&before).write_units();
    assert!(units <= 2.0, "{units} write units for a job more");
}

#[tokio::test]
async fn a_repair_marks_anew_where_one_time_jobs_lie() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let id = create(&world, &key, "2026-11-22T12:00:00Z").await;
    let query = "since=2026-11-22T12:00:00Z";
    let dynamodb = world.embedded.dynamodb();
    let table = format!("{PREFIX}-events");
    let marks = dynamodb.scan().table_name(&table).send().await.unwrap().items.unwrap();
    let [mark] = &marks[..] else { panic!("{marks:?}") };
    let place = ["pk", "sk"].map(|name| (name.to_owned(), mark[name].clone()));
    dynamodb.delete_item().table_name(&table).set_key(Some(place.into())).send().await.unwrap();
    assert_eq!(listed(&world, &key, query).await, [""; 0]);
    let repair = Repair::new(world.engine.store().clone(), world.clock.clone());
    for (apply, found) in [(false, vec![]), (true, vec![id])] {
        repair.run(RepairOptions { apply, while_running: true, ..RepairOptions::default() }).await.unwrap();
        assert_eq!(listed(&world, &key, query).await, found, "{apply}");
    }
}

async fn units(world: &World, path: &str, key: &str) -> f64 {
    let before = world.embedded.meter().snapshot();
    let page = world.get(path, key).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    world.embedded.meter().snapshot().since(&before).read_units()
}
