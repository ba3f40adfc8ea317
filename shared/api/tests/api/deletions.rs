//! A client that is deleted: all that is its own goes, nothing else does, and its name is free afterwards.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::Client;

use crate::hook::Hook;
use crate::world::{World, at_job, batch, cron_job};

/// The rows of a client, by its name in their keys or beside them.
fn of<'r>(client: &str, rows: &'r [String]) -> Vec<&'r String> {
    let named = [
        format!("S(\"{client}\")"),
        format!("S(\"{client}|"),
        format!("|{client}|"),
        format!("|{client}\")"),
    ];
    rows.iter().filter(|row| named.iter().any(|name| row.contains(name))).collect()
}

/// A client that has something of everything. One of its events is in flight.
async fn busy(world: &World, client: &str, hook: &Hook) -> String {
    let key = world.register(client).await;
    let put = async |path: &str, body: &Value| {
        let done = world.put(path, &key, body).await;
        assert!(done.status.is_success(), "{path} {}", done.text);
    };
    put("/v1/policies/small", &json!({"max_in_flight": 1, "lease_seconds": 3600})).await;
    put("/v1/calendars/holidays", &json!({"dates": ["2026-12-25"]})).await;
    put("/v1/secrets/shop-token", &json!({"value": "open sesame"})).await;
    put("/v1/jobs/nightly", &cron_job()).await;
    put("/v1/jobs/gone", &cron_job()).await;
    assert!(world.delete("/v1/jobs/gone", &key).await.status.is_success());
    put("/v1/jobs/later", &at_job("2026-11-21T12:10:00Z")).await;
    put("/v1/jobs/now", &hook.job(1)).await;
    put("/v1/jobs/batch", &batch(3)).await;
    for at in ["2026-11-21T12:10:00Z", "2026-11-21T12:40:00Z", "2027-11-21T12:00:00Z"] {
        let mut job = hook.job(1);
        job["trigger"] = json!({"at": at});
        assert_eq!(world.post("/v1/jobs", &key, &job).await.status, StatusCode::CREATED);
    }
    world.dispatch().await;
    key
}

async fn delete(world: &World) -> Value {
    let begun = world.delete("/v1/clients/acme", &world.admin_key).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text);
    begun.json
}

async fn shown(world: &World) -> (StatusCode, Value) {
    let shown = world.get("/v1/clients/acme", &world.admin_key).await;
    (shown.status, shown.json["deleting"].clone())
}

