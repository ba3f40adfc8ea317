//! Throttling as its users see it: limits, leases, releases with a word, tokens that are held until they are freed.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{QUEUE, World, batch};

/// A client with a policy `small` and a batch `batch` of `count` events that is due.
async fn client_with(world: &World, policy: &Value, count: u32) -> String {
    let key = world.register("acme").await;
    let made = world.put("/v1/policies/small", &key, policy).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let made = world.put("/v1/jobs/batch", &key, &batch(count)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    key
}

fn token(event: &Value) -> &str {
    event["token"].as_str().unwrap()
}

async fn status(world: &World, key: &str) -> String {
    let shown = world.get("/v1/policies/small", key).await.json;
    shown["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_lowered_limit_drains_and_a_paused_policy_admits_nothing() {
    let world = World::new().await;
    let key = client_with(&world, &json!({"max_in_flight": 5}), 20).await;
    let events = world.receive().await;
    assert_eq!((events.len(), &*status(&world, &key).await), (5, "5 in flight, limit 5"));
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let shown = world.get("/v1/policies/small", &key).await.json;
    assert_eq!(
        (&shown["status"], &shown["draining"]),
        (&json!("5 in flight, limit 3, draining"), &json!(true))
    );
    assert_eq!((&shown["in_flight"], &shown["waiting"]), (&json!(5), &json!(15)));
    let release = |event: &Value| json!({"tokens": [token(event)]});
    world.post("/v1/tokens/release", &key, &release(&events[0])).await;
    world.post("/v1/tokens/release", &key, &release(&events[1])).await;
    assert!(world.receive().await.is_empty());
    assert_eq!(status(&world, &key).await, "3 in flight, limit 3");
    world.post("/v1/tokens/release", &key, &release(&events[2])).await;
    assert_eq!(world.receive().await.len(), 1);
    world.send(Method::POST, "/v1/policies/small/pause", Some(&key), &[], "").await;
    world.post("/v1/tokens/release", &key, &release(&events[3])).await;
    assert!(world.receive().await.is_empty());
    assert_eq!(status(&world, &key).await, "paused, 2 in flight, limit 3");
    world.send(Method::POST, "/v1/policies/small/resume", Some(&key), &[], "").await;
    assert_eq!((world.receive().await.len(), &*status(&world, &key).await), (1, "3 in flight, limit 3"));
}

#[tokio::test]
async fn the_holders_of_a_policy_are_listed_with_their_leases() {
    let world = World::new().await;
    let key = client_with(&world, &json!({"max_in_flight": 2, "lease_seconds": 30}), 5).await;
    let events = world.receive().await;
    world.post("/v1/tokens/extend", &key, &json!({"tokens": [token(&events[0])], "lease_seconds": 90})).await;
    let list = world.get("/v1/policies/small/holders", &key).await;
    assert_eq!(list.status, StatusCode::OK, "{}", list.text);
    let holder = |event: &Value, until: &str| {
        json!({
            "token": event["token"], "event_id": event["event_id"], "attempt": 1, "cost": 1, "lease_expires_at": until,
            "expired": false
        })
    };
    let expected = [holder(&events[1], "2026-11-21T12:00:30Z"), holder(&events[0], "2026-11-21T12:01:30Z")];
    assert_eq!(list.json, json!({"holders": expected}));
}

#[tokio::test]
async fn an_event_of_a_cost_takes_that_many_tokens() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 5})).await;
    let mut job = batch(9);
    job["cost"] = json!(2);
    world.put("/v1/jobs/batch", &key, &job).await;
    let events = world.receive().await;
    assert_eq!((events.len(), &*status(&world, &key).await), (2, "4 in flight, limit 5"));
    let holders = world.get("/v1/policies/small/holders", &key).await.json;
    assert_eq!(holders["holders"][0]["cost"], 2);
    world.post("/v1/tokens/release", &key, &json!({"tokens": [token(&events[0])]})).await;
    assert_eq!((world.receive().await.len(), &*status(&world, &key).await), (1, "4 in flight, limit 5"));
}

