//! `tidegate forecast`, the real binary: what it prints, what it refuses, and that its sums agree.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a helper cannot do is a failed test")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

mod output;
mod scale;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

const POLICIES: &str = r#"{"policy_id":"mail","max_in_flight":10,"work_seconds":2,"released_together":10}
{"policy_id":"slow","max_in_flight":2,"work_seconds":30}
"#;

const JOBS: &str = r#"{"id":"nightly","expression":"0 3 * * *","zone":"Europe/Berlin"}
{"job_id":"report","trigger":{"cron":"0 6 * * *"},"count":2000,"policy_id":"mail"}
{"job_id":"slow-one","trigger":{"cron":"*/10 * * * *"},"count":5,"policy_id":"slow"}
{"job_id":"batch","trigger":{"cron":"0 12 * * *"},"count":5000}
{"job_id":"ping","trigger":{"rate":"1 minute"},"policy_id":"mail"}
{"trigger":{"at":["2026-05-01T12:00:00Z","2026-05-01T13:00:00Z"]}}
{"job_id":"asleep","trigger":{"cron":"0 18 * * *"},"paused":true}
"#;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

/// One of the project's documents.
fn document(name: &str) -> String {
    let docs = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

/// Runs it over a day of jobs, with more arguments.
fn run(jobs: &str, more: &[&str]) -> Output {
    let jobs = file(jobs);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["forecast", "--jobs", path(&jobs), "--from", "2026-05-01", "--to", "2026-05-02"]);
    command.args(more).env_remove("TIDEGATE_LOG").stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && says.is_empty(), "{says}");
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn forecast(jobs: &str, more: &[&str]) -> Value {
    let policies = file(POLICIES);
    let output = run(jobs, &[&["--policies", path(&policies), "--output", "json"], more].concat());
    serde_json::from_str(stdout(&output)).unwrap()
}

pub(crate) fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is no number"))
}

#[test]
fn it_counts_what_fires() {
    let found = forecast(JOBS, &[]);
    // A run of 2,000, 144 of 5, one of 5,000, two one-time jobs, the nightly one, and a beat that begins a minute after midnight.
    let events = 2_000 + 144 * 5 + 5_000 + 2 + 1 + 1_439;
    let firings = 1 + 144 + 1 + 2 + 1 + 1_439;
    for (what, found, want) in [
        ("jobs", &found["jobs"], json!(7)),
        ("events", &found["total"]["events"], json!(f64::from(events))),
        ("firings", &found["total"]["firings"], json!(f64::from(firings))),
        ("skipped", &found["skipped"], json!({"paused": 1})),
        (
            "the busiest second",
            &found["peaks"]["second"]["events"],
            json!({"value": 5_007.0, "at": "2026-05-01T12:00:00Z"}),
        ),
        ("extrapolated", &found["extrapolated"], json!(false)),
    ] {
        assert_eq!(*found, want, "{what}");
    }
}

#[test]
fn the_jobs_the_policies_and_the_services_cost_the_same_in_all() {
    let found = forecast(JOBS, &["--top", "100"]);
    let sum = |of: &Value, field: &str| -> f64 {
        of.as_array().unwrap().iter().map(|part| number(&part[field])).sum()
    };
    let idle = number(&found["idle"]["dollars"]);
    let total = number(&found["total"]["dollars"]);
    let by_policy = idle + number(&found["unthrottled"]["dollars"]) + sum(&found["policies"], "dollars");
    let by_job = idle + sum(&found["top_jobs"], "dollars");
    for (by, dollars) in
        [("service", sum(&found["services"], "dollars")), ("policy", by_policy), ("job", by_job)]
    {
        assert!((dollars - total).abs() < 1e-4 && total > 0.0, "by {by}: {dollars}, {total} in all");
    }
    let steps = found["steps"].as_array().unwrap().iter();
    let writes: f64 = steps.map(|step| number(&step["count"]) * number(&step["write_units"])).sum();
    let all = number(&found["total"]["write_units"]);
    assert!((writes - all).abs() < 0.01, "{writes} by steps, {all} in all");
}

