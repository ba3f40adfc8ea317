//! The loads of `docs/scale.md`, forecast anew: its table must show what the command prints.

use serde_json::Value;

use super::{file, number, path, stdout};
use std::process::{Command, Stdio};

/// How far a figure of the document may be from what is forecast: it is rounded.
const ERROR: f64 = 0.02;

/// A load of the document: jobs, policies, and what the command is told beside them.
struct Load {
    jobs: String,
    policies: String,
    options: &'static [&'static str],
}

const TARGET: &str = r#""target":{"http":{"url":"https://example.com/hook"}},"#;

fn druva() -> Load {
    let job = |n: usize| {
        let policy = if n < 2_778 { format!(r#","policy_id":"p{}""#, n % 100) } else { String::new() };
        let second = (n + n / 100 * 7) % 60;
        format!(r#"{{"job_id":"j{n}","trigger":{{"cron":"{second} * * * * *"}}{policy}}}"#) + "\n"
    };
    let policy = |n: usize| format!(r#"{{"policy_id":"p{n}","max_in_flight":10,"work_seconds":2}}"#) + "\n";
    Load {
        jobs: (0..3_472).map(job).collect(),
        policies: (0..100).map(policy).collect(),
        options: &["--to", "2026-05-01T01:00:00Z"],
    }
}

/// One-time jobs, so many in a second, over some seconds.
fn one_time(jobs: usize, a_second: usize, more: &str) -> String {
    let job = |n: usize| {
        let (minute, second) = (n / a_second / 60, n / a_second % 60);
        format!(r#"{{{more}"trigger":{{"at":"2026-05-01T00:{minute:02}:{second:02}Z"}}}}"#) + "\n"
    };
    (0..jobs).map(job).collect()
}

fn myntra(options: &'static [&'static str]) -> Load {
    let more = format!(r#""payload":"{}","#, "x".repeat(1_000));
    Load { jobs: one_time(1_980, 33, &more), policies: String::new(), options }
}

fn load(name: &str) -> Load {
    match name {
        "Druva" => druva(),
        "Myntra, created in hundreds" => myntra(&[
            "--to",
            "2026-05-01T00:01:00Z",
            "--scale",
            "505",
            "--creates-per-second",
            "5834",
            "--created-together",
            "100",
        ]),
        "Myntra, created singly" => {
            myntra(&["--to", "2026-05-01T00:01:00Z", "--scale", "505", "--creates-per-second", "5834"])
        }
        "PhonePe, a hundredth" => Load {
            jobs: one_time(1_200, 10, TARGET),
            policies: String::new(),
            options: &[
                "--to",
                "2026-05-01T00:02:00Z",
                "--scale",
                "23",
                "--creates-per-second",
                "1000",
                "--created-together",
                "1000",
            ],
        },
        "PhonePe" => Load {
            jobs: one_time(1_200, 10, TARGET),
            policies: String::new(),
            options: &[
                "--to",
                "2026-05-01T00:02:00Z",
                "--scale",
                "2315",
                "--creates-per-second",
                "100000",
                "--created-together",
                "1000",
            ],
        },
        other => panic!("{other} is no load of this test"),
    }
}

fn forecast(load: &Load, account: Option<&str>) -> Value {
    let (jobs, policies) = (file(&load.jobs), file(&load.policies));
    let account = account.map(file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["forecast", "--jobs", path(&jobs), "--from", "2026-05-01", "--output", "json"]);
    if !load.policies.is_empty() {
        command.args(["--policies", path(&policies)]);
    }
    if let Some(account) = &account {
        command.args(["--account", path(account)]);
    }
    let output = command.args(load.options).env_remove("TIDEGATE_LOG").stdin(Stdio::null()).output().unwrap();
    serde_json::from_str(stdout(&output)).unwrap()
}

/// What a row of the document shows, in its order.
fn figures(load: &Load, large: &str) -> [f64; 10] {
    let new = forecast(load, None);
    let total = &new["total"];
    let events = number(&total["events"]);
    let each = |name: &str| number(&total[name]) / events;
    let late = |found: &Value| {
        let throttled =
            found["policies"].as_array().unwrap().iter().map(|of| number(&of["lateness"]["p99_seconds"]));
        throttled.fold(number(&found["unthrottled_lateness"]["p99_seconds"]), f64::max)
    };
    [
        events,
        each("write_units"),
        each("read_units"),
        each("sqs_requests"),
        each("gb_seconds"),
        each("lambda_requests"),
        number(&total["dollars"]) / events * 1e6,
        number(&total["dollars_a_month"]),
        late(&new),
        late(&forecast(load, Some(large))),
    ]
}

/// A figure with as many digits as it needs.
fn shown(figure: f64) -> String {
    match figure {
        ..0.1 => format!("{figure:.5}"),
        ..1.0 => format!("{figure:.3}"),
        ..100.0 => format!("{figure:.2}"),
        _ => format!("{figure:.0}"),
    }
}

#[test]
fn the_document_shows_what_is_forecast() {
    let document = super::document("scale.md");
    let large =
        document.split("<!-- large.toml -->\n```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let large = large.unwrap();
    let table = document.split("<!-- what it takes -->\n").nth(1).unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(2);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (name, cells) = cells.split_first().unwrap();
        let found = figures(&load(name), large);
        let is = |(cell, figure): (&&str, &f64)| {
            let said: f64 = cell.replace(',', "").parse().unwrap_or(f64::NAN);
            (said - figure).abs() <= figure * ERROR + 1e-6
        };
        if cells.len() != found.len() || !cells.iter().zip(&found).all(is) {
            wrong.push(format!("| {name} | {} |", found.map(shown).join(" | ")));
        }
        seen += 1;
    }
    assert!(wrong.is_empty() && seen >= 5, "docs/scale.md must show\n{}", wrong.join("\n"));
}
