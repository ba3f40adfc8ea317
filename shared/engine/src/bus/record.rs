//! What was noted as records of the bus: lines of JSON, and as many of them as a message takes.

use chrono::{DateTime, SecondsFormat, Utc};
use tidegate_domain::limits::{BUS_BYTES, BUS_REASON_BYTES};
use tidegate_protocol::{BusKind, BusRecord, BusState};
use tidegate_store::journal::{Ends, Entry, EventStep, Step};

/// What was noted as a line, with its end. `now` is when it was taken from the journal.
pub(super) fn line(entry: &Entry, now: DateTime<Utc>) -> String {
    let mut line = serde_json::to_string(&record(entry, now)).unwrap_or_default();
    line.push('\n');
    line
}

/// Lines by the messages that they go into: in their order, each with at least one.
pub(super) fn batches(lines: &[String]) -> impl Iterator<Item = &[String]> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        let mut bytes: usize = 0;
        let fitting = rest.iter().take_while(|line| {
            bytes = bytes.saturating_add(line.len());
            bytes <= BUS_BYTES
        });
        let (batch, left) = rest.split_at_checked(fitting.count().max(1))?;
        rest = left;
        Some(batch)
    })
}

fn record(entry: &Entry, now: DateTime<Utc>) -> BusRecord {
    let Entry { client, run, policy, step, reason, at } = entry;
    let at = at.unwrap_or(now);
    let ms = |instant: DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::Millis, true);
    let second = |instant: DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let state = state(step);
    let word = serde_json::to_value(state).ok();
    let word = word.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    let mut record = BusRecord {
        bus: "tidegate".to_owned(),
        id: format!("{client}/{run}/{word}"),
        kind: BusKind::Run,
        state,
        client_id: client.to_string(),
        job_id: run.job().to_string(),
        run_id: run.to_string(),
        index: None,
        attempt: None,
        policy_id: policy.as_ref().map(ToString::to_string),
        reason: reason.as_deref().map(|reason| cut(reason).to_owned()),
        launch_at: second(run.launch_at()),
        at: ms(at),
        late_ms: (at - run.launch_at()).num_milliseconds(),
        count: None,
        launches: None,
        until: None,
        succeeded: None,
        failed: None,
        expired: None,
        dead: None,
        left_out: None,
    };
    match *step {
        Step::Launched { count } => record.count = Some(count),
        Step::Skipped { launches, until } => {
            // More of them may be found.
            if launches > 1 {
                record.id = format!("{client}/{run}/{word}/{launches}");
            }
            (record.launches, record.until) = (Some(launches), Some(second(until)));
        }
        Step::Finished { count, ends: Ends { succeeded, failed, expired, dead, left_out }, redriven } => {
            // It finishes once more when events were sent again.
            if redriven > 0 {
                record.id = format!("{client}/{run}/{word}/{redriven}");
            }
            record.count = Some(count);
            (record.succeeded, record.failed) = (Some(succeeded), Some(failed));
            (record.expired, record.dead, record.left_out) = (Some(expired), Some(dead), Some(left_out));
        }
        Step::Event { index, attempt, .. } => {
            record.id = format!("{client}/{run}/{index}/{word}/{attempt}");
            record.kind = BusKind::Event;
            (record.index, record.attempt) = (Some(index), Some(attempt.into()));
        }
        Step::Stopped | Step::Overdue => {}
    }
    record
}

fn state(step: &Step) -> BusState {
    match step {
        Step::Launched { .. } => BusState::Launched,
        Step::Skipped { .. } => BusState::Skipped,
        Step::Stopped => BusState::Stopped,
        Step::Finished { .. } => BusState::Finished,
        Step::Overdue => BusState::Overdue,
        Step::Event { end, .. } => match end {
            EventStep::Delivered => BusState::Delivered,
            EventStep::Succeeded => BusState::Succeeded,
            EventStep::Failed => BusState::Failed,
            EventStep::Expired => BusState::Expired,
            EventStep::Dead => BusState::Dead,
        },
    }
}

