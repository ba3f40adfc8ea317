//! How it starts, what it keeps, and what it says when it cannot.

use std::net::TcpListener;

use serde_json::Value;
use tidegate_client::{Client, Job, Target, Trigger};

use crate::endpoint::Endpoint;
use crate::process::{Tidegate, request, request_to, stderr};

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
    assert!(front.starts_with("HTTP/1.1 200") && front.contains("/v1/docs"), "{front}");
    let head = "POST / HTTP/1.1\r\nx-amz-target: AmazonSQS.CreateQueue";
    let made = request(sqs, head, r#"{"QueueName":"mine"}"#);
    assert!(made.contains(&format!("{sqs}/000000000000/mine")), "{made}");
    let admin = Client::new(api, addresses["admin_key"].as_str().unwrap()).unwrap();
    let acme = admin.register_client("acme", &[]).await.unwrap();
    let acme = Client::new(api, acme.api_key).unwrap();
    assert!(acme.jobs(None).await.unwrap().rows.is_empty());
}

#[tokio::test]
async fn queues_that_are_named_are_there_and_others_come_with_the_command_to_create_them() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--output", "json", "--queue", "work", "--queue", "line.fifo"];
    let mut tidegate = Tidegate::start(Some(folder.path()), &args);
    let addresses = addresses(&mut tidegate);
    let (api, sqs) = (addresses["api"].as_str().unwrap(), addresses["sqs"].as_str().unwrap());
    let url = |name: &str| format!("{sqs}/000000000000/{name}");
    assert_eq!(addresses["queues"], serde_json::json!([url("work"), url("line.fifo")]));
    let admin = Client::new(api, addresses["admin_key"].as_str().unwrap()).unwrap();
    let acme = Client::new(api, admin.register_client("acme", &[]).await.unwrap().api_key).unwrap();
    let put = async |queue_url: String| {
        let job = Job::new(Trigger::cron("@daily", "UTC"), Target::sqs(queue_url));
        acme.put_job("nightly", &job, None).await.map(drop).map_err(|error| error.to_string())
    };
    put(url("work")).await.unwrap();
    put(url("line.fifo")).await.unwrap();
    put(url("work").replace("127.0.0.1", "localhost")).await.unwrap();
    let missing = put(url("other")).await.unwrap_err();
    let fix = format!("--queue other, or: aws sqs create-queue --endpoint-url {sqs} --queue-name other");
    assert!(missing.contains(&fix), "{missing}");
    let foreign =
        put("https://sqs.eu-central-1.amazonaws.com/123456789012/work".to_owned()).await.unwrap_err();
    assert!(foreign.contains(&format!("write '{}'", url("work"))), "{foreign}");
}

#[test]
fn a_queue_that_is_there_is_kept_and_a_bad_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let args = ["--output", "json", "--queue", "work"];
        let addresses = addresses(&mut Tidegate::start(Some(folder.path()), &args));
        assert_eq!(addresses["queues"].as_array().unwrap().len(), 1);
    }
    for (name, says) in [
        ("a b", "'a b' cannot name a queue: use 1 to 80 letters, digits, '-' and '_'"),
        ("tidegate-dispatch", "'tidegate-dispatch' is the name of a queue of Tidegate itself"),
    ] {
        let refused = Tidegate::start(Some(folder.path()), &["--queue", name]).output();
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

#[test]
fn the_api_answers_no_web_page_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut tidegate = Tidegate::start(Some(folder.path()), &["--output", "json"]);
    let addresses = addresses(&mut tidegate);
    let api = addresses["api"].as_str().unwrap();
    let foreign = request(api, "GET /v1/health HTTP/1.1\r\norigin: https://evil.example", "");
    assert!(foreign.starts_with("HTTP/1.1 403") && foreign.contains("problem+json"), "{foreign}");
    let renamed = request_to(api, "evil.example", "GET /v1/health HTTP/1.1", "");
    assert!(
        renamed.starts_with("HTTP/1.1 421") && renamed.contains("answers only to 127.0.0.1"),
        "{renamed}"
    );
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
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a-key-of-my-own-choice").unwrap();
    assert_eq!(key(&["--admin-key-file", file.path().to_str().unwrap()]), Value::Null);
    assert_eq!(key(&[]), made);
}

#[test]
fn an_admin_key_is_no_argument_and_not_short() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Tidegate::start(Some(folder.path()), &["--admin-key", "a-key-of-my-own-choice"]).output();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("'--admin-key-file'"), "{}", stderr(&refused));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    let data = folder.path().join("data");
    let refused = Tidegate::start(Some(&data), &["--admin-key-file", file.path().to_str().unwrap()]).output();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("has 6 characters; give it at least 16"), "{}", stderr(&refused));
    assert!(!data.exists());
}

