//! Clients and their keys: what each key is for, when it ends, and what the admin changes of a client.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{ApiKey, Client, ClientChange, Error, JobDefaults, Policy, Retry, Scope, Target};
use tidegate_domain::change::{Change, What};
use tidegate_domain::clock::Clock as _;

use crate::world::{Answer, QUEUE, World, cron_job};

async fn made(world: &World, key: &str, body: Value) -> (String, String) {
    let answer = world.post("/v1/keys", key, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let text = |field: &str| answer.json[field].as_str().unwrap().to_owned();
    (text("key_id"), text("api_key"))
}

/// A call for each scope, with which a client asks for nothing that is not there.
async fn calls(world: &World, key: &str) -> [Answer; 4] {
    let body = json!({"tokens": ["tok.acme.small.0.3.17.2.9.5f0c8d7a2b914e63a8d1f4077be2960c"]});
    [
        world.get("/v1/jobs", key).await,
        world.put("/v1/policies/small", key, &json!({"max_in_flight": 3})).await,
        world.post("/v1/tokens/release", key, &body).await,
        world.get("/v1/keys", key).await,
    ]
}

#[tokio::test]
async fn a_key_does_what_it_is_for_and_nothing_else() {
    let world = World::new().await;
    let first = world.register("acme").await;
    let scopes = ["read", "schedule", "release", "admin"];
    assert!(calls(&world, &first).await.iter().all(|answer| answer.status.is_success()));
    for (number, scope) in scopes.iter().enumerate() {
        let (id, key) = made(&world, &first, json!({"scopes": [scope], "note": scope})).await;
        for (call, answer) in calls(&world, &key).await.iter().enumerate() {
            if call == number {
                assert!(answer.status.is_success(), "{scope} {call} {}", answer.text);
            } else {
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{scope} {call}");
                let says = format!("needs a key of scope {}, and key {id} has {scope}", scopes[call]);
                assert!(answer.text.contains(&says), "{says} {}", answer.text);
            }
        }
    }
    let listed = world.get("/v1/keys", &first).await.json;
    let notes: Vec<&Value> = listed["keys"].as_array().unwrap().iter().map(|key| &key["note"]).collect();
    assert_eq!(notes.len(), 5);
    assert!(scopes.iter().all(|scope| notes.contains(&&json!(scope))), "{listed}");
    assert!(!listed.to_string().contains("tg_acme_"), "no key is shown again");
}

#[tokio::test]
async fn a_key_is_rotated_without_a_gap_and_a_revoked_one_opens_nothing() {
    let world = World::new().await;
    let former = world.register("acme").await;
    assert_eq!(world.get("/v1/jobs", &former).await.status, StatusCode::OK);
    let (_, present) = made(&world, &former, json!({})).await;
    let listed = world.get("/v1/keys", &former).await.json;
    let ids: Vec<&str> =
        listed["keys"].as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap()).collect();
    let gone = ids.iter().find(|id| tidegate_store::KeyHash::of(&former).id() == **id).unwrap();
    let revoked = world.delete(&format!("/v1/keys/{gone}"), &present).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT, "{}", revoked.text);
    assert_eq!(world.get("/v1/jobs", &former).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.get("/v1/jobs", &present).await.status, StatusCode::OK);
    assert_eq!(world.delete(&format!("/v1/keys/{gone}"), &present).await.status, StatusCode::NOT_FOUND);
    for none in ["0", "3F9A0C17BE52", &"%F0%9F%9A%80".repeat(300)] {
        let path = format!("/v1/keys/{none}");
        assert_eq!(world.delete(&path, &present).await.status, StatusCode::NOT_FOUND, "{none}");
    }
    let zeta = world.register("zeta").await;
    let other = tidegate_store::KeyHash::of(&present);
    let foreign = world.delete(&format!("/v1/keys/{}", other.id()), &zeta).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "another client's key");
    assert_eq!(world.get("/v1/jobs", &present).await.status, StatusCode::OK);
}