#[test]
fn a_policy_that_is_too_slow_says_how_long_events_wait() {
    let found = forecast(JOBS, &[]);
    let policy =
        |id: &str| found["policies"].as_array().unwrap().iter().find(|of| of["policy_id"] == id).unwrap();
    // 2,000 events, ten at a time, two seconds and the way between them each.
    let mail = policy("mail");
    let most = number(&mail["lateness"]["most_seconds"]);
    assert!((400.0..430.0).contains(&most), "{mail}");
    assert_eq!(mail["longest_backlog"]["from"], "2026-05-01T06:00:00Z");
    let ends = mail["longest_backlog"]["to"].as_str().unwrap();
    assert!(ends.starts_with("2026-05-01T06:07") || ends.starts_with("2026-05-01T06:06"), "{ends}");
    // Five at once under two tokens of 30 seconds: the last begins after a minute and a half at the most.
    let slow = number(&policy("slow")["lateness"]["most_seconds"]);
    assert!((40.0..92.0).contains(&slow), "{slow}");
}

#[test]
fn a_scale_multiplies_what_fires_and_is_marked() {
    let jobs = r#"{"job_id":"once","trigger":{"at":"2026-05-01T12:00:00Z"}}"#;
    let found = forecast(jobs, &["--scale", "1000000", "--creates-per-second", "100000"]);
    assert_eq!((&found["total"]["events"], &found["extrapolated"]), (&json!(1_000_000.0), &json!(true)));
    let limit = |name: &str| {
        let mut limits = found["limits"].as_array().unwrap().iter();
        limits
            .find(|of| of["limit"] == name)
            .unwrap_or_else(|| panic!("{name} in {}", found["limits"]))
            .clone()
    };
    for name in ["event_source", "table_quota_writes", "partition_writes", "url_calls"] {
        let limit = limit(name);
        assert_eq!(limit["is_met"], true, "{limit}");
        assert!(!limit["raised_by"].as_str().unwrap().is_empty());
    }
    assert_eq!(found["first_limit"], found["limits"][0]["limit"]);
    let text = run(jobs, &["--scale", "1000000"]);
    assert!(stdout(&text).contains("EXTRAPOLATED: each job stands for 1,000,000 like it"));
}

#[test]
fn an_account_that_takes_more_meets_its_limits_later() {
    let account = file(
        "lambda_concurrency = 5000\nminimum_pollers = 20\nmaximum_pollers = 20\n[prices]\nmillion_write_units = 1.25\n",
    );
    let share = |found: &Value| {
        let mut limits = found["limits"].as_array().unwrap().iter();
        limits.find(|of| of["limit"] == "lambda_concurrency").map(|of| number(&of["share"])).unwrap()
    };
    let (plain, more) = (forecast(JOBS, &[]), forecast(JOBS, &["--account", path(&account)]));
    assert!(share(&more) < share(&plain), "{} {}", share(&more), share(&plain));
    let writes = |found: &Value| number(&found["services"][0]["dollars"]);
    assert!((writes(&more) / writes(&plain) - 2.0).abs() < 1e-3, "{} {}", writes(&more), writes(&plain));
}