#[cfg(unix)]
#[test]
fn the_data_folder_and_its_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let mut tidegate = Tidegate::start(Some(&data), &["--output", "json"]);
    addresses(&mut tidegate);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    let files: Vec<_> = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    for name in ["dynamodb.db", "dynamodb.db-wal", "sqs.db", "sqs.db-wal", "admin-key", "tidegate.lock"] {
        assert!(files.contains(&data.join(name)), "{name} is not among {files:?}");
    }
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// Waits until the events of the job's first run have all come to their end; the first one as the API shows it.
async fn first_event(client: &Client, job: &str) -> tidegate_client::EventRecord {
    for _ in 0..600 {
        let run = client.runs(job, None).await.unwrap().rows.into_iter().next();
        if let Some(run) = run {
            let event = client.events(job, &run.run_id, None).await.unwrap().rows.into_iter().next();
            if let Some(event) = event.filter(|event| matches!(&*event.status, "delivered" | "dead")) {
                return event;
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the event of {job} comes to no end")
}

#[tokio::test]
async fn a_service_of_aws_is_called_only_where_a_variable_says_what_stands_in_for_it() {
    let endpoint =
        Endpoint::that_answers("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let stands_in = [("AWS_ENDPOINT_URL_LAMBDA", &*endpoint.url)];
    let function = "arn:aws:lambda:eu-west-1:123456789012:function:work";
    for variables in [&[][..], &stands_in[..]] {
        let folder = tempfile::tempdir().unwrap();
        let mut tidegate = Tidegate::start_with(Some(folder.path()), &["--output", "json"], variables);
        let addresses = addresses(&mut tidegate);
        let api = addresses["api"].as_str().unwrap();
        let admin = Client::new(api, addresses["admin_key"].as_str().unwrap()).unwrap();
        let acme = Client::new(api, admin.register_client("acme", &[]).await.unwrap().api_key).unwrap();
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let made = acme.put_job("work", &Job::new(Trigger::at(now), Target::lambda(function)), None).await;
        match variables {
            [] => {
                let refused = made.unwrap_err().to_string();
                assert!(refused.contains("set AWS_ENDPOINT_URL_LAMBDA or AWS_ENDPOINT_URL to"), "{refused}");
            }
            _ => {
                made.unwrap();
                let event = first_event(&acme, "work").await;
                assert_eq!(event.status, "delivered", "{event:?}");
                endpoint.wait_for_a_call();
            }
        }
    }
}

/// A job of one event that is due now.
async fn call_webhook(client: &Client, url: &str) {
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let job = Job::new(Trigger::at(now), Target::http(url));
    client.put_job("hook", &job, None).await.unwrap();
}

#[tokio::test]
async fn webhooks_on_this_machine_are_called_unless_they_are_denied() {
    for (args, status) in
        [(&["--output", "json"][..], "delivered"), (&["--output", "json", "--deny-private-targets"], "dead")]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut tidegate = Tidegate::start(Some(folder.path()), args);
        let addresses = addresses(&mut tidegate);
        assert_eq!(addresses["private_targets"], status == "delivered");
        let api = addresses["api"].as_str().unwrap();
        let admin = Client::new(api, addresses["admin_key"].as_str().unwrap()).unwrap();
        let acme = Client::new(api, admin.register_client("acme", &[]).await.unwrap().api_key).unwrap();
        call_webhook(
            &acme,
            &Endpoint::that_answers("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").url,
        )
        .await;
        let event = first_event(&acme, "hook").await;
        assert_eq!(event.status, status, "{event:?}");
    }
}

#[tokio::test]
async fn the_fullest_log_holds_no_secret_and_no_colour_codes() {
    let folder = tempfile::tempdir().unwrap();
    let mut tidegate = Tidegate::start_logging(Some(folder.path()), &["--output", "json"], "trace");
    let addresses = addresses(&mut tidegate);
    let (api, admin_key) = (addresses["api"].as_str().unwrap(), addresses["admin_key"].as_str().unwrap());
    let acme = Client::new(api, admin_key).unwrap().register_client("acme", &[]).await.unwrap();
    let client = Client::new(api, &acme.api_key).unwrap();
    call_webhook(
        &client,
        &Endpoint::that_answers("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").url,
    )
    .await;
    first_event(&client, "hook").await;
    tidegate.interrupt();
    let log = stderr(&tidegate.output());
    assert!(log.contains("TRACE tidegate") || log.contains("DEBUG tidegate"), "{log}");
    for secret in [admin_key, &acme.api_key, &acme.webhook_secret] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    assert!(!log.contains('\u{1b}'), "a log that is no terminal has colour codes");
}

#[test]
fn a_fresh_folder_has_no_last_process_to_take_over_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut tidegate = Tidegate::start(Some(folder.path()), &["--output", "json"]);
    addresses(&mut tidegate);
    tidegate.interrupt();
    let log = stderr(&tidegate.output());
    assert!(log.contains("ready") && !log.contains("took over"), "{log}");
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

#[test]
fn each_tick_tells_the_address_that_watches_it_and_what_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let watched = Endpoint::that_answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let args = ["--output", "json", "--heartbeat", &watched.url];
    let mut tidegate = Tidegate::start(Some(folder.path()), &args);
    addresses(&mut tidegate);
    watched.wait_for_a_call();
    let refused = Tidegate::start(None, &["--heartbeat", "hc-ping.com/secret"]).output();
    let says = "it is no URL that begins with https:// or http://";
    assert!(!refused.status.success() && stderr(&refused).contains(says), "{}", stderr(&refused));
}