#[tokio::test]
async fn what_the_consumer_says_at_a_release_is_shown_with_its_event() {
    let world = World::new().await;
    let key = client_with(&world, &json!({"max_in_flight": 3}), 3).await;
    let mut events = world.receive().await;
    events.sort_by_key(|event| event["index"].as_u64());
    let body = json!({"tokens": [
        {"token": token(&events[0]), "result": "1,204 rows"},
        {"token": token(&events[1]), "outcome": "failed", "error": "the shop does not answer"},
        token(&events[2]),
    ]});
    let answer = world.post("/v1/tokens/release", &key, &body).await;
    for (number, event) in events.iter().enumerate() {
        let expected = json!({"token": event["token"], "status": "released"});
        assert_eq!(answer.json["results"][number], expected, "{}", answer.text);
    }
    let run = events[0]["run_id"].as_str().unwrap();
    let shown = world.get(&format!("/v1/jobs/batch/runs/{run}/events"), &key).await.json;
    let shown = shown["events"].as_array().unwrap();
    assert_eq!((&shown[0]["status"], &shown[0]["result"]), (&json!("succeeded"), &json!("1,204 rows")));
    assert_eq!(
        (&shown[1]["status"], &shown[1]["error"]),
        (&json!("failed"), &json!("the shop does not answer"))
    );
    assert_eq!((shown[0].get("error"), shown[1].get("result")), (None, None));
    assert_eq!((shown[2].get("result"), shown[2].get("error")), (None, None));
}

