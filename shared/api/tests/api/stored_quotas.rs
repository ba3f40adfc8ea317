//! Quotas on what a client has stored: they hold however many calls come at once, and what is gone is free again.

use std::sync::Arc;

use chrono_tz::TZ_VARIANTS;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Client, QuotaName};
use tidegate_domain::ids::ClientId;
use tidegate_domain::quota::{Ask, Counted};
use tidegate_engine::JobDraft;

use crate::quotas::limit;
use crate::world::{Answer, World, at_job, cron_job};

const SOON: &str = "2026-11-22T12:00:00Z";
const TOO_MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;

async fn limited(quotas: Value) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    let changed = limit(&world, quotas.clone()).await;
    assert_eq!(changed.json["quotas"], quotas, "{}", changed.text);
    (world, key)
}

fn acme() -> ClientId {
    "acme".parse().unwrap()
}

/// Rows that the client has of something, by the tables.
async fn stored(world: &World, of: Counted) -> u64 {
    let (mut number, mut after) = (0, None);
    loop {
        let rows = world.engine.store().count_rows(&acme(), of, after).await.unwrap();
        (number, after) = (number + rows.number, rows.next);
        if after.is_none() {
            return number;
        }
    }
}

/// How many jobs, or other things, a call has created.
fn created(answer: &Answer) -> usize {
    match answer.json["results"].as_array() {
        Some(results) => results.iter().filter(|result| result["status"] == 201).count(),
        None => usize::from(answer.status == StatusCode::CREATED),
    }
}

fn assert_over(answer: &Answer, says: &str) -> u32 {
    assert_eq!(answer.status, TOO_MANY, "{}", answer.text);
    assert_eq!(answer.json["type"], "urn:tidegate:problem:over-quota");
    assert!(answer.text.contains(says), "{}", answer.text);
    answer.header("retry-after").parse().unwrap()
}

/// How many are created by 64 writers at once, each of which makes some calls.
async fn sixty_four<C, F>(world: World, calls: usize, call: C) -> (Arc<World>, usize)
where
    C: Fn(Arc<World>, usize, usize) -> F + Send + Sync + Copy + 'static,
    F: Future<Output = Answer> + Send,
{
    let world = Arc::new(world);
    let writers = (0..64).map(|writer| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let mut sum = 0;
            for number in 0..calls {
                let answer = call(Arc::clone(&world), writer, number).await;
                assert!(answer.status.is_success() || answer.status == TOO_MANY, "{}", answer.text);
                sum += created(&answer);
            }
            sum
        })
    });
    let mut sum = 0;
    for writer in writers.collect::<Vec<_>>() {
        sum += writer.await.unwrap();
    }
    (world, sum)
}

