//! What is recorded of changes: what was done, by whom and from where, and what was there before.

use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{ChangesWanted, Client};

use crate::hook::Hook;
use crate::world::{QUEUE, World, at_job, cron_job};

const SOON: &str = "2026-11-22T12:00:00Z";
const JOBS: &str = "/v1/changes?kind=job";

async fn started() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    (world, key)
}

/// Some members of each change of a list.
async fn told(world: &World, key: &str, path: &str, members: &[&str]) -> Vec<Value> {
    let page = world.get(path, key).await;
    assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
    assert!(page.json["unreadable"].is_null(), "{}", page.text);
    let changes = page.json["changes"].as_array().unwrap();
    changes.iter().map(|change| members.iter().map(|name| change[name].clone()).collect()).collect()
}

async fn key_id(world: &World, key: &str) -> String {
    let keys = world.get("/v1/keys", key).await;
    keys.json["keys"][0]["key_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_change_of_a_job_is_told_with_what_was_done_and_by_whom() {
    let (world, key) = started().await;
    let id = key_id(&world, &key).await;
    let done = |answer: crate::world::Answer| assert!(answer.status.is_success(), "{}", answer.text);
    let json = [("content-type", "application/json")];
    let in_place = [("content-type", "application/json"), ("tidegate-client", "acme")];
    done(world.put("/v1/jobs/nightly", &key, &cron_job()).await);
    world.clock.advance_ms(1_000);
    let patch = json!({"count": 3, "tags": ["books"]}).to_string();
    done(world.send(Method::PATCH, "/v1/jobs/nightly", Some(&world.admin_key), &in_place, &patch).await);
    done(world.post("/v1/jobs/nightly/pause", &key, &json!({})).await);
    done(world.send(Method::POST, "/v1/jobs/nightly/resume", Some(&key), &json, "").await);
    done(world.post("/v1/jobs/nightly/skip", &key, &json!({})).await);
    let other = json!({"trigger": {"rate": "1 hour"}});
    done(world.post("/v1/jobs/nightly/reschedule", &key, &other).await);
    done(world.post("/v1/jobs/nightly/rollback", &key, &json!({"revision": 1})).await);
    done(world.delete("/v1/jobs/nightly", &key).await);
    let changes =
        told(&world, &key, JOBS, &["what", "by", "before_revision", "after_revision", "fields"]).await;
    assert_eq!(
        changes,
        [
            json!(["deleted", id, 7, 8, []]),
            json!(["rolled_back", id, 6, 7, ["trigger", "count", "skip", "tags"]]),
            json!(["rescheduled", id, 5, 6, ["trigger"]]),
            json!(["launch_skipped", id, 4, 5, ["skip"]]),
            json!(["resumed", id, 3, 4, ["paused"]]),
            json!(["paused", id, 2, 3, ["paused"]]),
            json!(["changed", "admin", 1, 2, ["count", "tags"]]),
            json!(["created", id, null, 1, []]),
        ]
    );
    let places = told(&world, &key, "/v1/changes?limit=1", &["at", "kind", "id", "from"]).await;
    assert_eq!(places, [json!(["2026-11-21T12:00:01Z", "job", "nightly", null])]);
}

#[tokio::test]
async fn what_changes_nothing_and_what_is_refused_leaves_no_record() {
    let (world, key) = started().await;
    assert_eq!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status, StatusCode::CREATED);
    let before = world.everything().await;
    assert_eq!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status, StatusCode::OK);
    let resumed = world.send(Method::POST, "/v1/jobs/nightly/resume", Some(&key), &[], "").await;
    assert_eq!(resumed.status, StatusCode::OK, "{}", resumed.text);
    let late = [("if-match", "\"7\""), ("content-type", "application/json")];
    for (method, path, body) in [
        (Method::PUT, "/v1/jobs/nightly", at_job(SOON)),
        (Method::DELETE, "/v1/jobs/nightly", Value::Null),
        (Method::POST, "/v1/jobs/nightly/pause", json!({"because": "books"})),
        (Method::POST, "/v1/jobs/nightly/rollback", json!({"revision": 1})),
        (Method::POST, "/v1/jobs/nightly/reschedule", json!({"trigger": {"rate": "1 hour"}})),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let refused = world.send(method.clone(), path, Some(&key), &late, &body).await;
        assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED, "{method} {path}: {}", refused.text);
    }
    let changed = |rows: Vec<String>| rows.into_iter().filter(|row| row.contains("|changes")).count();
    // Of the client, and of the job.
    assert_eq!((changed(before), changed(world.everything().await)), (2, 2));
}

