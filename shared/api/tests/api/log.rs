//! What a request leaves in the log: one line that says who, what and how it ended, and no secret.

use std::io;
use std::sync::{Arc, Mutex};

use http::{Method, StatusCode};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::hook::Hook;
use crate::world::{World, cron_job};

#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// What was logged so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_request_is_one_line_with_its_id_client_route_and_status_and_no_secret() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let answer = world.send(Method::GET, "/v1/jobs/nightly?cursor=secret", Some(&key), &[], "").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let id = answer.header("x-request-id").to_owned();
    assert_eq!(world.put("/v1/jobs/nightly", &key, &cron_job()).await.status, StatusCode::CREATED);
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<&str> = log.lines().filter(|line| line.contains(&id)).collect();
    assert_eq!(ours.len(), 1, "{log}");
    for part in ["method=GET", "route=\"/v1/jobs/{job_id}\"", "client=\"acme\"", "status=404", "latency_ms="]
    {
        assert!(ours[0].contains(part), "{part}: {log}");
    }
    for secret in [key.as_str(), "secret", "report"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_logged_with_its_reason() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    world.cut_off();
    let answer = world.get("/v1/jobs", &key).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(
        log.contains("the store is not available") && log.contains(answer.header("x-request-id")),
        "{log}"
    );
}

/// The lines that say a phrase.
fn saying<'l>(log: &'l str, phrase: &str) -> Vec<&'l str> {
    log.lines().filter(|line| line.contains(phrase)).collect()
}

#[tokio::test]
async fn events_that_die_leave_one_line_for_each_job_and_message() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let hook = Hook::answering(&[404; 40]).await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    for job in ["first", "second"] {
        let mut body = hook.job(20);
        body["payload"] = json!("do not tell");
        assert_eq!(world.put(&format!("/v1/jobs/{job}"), &key, &body).await.status, StatusCode::CREATED);
    }
    world.dispatch().await;
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let dead = saying(&log, "events cannot be delivered");
    assert_eq!(dead.len(), 2, "{log}");
    for (line, job) in dead.iter().zip(["first", "second"]) {
        let run = format!("{job}.1.1795262400");
        for part in [
            " WARN ",
            "client=acme",
            &format!("job={job} "),
            &format!("run={run} "),
            &format!("event={run}."),
            "target=\"http\"",
            "attempts=1",
            "reason=\"the endpoint answered 404 Not Found\"",
            "dead_events=20",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    for secret in ["hidden", "do not tell", "whsec_"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[tokio::test]
async fn a_throttled_event_that_is_tried_again_and_dies_says_whose_it_is_each_time() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 1})).await;
    let hook = Hook::answering(&[503, 503]).await;
    let mut job = hook.throttled_job(1);
    job["max_attempts"] = json!(2);
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    assert_eq!(world.put("/v1/jobs/batch", &key, &job).await.status, StatusCode::CREATED);
    world.dispatch().await;
    world.clock.advance_ms(3_000);
    world.dispatch().await;
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let (again, dead) = (saying(&log, "events are tried again"), saying(&log, "events cannot be delivered"));
    assert_eq!((again.len(), dead.len()), (1, 1), "{log}");
    let whose = "client=acme job=batch run=batch.1.1795262400 event=batch.1.1795262400.0 policy=small target=\"http\"";
    let reason = "reason=\"the endpoint answered 503 Service Unavailable\"";
    assert!(again[0].contains(&format!("{whose} attempts=1 {reason} events=1")), "{log}");
    assert!(dead[0].contains(&format!("{whose} attempts=2 {reason} dead_events=1")), "{log}");
    assert!(!log.contains("hidden"), "{log}");
}
