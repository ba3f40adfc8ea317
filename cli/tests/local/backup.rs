//! A copy of the data folder: what was answered before it was asked for is in it, and goes on where it is started.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_client::{Client, Job, Policy, Target, Trigger};

use crate::process::{Tidegate, request, stderr};

/// How long what must happen may take, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn back_up(data: &Path, to: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["backup", "--output", "json", "--data"]).arg(data).arg(to);
    command.env_remove("TIDEGATE_LOG").env_remove("TIDEGATE_DATA").output().unwrap()
}

fn start(data: &Path) -> (Tidegate, Value) {
    let mut tidegate = Tidegate::start(Some(data), &["--output", "json", "--queue", "work"]);
    let addresses = serde_json::from_str(&tidegate.first_line()).unwrap();
    (tidegate, addresses)
}

fn in_seconds(seconds: i64) -> Trigger {
    let at = Utc::now() + TimeDelta::seconds(seconds);
    Trigger::at(at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// The events that hold the policy's tokens, once there are two that `is_awaited` takes.
async fn holders(client: &Client, is_awaited: impl Fn(&BTreeSet<String>) -> bool) -> BTreeSet<String> {
    let started = Instant::now();
    loop {
        let holders = client.holders("gentle").await.unwrap();
        let events: BTreeSet<_> = holders.into_iter().map(|holder| holder.event_id).collect();
        assert!(events.len() <= 2, "the limit was passed: {events:?}");
        if events.len() == 2 && is_awaited(&events) {
            return events;
        }
        assert!(started.elapsed() < PATIENCE, "only {events:?} hold tokens");
    }
}

/// Jobs whose events lie in the queue, which keeps them from who asks next.
fn received(sqs: &str) -> Vec<String> {
    let body = json!({
        "QueueUrl": format!("{sqs}/000000000000/work"), "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20,
        "VisibilityTimeout": 600,
    });
    let answer = request(sqs, "POST / HTTP/1.1\r\nx-amz-target: AmazonSQS.ReceiveMessage", &body.to_string());
    let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
    let job = |message: &Value| {
        let event: Value = serde_json::from_str(message["Body"].as_str().unwrap()).unwrap();
        event["job_id"].as_str().unwrap().to_owned()
    };
    messages.iter().map(job).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_is_made_while_jobs_are_created_has_those_answered_before_and_they_fire() {
    let scratch = tempfile::tempdir().unwrap();
    let (data, copy) = (scratch.path().join("data"), scratch.path().join("copies/one"));
    let (tidegate, addresses) = start(&data);
    let admin_key = addresses["admin_key"].as_str().unwrap();
    let admin = Client::new(addresses["api"].as_str().unwrap(), admin_key).unwrap();
    let key = admin.register_client("acme", &[]).await.unwrap().api_key;
    let acme = Client::new(addresses["api"].as_str().unwrap(), &key).unwrap();
    let target = Target::sqs(addresses["queues"][0].as_str().unwrap());
    let gentle = Policy { lease_seconds: Some(600), ..Policy::new(2) };
    acme.create_policy("gentle", &gentle).await.unwrap();
    let batch = Job::new(in_seconds(0), target.clone()).count(6).policy("gentle");
    acme.put_job("batch", &batch, None).await.unwrap();
    let held = holders(&acme, |_| true).await;

    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let creating = {
        let (answered, acme) = (Arc::clone(&answered), acme.clone());
        tokio::spawn(async move {
            let soon = Job::new(in_seconds(10), target);
            // Until the process is killed.
            for number in 0.. {
                let job = format!("job-{number}");
                let Ok(_) = acme.put_job(&job, &soon, None).await else { return };
                answered.lock().unwrap().insert(job);
            }
        })
    };
    while answered.lock().unwrap().len() < 50 {
        assert!(!creating.is_finished(), "no jobs are created");
        tokio::task::yield_now().await;
    }
    let before = answered.lock().unwrap().clone();
    let made = back_up(&data, &copy);
    assert!(made.status.success(), "{}", stderr(&made));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["folder"], copy.to_str().unwrap());
    assert!(made["bytes"].as_u64().unwrap() > 0, "{made}");
    // As a power switch does it: no handler runs.
    drop(tidegate);
    creating.await.unwrap();
    assert!(answered.lock().unwrap().len() > before.len(), "no job was created meanwhile");

    let (_tidegate, addresses) = start(&copy);
    assert_eq!(addresses["admin_key"], admin_key);
    let acme = Client::new(addresses["api"].as_str().unwrap(), &key).unwrap();
    assert_eq!(holders(&acme, |_| true).await, held);
    for job in &before {
        acme.job(job).await.unwrap();
    }
    let token = acme.holders("gentle").await.unwrap().remove(0).token;
    acme.release(&[token]).await.unwrap();
    holders(&acme, |events| *events != held).await;

    let (mut awaited, started) = (before, Instant::now());
    while !awaited.is_empty() {
        assert!(
            started.elapsed() < PATIENCE,
            "{} jobs never fired, such as {:?}",
            awaited.len(),
            awaited.first()
        );
        for job in received(addresses["sqs"].as_str().unwrap()) {
            awaited.remove(&job);
        }
    }
}

#[test]
fn a_folder_that_nobody_runs_on_is_copied_too() {
    let scratch = tempfile::tempdir().unwrap();
    let (data, copy) = (scratch.path().join("data"), scratch.path().join("copy"));
    let (tidegate, addresses) = start(&data);
    drop(tidegate);
    let made = back_up(&data, &copy);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(start(&copy).1["admin_key"], addresses["admin_key"]);
}

#[test]
fn what_is_no_data_folder_or_not_empty_is_refused_with_the_fix() {
    let scratch = tempfile::tempdir().unwrap();
    let (data, full) = (scratch.path().join("data"), scratch.path().join("full"));
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("theirs"), "kept").unwrap();
    let refused = |data: &Path, to: &Path, says: &str| {
        let refused = back_up(data, to);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    };
    refused(&full, &scratch.path().join("copy"), "is no data folder of tidegate local: name one with --data");
    let (tidegate, _) = start(&data);
    refused(&data, &full, "is there and is no empty folder: name one that does not exist, or is empty");
    refused(&data, &data.join("copy"), "lies in the data folder: name a folder outside of it");
    drop(tidegate);
    refused(&data, &full, "is there and is no empty folder: name one that does not exist, or is empty");
}

#[test]
fn only_the_owner_of_the_folder_gets_a_backup() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let (_tidegate, addresses) = start(&data);
    let body = json!({ "folder": scratch.path().join("copy") }).to_string();
    let admin_key = addresses["admin_key"].as_str().unwrap();
    for key in ["", &format!("\r\nauthorization: Bearer {admin_key}")] {
        let head = format!("POST /local/backup HTTP/1.1\r\ncontent-type: application/json{key}");
        let refused = request(addresses["api"].as_str().unwrap(), &head, &body);
        assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("problem+json"), "{refused}");
    }
    assert!(!scratch.path().join("copy").exists());
}

#[test]
fn a_folder_whose_process_cannot_be_asked_is_said_to_be_in_use() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let (_tidegate, _) = start(&data);
    // What a process left that ended: nobody is at its address, or somebody else.
    let stale = json!({ "api": "http://127.0.0.1:1", "owner_key": "tgowner_0" });
    std::fs::write(data.join("running.json"), stale.to_string()).unwrap();
    let refused = back_up(&data, &scratch.path().join("copy"));
    assert_eq!(refused.status.code(), Some(1));
    let says = "is in use by a process that takes no backups: wait until tidegate local is ready";
    assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
}