/// They are made by the thousand: each is itself what is recorded of that.
#[tokio::test]
async fn one_time_jobs_that_are_created_cost_no_record_and_what_is_done_to_them_is_told() {
    let (world, key) = started().await;
    let units = || world.embedded.meter().snapshot().capacity.values().map(|units| units.write).sum::<f64>();
    let mut costs = Vec::new();
    let mut made = Vec::new();
    for at in [SOON, "2026-11-21T12:00:10Z"] {
        let before = units();
        let posted = world.post("/v1/jobs", &key, &at_job(at)).await;
        assert_eq!(posted.status, StatusCode::CREATED, "{}", posted.text);
        costs.push(units() - before);
        made.push(posted.json["job_id"].as_str().unwrap().to_owned());
    }
    let before = units();
    assert_eq!(world.put("/v1/jobs/named", &key, &at_job(SOON)).await.status, StatusCode::CREATED);
    costs.push(units() - before);
    // The first of their ten minutes leave a mark by which lists find them.
    assert_eq!(costs, [2.0, 2.0, 2.0]);
    assert_eq!(told(&world, &key, JOBS, &["what"]).await, Vec::<Value>::new());
    let path = format!("/v1/jobs/{}", made[0]);
    let because = json!({"because": "it is not sure yet"});
    let paused = world.post(&format!("{path}/pause"), &key, &because).await;
    assert_eq!(paused.json["paused_because"], "it is not sure yet", "{}", paused.text);
    assert_eq!(world.get(&path, &key).await.json["paused_because"], "it is not sure yet");
    let versions = world.get(&format!("{path}/versions"), &key).await.json;
    let told_of = |version: &Value| json!([version["revision"], version["what"], version["job"]["paused"]]);
    let versions: Vec<Value> = versions["versions"].as_array().unwrap().iter().map(told_of).collect();
    assert_eq!(versions, [json!([2, "paused", true]), json!([1, null, false])]);
    assert_eq!(world.delete(&path, &key).await.status, StatusCode::NO_CONTENT);
    let changes = told(&world, &key, JOBS, &["what", "id", "after_revision"]).await;
    assert_eq!(changes, [json!(["deleted", made[0], 3]), json!(["paused", made[0], 2])]);
}

#[tokio::test]
async fn the_address_is_that_of_the_connection_and_not_what_a_client_says_of_itself() {
    let (world, key) = started().await;
    let mut request = Request::builder()
        .method(Method::PUT)
        .uri("/v1/jobs/nightly")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("x-forwarded-for", "198.51.100.1")
        .header("forwarded", "for=198.51.100.1")
        .body(Body::from(cron_job().to_string()))
        .unwrap();
    tidegate_api::came_from(&mut request, "::ffff:203.0.113.7".parse().unwrap());
    assert_eq!(world.request(request).await.status, StatusCode::CREATED);
    assert_eq!(told(&world, &key, JOBS, &["from"]).await, [json!(["203.0.113.7"])]);
}