#[test]
fn a_policy_paces_what_comes_to_its_fifo_queue() {
    let target =
        r#""target":{"sqs":{"queue_url":"https://sqs.eu-central-1.amazonaws.com/123456789012/mail.fifo"}}"#;
    let job = |policy: &str| {
        format!(r#"{{"job_id":"report","trigger":{{"cron":"0 6 * * *"}},"count":9000,{target}{policy}}}"#)
    };
    let used = |jobs: &str| number(&limit(&forecast(jobs, &[]), "fifo_messages", "FIFO")["used"]);
    assert_eq!(used(&job("")), 9_000.0);
    let paced = used(&job(r#","policy_id":"mail""#));
    assert!((10.0..16.0).contains(&paced), "ten tokens of two seconds: {paced} a second");
}

#[test]
fn limits_of_reads_can_be_met() {
    let account = file("table_reads = 1\ntable_quota_reads = 1\n");
    let payload = "x".repeat(1_000);
    let jobs = format!(r#"{{"job_id":"large","trigger":{{"cron":"* * * * *"}},"payload":"{payload}"}}"#);
    let found = forecast(&jobs, &["--account", path(&account)]);
    for name in ["table_reads", "table_quota_reads"] {
        let limit = limit(&found, name, "table jobs");
        assert_eq!(limit["is_met"], true, "{limit}");
    }
}

/// The limit of this name, of what is named so.
fn limit(found: &Value, name: &str, of: &str) -> Value {
    let mut limits = found["limits"].as_array().unwrap().iter();
    let is = |limit: &&Value| limit["limit"] == name && limit["of"].as_str().unwrap().contains(of);
    limits.find(is).unwrap_or_else(|| panic!("{name} of {of} in {}", found["limits"])).clone()
}

#[test]
fn what_is_wrong_is_named_with_file_line_field_and_fix() {
    let policies = |text: &str| {
        let policies = file(text);
        stderr(&run(JOBS, &["--policies", path(&policies)]))
    };
    for (text, says) in [
        (
            "{\"policy_id\":\"mail\",\"max_in_flight\":0}",
            &["line 1", "max_in_flight is 0; it must lie between 1 and 10000"][..],
        ),
        ("\n{\"max_in_flight\":1}", &["line 2", "policy_id is missing"]),
        (
            "{\"policy_id\":\"mail\",\"max_in_flight\":1,\"work_seconds\":-1}",
            &["line 1", "work_seconds is -1; it must be a number from 0 to 604800"],
        ),
        (
            "{\"policy_id\":\"a\",\"max_in_flight\":1}\n{\"policy_id\":\"a\",\"max_in_flight\":1}",
            &["line 2", "is on line 1 already"],
        ),
        ("\n{\"policy_id\":\"mail\",}", &["line 2: trailing comma at line 2 column 21"]),
        (
            "{\"policy_id\":\"mail\",\"max_in_flight\":1,\"released_together\":2.5}",
            &["line 1", "released_together is 2.5; it must be a whole number from 1 to 100"],
        ),
    ] {
        let error = policies(text);
        assert!(says.iter().all(|says| error.contains(says)), "{text}: {error}");
    }
    for (text, says) in [
        ("lambda_concurency = 1", "unknown field `lambda_concurency`"),
        ("minimum_pollers = 1", "minimum_pollers is 1; it must be a number from 2 to 200, or 0 for none"),
        ("minimum_pollers = 30", "maximum_pollers is 20; it must be a number from minimum_pollers on"),
    ] {
        let account = file(text);
        let error = stderr(&run(JOBS, &["--account", path(&account)]));
        assert!(error.contains("failed to read") && error.contains(says), "{text}: {error}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args([
        "forecast",
        "--jobs",
        "-",
        "--policies",
        "-",
        "--from",
        "2026-05-01",
        "--to",
        "2026-05-02",
    ]);
    let error = stderr(&command.output().unwrap());
    assert!(error.contains("standard input can be only one of them"), "{error}");
    let output = run(JOBS, &["--output", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = &found["refused"][0];
    assert_eq!((&refused["id"], &refused["line"]), (&json!("report"), &json!(2)));
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("policy 'mail' has no row, since --policies is not given: name a file and add a row"),
        "{refused}"
    );
    for to in ["2028-01-01", "2027-01-02T23:00:00Z"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let long =
            command.args(["forecast", "--jobs", "-", "--from", "2026-01-01", "--to", to]).output().unwrap();
        let error = stderr(&long);
        assert!(
            error.contains("from --from 2026-01-01T00:00:00Z to --to") && error.contains("is over 366 days"),
            "{error}"
        );
    }
}
