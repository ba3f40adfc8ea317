//! How long what happened is kept: as the admin says of the client, and never shorter where delivery or a repair goes by it.

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_store::tables::Table;
use tidegate_testkit::PREFIX;

use crate::hook::Hook;
use crate::world::{QUEUE, World, at_job, batch};

/// The days that each kind of row of the runs and their events is still kept, by the beginning of its sort key and whether it says
/// that a run is over.
async fn kept(world: &World) -> BTreeMap<String, i64> {
    let mut days = BTreeMap::new();
    for table in [Table::Runs, Table::Events] {
        let name = format!("{PREFIX}-{}", table.name());
        let pages = world.embedded.dynamodb().scan().table_name(name).into_paginator().items().send();
        for row in pages.collect::<Result<Vec<_>, _>>().await.unwrap() {
            let text = |name: &str| row.get(name).and_then(|value| value.as_s().ok()).cloned();
            let (pk, sk) = (text("pk").unwrap(), text("sk").unwrap());
            let kind = match () {
                () if pk.starts_with("mark|") || pk.ends_with("|one-times") => continue,
                () if pk.contains("|dead|") => "dead letter",
                () if table == Table::Runs && pk.contains('~') => "pack",
                () if table == Table::Runs && row.contains_key("tries") => "single run",
                () if table == Table::Runs && row.contains_key("stopped") => "skipped run",
                () if table == Table::Runs => "run",
                () if sk.starts_with('o') => "outcomes",
                () if sk.starts_with('c') => "part",
                () if sk.starts_with('t') => "note",
                () if sk.starts_with('e') => "event",
                () => "failure",
            };
            let until: i64 = row["expires_at"].as_n().unwrap().parse().unwrap();
            let until = until - tidegate_domain::clock::Clock::now(&*world.clock).timestamp();
            assert_eq!(until % 86_400, 0, "{kind}");
            let former = days.insert(kind.to_owned(), until / 86_400);
            assert!(former.is_none_or(|former| former == until / 86_400), "{kind}: {former:?} and {until}");
        }
    }
    days
}

async fn put(world: &World, key: &str, name: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{name}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

/// All that is kept of a client whose defaults are these.
async fn kept_by(defaults: &Value) -> BTreeMap<String, i64> {
    let world = World::new().await;
    let body = json!({"client_id": "acme", "defaults": defaults});
    let made = world.post("/v1/clients", &world.admin_key, &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!(made.json["defaults"], *defaults);
    let key = made.json["api_key"].as_str().unwrap().to_owned();
    let policy = json!({"max_in_flight": 3, "lease_seconds": 60});
    assert_eq!(world.put("/v1/policies/small", &key, &policy).await.status, StatusCode::CREATED);
    let now = "2026-11-21T12:00:00Z";
    // Nothing throttles a single event and a batch, then a policy does; their consumers say something.
    put(&world, &key, "single", &at_job(now)).await;
    let mut many = at_job(now);
    many["count"] = json!(2);
    put(&world, &key, "many", &many).await;
    let mut told = batch(3);
    told["on_completion"] = json!({"sqs": {"queue_url": QUEUE.replace("jobs", "done")}});
    put(&world, &key, "batch", &told).await;
    put(&world, &key, "packed", &batch(1)).await;
    for _ in 0..3 {
        let tokens: Vec<Value> = world
            .receive()
            .await
            .iter()
            .filter(|event| !event["token"].is_null())
            .map(|event| json!({"token": event["token"], "outcome": "failed", "error": "no"}))
            .collect();
        if !tokens.is_empty() {
            let answer = world.post("/v1/tokens/release", &key, &json!({"tokens": tokens})).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        }
    }
    // And endpoints that take nothing.
    let hook = Hook::answering(&[410, 410, 410, 410]).await;
    put(&world, &key, "refused", &hook.job(2)).await;
    put(&world, &key, "refused-throttled", &hook.throttled_job(2)).await;
    world.dispatch().await;
    kept(&world).await
}

#[tokio::test]
async fn what_happened_is_kept_as_long_as_the_admin_says() {
    let relied_on = ["run", "pack", "part", "outcomes"];
    let records = ["single run", "event", "note", "dead letter", "failure"];
    for (defaults, days, at_least) in
        [(json!({}), 14, 14), (json!({"history_days": 90}), 90, 90), (json!({"history_days": 2}), 2, 14)]
    {
        let kept = kept_by(&defaults).await;
        for kind in relied_on {
            assert_eq!(kept.get(kind), Some(&at_least), "{defaults} {kind} {kept:?}");
        }
        for kind in records {
            assert_eq!(kept.get(kind), Some(&days), "{defaults} {kind} {kept:?}");
        }
    }
}

#[tokio::test]
async fn days_have_bounds_and_a_job_cannot_name_them() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for days in [0, 366] {
        let body = json!({"defaults": {"history_days": days}}).to_string();
        let headers = [("content-type", "application/json")];
        let admin = Some(&*world.admin_key);
        let refused = world.send(Method::PATCH, "/v1/clients/acme", admin, &headers, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json["errors"][0]["field"], "defaults.history_days", "{}", refused.text);
        assert!(refused.text.contains("it must lie between 1 and 365"), "{}", refused.text);
    }
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["history_days"] = json!(30);
    let refused = world.put("/v1/jobs/own", &key, &job).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
}

#[tokio::test]
async fn what_expires_lies_in_tables_that_remove_it() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3, "lease_seconds": 60})).await;
    let mut minutely = batch(2);
    minutely["trigger"] = json!({"cron": "* * * * *", "zone": "UTC"});
    put(&world, &key, "minutely", &minutely).await;
    world.minutes(8).await;
    let mut tables = BTreeSet::new();
    for table in Table::ALL {
        let name = format!("{PREFIX}-{}", table.name());
        let pages = world.embedded.dynamodb().scan().table_name(name).into_paginator().items().send();
        let rows = pages.collect::<Result<Vec<_>, _>>().await.unwrap();
        if rows.iter().any(|row| row.contains_key("expires_at")) {
            tables.insert(table);
        }
    }
    // Samples of the policy and what was used are among them.
    assert!(tables.contains(&Table::Policies), "{tables:?}");
    assert!(tables.iter().all(|table| table.expires()), "{tables:?}");
}