/// The beginning of a reason, cut between characters.
fn cut(reason: &str) -> &str {
    let end = (0..=BUS_REASON_BYTES.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
    end.and_then(|end| reason.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(step: Step) -> Entry {
        Entry {
            client: "acme".parse().unwrap(),
            run: "nightly.2.1795263000".parse().unwrap(),
            policy: Some("small".parse().unwrap()),
            step,
            reason: None,
            at: DateTime::from_timestamp_millis(1_795_263_001_250),
        }
    }

    #[test]
    fn a_record_is_a_line_of_json_in_its_pinned_form() {
        let delivered = Step::Event { index: 7, attempt: 2, end: EventStep::Delivered };
        assert_eq!(
            line(&entry(delivered), Utc::now()),
            concat!(
                r#"{"bus":"tidegate","id":"acme/nightly.2.1795263000/7/delivered/2","kind":"event","state":"delivered","#,
                r#""client_id":"acme","job_id":"nightly","run_id":"nightly.2.1795263000","index":7,"attempt":2,"#,
                r#""policy_id":"small","launch_at":"2026-11-21T12:10:00Z","at":"2026-11-21T12:10:01.250Z","late_ms":1250}"#,
                "\n",
            )
        );
        let until = DateTime::from_timestamp(1_795_263_600, 0).unwrap();
        let skipped = entry(Step::Skipped { launches: 3, until }).because("paused");
        let text = line(&skipped, Utc::now());
        assert!(
            text.contains(r#""id":"acme/nightly.2.1795263000/skipped/3","kind":"run","state":"skipped""#),
            "{text}"
        );
        assert!(text.contains(r#""launches":3,"until":"2026-11-21T12:20:00Z""#), "{text}");
        let ends = Ends { succeeded: 5, failed: 1, expired: 2, dead: 3, left_out: 4 };
        let text = line(&entry(Step::Finished { count: 15, ends, redriven: 0 }), Utc::now());
        assert!(
            text.ends_with(
                "\"count\":15,\"succeeded\":5,\"failed\":1,\"expired\":2,\"dead\":3,\"left_out\":4}\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_may_come_with_other_numbers_has_another_id_then() {
        let id = |step| record(&entry(step), Utc::now()).id;
        let until = DateTime::from_timestamp(1_795_263_000, 0).unwrap();
        assert_eq!(id(Step::Skipped { launches: 1, until }), "acme/nightly.2.1795263000/skipped");
        assert_eq!(id(Step::Skipped { launches: 4, until }), "acme/nightly.2.1795263000/skipped/4");
        let ends = Ends { succeeded: 2, failed: 0, expired: 0, dead: 0, left_out: 0 };
        let finished = |redriven| Step::Finished { count: 2, ends, redriven };
        assert_eq!(id(finished(0)), "acme/nightly.2.1795263000/finished");
        assert_eq!(id(finished(1)), "acme/nightly.2.1795263000/finished/1");
    }

    #[test]
    fn what_is_noted_without_an_instant_is_of_when_it_is_taken() {
        let now = DateTime::from_timestamp(1_795_263_060, 0).unwrap();
        let text = line(&Entry { at: None, ..entry(Step::Stopped) }, now);
        assert!(text.contains(r#""at":"2026-11-21T12:11:00.000Z","late_ms":60000"#), "{text}");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let long = "é".repeat(BUS_REASON_BYTES);
        assert_eq!(cut(&long), "é".repeat(BUS_REASON_BYTES / 2));
        assert_eq!((cut("short"), cut("")), ("short", ""));
    }

    #[test]
    fn a_message_takes_as_many_lines_as_fit() {
        let lengths = |lines: &[String]| batches(lines).map(<[String]>::len).collect::<Vec<_>>();
        let lines = vec!["x".repeat(BUS_BYTES / 3); 7];
        assert_eq!(lengths(&lines), [3, 3, 1]);
        assert_eq!(lengths(&["x".repeat(BUS_BYTES + 1), "y".to_owned()]), [1, 1]);
        assert_eq!(lengths(&[]), [0_usize; 0]);
    }
}
