//! The demonstration keeps its promises, undisturbed and killed at any moment.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Tidegate, request, stderr, stdout};

/// The one JSON object on stdout.
fn summary(output: &Output) -> Value {
    let text = stdout(output);
    assert_eq!(text.lines().count(), 1, "{text}{}", stderr(output));
    serde_json::from_str(&text).unwrap()
}

fn number(summary: &Value, field: &str) -> u64 {
    summary[field].as_u64().unwrap_or_else(|| panic!("{field} in {summary}"))
}

#[test]
fn a_demonstration_delivers_everything_once_and_keeps_the_limit() {
    let args = ["--demo", "--for", "5s", "--work-ms", "150", "--output", "json"];
    let output = Tidegate::start(None, &args).output();
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = summary(&output);
    let fields: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    let promised = [
        "delivered",
        "due",
        "duplicates",
        "lateness_ms",
        "limit",
        "look_around",
        "lost",
        "max_in_flight",
        "released",
    ];
    assert_eq!(fields.into_iter().collect::<BTreeSet<_>>(), promised.into());
    // A minute may have begun meanwhile.
    let due = number(&summary, "due");
    assert!((20..=21).contains(&due), "{summary}");
    assert_eq!((number(&summary, "delivered"), number(&summary, "released")), (due, due), "{summary}");
    assert_eq!((number(&summary, "lost"), number(&summary, "duplicates")), (0, 0), "{summary}");
    assert_eq!((number(&summary, "max_in_flight"), number(&summary, "limit")), (3, 3), "{summary}");
    for percentile in ["p50", "p99", "max"] {
        let late_ms = summary["lateness_ms"][percentile].as_i64().unwrap();
        assert!((0..3_000).contains(&late_ms), "{summary}");
    }
}

#[test]
fn what_still_waits_at_the_end_is_not_lost() {
    let args = ["--demo", "--for", "3s", "--work-ms", "900", "--output", "json"];
    let output = Tidegate::start(None, &args).output();
    let summary = summary(&output);
    assert!(output.status.success(), "{summary}");
    assert!(number(&summary, "delivered") < 20, "{summary}");
    assert_eq!((number(&summary, "lost"), number(&summary, "max_in_flight")), (0, 3), "{summary}");
    assert_eq!(number(&summary, "delivered"), number(&summary, "released"), "what was in hand is finished");
}

#[cfg(unix)]
#[test]
fn its_api_can_be_explored_beside_it_with_the_calls_that_it_prints() {
    let mut tidegate = Tidegate::start(None, &["--demo", "--work-ms", "900"]);
    let lines = tidegate.lines_until("why the last event waits");
    let calls: Vec<(&str, &str)> = lines
        .iter()
        .skip_while(|line| !line.starts_with("Look around"))
        .filter_map(|line| call(line))
        .collect();
    assert_eq!(calls.len(), 4, "{lines:?}");
    for ((url, key), part) in
        calls.into_iter().zip(["\"jobs\":", "\"runs\":", "\"policy_id\":", "\"because\":"])
    {
        let (origin, path) = url.split_at(url.find("/v1/").unwrap());
        let answer = request(origin, &format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {key}"), "");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(part), "{url}: {answer}");
    }
    tidegate.interrupt();
    assert!(tidegate.output().status.success());
}

/// The URL and the key of a printed call.
fn call(line: &str) -> Option<(&str, &str)> {
    let (url, rest) = line.trim().strip_prefix("curl -s ")?.split_once(" -H 'authorization: Bearer ")?;
    Some((url, rest.split_once('\'')?.0))
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_with_the_summary() {
    let mut tidegate = Tidegate::start(None, &["--demo", "--work-ms", "100"]);
    assert!(tidegate.first_line().contains("runs on this machine"));
    let interrupted = Instant::now();
    tidegate.interrupt();
    let output = tidegate.output();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(interrupted.elapsed() < Duration::from_secs(8), "{:?}", interrupted.elapsed());
    assert!(stdout(&output).ends_with("Nothing was lost and the limit was kept.\n"), "{}", stdout(&output));
}

/// What the consumer wrote down, counted anew: events whose token is free again, and the most that were in flight.
fn book(folder: &Path) -> (usize, usize) {
    let text = std::fs::read_to_string(folder.join("demo-book.jsonl")).unwrap_or_default();
    let (mut in_flight, mut finished, mut released) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut most = 0;
    for entry in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let event = |kind: &str| entry[kind]["event"].as_str().map(str::to_owned);
        if let Some(event) = event("arrived") {
            if entry["arrived"]["throttled"] == true && !finished.contains(&event) {
                in_flight.insert(event);
                most = most.max(in_flight.len());
            }
        } else if let Some(event) = event("finished") {
            in_flight.remove(&event);
            finished.insert(event);
        } else if let Some(event) = event("released").filter(|event| event.starts_with("batch-of-twenty")) {
            released.insert(event);
        }
    }
    (released.len(), most)
}

/// Kills it at moments that follow from `seed`, then lets it finish.
#[cfg(unix)]
fn survives_kills(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--demo", "--work-ms", "250", "--lease-seconds", "10", "--output", "json"];
    let mut random = seed;
    for _ in 0..6 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lives_ms = 100 + (random >> 33) % 1_400;
        Tidegate::start(Some(folder.path()), &args).kill_after(Duration::from_millis(lives_ms));
    }
    let started = Instant::now();
    let summary = loop {
        let args = [&args[..], &["--for", "3s"]].concat();
        let output = Tidegate::start(Some(folder.path()), &args).output();
        let summary = summary(&output);
        assert!(output.status.success(), "seed {seed}: {summary} {}", stderr(&output));
        if book(folder.path()).0 == 20 {
            break summary;
        }
        // What was sent to nobody waits for the end of its lease, ten seconds, and for the next look, five more.
        assert!(started.elapsed() < Duration::from_secs(20), "seed {seed}: {summary}");
    };
    assert_eq!(number(&summary, "lost"), 0, "seed {seed}: {summary}");
    assert_eq!(number(&summary, "delivered"), number(&summary, "due"), "seed {seed}: {summary}");
    assert_eq!(number(&summary, "released"), number(&summary, "due"), "seed {seed}: {summary}");
    let (released, most) = book(folder.path());
    assert_eq!((released, most), (20, 3), "seed {seed}: {summary}");
    assert_eq!(number(&summary, "max_in_flight"), 3, "seed {seed}: {summary}");
}

#[cfg(unix)]
#[test]
fn kills_at_any_moment_lose_nothing_and_keep_the_limit_1() {
    survives_kills(1);
}

#[cfg(unix)]
#[test]
fn kills_at_any_moment_lose_nothing_and_keep_the_limit_2() {
    survives_kills(2);
}

#[cfg(unix)]
#[test]
fn kills_at_any_moment_lose_nothing_and_keep_the_limit_3() {
    survives_kills(3);
}
