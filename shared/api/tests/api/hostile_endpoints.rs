//! Endpoints that hang, lie, flood or lead elsewhere: each harms its own event, and its client reads what happened.

use std::convert::Infallible;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::hook::Hook;
use crate::world::{World, at_job};

/// What an endpoint does with a connection once it has read a request's head.
#[derive(Clone, Copy)]
enum Does {
    /// Closes it without a word, and resets it where the system lets it.
    Resets,
    /// Sends this and closes.
    Says(&'static [u8]),
    /// Sends this, then this again and again, for as long as somebody reads.
    Floods(&'static [u8], &'static [u8]),
    /// Sends this, and then nothing.
    Hangs(&'static [u8]),
}

/// An endpoint on loopback that knows no HTTP.
async fn endpoint(does: Does) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(connection, does));
        }
    });
    format!("http://{address}/hook?key=hidden")
}

async fn serve(mut connection: TcpStream, does: Does) -> Option<Infallible> {
    let mut head = [0; 65_536];
    let _read = connection.read(&mut head).await.ok()?;
    match does {
        Does::Resets => connection.set_zero_linger().ok()?,
        Does::Says(text) => connection.write_all(text).await.ok()?,
        Does::Floods(first, again) => {
            connection.write_all(first).await.ok()?;
            loop {
                connection.write_all(again).await.ok()?;
            }
        }
        Does::Hangs(text) => {
            connection.write_all(text).await.ok()?;
            std::future::pending::<()>().await;
        }
    }
    None
}