#[tokio::test]
async fn all_that_is_its_own_goes_and_nothing_else_does() {
    let world = World::new().await;
    let (hook, other) = (Hook::answering(&[410]).await, Hook::answering(&[410]).await);
    let key = busy(&world, "acme", &hook).await;
    let kept = busy(&world, "acme-2", &other).await;
    let called = hook.calls().len();
    let begun = delete(&world).await;
    assert_eq!(begun["deleting"], json!({"since": "2026-11-21T12:00:00Z", "stage": "index", "removed": 0}));
    world.clock.advance_ms(11_000);
    for path in ["/v1/tokens/release", "/v1/jobs"] {
        let refused = world.post(path, &key, &json!({"tokens": ["none"]})).await;
        assert_eq!(refused.json["type"], "urn:tidegate:problem:client-deleted", "{}", refused.text);
    }
    let headers = [("tidegate-client", "acme")];
    let admin = world.send(Method::GET, "/v1/jobs", Some(&world.admin_key), &headers, "").await;
    assert_eq!(admin.status, StatusCode::FORBIDDEN, "{}", admin.text);
    let taken = world.post("/v1/clients", &world.admin_key, &json!({"client_id": "acme"})).await;
    assert_eq!(taken.status, StatusCode::CONFLICT, "{}", taken.text);
    assert!(taken.text.contains("client 'acme' is still being deleted"), "{}", taken.text);

    world.minutes(5).await;
    let (_, waiting) = shown(&world).await;
    assert_eq!(waiting["stage"], "policies", "what was on its way is waited for: {waiting}");
    assert!(waiting["removed"].as_u64().unwrap() >= 6, "{waiting}");
    world.minutes(25).await;
    assert_eq!(shown(&world).await.0, StatusCode::NOT_FOUND);
    let rows = world.everything().await;
    let left = of("acme", &rows);
    // What deliveries read, and the skip of what was on its way.
    let is_known = |row: &&String| row.contains("dirty|acme") || row.contains("job_deleted");
    assert!(left.iter().all(is_known), "{left:#?}");
    assert_eq!(hook.calls().len(), called, "nothing of it was delivered");
    assert!(!rows.iter().any(|row| row.contains("deleting|")), "no tick looks after it any more");

    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::UNAUTHORIZED);
    let jobs = world.get("/v1/jobs", &kept).await.json;
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 4, "{jobs}");
    assert_eq!(world.get("/v1/calendars", &kept).await.json["calendars"].as_array().unwrap().len(), 1);
    world.minutes(15).await;
    assert_eq!(other.calls().len(), 3, "the jobs of its neighbour launch");
    // Whoever has the name next begins anew, and is not held.
    let anew = world.register("acme").await;
    assert_eq!(world.get("/v1/jobs", &anew).await.json["jobs"], json!([]));
    let mut job = hook.job(1);
    job["trigger"] = json!({"at": "2026-11-21T12:50:00Z"});
    assert_eq!(world.put("/v1/jobs/nightly", &anew, &job).await.status, StatusCode::CREATED);
    world.minutes(6).await;
    assert_eq!(hook.calls().len(), called + 1);
}

#[tokio::test]
async fn a_message_that_is_lost_is_sent_again_by_a_tick_and_one_that_comes_twice_changes_nothing() {
    let world = World::new().await;
    let hook = Hook::answering(&[]).await;
    busy(&world, "acme", &hook).await;
    delete(&world).await;
    let dispatch = world.deployment.dispatch_url().to_owned();
    let mut lost = 0;
    for _ in 0..120 {
        world.clock.advance_ms(60_000);
        world.engine.tick().await.unwrap();
        for body in world.take_all(&dispatch).await {
            if !body.contains("\"delete\"") {
                continue;
            }
            // Every other one is lost, and those that come come twice, and a former one as well.
            lost += 1;
            if lost % 2 == 0 {
                world.engine.handle(&body, 1).await;
                world.engine.handle(&body, 2).await;
            }
        }
        if shown(&world).await.0 == StatusCode::NOT_FOUND {
            break;
        }
    }
    assert_eq!(shown(&world).await.0, StatusCode::NOT_FOUND);
    assert!(lost >= 4, "{lost}");
    let rows = world.everything().await;
    let left = of("acme", &rows);
    assert!(left.iter().all(|row| row.contains("dirty|acme") || row.contains("deleting|acme")), "{left:#?}");
    world.minutes(1).await;
    assert!(!world.everything().await.iter().any(|row| row.contains("deleting|acme")));
}

#[tokio::test]
async fn only_the_admin_deletes_and_the_client_library_has_the_call() {
    let world = World::new().await;
    let key = world.register("acme").await;
    assert_eq!(world.delete("/v1/clients/acme", &key).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.delete("/v1/clients/nobody", &world.admin_key).await.status, StatusCode::NOT_FOUND);
    let admin = Client::new(&*world.serve().await, &*world.admin_key).unwrap();
    admin.delete_client("acme").await.unwrap();
    admin.delete_client("acme").await.unwrap();
    let shown = admin.registered_client("acme").await.unwrap();
    assert_eq!((shown.revision, shown.deleting.unwrap().removed), (2, 0));
    let resumed = admin.resume_client("acme", 9).await.unwrap();
    assert!(resumed.deleting.is_some(), "nothing lets it go on");
}