/// The key of the client, from where tasks find it.
async fn with_key(quotas: Value) -> (World, &'static str) {
    let (world, key) = limited(quotas).await;
    (world, key.leak())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_writers_get_exactly_as_many_jobs() {
    let (world, key) = with_key(json!({"jobs": 70, "creates_per_minute": 100_000})).await;
    let (world, sum) = sixty_four(world, 4, move |world, writer, number| async move {
        match (writer + number) % 3 {
            0 => world.put(&format!("/v1/jobs/job-{writer}-{number}"), key, &cron_job()).await,
            1 => world.post("/v1/jobs", key, &cron_job()).await,
            _ => world.post("/v1/jobs/bulk", key, &json!({"jobs": vec![cron_job(); 3]})).await,
        }
    })
    .await;
    assert_eq!((sum, stored(&world, Counted::Jobs).await), (70, 70));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_writers_get_exactly_as_many_one_time_jobs_as_may_wait() {
    let (world, key) = with_key(json!({"one_time_jobs": 70})).await;
    let (_, sum) = sixty_four(world, 4, move |world, writer, number| async move {
        match (writer + number) % 3 {
            0 => world.put(&format!("/v1/jobs/job-{writer}-{number}"), key, &at_job(SOON)).await,
            1 => world.post("/v1/jobs", key, &at_job("2026-11-21T12:40:00Z")).await,
            _ => world.post("/v1/jobs/bulk", key, &json!({"jobs": vec![at_job(SOON); 3]})).await,
        }
    })
    .await;
    assert_eq!(sum, 70);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_writers_get_exactly_as_many_policies_calendars_and_zones() {
    let (world, key) = with_key(json!({"policies": 20, "calendars": 30, "zones": 10})).await;
    let (world, policies) = sixty_four(world, 1, move |world, writer, _| async move {
        let policy = json!({"max_in_flight": 2});
        match writer % 2 {
            0 => world.put(&format!("/v1/policies/p-{writer}"), key, &policy).await,
            _ => {
                let named = json!({"policy_id": format!("p-{writer}"), "max_in_flight": 2});
                world.post("/v1/policies", key, &named).await
            }
        }
    })
    .await;
    assert_eq!((policies, stored(&world, Counted::Policies).await), (20, 20));
    let world = Arc::into_inner(world).unwrap();
    let (world, calendars) = sixty_four(world, 1, move |world, writer, _| async move {
        world.put(&format!("/v1/calendars/c-{writer}"), key, &json!({"dates": ["2026-12-25"]})).await
    })
    .await;
    assert_eq!((calendars, stored(&world, Counted::Calendars).await), (30, 30));
    let world = Arc::into_inner(world).unwrap();
    let (world, jobs) = sixty_four(world, 1, move |world, writer, _| async move {
        let mut job = cron_job();
        job["trigger"]["zone"] = json!(TZ_VARIANTS[writer].name());
        world.put(&format!("/v1/jobs/j-{writer}"), key, &job).await
    })
    .await;
    let zones = world.engine.store().count_rows(&acme(), Counted::Zones, None).await.unwrap().zones;
    assert_eq!((jobs, zones.len()), (10, 10));
}

/// Nobody has counted when they come: the client had its quotas from the beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_writers_begin_with_the_quota_of_a_new_client() {
    let world = World::new().await;
    let client = json!({"client_id": "acme", "quotas": {"jobs": 40, "policies": 0, "zones": 1}});
    let registered = world.post("/v1/clients", &world.admin_key, &client).await;
    let key: &'static str = registered.json["api_key"].as_str().unwrap().to_owned().leak();
    let (world, sum) = sixty_four(world, 1, move |world, writer, _| async move {
        world.put(&format!("/v1/jobs/j-{writer}"), key, &cron_job()).await
    })
    .await;
    assert_eq!((sum, stored(&world, Counted::Jobs).await), (40, 40));
    let refused = world.put("/v1/policies/p", key, &json!({"max_in_flight": 1})).await;
    assert_over(&refused, "has up to 0 policies, and quotas.policies is 0; delete some");
}

/// Seconds pass with each call, so that it is counted again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_never_more_than_the_quota_while_jobs_come_and_go() {
    let (world, key) = with_key(json!({"jobs": 20, "zones": 3})).await;
    let world = Arc::new(world);
    let zones = ["Europe/Berlin", "Asia/Tokyo", "UTC", "America/New_York", "Africa/Cairo"];
    let writers = (0..64).map(|writer| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let mut sum = 0;
            for number in 0..10 {
                let path = format!("/v1/jobs/job-{}", (writer + number) % 40);
                let mut job = cron_job();
                job["trigger"]["zone"] = json!(zones[(writer + number) % 5]);
                sum += created(&world.put(&path, key, &job).await);
                if number % 2 == 1 {
                    world.delete(&path, key).await;
                }
                world.clock.advance_ms(400);
            }
            sum
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut most = 0;
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let jobs = stored(&world, Counted::Jobs).await;
        let zones = world.engine.store().count_rows(&acme(), Counted::Zones, None).await.unwrap().zones;
        assert!(jobs <= 20 && zones.len() <= 3, "{jobs} jobs in {zones:?}");
        most = most.max(jobs);
        tokio::task::yield_now().await;
    }
    let mut sum = 0;
    for writer in writers {
        sum += writer.await.unwrap();
    }
    // How many the looks in between saw, they do not choose.
    assert!(most > 0 && sum > 20, "{sum} were created, {most} at once");
}

/// As by calls that died between the two.
#[tokio::test]
async fn what_was_taken_and_never_written_is_free_again() {
    let (world, key) = limited(json!({"jobs": 3})).await;
    let client = world.engine.store().client(&acme()).await.unwrap().unwrap();
    let ask = Ask { adds: Some(Counted::Jobs), ..Ask::default() };
    let (refused, _) = world
        .engine
        .store()
        .take_of_quotas(&client.id, &client.quotas, &[&ask, &ask, &ask], world.engine.clock().now())
        .await
        .unwrap();
    assert_eq!(refused, [None; 3]);
    let put = async || world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    let again_in = assert_over(&put().await, "has up to 3 jobs, and quotas.jobs is 3; delete some and");
    assert_eq!(again_in, 10);
    // What was taken a minute ago may still be written.
    world.clock.advance_ms(60_000);
    assert_over(&put().await, "has up to 3 jobs");
    world.clock.advance_ms(60_000);
    assert_eq!(put().await.status, StatusCode::CREATED);
    assert_eq!(world.get("/v1/usage", &key).await.json["quotas"][0]["used"], 1);
}

#[tokio::test]
async fn a_quota_is_raised_lowered_taken_away_and_set_again_over_what_is_there() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let put = async |name: &str| world.put(&format!("/v1/jobs/{name}"), &key, &cron_job()).await.status;
    let (done, over) = (StatusCode::CREATED, TOO_MANY);
    assert_eq!((put("a").await, put("b").await), (done, done));
    limit(&world, json!({"jobs": 3})).await;
    assert_eq!((put("c").await, put("d").await), (done, over));
    limit(&world, json!({"jobs": 4})).await;
    assert_eq!((put("d").await, put("e").await), (done, over));
    // Nothing is removed, and what is there may be changed.
    limit(&world, json!({"jobs": 1})).await;
    assert_eq!((put("a").await, put("e").await), (StatusCode::OK, over));
    assert_eq!(stored(&world, Counted::Jobs).await, 4);
    limit(&world, json!({})).await;
    assert_eq!((put("e").await, put("f").await), (done, done));
    // What was taken up to then may still be written.
    world.clock.advance_ms(120_000);
    limit(&world, json!({"jobs": 7})).await;
    assert_eq!((put("g").await, put("h").await), (done, over));
    // Tombstones are no jobs.
    for name in ["a", "b", "c", "d", "e"] {
        world.delete(&format!("/v1/jobs/{name}"), &key).await;
    }
    world.clock.advance_ms(120_000);
    assert_eq!((put("h").await, put("a").await), (done, done));
    assert_eq!(stored(&world, Counted::Jobs).await, 4);
    for (field, value) in [("jobs", json!(10_000_001)), ("zones", json!(601)), ("tokens", json!(0))] {
        let refused = limit(&world, json!({field: value})).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], format!("quotas.{field}"));
    }
}

