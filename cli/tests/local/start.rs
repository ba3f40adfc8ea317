//! How it starts, what it keeps, and what it says when it cannot.

use std::net::TcpListener;

use serde_json::Value;
use tidegate_client::Client;

use crate::process::{Tidegate, request, stderr};

fn addresses(tidegate: &mut Tidegate) -> Value {
    let line = tidegate.first_line();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[tokio::test]
async fn it_serves_the_api_the_queues_and_a_front_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut tidegate = Tidegate::start(Some(folder.path()), &["--output", "json"]);
    let addresses = addresses(&mut tidegate);
    let (api, sqs) = (addresses["api"].as_str().unwrap(), addresses["sqs"].as_str().unwrap());
    let front = request(api, "GET / HTTP/1.1", "");
    assert!(front.starts_with("HTTP/1.1 200") && front.contains("/v1/openapi.json"), "{front}");
    let head = "POST / HTTP/1.1\r\nx-amz-target: AmazonSQS.CreateQueue";
    let made = request(sqs, head, r#"{"QueueName":"mine"}"#);
    assert!(made.contains(&format!("{sqs}/000000000000/mine")), "{made}");
    let admin = Client::new(api, addresses["admin_key"].as_str().unwrap()).unwrap();
    let acme = admin.register_client("acme", &[]).await.unwrap();
    let acme = Client::new(api, acme.api_key).unwrap();
    assert!(acme.jobs(None).await.unwrap().rows.is_empty());
}

#[test]
fn the_admin_key_is_kept_and_a_given_one_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let key = |args: &[&str]| {
        let args = [&["--output", "json"], args].concat();
        addresses(&mut Tidegate::start(Some(folder.path()), &args))["admin_key"].clone()
    };
    let made = key(&[]);
    assert!(made.as_str().unwrap().starts_with("tgadmin_"));
    assert_eq!(key(&["--admin-key", "mine"]), Value::Null);
    assert_eq!(key(&[]), made);
}

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Tidegate::start(Some(folder.path()), &["--output", "json"]);
    addresses(&mut first);
    let second = Tidegate::start(Some(folder.path()), &[]).output();
    assert_eq!(second.status.code(), Some(1));
    let says = stderr(&second);
    let expected = format!(
        "tidegate: failed to open {}: another process is using this data folder\n",
        folder.path().display()
    );
    assert!(says.ends_with(&expected), "{says}");
    assert!(second.stdout.is_empty());
}

#[test]
fn a_port_that_is_taken_is_named_and_no_folder_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (option, what) in [("--port", "the API"), ("--sqs-port", "the queues")] {
        let refused = Tidegate::start(Some(&data), &[option, &port]).output();
        assert_eq!(refused.status.code(), Some(1));
        let says = stderr(&refused);
        let expected = format!(
            "failed to listen on 127.0.0.1:{port} for {what}: choose another port with {option} (0 takes"
        );
        assert!(says.contains(&expected) && says.contains("in use"), "{says}");
        assert!(!data.exists());
    }
}

#[cfg(unix)]
#[test]
fn an_idle_process_ends_promptly_and_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut tidegate = Tidegate::start(Some(folder.path()), &["--output", "json"]);
    addresses(&mut tidegate);
    let interrupted = std::time::Instant::now();
    tidegate.interrupt();
    let output = tidegate.output();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(interrupted.elapsed() < std::time::Duration::from_secs(3), "{:?}", interrupted.elapsed());
}
