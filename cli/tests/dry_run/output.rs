//! What a run prints.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::process::{dry_run, lines, run, run_with};

const ROWS: &str = r#"{"id":"fixed","expression":"30 2 * * *","zone":"Europe/Berlin","dialect":"posix5","zone_given":false}
{"id":"interval","expression":"*/30 2 * * *","zone":"Europe/Berlin"}

{"id":"beat","expression":"rate(12 hours)","zone":"Asia/Kolkata"}
{"id":"prefixed","expression":"CRON_TZ=America/New_York 0 0 29 3 *"}
{"job_id":"batch","trigger":{"cron":"0 12 * * *"},"count":50,"calendars":["holidays"]}
{"id":"wrong","expression":"60 * * * *"}
{"job_id":"once","trigger":{"at":["2026-03-29T12:00:00Z","2026-04-01T00:00:00Z"]},"payload":{"a":1}}
{"calendar_id":"holidays","dates":["2026-03-28"]}
{"job_id":"asleep","trigger":{"cron":"0 18 * * *","zone":"UTC"},"paused":true}
"#;

const LINES: &str = r#"{"id":"beat","launch_at":"2026-03-28T00:00:00Z","local":"2026-03-28T05:30:00+05:30","dst":""}
{"id":"interval","launch_at":"2026-03-28T01:00:00Z","local":"2026-03-28T02:00:00+01:00","dst":""}
{"id":"fixed","launch_at":"2026-03-28T01:30:00Z","local":"2026-03-28T02:30:00+01:00","dst":""}
{"id":"interval","launch_at":"2026-03-28T01:30:00Z","local":"2026-03-28T02:30:00+01:00","dst":""}
{"id":"batch","reason":"excluded","would_launch_at":"2026-03-28T12:00:00Z","local":"2026-03-28T12:00:00+00:00","dst":""}
{"id":"beat","launch_at":"2026-03-28T12:00:00Z","local":"2026-03-28T17:30:00+05:30","dst":""}
{"id":"asleep","reason":"paused","would_launch_at":"2026-03-28T18:00:00Z","local":"2026-03-28T18:00:00+00:00","dst":""}
{"id":"beat","launch_at":"2026-03-29T00:00:00Z","local":"2026-03-29T05:30:00+05:30","dst":""}
{"id":"fixed","launch_at":"2026-03-29T01:00:00Z","local":"2026-03-29T03:00:00+02:00","dst":"gap"}
{"id":"prefixed","launch_at":"2026-03-29T04:00:00Z","local":"2026-03-29T00:00:00-04:00","dst":""}
{"id":"batch","launch_at":"2026-03-29T12:00:00Z","local":"2026-03-29T12:00:00+00:00","dst":""}
{"id":"beat","launch_at":"2026-03-29T12:00:00Z","local":"2026-03-29T17:30:00+05:30","dst":""}
{"id":"once","launch_at":"2026-03-29T12:00:00Z","local":"2026-03-29T12:00:00+00:00","dst":""}
{"id":"asleep","reason":"paused","would_launch_at":"2026-03-29T18:00:00Z","local":"2026-03-29T18:00:00+00:00","dst":""}"#;

#[test]
fn every_row_is_a_line_and_the_summary_counts_them() {
    let output = run(ROWS, "2026-03-28", "2026-03-30T00:00:00+00:00");
    let (found, summary) = lines(&output);
    let refused: Value = serde_json::from_str(found[0]).unwrap();
    assert_eq!((&refused["id"], &refused["line"]), (&json!("wrong"), &json!(7)));
    assert!(refused["error"].as_str().unwrap().starts_with("minute: '60' is outside 0-59"), "{refused}");
    assert_eq!(found[1..].join("\n"), LINES);
    for (key, value) in [
        ("jobs", json!(7)),
        ("refused", json!(1)),
        ("firings", json!(11)),
        ("events", json!(60)),
        ("non_runs", json!({"excluded": 1, "paused": 2})),
        ("peak_minute", json!({"at": "2026-03-29T12:00:00Z", "firings": 3})),
        ("peak_second", json!({"at": "2026-03-29T12:00:00Z", "firings": 3})),
    ] {
        assert_eq!(summary[key], value, "{key}");
    }
    assert!(summary["zone_database"].as_str().unwrap().starts_with("20"));
    for key in ["rows_read", "reads_per_firing", "over_selection", "read_units", "write_units", "seconds"] {
        assert!(summary[key].as_f64().unwrap() > 0.0, "{key} in {summary}");
    }
}