/// Calls that were under way when the quota was set took nothing: it is counted once more when they are over.
#[tokio::test]
async fn what_was_written_by_calls_that_knew_of_no_quota_is_counted_too() {
    let (world, key) = limited(json!({"jobs": 5})).await;
    let put = async |name: &str| world.put(&format!("/v1/jobs/{name}"), &key, &cron_job()).await.status;
    assert_eq!(put("a").await, StatusCode::CREATED);
    let job = world.engine.jobs().get(&acme(), &"a".parse().unwrap()).await.unwrap().unwrap();
    let draft = JobDraft::new(job.trigger, job.terms);
    for number in 0..4 {
        let id = format!("late-{number}").parse().unwrap();
        world.engine.jobs().replace(&acme(), id, draft.clone(), None).await.unwrap();
    }
    world.clock.advance_ms(120_000);
    // Taken by what was known, and counted then.
    assert_eq!((put("b").await, put("c").await), (StatusCode::CREATED, TOO_MANY));
}

#[tokio::test]
async fn what_is_there_already_takes_nothing() {
    let (world, key) = limited(json!({"jobs": 2, "policies": 1, "calendars": 1})).await;
    let named = |name: &str| {
        let mut job = cron_job();
        job["job_id"] = json!(name);
        job
    };
    for name in ["a", "b"] {
        assert_eq!(world.post("/v1/jobs", &key, &named(name)).await.status, StatusCode::CREATED);
    }
    assert_eq!(world.post("/v1/jobs", &key, &named("c")).await.status, TOO_MANY);
    assert_eq!(world.post("/v1/jobs", &key, &named("a")).await.status, StatusCode::OK);
    let mut other = named("a");
    other["trigger"]["cron"] = json!("1 1 * * *");
    assert_eq!(world.post("/v1/jobs", &key, &other).await.status, StatusCode::CONFLICT);
    assert_eq!(world.put("/v1/jobs/a", &key, &other).await.status, StatusCode::OK);
    let bulk = world
        .post("/v1/jobs/bulk", &key, &json!({"jobs": [named("c"), other, named("b"), named("d")]}))
        .await;
    let results: Vec<&Value> =
        bulk.json["results"].as_array().unwrap().iter().map(|r| &r["status"]).collect();
    assert_eq!(results, [429, 200, 200, 429], "{}", bulk.text);
    let policy = |tokens: u32| json!({"policy_id": "p", "max_in_flight": tokens});
    let (put, post) = (
        async |path: &str, body: &Value| world.put(path, &key, body).await.status,
        async |path: &str, body: &Value| world.post(path, &key, body).await.status,
    );
    assert_eq!(put("/v1/policies/p", &policy(1)).await, StatusCode::CREATED);
    assert_eq!(put("/v1/policies/p", &policy(2)).await, StatusCode::OK);
    assert_eq!(post("/v1/policies", &policy(2)).await, StatusCode::OK);
    assert_eq!(post("/v1/policies", &policy(3)).await, StatusCode::CONFLICT);
    assert_eq!(put("/v1/policies/q", &json!({"max_in_flight": 1})).await, TOO_MANY);
    let days = json!({"dates": ["2026-12-25"]});
    assert_eq!(put("/v1/calendars/c", &days).await, StatusCode::CREATED);
    assert_eq!(put("/v1/calendars/c", &json!({"dates": ["2026-12-26"]})).await, StatusCode::OK);
    assert_eq!(put("/v1/calendars/d", &days).await, TOO_MANY);
}

