//! Webhook secrets: one takes the place of another while endpoints that know either go on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::StatusCode;
use serde_json::{Value, json};
use sha2::Sha256;
use tidegate_domain::clock::Clock as _;

use crate::hook::Hook;
use crate::world::World;

/// How many signatures of the last call fit one of the secrets, by the secret.
fn fitting(hook: &Hook, secrets: &[&str]) -> Vec<usize> {
    let (head, body) = hook.last_signed();
    let header = |name: &str| head[name].to_str().unwrap();
    let signed = format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp"));
    let signatures: Vec<&str> = header("webhook-signature").split(' ').collect();
    let fits = |secret: &&str| {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(signed.as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        signatures.iter().filter(|given| **given == expected).count()
    };
    let counts: Vec<usize> = secrets.iter().map(fits).collect();
    assert_eq!(counts.iter().sum::<usize>(), signatures.len(), "no signature is under another secret");
    counts
}

async fn rotate(world: &World, key: &str, body: Value) -> Value {
    let answer = world.post("/v1/webhook-secret/rotate", key, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json
}

async fn call(world: &World, key: &str, hook: &Hook, name: &str) {
    let at = chrono::DateTime::to_rfc3339(&world.clock.now());
    let job = json!({"trigger": {"at": at, "past": "fire"}, "target": {"http": {"url": hook.url}}});
    let made = world.put(&format!("/v1/jobs/{name}"), key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

#[tokio::test]
async fn calls_are_signed_with_the_former_secret_as_well_for_as_long_as_was_said() {
    let world = World::new().await;
    let registered = world.post("/v1/clients", &world.admin_key, &json!({"client_id": "acme"})).await.json;
    let key = registered["api_key"].as_str().unwrap();
    let first = registered["webhook_secret"].as_str().unwrap();
    let hook = Hook::answering(&[]).await;
    call(&world, key, &hook, "before").await;
    assert_eq!(fitting(&hook, &[first]), [1]);

    let rotated = rotate(&world, key, json!({"keep_seconds": 3600})).await;
    assert_eq!(rotated["former_until"], "2026-11-21T13:00:00Z");
    let second = rotated["webhook_secret"].as_str().unwrap();
    call(&world, key, &hook, "both").await;
    assert_eq!(fitting(&hook, &[second, first]), [1, 1]);

    // A second one, since the answer was lost: no endpoint is left behind.
    let rotated = rotate(&world, key, json!({})).await;
    assert_eq!(rotated["former_until"], "2026-11-22T12:00:00Z", "a day by default");
    let third = rotated["webhook_secret"].as_str().unwrap();
    call(&world, key, &hook, "three").await;
    assert_eq!(fitting(&hook, &[third, second, first]), [1, 1, 1]);
    let refused = world.post("/v1/webhook-secret/rotate", key, &json!({"keep_seconds": 60})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert!(
        refused.text.contains("with the oldest until 2026-11-21T13:00:00Z; wait until then"),
        "{}",
        refused.text
    );

    world.clock.advance_ms(3_600_000);
    call(&world, key, &hook, "later").await;
    assert_eq!(fitting(&hook, &[third, second, first]), [1, 1, 0]);

    // Somebody else knows them.
    let rotated = rotate(&world, key, json!({"keep_seconds": 0})).await;
    assert_eq!(rotated["former_until"], Value::Null);
    let fourth = rotated["webhook_secret"].as_str().unwrap();
    call(&world, key, &hook, "alone").await;
    assert_eq!(fitting(&hook, &[fourth, third, second, first]), [1, 0, 0, 0]);
}

#[tokio::test]
async fn a_secret_is_replaced_by_its_client_alone_and_shown_once() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let other = world.register("other").await;
    let theirs = rotate(&world, &other, json!({})).await["webhook_secret"].as_str().unwrap().to_owned();
    let ours = rotate(&world, &key, json!({})).await["webhook_secret"].as_str().unwrap().to_owned();
    assert_ne!(ours, theirs);
    let clients = world.get("/v1/clients", &world.admin_key).await.text;
    assert!(clients.contains("acme") && !clients.contains("whsec_"), "{clients}");
    for wrong in ["", "nobody", &world.admin_key] {
        let refused = world.post("/v1/webhook-secret/rotate", wrong, &json!({})).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{wrong}: {}", refused.text);
    }
    let refused = world.post("/v1/webhook-secret/rotate", &key, &json!({"keep_seconds": 604_801})).await;
    assert_eq!(refused.json["errors"][0]["field"], "keep_seconds", "{}", refused.text);
}
