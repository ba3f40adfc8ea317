//! Tokens: each gets its own answer, in the order of the call.

use http::StatusCode;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn each_token_gets_its_own_answer() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.register("other").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let token_key = world.engine.tokens().key().await.unwrap();
    let signed = |token: &str| token_key.sign(&token.parse().unwrap()).to_string();
    let (unknown, theirs) = (signed("tok.acme.small.0.0.17.2.9"), signed("tok.other.small.0.0.17.2.9"));
    let before = world.everything().await;
    let body = json!({"tokens": ["nonsense", {"token": theirs, "outcome": "failed"}, unknown, theirs]});
    let answer = world.post("/v1/tokens/release", &key, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let mut expected = json!({"results": [
        {"token": "nonsense", "status": "malformed"},
        {"token": theirs, "status": "not_yours"},
        {"token": unknown, "status": "unknown"},
        {"token": theirs, "status": "not_yours"},
    ]});
    let detail = answer.json["results"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("token 'nonsense' has not the form tok.<client>"), "{detail}");
    let mut released = answer.json.clone();
    released["results"][0].as_object_mut().unwrap().remove("detail");
    assert_eq!(released, expected);
    let body = json!({"tokens": ["nonsense", theirs, unknown, theirs], "lease_seconds": 30});
    let answer = world.post("/v1/tokens/extend", &key, &body).await;
    assert_eq!((answer.status, &answer.json), (StatusCode::OK, &expected));
    let body = json!({"tokens": ["nonsense", theirs, unknown], "redeliver": true});
    let answer = world.post("/v1/tokens/free", &key, &body).await;
    expected["results"].as_array_mut().unwrap().pop();
    assert_eq!((answer.status, &answer.json), (StatusCode::OK, &expected));
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_call_with_no_tokens_too_many_or_a_wrong_form_is_refused() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let many: Vec<String> = (0..101).map(|n| format!("tok.acme.small.0.0.{n}.1.1")).collect();
    for (route, body, field, says) in [
        (
            "release",
            json!({"tokens": []}),
            "tokens",
            "tokens is empty; give the 'token' of each delivered message",
        ),
        (
            "release",
            json!({"tokens": many}),
            "tokens",
            "tokens holds 101; 100 is the most, so send several calls",
        ),
        (
            "release",
            json!({"tokens": "x"}),
            "tokens",
            "tokens must be an array such as [\"tok.acme.small.0.3.17.2.9.5f0c8d7a2b914e63a8d1f4077be2960c\"], not \"x\"",
        ),
        ("release", json!({}), "tokens", "tokens is missing; give an array such as"),
        (
            "release",
            json!({"tokens": ["x"], "why": "x"}),
            "why",
            "the body has no field 'why': its fields are 'tokens'",
        ),
        ("free", json!({"tokens": []}), "tokens", "tokens is empty"),
        (
            "free",
            json!({"tokens": ["x"], "redeliver": 1}),
            "redeliver",
            "redeliver must be true or false, not 1",
        ),
        ("extend", json!({"tokens": []}), "tokens", "tokens is empty"),
        (
            "extend",
            json!({"tokens": ["x"], "lease_seconds": 1}),
            "lease_seconds",
            "lease_seconds is 1; it must lie between 10 and 43200",
        ),
    ] {
        let answer = world.post(&format!("/v1/tokens/{route}"), &key, &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(answer.json["errors"][0]["field"], field, "{body}: {}", answer.text);
        let message = answer.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{body}: {message}");
    }
}