#[tokio::test]
async fn changes_are_asked_for_by_time_kind_and_name_in_pages_of_any_size() {
    let (world, key) = started().await;
    for second in 0..6 {
        let path = format!("/v1/jobs/job-{}", second % 2);
        let mut job = cron_job();
        job["count"] = json!(second + 1);
        assert!(world.put(&path, &key, &job).await.status.is_success());
        let policy = json!({"max_in_flight": second + 1});
        assert!(world.put("/v1/policies/small", &key, &policy).await.status.is_success());
        world.clock.advance_ms(1_000);
    }
    let members = ["kind", "id", "after_revision"];
    let all = told(&world, &key, "/v1/changes", &members).await;
    assert_eq!(all.len(), 13, "with the registration of the client");
    let of_one = told(&world, &key, "/v1/changes?kind=job&id=job-1", &members).await;
    assert_eq!(of_one, [3, 2, 1].map(|revision| json!(["job", "job-1", revision])));
    let of_kind = told(&world, &key, "/v1/changes?kind=policy", &members).await;
    assert_eq!(of_kind.len(), 6);
    let window = "/v1/changes?since=2026-11-21T12:00:01Z&until=2026-11-21T12:00:03Z";
    let of_time = told(&world, &key, window, &["at"]).await;
    let at = |second: u32| json!([format!("2026-11-21T12:00:0{second}Z")]);
    assert_eq!(of_time, [at(2), at(2), at(1), at(1)]);
    for (query, whole) in [("", &all), ("kind=job&id=job-1&", &of_one), ("kind=policy&", &of_kind)] {
        for most in [1, 2, 5] {
            let (mut rows, mut next) = (Vec::new(), String::new());
            for _ in 0..20 {
                let path = format!("/v1/changes?{query}limit={most}{next}");
                let page = told(&world, &key, &path, &members).await;
                assert!(page.len() <= most, "{path}");
                rows.extend(page);
                match world.get(&path, &key).await.json["next_cursor"].as_str() {
                    Some(cursor) => next = format!("&cursor={cursor}"),
                    None => break,
                }
            }
            assert_eq!(rows, *whole, "{query} {most}");
        }
    }
    for (query, field) in [
        ("kind=webhook", "kind"),
        ("since=soon", "since"),
        ("since=2026-11-22T00:00:00Z&until=2026-11-21T00:00:00Z", "until"),
    ] {
        let refused = world.get(&format!("/v1/changes?{query}"), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{}", refused.text);
    }
}

#[tokio::test]
async fn policies_and_calendars_are_told_as_they_were_before_and_after() {
    let (world, key) = started().await;
    let put = async |path: &str, body: Value| {
        let put = world.put(path, &key, &body).await;
        assert!(put.status.is_success(), "{}", put.text);
        put.json
    };
    let first = put("/v1/policies/small", json!({"max_in_flight": 2})).await;
    let second = put("/v1/policies/small", json!({"max_in_flight": 3, "lease_seconds": 90})).await;
    let holidays = put("/v1/calendars/holidays", json!({"dates": ["2026-12-25"]})).await;
    let more = put("/v1/calendars/holidays", json!({"dates": ["2026-12-25"], "weekdays": ["sun"]})).await;
    for path in ["/v1/policies/small/pause", "/v1/policies/small/resume"] {
        assert_eq!(world.post(path, &key, &json!({})).await.status, StatusCode::OK);
    }
    let close = json!({"until": "2026-11-21T13:00:00Z", "because": "servers move"});
    assert_eq!(world.post("/v1/policies/small/close", &key, &close).await.status, StatusCode::OK);
    assert_eq!(world.post("/v1/policies/small/open", &key, &json!({})).await.status, StatusCode::OK);
    for path in ["/v1/policies/small", "/v1/calendars/holidays"] {
        assert_eq!(world.delete(path, &key).await.status, StatusCode::NO_CONTENT);
    }
    let members = ["what", "before_revision", "after_revision", "fields", "before", "after"];
    let mut of_policy = told(&world, &key, "/v1/changes?kind=policy", &members).await;
    of_policy.reverse();
    assert_eq!(of_policy[0], json!(["created", null, 1, [], null, first]));
    let fields = json!(["max_in_flight", "lease_seconds"]);
    assert_eq!(of_policy[1], json!(["changed", 1, 2, fields, first, second]));
    let rest: Vec<_> = of_policy[2..].iter().map(|change| json!([change[0], change[3]])).collect();
    assert_eq!(
        rest,
        [
            json!(["paused", ["paused"]]),
            json!(["resumed", ["paused"]]),
            json!(["closed", ["backpressure"]]),
            json!(["opened", ["backpressure"]]),
            json!(["deleted", []]),
        ]
    );
    let mut of_calendar = told(&world, &key, "/v1/changes?kind=calendar", &members).await;
    of_calendar.reverse();
    assert_eq!(
        of_calendar,
        [
            json!(["created", null, 1, [], null, holidays]),
            json!(["changed", 1, 2, ["weekdays"], holidays, more]),
            json!(["deleted", 2, null, [], more, null]),
        ]
    );
}

#[tokio::test]
async fn keys_secrets_and_the_client_itself_are_told_by_their_names_alone() {
    let (world, key) = started().await;
    let id = key_id(&world, &key).await;
    let json = [("content-type", "application/json")];
    let admin = Some(&*world.admin_key);
    let secret = async |value: &str| world.put("/v1/secrets/shop", &key, &json!({"value": value})).await;
    assert!(
        secret("open sesame").await.status.is_success() && secret("close sesame").await.status.is_success()
    );
    assert_eq!(world.delete("/v1/secrets/shop", &key).await.status, StatusCode::NO_CONTENT);
    let made = world.post("/v1/keys", &key, &json!({"note": "workers"})).await.json;
    let other = made["key_id"].as_str().unwrap();
    assert_eq!(world.delete(&format!("/v1/keys/{other}"), &key).await.status, StatusCode::NO_CONTENT);
    let rotated = world.post("/v1/webhook-secret/rotate", &key, &json!({})).await;
    assert_eq!(rotated.status, StatusCode::CREATED);
    let change = json!({"quotas": {"creates_per_minute": 5}}).to_string();
    for (method, path, body) in [
        (Method::PATCH, "/v1/clients/acme", change),
        (Method::POST, "/v1/clients/acme/suspend", json!({"because": "abuse"}).to_string()),
        (Method::POST, "/v1/clients/acme/resume", json!({"per_second": 10}).to_string()),
    ] {
        let done = world.send(method, path, admin, &json, &body).await;
        assert_eq!(done.status, StatusCode::OK, "{path}: {}", done.text);
    }
    assert_eq!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status, StatusCode::CREATED);
    for (call, body) in [("sideline", json!({})), ("drain", json!({"per_second": 10}))] {
        let done = world.post(&format!("/v1/jobs/nightly/{call}"), &key, &body).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    }
    let members = ["kind", "id", "what", "by", "before_revision", "after_revision", "fields"];
    let list = told(&world, &key, "/v1/changes", &members).await;
    let mut list: Vec<String> = list.iter().map(Value::to_string).collect();
    let mut expected = [
        json!(["client", "acme", "created", "admin", null, 1, []]),
        json!(["secret", "shop", "created", id, null, 1, []]),
        json!(["secret", "shop", "changed", id, 1, 2, ["value"]]),
        json!(["secret", "shop", "deleted", id, 2, null, []]),
        json!(["key", other, "created", id, null, null, []]),
        json!(["key", other, "deleted", id, null, null, []]),
        json!(["client", "acme", "changed", id, null, null, ["webhook_secret"]]),
        json!(["client", "acme", "changed", "admin", 1, 2, ["quotas"]]),
        json!(["client", "acme", "suspended", "admin", 2, 3, ["suspended"]]),
        json!(["client", "acme", "resumed", "admin", 3, 4, ["suspended"]]),
        // A client that is suspended is sidelined with it.
        json!(["client", "acme", "sidelined", "admin", null, null, []]),
        json!(["client", "acme", "drained", "admin", null, null, []]),
        json!(["job", "nightly", "sidelined", id, null, null, []]),
        json!(["job", "nightly", "drained", id, null, null, []]),
        json!(["job", "nightly", "created", id, null, 1, []]),
    ]
    .map(|change| change.to_string());
    list.sort();
    expected.sort();
    assert_eq!(list, expected);
    for row in world.everything().await.iter().filter(|row| row.contains("|changes")) {
        for hidden in ["sesame", "whsec_", "tg_acme_", "abuse", "workers"] {
            assert!(!row.contains(hidden), "{row}");
        }
    }
}