#[test]
fn an_overlap_is_told_and_rows_may_come_from_standard_input() {
    let command = &mut dry_run("-", "2026-10-25", "2026-10-26");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let row = br#"{"id":"s1","expression":"30 2 * * *","zone":"Europe/Berlin"}"#;
    child.stdin.take().unwrap().write_all(row).unwrap();
    let output = child.wait_with_output().unwrap();
    let first = r#"{"id":"s1","launch_at":"2026-10-25T00:30:00Z","local":"2026-10-25T02:30:00+02:00","dst":"overlap"}"#;
    assert_eq!(lines(&output).0, [first]);
}

/// Many pieces: a flexible window moves launches from one into the next.
#[test]
fn lines_are_in_order_of_time_and_id_however_the_window_is_cut() {
    let jittered = |id: &str| {
        format!(r#"{{"job_id":"{id}","trigger":{{"cron":"*/5 * * * *"}},"jitter_seconds":3600}}"#) + "\n"
    };
    let rows: String = (0..40).map(|n| jittered(&format!("j{n:02}"))).collect();
    let output = run(&rows, "2026-05-01", "2026-05-04");
    let (lines, summary) = lines(&output);
    let parsed: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<(&str, &str)> =
        parsed.iter().map(|row| (row["launch_at"].as_str().unwrap(), row["id"].as_str().unwrap())).collect();
    assert!(keys.is_sorted(), "not sorted");
    assert!(keys.iter().all(|(at, _)| ("2026-05-01T00:00:00Z".."2026-05-04T00:00:00Z").contains(at)));
    // Each job launches every five minutes, whatever its offset: what moves out at an end has its like at the other.
    for id in (0..40).map(|n| format!("j{n:02}")) {
        let count = keys.iter().filter(|(_, found)| *found == id).count();
        assert_eq!(count, 3 * 288, "{id}");
    }
    assert_eq!(summary["firings"], keys.len());
    let offsets: std::collections::BTreeSet<&str> = keys.iter().map(|(at, _)| &at[17..]).collect();
    assert!(offsets.len() > 10, "{offsets:?}");
}

#[test]
fn the_client_decides_where_in_its_flexible_window_a_job_launches() {
    let row = r#"{"job_id":"j","trigger":{"cron":"0 3 * * *"},"jitter_seconds":3600}"#;
    let first = |client: &str| {
        let output = run_with(row, "2026-05-01", "2026-05-02", &["--client", client]);
        lines(&output).0[0].to_owned()
    };
    assert_eq!(first("acme"), first("acme"));
    assert_ne!(first("acme"), first("umbrella"));
}

#[test]
fn launches_are_moved_off_closed_days_as_the_emitter_moves_them() {
    let job = |id: &str| {
        format!(
            r#"{{"job_id":"{id}","trigger":{{"cron":"0 9 1 * *"}},"calendars":["weekends"],"on_closed_day":"{id}_open_day"}}"#
        )
    };
    let weekends = r#"{"calendar_id":"weekends","weekdays":["sat","sun"]}"#;
    let rows = [weekends, &job("next"), &job("previous")].join("\n");
    // The first of August is a Saturday.
    let output = run(&rows, "2026-07-30", "2026-08-05");
    let parsed: Vec<Value> =
        lines(&output).0.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Beside them, the launches that are left out on the first.
    let made = parsed.iter().filter(|row| row["launch_at"].is_string());
    let made: Vec<_> = made.map(|row| (&row["id"], &row["launch_at"])).collect();
    let expected = [
        (&json!("previous"), &json!("2026-07-31T09:00:00Z")),
        (&json!("next"), &json!("2026-08-03T09:00:00Z")),
    ];
    assert_eq!(made, expected);
}

#[test]
fn nothing_due_is_a_summary_without_peaks() {
    let output = run(r#"{"id":"a","expression":"0 0 1 1 *"}"#, "2026-05-01", "2026-05-02");
    let (lines, summary) = lines(&output);
    assert!(lines.is_empty());
    assert_eq!((&summary["firings"], &summary["peak_minute"]), (&json!(0), &Value::Null));
    assert_eq!(summary["reads_per_firing"], Value::Null);
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(br#"{"id":"a","expression":"* * * * * *"}"#).unwrap();
    let mut command = dry_run(file.path().to_str().unwrap(), "2026-05-01", "2026-05-03");
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("2026-05-01T00:00:00Z"), "{line}");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
