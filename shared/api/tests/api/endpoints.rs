//! What endpoints do to a call, and what their clients read of it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{World, at_job};

type Calls = Arc<Mutex<Vec<(String, Value)>>>;

/// An endpoint whose paths say what it does, and the calls that reached it.
async fn endpoint() -> (String, Calls) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let calls = Calls::default();
    let routes = Router::new()
        .route("/{*path}", axum::routing::any(answer))
        .with_state((Arc::clone(&calls), address.port()));
    tokio::spawn(axum::serve(listener, routes).into_future());
    (format!("http://{address}"), calls)
}

async fn answer(
    State((calls, port)): State<(Calls, u16)>,
    Path(path): Path<String>,
    body: Bytes,
) -> (StatusCode, HeaderMap) {
    calls.lock().unwrap().push((path.clone(), serde_json::from_slice(&body).unwrap_or_default()));
    let to = |status, location: String| {
        (status, HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(&location).unwrap())]))
    };
    match &*path {
        "moved" => to(StatusCode::TEMPORARY_REDIRECT, "/here".to_owned()),
        "moved-for-good" => to(StatusCode::PERMANENT_REDIRECT, format!("http://127.0.0.1:{port}/here")),
        "twice" => to(StatusCode::TEMPORARY_REDIRECT, "/moved".to_owned()),
        "see-other" => to(StatusCode::SEE_OTHER, "/here".to_owned()),
        // Another name of the same machine is another host.
        "elsewhere" => to(StatusCode::TEMPORARY_REDIRECT, format!("http://localhost:{port}/here")),
        _ => (StatusCode::OK, HeaderMap::new()),
    }
}

/// The status and the reason of the event of a job that is due now and goes to a URL.
async fn delivered(world: &World, key: &str, name: &str, url: &str) -> (Value, String) {
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["target"] = json!({"http": {"url": url}});
    job["retry"] = json!({"backoff": "none"});
    let made = world.put(&format!("/v1/jobs/{name}"), key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
    let run = world.get(&format!("/v1/jobs/{name}/runs"), key).await.json["runs"][0]["run_id"].clone();
    let events = format!("/v1/jobs/{name}/runs/{}/events", run.as_str().unwrap());
    let event = world.get(&events, key).await.json["events"][0].clone();
    (event["status"].clone(), event["reason"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn one_redirect_is_followed_that_keeps_the_call_and_the_host() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let (url, calls) = endpoint().await;
    for (path, status, reached) in [
        ("moved", "delivered", vec!["moved", "here"]),
        ("moved-for-good", "delivered", vec!["moved-for-good", "here"]),
        ("twice", "dead", vec!["twice", "moved"]),
        ("see-other", "dead", vec!["see-other"]),
        ("elsewhere", "dead", vec!["elsewhere"]),
    ] {
        calls.lock().unwrap().clear();
        let (ended, reason) = delivered(&world, &key, path, &format!("{url}/{path}")).await;
        assert_eq!(ended, status, "{path}: {reason}");
        let calls = calls.lock().unwrap();
        assert_eq!(calls.iter().map(|(path, _)| &**path).collect::<Vec<_>>(), reached);
        assert!(calls.iter().all(|(_, body)| body["job_id"] == path), "the body goes along: {calls:?}");
        assert_eq!(reason.contains("one redirect is followed"), status == "dead", "{reason}");
    }
}

#[tokio::test]
async fn a_connection_that_fails_says_what_happened() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (name, url, says) in [
        ("refused", format!("http://{closed}/"), "connection refused: nothing listens at the address"),
        ("nowhere", "http://no-such-host.invalid/".to_owned(), "the host name was not found"),
    ] {
        let (status, reason) = delivered(&world, &key, name, &url).await;
        assert_eq!((status, &*reason), (json!("dead"), says));
    }
}