#[tokio::test]
async fn a_malformed_entry_is_told_why_and_the_rest_is_served() {
    let world = World::new().await;
    let key = client_with(&world, &json!({"max_in_flight": 3}), 9).await;
    let events = world.receive().await;
    let [first, second, third] = [0, 1, 2].map(|number| token(&events[number]).to_owned());
    let long = "x".repeat(2_049);
    let cases = [
        (
            json!(5),
            "",
            "the entry must be a string, or a JSON object such as {\"token\": \"tok.acme.small.0.3.17.2.9\"}, not 5",
        ),
        (json!({"outcome": "failed"}), "", "token is missing; give a string such as"),
        (json!("nonsense"), "nonsense", "token 'nonsense' has not the form tok.<client>"),
        (
            json!({"token": second, "outcome": "maybe"}),
            &*second,
            "outcome must be \"succeeded\" or \"failed\", not \"maybe\"",
        ),
        (
            json!({"token": second, "reason": "x"}),
            &*second,
            "the entry has no field 'reason': write 'error' for why it failed",
        ),
        (
            json!({"token": second, "outcome": "failed", "result": "a", "error": "b"}),
            &*second,
            "the entry has both 'result' and 'error'; give 'result' with the outcome 'succeeded'",
        ),
        (
            json!({"token": second, "error": "b"}),
            &*second,
            "'error' goes with the outcome 'failed', and the outcome is 'succeeded'; change one of them",
        ),
        (
            json!({"token": second, "outcome": "failed", "result": "b"}),
            &*second,
            "'result' goes with the outcome 'succeeded', and the outcome is 'failed'",
        ),
        (
            json!({"token": second, "result": long}),
            &*second,
            "'result' is 2049 bytes long; 2048 is the most: store the rest elsewhere and say where",
        ),
    ];
    let mut tokens: Vec<Value> = cases.iter().map(|(entry, ..)| entry.clone()).collect();
    tokens.insert(0, json!(first));
    tokens.push(json!({"token": third, "result": "x".repeat(2_048)}));
    let answer = world.post("/v1/tokens/release", &key, &json!({"tokens": tokens})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let results = answer.json["results"].as_array().unwrap();
    assert_eq!(results.len(), cases.len() + 2);
    assert_eq!(results[0], json!({"token": first, "status": "released"}));
    assert_eq!(results[cases.len() + 1], json!({"token": third, "status": "released"}));
    for ((entry, named, says), result) in cases.iter().zip(&results[1..]) {
        assert_eq!((&result["status"], &result["token"]), (&json!("malformed"), &json!(named)), "{entry}");
        let detail = result["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{entry}: {detail}");
    }
    world.clock.advance_ms(1_000);
    let answer = world.post("/v1/tokens/release", &key, &json!({"tokens": [second, first, second]})).await;
    let expected = [("released", &second), ("already_released", &first), ("already_released", &second)];
    let expected = expected.map(|(status, token)| json!({"token": token, "status": status}));
    assert_eq!(answer.json, json!({"results": expected}));
}

#[tokio::test]
async fn a_release_after_the_lease_is_told_that_it_was_reclaimed() {
    let world = World::new().await;
    let key = client_with(&world, &json!({"max_in_flight": 1, "lease_seconds": 10}), 2).await;
    let late = world.receive().await.remove(0);
    world.clock.advance_ms(60_000);
    world.engine.tick().await.unwrap();
    let again = world.receive().await;
    assert_eq!((again.len(), &again[0]["event_id"], &again[0]["attempt"]), (1, &late["event_id"], &json!(2)));
    let answer = world.post("/v1/tokens/release", &key, &json!({"tokens": [token(&late)]})).await;
    assert_eq!(answer.json["results"][0]["status"], "reclaimed", "{}", answer.text);
    let answer = world.post("/v1/tokens/release", &key, &json!({"tokens": [token(&again[0])]})).await;
    assert_eq!(answer.json["results"][0]["status"], "released", "{}", answer.text);
}

#[tokio::test]
async fn under_hold_a_token_stays_until_it_is_freed() {
    let world = World::new().await;
    let policy = json!({"max_in_flight": 2, "lease_seconds": 10, "on_expiry": "hold"});
    let key = client_with(&world, &policy, 4).await;
    let events = world.receive().await;
    world.clock.advance_ms(60_000);
    world.engine.tick().await.unwrap();
    assert!(world.receive().await.is_empty());
    let holders = world.get("/v1/policies/small/holders", &key).await.json;
    let expired = |number: usize| holders["holders"][number]["expired"] == true;
    assert!(expired(0) && expired(1), "{holders}");
    let body = json!({"tokens": [token(&events[0])]});
    let freed = world.post("/v1/tokens/free", &key, &body).await;
    let result = |status: &str| json!({"results": [{"token": events[0]["token"], "status": status}]});
    assert_eq!((freed.status, &freed.json), (StatusCode::OK, &result("freed")));
    let next = world.receive().await;
    assert_eq!(next.len(), 1, "{next:?}");
    assert_ne!(next[0]["event_id"], events[0]["event_id"]);
    assert_ne!(world.post("/v1/tokens/free", &key, &body).await.json, result("freed"));
    let body = json!({"tokens": [token(&events[1])], "redeliver": true});
    let freed = world.post("/v1/tokens/free", &key, &body).await;
    assert_eq!(freed.json["results"][0]["status"], "freed", "{}", freed.text);
    let again = world.receive().await;
    assert_eq!((again.len(), &again[0]["event_id"]), (1, &events[1]["event_id"]));
    assert_eq!(again[0]["attempt"], 2);
}

#[tokio::test]
async fn a_message_on_the_release_queue_does_what_the_call_does() {
    let world = World::new().await;
    let key = client_with(&world, &json!({"max_in_flight": 1}), 2).await;
    let first = world.receive().await.remove(0);
    let message = json!({"client_id": "acme", "tokens": [{"token": token(&first), "result": "done"}]});
    world.engine.handle_releases(&[(&message.to_string(), 1)]).await;
    assert_eq!(world.receive().await.len(), 1);
    let shown = world.get(&format!("/v1/events/{}/explain", first["event_id"].as_str().unwrap()), &key).await;
    assert_eq!(
        (&shown.json["event"]["status"], &shown.json["event"]["result"]),
        (&json!("succeeded"), &json!("done"))
    );
    assert_eq!(world.take_all(QUEUE).await.len(), 0);
}