/// Sends one event there, and says how it ended and what was kept of the call.
async fn sent(world: &World, key: &str, name: &str, url: &str) -> (String, Value) {
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["target"] = json!({"http": {"url": url, "timeout_seconds": 1}});
    job["retry"] = json!({"backoff": "none"});
    let made = world.put(&format!("/v1/jobs/{name}"), key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
    let events = format!("/v1/jobs/{name}/runs/{name}.1.1795262400/events");
    let event = world.get(&events, key).await.json["events"][0].clone();
    let failures = world.get(&format!("/v1/events/{name}.1.1795262400.0/failures"), key).await;
    assert_eq!(failures.status, StatusCode::OK, "{}", failures.text);
    (event["status"].as_str().unwrap().to_owned(), failures.json["failures"].clone())
}

#[tokio::test]
async fn what_an_endpoint_does_to_a_call_ends_its_own_event_with_a_reason() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let long: &[u8] = &[b'x'; 65_536];
    for (name, does, status, says, answer) in [
        ("resets", Does::Resets, Value::Null, "the connection was closed before an answer came", json!(null)),
        (
            "silent",
            Does::Says(b""),
            Value::Null,
            "the connection was closed before an answer came",
            json!(null),
        ),
        (
            "babbles",
            Does::Says(b"SSH-2.0-dropbear\r\n"),
            Value::Null,
            "no answer that can be read",
            json!(null),
        ),
        (
            "short",
            Does::Says(b"HTTP/1.1 500 Oops\r\ncontent-length: 9999\r\n\r\nhalf a wo"),
            json!(500),
            "the endpoint answered 500 Internal Server Error",
            json!("half a wo"),
        ),
        (
            "floods",
            Does::Floods(b"HTTP/1.1 404 Gone\r\ntransfer-encoding: chunked\r\n\r\n", b"4\r\nabcd\r\n"),
            json!(404),
            "the endpoint answered 404 Not Found",
            json!("abcd".repeat(256)),
        ),
        (
            "ten-gigabytes",
            Does::Floods(b"HTTP/1.1 400 No\r\ncontent-length: 10000000000\r\n\r\n", long),
            json!(400),
            "the endpoint answered 400 Bad Request",
            json!("x".repeat(1_024)),
        ),
        (
            "endless-head",
            Does::Floods(b"HTTP/1.1 200 OK\r\nx: ", long),
            Value::Null,
            "no answer that can be read",
            json!(null),
        ),
        (
            "binary",
            Does::Says(b"HTTP/1.1 410 Gone\r\ncontent-length: 4\r\n\r\n\xff\xfe\0\xc3"),
            json!(410),
            "the endpoint answered 410 Gone",
            json!("\u{fffd}\u{fffd}\0"),
        ),
    ] {
        let url = endpoint(does).await;
        let (ended, failures) = sent(&world, &key, name, &url).await;
        assert_eq!(ended, "dead", "{name}: {failures}");
        let failed = &failures[0];
        assert_eq!((&failed["status"], &failed["answer"]), (&status, &answer), "{name}: {failed}");
        assert!(failed["reason"].as_str().unwrap().starts_with(says), "{name}: {failed}");
        assert!(failed["took_ms"].is_u64() && failed["attempt"] == 1, "{name}: {failed}");
    }
    // What it takes is taken, however much it says.
    let flood = Does::Floods(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n", long);
    let (ended, failures) = sent(&world, &key, "well", &endpoint(flood).await).await;
    assert_eq!((&*ended, failures), ("delivered", json!([])));
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_left_in_time() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let hangs = endpoint(Does::Hangs(b"HTTP/1.1 200 OK\r\n")).await;
    let (ended, failures) = sent(&world, &key, "hangs", &hangs).await;
    assert_eq!((&*ended, &failures[0]["reason"]), ("dead", &json!("no answer within 1 s")));
    let drips = endpoint(Does::Hangs(b"HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\nplease")).await;
    let (ended, failures) = sent(&world, &key, "drips", &drips).await;
    let said = &failures[0];
    assert_eq!((&*ended, &said["status"], &said["answer"]), ("dead", &json!(503), &json!("please")));
}

#[tokio::test]
async fn every_failed_delivery_is_kept_and_shown_with_its_dead_letter_unless_nothing_is() {
    for (name, is_throttled, history, kept) in [
        ("plain", false, "all", 3),
        ("throttled", true, "failures", 3),
        ("forgotten", false, "none", 0),
        ("forgotten-too", true, "none", 0),
    ] {
        let world = World::new().await;
        let key = world.register("acme").await;
        assert_eq!(world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await.status, 201);
        let hook = Hook::answering(&[500, 502, 404]).await;
        let mut job = if is_throttled { hook.throttled_job(1) } else { hook.job(1) };
        job["retry"] = json!({"backoff": "fixed", "wait_seconds": 10});
        job["history"] = json!(history);
        let made = world.put(&format!("/v1/jobs/{name}"), &key, &job).await;
        assert_eq!(
            (made.status, &made.json["history"]),
            (StatusCode::CREATED, &json!(history)),
            "{}",
            made.text
        );
        world.dispatch().await;
        for _ in 0..3 {
            world.clock.advance_ms(11_000);
            world.dispatch().await;
        }
        world.minutes(1).await;
        assert_eq!(hook.calls().len(), 3, "{name}");
        let event = format!("{name}.1.1795262400.0");
        let listed = world.get(&format!("/v1/events/{event}/failures"), &key).await.json["failures"].clone();
        let statuses: Vec<&Value> =
            listed.as_array().unwrap().iter().map(|failed| &failed["status"]).collect();
        let expected = [json!(500), json!(502), json!(404)];
        assert_eq!(statuses, expected.iter().take(kept).collect::<Vec<_>>(), "{name}: {listed}");
        let letter = world.get(&format!("/v1/dead-letters/{event}"), &key).await;
        assert_eq!((letter.status, &letter.json["failures"]), (StatusCode::OK, &listed), "{}", letter.text);
        let other = world.register("other").await;
        let theirs = world.get(&format!("/v1/events/{event}/failures"), &other).await.json;
        assert_eq!(theirs["failures"], json!([]), "they are one client's");
    }
}
