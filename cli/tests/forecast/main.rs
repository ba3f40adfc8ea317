//! `tidegate forecast`, the real binary: what it prints, what it refuses, and that its sums agree.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a helper cannot do is a failed test")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

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

fn number(of: &Value) -> f64 {
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
    for name in ["event_source", "table_quota_writes", "partition_writes", "emission"] {
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
    let account =
        file("lambda_concurrency = 5000\nminimum_pollers = 20\n[prices]\nmillion_write_units = 1.25\n");
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
fn the_table_for_people_has_every_part() {
    let policies = file(POLICIES);
    let output = run(JOBS, &["--policies", path(&policies)]);
    let text = stdout(&output);
    for says in [
        "2026-05-01T00:00:00Z to 2026-05-02T00:00:00Z: 7 jobs, 1,588 firings, 9,162 events",
        "DynamoDB writes",
        "of it idle",
        "\n(none) ",
        "\nmail ",
        "jobs that cost most",
        "events in a second",
        "limits, the fullest first",
        "left out:",
        "1 launches are skipped",
    ] {
        assert!(text.contains(says), "{says} in\n{text}");
    }
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
    ] {
        let error = policies(text);
        assert!(says.iter().all(|says| error.contains(says)), "{text}: {error}");
    }
    let account = file("lambda_concurency = 1");
    let error = stderr(&run(JOBS, &["--account", path(&account)]));
    assert!(
        error.contains("failed to read") && error.contains("unknown field `lambda_concurency`"),
        "{error}"
    );
    let output = run(JOBS, &["--output", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = &found["refused"][0];
    assert_eq!((&refused["id"], &refused["line"]), (&json!("report"), &json!(2)));
    assert!(
        refused["error"].as_str().unwrap().contains("policy 'mail' is not in the file of --policies"),
        "{refused}"
    );
    let long = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["forecast", "--jobs", "-", "--from", "2026-01-01", "--to", "2028-01-01"])
        .output()
        .unwrap();
    assert!(stderr(&long).contains("366 is the most of a forecast"), "{long:?}");
}

#[test]
fn names_of_the_output_stay() {
    let found = forecast(JOBS, &[]);
    let names = |of: &Value| -> Vec<String> { of.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(
        names(&found),
        [
            "extrapolated",
            "first_limit",
            "idle",
            "jobs",
            "left_out",
            "limits",
            "peaks",
            "policies",
            "refused",
            "scale",
            "services",
            "skipped",
            "steps",
            "top_jobs",
            "total",
            "unthrottled",
            "unthrottled_lateness",
            "window"
        ]
    );
    assert_eq!(
        names(&found["total"]),
        [
            "dollars",
            "dollars_a_month",
            "dollars_per_million_events",
            "events",
            "firings",
            "gb_seconds",
            "lambda_requests",
            "read_units",
            "sqs_requests",
            "write_units"
        ]
    );
    assert_eq!(
        names(&found["limits"][0]),
        ["at", "at_s", "available", "beyond", "is_met", "limit", "of", "raised_by", "share", "unit", "used"]
    );
    let policy = names(&found["policies"][0]);
    for name in ["policy_id", "lateness", "events_a_second", "longest_backlog", "backlog_ends_at"] {
        assert!(policy.iter().any(|found| found == name), "{name} in {policy:?}");
    }
}