#[tokio::test]
async fn another_process_forgets_a_revoked_key_within_seconds() {
    let (world, acme) = (World::new().await, "acme");
    let key = world.register(acme).await;
    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::OK);
    // Another process revokes it: this one is not told.
    let id = tidegate_store::KeyHash::of(&key).id().to_owned();
    let change = Change::by_nobody(What::Deleted, world.clock.now());
    let store = world.engine.store();
    assert!(store.revoke_key(&acme.parse().unwrap(), &id, &change).await.unwrap().is_some());
    world.clock.advance_ms(11_000);
    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_key_ends_at_its_time() {
    let world = World::new().await;
    let first = world.register("acme").await;
    let (id, key) = made(&world, &first, json!({"expires_at": "2026-11-21T12:00:05Z"})).await;
    assert_eq!(world.get("/v1/jobs", &key).await.status, StatusCode::OK);
    world.clock.advance_ms(5_000);
    let late = world.get("/v1/jobs", &key).await;
    assert_eq!(late.status, StatusCode::UNAUTHORIZED);
    assert!(late.text.contains(&format!("key {id} expired at 2026-11-21T12:00:05Z")), "{}", late.text);
    for (body, field) in [
        (json!({"expires_at": "2026-11-21T12:00:05Z"}), "expires_at"),
        (json!({"scopes": []}), "scopes"),
        (json!({"scopes": ["write"]}), "scopes[0]"),
        (json!({"note": "x".repeat(101)}), "note"),
    ] {
        let refused = world.post("/v1/keys", &first, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(refused.json["errors"][0]["field"], field, "{}", refused.text);
    }
}

#[tokio::test]
async fn a_client_has_twenty_keys_at_the_most() {
    let world = World::new().await;
    let first = world.register("acme").await;
    let body = json!({});
    let mut made = Vec::new();
    for _ in 0..25 {
        made.push(world.post("/v1/keys", &first, &body).await);
    }
    let created = made.iter().filter(|answer| answer.status == StatusCode::CREATED).count();
    assert_eq!(created, 19);
    let refused = made.iter().find(|answer| answer.status != StatusCode::CREATED).unwrap();
    assert!(refused.text.contains("has 20 keys, the most"), "{}", refused.text);
    let id = made[0].json["key_id"].as_str().unwrap();
    assert_eq!(world.delete(&format!("/v1/keys/{id}"), &first).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.post("/v1/keys", &first, &body).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn what_a_client_may_name_changes_for_all_its_keys() {
    let world = World::new().await;
    let key = world.register("acme").await;
    assert_eq!(world.put("/v1/jobs/one", &key, &cron_job()).await.status, StatusCode::CREATED);
    let narrow = json!({"allowed_targets": ["https://acme.example/*"]});
    let send = async |body: &Value, headers: &[(&str, &str)]| {
        let headers = [&[("content-type", "application/json")], headers].concat();
        world
            .send(Method::PATCH, "/v1/clients/acme", Some(&world.admin_key), &headers, &body.to_string())
            .await
    };
    let changed = send(&narrow, &[("if-match", "\"1\"")]).await;
    assert_eq!((changed.status, changed.header("etag")), (StatusCode::OK, "\"2\""), "{}", changed.text);
    assert_eq!(send(&narrow, &[]).await.json["revision"], 2, "the same again changes nothing");
    assert_eq!(send(&narrow, &[("if-match", "\"1\"")]).await.status, StatusCode::PRECONDITION_FAILED);
    world.clock.advance_ms(11_000);
    let refused = world.put("/v1/jobs/two", &key, &cron_job()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert_eq!(world.get("/v1/client", &key).await.json["allowed_targets"], narrow["allowed_targets"]);
    assert_eq!(world.get("/v1/clients/acme", &key).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.get("/v1/clients/nobody", &world.admin_key).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn jobs_that_say_nothing_are_as_the_defaults_of_their_client_say() {
    let world = World::new().await;
    let retry = json!({"backoff": "fixed", "wait_seconds": 30, "max_age_seconds": 600});
    let defaults =
        json!({"retry": retry, "max_attempts": 7, "relevancy_seconds": 900, "history": "failures"});
    let body = json!({"client_id": "acme", "defaults": defaults});
    let registered = world.post("/v1/clients", &world.admin_key, &body).await.json;
    assert_eq!(registered["defaults"], defaults);
    let key = registered["api_key"].as_str().unwrap();
    let shown = |answer: &Answer| {
        let fields = ["retry", "max_attempts", "relevancy_seconds", "history"];
        fields.map(|field| answer.json[field].clone())
    };
    let plain = world.put("/v1/jobs/plain", key, &cron_job()).await;
    assert_eq!(shown(&plain), [&retry, &json!(7), &json!(900), &json!("failures")].map(Clone::clone));
    // What an answer says is put back as it is: null is said, too.
    let own = json!({"retry": {"backoff": "none"}, "max_attempts": null, "relevancy_seconds": null, "history": "all"});
    let mut body = cron_job();
    body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    let said = world.put("/v1/jobs/own", key, &body).await;
    assert_eq!(shown(&said)[1..], [Value::Null, Value::Null, json!("all")]);
    let again = world.put("/v1/jobs/own", key, &said.json).await;
    assert_eq!((&again.json["revision"], shown(&again)), (&json!(1), shown(&said)), "{}", again.text);
    let patched = world
        .send(
            Method::PATCH,
            "/v1/jobs/own",
            Some(key),
            &[("content-type", "application/json")],
            r#"{"count": 2}"#,
        )
        .await;
    assert_eq!(shown(&patched), shown(&said), "{}", patched.text);
    let wrong = json!({"client_id": "zeta", "defaults": {"max_attempts": 0}});
    let refused = world.post("/v1/clients", &world.admin_key, &wrong).await;
    assert_eq!(refused.json["errors"][0]["field"], "defaults.max_attempts", "{}", refused.text);
}

#[tokio::test]
async fn the_admin_acts_in_the_place_of_a_client_and_nobody_else_does() {
    let world = World::new().await;
    let acme = world.register("acme").await;
    let zeta = world.register("zeta").await;
    world.put("/v1/jobs/nightly", &acme, &cron_job()).await;
    let named = [("tidegate-client", "acme")];
    let paused = world.send(Method::POST, "/v1/jobs/nightly/pause", Some(&world.admin_key), &named, "").await;
    assert_eq!((paused.status, &paused.json["paused"]), (StatusCode::OK, &json!(true)), "{}", paused.text);
    let foreign = world.send(Method::GET, "/v1/jobs/nightly", Some(&zeta), &named, "").await;
    assert_eq!(foreign.status, StatusCode::UNAUTHORIZED, "{}", foreign.text);
    let nobody = world
        .send(Method::GET, "/v1/jobs", Some(&world.admin_key), &[("tidegate-client", "nobody")], "")
        .await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND, "{}", nobody.text);
}

#[tokio::test]
async fn the_client_library_has_the_calls() {
    let world = World::new().await;
    let address = world.serve().await;
    let admin = Client::new(&*address, &*world.admin_key).unwrap();
    let acme = Client::new(&*address, admin.register_client("acme", &[]).await.unwrap().api_key).unwrap();
    let defaults = JobDefaults { retry: Some(Retry::fixed(9).within(60)), ..JobDefaults::default() };
    let change = ClientChange {
        allowed_targets: Some(vec![QUEUE.to_owned()]),
        defaults: Some(defaults.clone()),
        alerts: Some(Some(Target::sqs(QUEUE))),
        ..ClientChange::default()
    };
    let changed = admin.change_client("acme", &change, Some(1)).await.unwrap();
    assert_eq!((changed.revision, &changed.defaults), (2, &defaults));
    assert_eq!(changed.alerts, Some(Target::sqs(QUEUE)));
    let untold = ClientChange { alerts: Some(None), ..ClientChange::default() };
    let changed = admin.change_client("acme", &untold, Some(2)).await.unwrap();
    assert_eq!((changed.revision, &changed.alerts), (3, &None));
    assert_eq!(admin.registered_client("acme").await.unwrap(), changed);
    let workers = acme.create_key(&ApiKey::for_scopes([Scope::Release])).await.unwrap();
    assert_eq!(acme.keys().await.unwrap().len(), 2);
    let refused = Client::new(&*address, &*workers.api_key).unwrap().own_client().await.unwrap_err();
    assert!(matches!(&refused, Error::Refused(problem) if problem.status == 403), "{refused}");
    acme.revoke_key(&workers.key.key_id).await.unwrap();
    assert_eq!(acme.keys().await.unwrap().len(), 1);
    let made = admin.in_place_of("acme").put_policy("small", &Policy::new(4), None).await.unwrap();
    assert_eq!(acme.policy("small").await.unwrap().policy, made);
    assert_eq!(acme.own_client().await.unwrap().client_id, "acme");
}