#[tokio::test]
async fn what_reads_all_jobs_passes_over_what_is_recorded_of_them() {
    let (world, key) = started().await;
    for name in ["one", "two"] {
        assert_eq!(
            world.put(&format!("/v1/jobs/{name}"), &key, &cron_job()).await.status,
            StatusCode::CREATED
        );
    }
    let jobs = world.engine.store().all_of_jobs(None).await.unwrap();
    assert_eq!((jobs.rows.len(), jobs.unreadable), (2, Vec::new()));
    assert_eq!(world.get("/v1/jobs", &key).await.json["jobs"].as_array().unwrap().len(), 2);
}

/// One transaction takes 100 rows: 48 rows of the index that come, 48 that go, the places in the lists of two zones, the job, its
/// first launches, and what is recorded.
#[tokio::test]
async fn a_change_that_touches_more_rows_than_a_transaction_takes_is_made_all_the_same() {
    let (world, key) = started().await;
    let with = |cron: &str, zone: &str| json!({"trigger": {"cron": cron, "zone": zone}, "target": {"sqs": {"queue_url": QUEUE}}});
    let made = world.put("/v1/jobs/wide", &key, &with("0 3 1-6 1-8 *", "Europe/London")).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let changed = world.put("/v1/jobs/wide", &key, &with("2 12 16-21 4-11 *", "Africa/Abidjan")).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    let store = world.engine.store();
    let children = store.all_of_jobs(None).await.unwrap().rows[0].children.len();
    assert_eq!(children, 48, "otherwise this shows nothing");
    assert!(store.is_zone_used("Africa/Abidjan".parse().unwrap()).await.unwrap());
    assert!(!store.is_zone_used("Europe/London".parse().unwrap()).await.unwrap());
    let changes = told(&world, &key, JOBS, &["what", "fields"]).await;
    assert_eq!(changes, [json!(["changed", ["trigger"]]), json!(["created", []])]);
    world.clock.advance_ms(120_000);
    assert_eq!(world.receive().await.len(), 1);
}

