//! What it cannot do, and how it says so.

use serde_json::{Value, json};

use crate::process::{dry_run, lines, run, run_with};

const GOOD: &str = r#"{"id":"good","expression":"0 3 * * *"}"#;

/// What the refused rows among these say: id, line and reason.
fn refusals(rows: &str) -> Vec<(Value, u64, String)> {
    let output = run(&format!("{GOOD}\n{rows}"), "2026-05-01", "2026-05-02");
    let (lines, summary) = lines(&output);
    assert!(lines.last().unwrap().contains(r#""id":"good","launch_at""#), "{lines:?}");
    assert_eq!((&summary["jobs"], &summary["refused"]), (&json!(1), &json!(lines.len() - 1)));
    let read = |line: &&str| {
        let row: Value = serde_json::from_str(line).unwrap();
        (row["id"].clone(), row["line"].as_u64().unwrap(), row["error"].as_str().unwrap().to_owned())
    };
    lines[..lines.len() - 1].iter().map(read).collect()
}

#[test]
fn a_row_that_is_refused_says_where_and_why_and_the_others_go_on() {
    for (row, id, says) in [
        (
            "{\"id\":\"x\" \"zone\":\"UTC\"}",
            json!(null),
            "line 2 is not JSON: expected `,` or `}` at column 11",
        ),
        ("{\"id\":", json!(null), "line 2 is not JSON: EOF while parsing a value at column 6"),
        ("[1]", json!(null), "line 2 is no JSON object: give {\"id\""),
        (r#"{"expression":"0 3 * * *"}"#, json!(null), "id is missing"),
        (r#"{"id":7,"expression":"0 3 * * *"}"#, json!(null), "id is 7; it must be text"),
        (r#"{"id":"a b","expression":"0 3 * * *"}"#, json!("a b"), "has the character ' '"),
        (r#"{"id":"at_1","expression":"0 3 * * *"}"#, json!("at_1"), "is kept for generated ids"),
        (r#"{"id":"x"}"#, json!("x"), "expression is missing"),
        (
            r#"{"id":"x","expression":"0 3 * * *","zone":"Berlin"}"#,
            json!("x"),
            "did you mean 'Europe/Berlin'?",
        ),
        (r#"{"id":"x","expression":"0 3 * * *","zone":"GMT+3"}"#, json!("x"), "is a fixed offset"),
        (
            r#"{"id":"x","expression":"TZ=Asia/Tokyo 0 3 * * *","zone":"UTC"}"#,
            json!("x"),
            "zone is 'UTC', but the expression begins with the zone 'Asia/Tokyo'",
        ),
        (r#"{"id":"good","expression":"0 4 * * *"}"#, json!("good"), "id 'good' is on line 1 already"),
        (
            r#"{"job_id":"x","trigger":{"cron":"0 3 * * *"},"calendars":["nowhere"]}"#,
            json!("x"),
            "calendar 'nowhere' is not in the file",
        ),
        (
            r#"{"job_id":"x","trigger":{"cron":"0 3 * * *"},"colour":"red"}"#,
            json!("x"),
            "the body has no field 'colour': its fields are",
        ),
        (r#"{"job_id":"x","trigger":{"cron":"0 3 * * *"},"count":0}"#, json!("x"), "count is 0; it must lie"),
        (r#"{"job_id":"x","trigger":{"cron":"0 3 * * *"},"paused":1}"#, json!("x"), "paused is 1"),
        (r#"{"job_id":"x","trigger":{}}"#, json!("x"), "trigger"),
        (r#"{"calendar_id":"empty","dates":[]}"#, json!("empty"), "calendar is empty"),
    ] {
        let refused = refusals(row);
        assert_eq!(refused.len(), 1, "{row}");
        let (found_id, line, reason) = &refused[0];
        assert_eq!((found_id, *line), (&id, 2), "{row}");
        assert!(reason.contains(says), "{row}: {reason}");
    }
}

#[test]
fn a_job_that_waited_for_its_calendar_is_refused_in_the_order_of_lines() {
    let rows = r#"{"job_id":"x","trigger":{"cron":"0 3 * * *"},"calendars":["nowhere"]}
{"id":"y","expression":"nonsense"}"#;
    let lines: Vec<u64> = refusals(rows).into_iter().map(|(_, line, _)| line).collect();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn strict_fails_when_a_row_was_refused() {
    for (rows, code) in [(GOOD.to_owned(), 0), (format!("{GOOD}\nnonsense"), 1)] {
        let output = run_with(&rows, "2026-05-01", "2026-05-02", &["--strict"]);
        assert_eq!(output.status.code(), Some(code), "{rows}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("\"summary\""));
    }
}

#[test]
fn a_run_that_computes_nothing_fails() {
    for (rows, code) in [("nonsense\nmore of it".to_owned(), 1), (format!("{GOOD}\nnonsense"), 0)] {
        let output = run(&rows, "2026-05-01", "2026-05-02");
        assert_eq!(output.status.code(), Some(code), "{rows}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("\"summary\"") && !text.contains("-0.0"), "{text}");
    }
}

#[test]
fn what_cannot_be_run_at_all_prints_nothing_and_says_why() {
    let nowhere = dry_run("no-such-file.jsonl", "2026-05-01", "2026-05-02").output().unwrap();
    for (output, code, says) in [
        (nowhere, 1, "tidegate: failed to open no-such-file.jsonl: No such file"),
        (run("\n \n", "2026-05-01", "2026-05-02"), 1, "it is empty; give a JSON object to a line"),
        (
            run(GOOD, "2026-05-02", "2026-05-01"),
            1,
            "--to 2026-05-01T00:00:00Z is not after --from 2026-05-02",
        ),
        (run(GOOD, "2026-05-01T00:00", "2026-05-02"), 2, "has no offset: write 2026-05-01T00:00Z for UTC"),
        (run(GOOD, "2026-05-01", "soon"), 2, "invalid value 'soon' for '--to <T>'"),
        (run_with(GOOD, "2026-05-01", "2026-05-02", &["--client", "a b"]), 2, "has the character ' '"),
    ] {
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(says), "{stderr}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{stderr}");
    }
}
