//! The guide to throttling: what it shows is taken.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{QUEUE, World};

const GUIDE: &str = include_str!("../../../../docs/throttling.md");

/// A call that the guide shows: its path, its method and its body.
fn calls() -> Vec<(String, Method, Option<Value>)> {
    let mut calls = Vec::new();
    // Each call begins a line; its body may go over several.
    for text in GUIDE.split("\ntidegate /").skip(1) {
        let text = text.split("\n```").next().unwrap().replace("'$QUEUE'", QUEUE);
        let (path, rest) = text.split_once(char::is_whitespace).unwrap();
        let body = rest.split_once("-d '").map(|(_, body)| body.split('\'').next().unwrap().to_owned());
        let body = body.map(|body| serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}")));
        let flags = rest.lines().next().unwrap().split('#').next().unwrap();
        let method = match flags {
            _ if flags.contains("-X PUT") => Method::PUT,
            _ if flags.contains("-X POST") || body.is_some() => Method::POST,
            _ => Method::GET,
        };
        calls.push((format!("/{path}"), method, body));
    }
    calls
}

#[tokio::test]
async fn every_call_of_the_guide_is_answered_as_it_says() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let calls = calls();
    assert_eq!(calls.len(), 9, "{calls:?}");
    for (path, method, body) in calls {
        let text = body.as_ref().map(Value::to_string).unwrap_or_default();
        let json = [("content-type", "application/json")];
        let answer = world.send(method.clone(), &path, Some(&key), &json, &text).await;
        // The run that it talks of is nobody's here.
        let expected = match path.contains("nightly.3.") {
            true => StatusCode::NOT_FOUND,
            false if method == Method::PUT => StatusCode::CREATED,
            false => StatusCode::OK,
        };
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text);
    }
    let shown = world.get("/v1/jobs/nightly", &key).await.json;
    assert_eq!((&shown["cost"], &shown["window"]["pace"]), (&json!(2), &json!("even")));
}