#[tokio::test]
async fn the_client_library_reads_changes() {
    let (world, key) = started().await;
    let client = Client::new(world.serve().await, &key).unwrap();
    client.put_job("nightly", &serde_json_job(), None).await.unwrap();
    client.pause_job_because("nightly", "the books are closed", None).await.unwrap();
    let changes = client.changes(&ChangesWanted::of("job", "nightly"), None).await.unwrap();
    let what: Vec<&str> = changes.rows.iter().map(|change| &*change.what).collect();
    assert_eq!(what, ["paused", "created"]);
    let none = ChangesWanted { until: Some("2026-11-21T11:00:00Z".to_owned()), ..ChangesWanted::default() };
    assert_eq!(client.changes(&none, None).await.unwrap().rows, []);
}

fn serde_json_job() -> tidegate_client::Job {
    let trigger = tidegate_client::Trigger::cron("0 9 * * *", "Europe/London");
    tidegate_client::Job::new(trigger, tidegate_client::Target::sqs(QUEUE))
}

#[tokio::test]
async fn what_a_job_expects_and_whom_alerts_go_to_are_fields_that_change() {
    let (world, key) = started().await;
    let json = [("content-type", "application/json")];
    world.put("/v1/jobs/nightly", &key, &cron_job()).await;
    let expecting = json!({"expect": {"within_seconds": 60}}).to_string();
    world.send(Method::PATCH, "/v1/jobs/nightly", Some(&key), &json, &expecting).await;
    let alerts = json!({"alerts": {"sqs": {"queue_url": QUEUE}}}).to_string();
    world.send(Method::PATCH, "/v1/clients/acme", Some(&world.admin_key), &json, &alerts).await;
    let changed = told(&world, &key, "/v1/changes", &["kind", "what", "fields"]).await;
    assert!(changed.contains(&json!(["job", "changed", ["expect"]])), "{changed:?}");
    assert!(changed.contains(&json!(["client", "changed", ["alerts"]])), "{changed:?}");
}

#[tokio::test]
async fn what_is_done_to_runs_dead_letters_and_tokens_is_recorded() {
    let (world, key) = started().await;
    let id = key_id(&world, &key).await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let hook = Hook::answering(&[410, 410, 410]).await;
    world.put("/v1/jobs/lost", &key, &hook.job(3)).await;
    let mut throttled = cron_job();
    (throttled["policy_id"], throttled["count"]) = (json!("small"), json!(5));
    world.put("/v1/jobs/nightly", &key, &throttled).await;
    let run = world.post("/v1/jobs/nightly/trigger", &key, &json!({})).await.json["run_id"].clone();
    let events = world.receive().await;
    assert_eq!(events.len(), 2);
    let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
    let freed = world.post("/v1/tokens/free", &key, &json!({"tokens": tokens, "redeliver": false})).await;
    assert_eq!(freed.status, StatusCode::OK, "{}", freed.text);
    let cancel = format!("/v1/jobs/nightly/runs/{}/cancel", run.as_str().unwrap());
    let cancelled = world.post(&cancel, &key, &json!({})).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.text);
    world.post(&cancel, &key, &json!({})).await;
    world.minutes(2).await;
    let letters = world.get("/v1/dead-letters?job_id=lost", &key).await.json;
    let letter = &letters["dead_letters"][0]["event_id"];
    assert!(letter.is_string(), "{letters}");
    world.post("/v1/dead-letters/redrive", &key, &json!({"event_ids": [letter]})).await;
    world.post("/v1/dead-letters/discard", &key, &json!({"where": {"job_id": "lost"}})).await;
    let done = told(&world, &key, "/v1/changes", &["kind", "id", "what", "of", "by"]).await;
    let done: Vec<&Value> = done.iter().filter(|change| !change[3].is_null()).collect();
    let expected = [
        json!(["job", "lost", "discarded", "2 events", id]),
        json!(["job", "lost", "redriven", letter, id]),
        json!(["job", "nightly", "cancelled", run, id]),
        json!(["policy", "small", "freed", "2 tokens", id]),
        json!(["job", "nightly", "triggered", run, id]),
    ];
    for change in &expected {
        assert!(done.contains(&change), "{change} is not in {done:?}");
    }
    assert_eq!(done.len(), expected.len(), "{done:?}");
}