#[tokio::test]
async fn a_one_time_job_is_given_back_by_its_launch_and_not_by_its_end() {
    let (world, key) = limited(json!({"one_time_jobs": 2})).await;
    let post = async |at: &str| world.post("/v1/jobs", &key, &at_job(at)).await;
    let first = post("2026-11-21T12:02:30Z").await;
    assert_eq!(first.status, StatusCode::CREATED);
    let later = at_job("2026-11-21T13:00:00Z");
    assert_eq!(world.put("/v1/jobs/later", &key, &later).await.status, StatusCode::CREATED);
    // The same again takes nothing, and earlier neither; later takes once more.
    assert_eq!(world.put("/v1/jobs/later", &key, &later).await.status, StatusCode::OK);
    let says =
        "may have 2 one-time jobs wait (quotas.one_time_jobs), and 2 do; send this again in 170 seconds";
    assert_eq!(assert_over(&post(SOON).await, says), 170);
    let moved = world.put("/v1/jobs/later", &key, &at_job("2026-11-21T12:50:00Z")).await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.text);
    assert_over(&world.put("/v1/jobs/later", &key, &at_job(SOON)).await, "one_time_jobs");
    let path = format!("/v1/jobs/{}", first.json["job_id"].as_str().unwrap());
    assert_eq!(world.delete(&path, &key).await.status, StatusCode::NO_CONTENT);
    assert_over(&post(SOON).await, "and 2 do");
    world.clock.advance_ms(170_000);
    assert_eq!(post(SOON).await.status, StatusCode::CREATED);
    assert_over(&post(SOON).await, "and 2 do");
    // Recurring jobs, and those with more instants, are no one-time jobs.
    assert_eq!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status, StatusCode::CREATED);
    // A quarter of an hour after its first launch the other one is given back.
    world.clock.advance_ms(72 * 60_000);
    assert_eq!(post(SOON).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn zones_that_no_job_has_any_more_are_free_again() {
    let (world, key) = limited(json!({"zones": 2})).await;
    let put = async |name: &str, zone: &str| {
        let mut job = cron_job();
        job["trigger"]["zone"] = json!(zone);
        world.put(&format!("/v1/jobs/{name}"), &key, &job).await
    };
    let patch = async |zone: &str| {
        let (headers, body) =
            ([("content-type", "application/json")], json!({"trigger": {"zone": zone}}).to_string());
        world.send(Method::PATCH, "/v1/jobs/a", Some(&key), &headers, &body).await
    };
    for (name, zone) in [("a", "Europe/Berlin"), ("b", "Asia/Tokyo"), ("c", "Asia/Tokyo")] {
        assert_eq!(put(name, zone).await.status, StatusCode::CREATED);
    }
    let says = "may have 2 zones (quotas.zones), and have 2; use one of those";
    assert_over(&put("d", "UTC").await, says);
    assert_over(&patch("UTC").await, says);
    assert_eq!(patch("Asia/Tokyo").await.status, StatusCode::OK);
    world.clock.advance_ms(120_000);
    assert_eq!(patch("UTC").await.status, StatusCode::OK);
    assert_over(&put("d", "Europe/Berlin").await, says);
    assert_eq!(put("d", "Asia/Tokyo").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn launches_and_policies_that_are_too_large_are_refused_in_their_field() {
    let (world, key) = limited(json!({"events_per_launch": 2, "tokens": 3})).await;
    let before = world.everything().await;
    let mut job = cron_job();
    job["count"] = json!(3);
    let refused = world.put("/v1/jobs/a", &key, &job).await;
    assert_eq!(refused.json["errors"][0]["field"], "count", "{}", refused.text);
    assert!(
        refused.text.contains("a launch has 3 events; client 'acme' may have 2 (quotas.events_per_launch)")
    );
    let mut job = at_job(SOON);
    job.as_object_mut().unwrap().retain(|field, _| !["payload", "count"].contains(&field.as_str()));
    job["payloads"] = json!([1, 2, 3]);
    let refused = world.post("/v1/jobs", &key, &job).await;
    assert_eq!(refused.json["errors"][0]["field"], "payloads", "{}", refused.text);
    for refused in [
        world.put("/v1/policies/p", &key, &json!({"max_in_flight": 4})).await,
        world.post("/v1/policies", &key, &json!({"policy_id": "p", "max_in_flight": 4})).await,
    ] {
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "max_in_flight");
        assert!(
            refused.text.contains("a policy of client 'acme' may have 3 (quotas.tokens)"),
            "{}",
            refused.text
        );
    }
    assert_eq!(world.everything().await, before);
    let put = world.put("/v1/policies/p", &key, &json!({"max_in_flight": 3})).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text);
    let headers = [("content-type", "application/json")];
    let patched =
        world.send(Method::PATCH, "/v1/policies/p", Some(&key), &headers, r#"{"max_in_flight": 4}"#).await;
    assert_eq!(patched.json["errors"][0]["field"], "max_in_flight", "{}", patched.text);
}

/// By the library as well.
#[tokio::test]
async fn a_client_and_its_admin_see_what_is_used() {
    let quotas =
        json!({"creates_per_minute": 10, "payload_bytes": 100, "jobs": 5, "one_time_jobs": 4, "zones": 3});
    let (world, key) = limited(quotas).await;
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    world.post("/v1/jobs", &key, &at_job(SOON)).await;
    let before = world.embedded.meter().snapshot();
    let own = world.get("/v1/usage", &key).await;
    let units = world.embedded.meter().snapshot().since(&before).read_units();
    // Its row, and what was emitted for it.
    assert!(units <= 1.0, "{units} read units");
    let used = |name: &str, most: u32, used: u64, counted_at: Value| json!({"quota": name, "most": most, "used": used, "counted_at": counted_at});
    let at = json!("2026-11-21T12:00:00Z");
    let expected = json!({"client_id": "acme", "quotas": [
        used("creates_per_minute", 10, 2, Value::Null),
        used("jobs", 5, 1, at.clone()),
        used("one_time_jobs", 4, 1, Value::Null),
        used("zones", 3, 1, at),
    ], "days": []});
    assert_eq!(own.json, expected, "{}", own.text);
    assert_eq!(world.get("/v1/clients/acme/usage", &world.admin_key).await.json, expected);
    assert_eq!(world.get("/v1/clients/acme/usage", &key).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.get("/v1/clients/nobody/usage", &world.admin_key).await.status, StatusCode::NOT_FOUND);
    world.clock.advance_ms(60_000);
    let url = world.serve().await;
    let usage = Client::new(&url, &key).unwrap().own_usage().await.unwrap();
    assert_eq!((usage.quotas[0].quota, usage.quotas[0].used), (QuotaName::CreatesPerMinute, Some(0)));
    let by_admin = Client::new(&url, &world.admin_key).unwrap().usage_of("acme").await.unwrap();
    assert_eq!(by_admin, usage);
    let other = world.register("other").await;
    assert_eq!(
        world.get("/v1/usage", &other).await.json,
        json!({"client_id": "other", "quotas": [], "days": []})
    );
}

#[tokio::test]
async fn all_quotas_together_cost_a_write_unit_a_call_and_a_read_where_there_is_a_name() {
    let costs = async |quotas: Value| {
        let world = World::new().await;
        let key = world.register("acme").await;
        limit(&world, quotas).await;
        let mut costs = Vec::new();
        for number in 0..6 {
            let before = world.embedded.meter().snapshot();
            let named = |name: &str| {
                let mut job = cron_job();
                job["job_id"] = json!(format!("{name}-{number}"));
                job
            };
            let answer = match number {
                0 => world.put("/v1/jobs/nightly", &key, &cron_job()).await,
                1 => world.put("/v1/jobs/once", &key, &at_job(SOON)).await,
                2 => world.put("/v1/jobs/nightly", &key, &cron_job()).await,
                3 => world.post("/v1/jobs", &key, &cron_job()).await,
                4 => world.post("/v1/jobs", &key, &at_job(SOON)).await,
                _ => {
                    let jobs = json!({"jobs": [named("a"), named("b"), at_job(SOON), at_job(SOON)]});
                    world.post("/v1/jobs/bulk", &key, &jobs).await
                }
            };
            assert!(answer.status.is_success(), "{}", answer.text);
            let spent = world.embedded.meter().snapshot().since(&before);
            let written: f64 = spent.capacity.values().map(|units| units.write).sum();
            costs.push((written, spent.read_units()));
        }
        costs
    };
    let without = costs(json!({})).await;
    let with = costs(json!({"creates_per_minute": 1000, "jobs": 1000, "one_time_jobs": 1000})).await;
    let more: Vec<(f64, f64)> =
        with.iter().zip(&without).map(|(with, without)| (with.0 - without.0, with.1 - without.1)).collect();
    // The jobs of a bulk call that have a name are looked for by it, a unit each.
    assert_eq!(more, [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 0.0), (1.0, 0.0), (1.0, 2.0)]);
}
