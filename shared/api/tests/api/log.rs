//! What a request leaves in the log: one line that says who, what and how it ended, and no secret.

use std::io;
use std::sync::{Arc, Mutex};

use http::{Method, StatusCode};
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{World, cron_job};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

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
