use chrono::TimeDelta;
use tidegate_domain::flow::Flow;
use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms};
use tidegate_domain::rules::{Jitter, Misfire, MisfireLaunches, Relevancy, Rules};
use tidegate_domain::target::Target;
use tidegate_domain::time::{CronSpec, parse_zone};

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    format!("2026-11-21T{text}:00Z").parse().unwrap()
}

/// A row for a job that launches every ten minutes.
fn child(rules: Rules) -> Child {
    let spec = CronSpec::parse("*/10 * * * *").unwrap();
    Child {
        client: "acme".parse().unwrap(),
        job: "job".parse().unwrap(),
        revision: 1,
        cadence: Cadence::Cron { cron: *spec.compiled(), zone: parse_zone("UTC").unwrap() },
        part: Part::All,
        rules,
        paused: false,
        emit_from: at("00:00"),
        terms: Terms {
            count: Count::new(1).unwrap(),
            policy: None,
            target: Target::sqs("https://sqs.eu-west-1.amazonaws.com/1/jobs").unwrap(),
            payload: Payload::Inline("null".to_owned()),
            history: History::All,
            history_days: HistoryDays::DEFAULT,
            max_attempts: None,
            retry: Default::default(),
            relevancy: None,
            flow: Flow::default(),
            unknown: Default::default(),
        },
    }
}

/// What becomes of the launches from `from` to `to`, planned at 12:00 after an outage: minutes of the launches that are
/// made, and of those that are skipped with their reason.
fn outcome(child: &Child, from: &str, to: &str) -> (Vec<String>, Vec<(String, SkipReason)>) {
    let now = at("12:00");
    let window = Window::new(at(from), at(to)).unwrap();
    let missed_before = missed_before(now);
    let plan = Plan { window, as_of: now, repeat: false, missed_before, now };
    let (mut found, mut decisions) = (Vec::new(), Vec::new());
    firings(child, None, window, &mut found);
    evaluate(child, &found, &OpenDays::default(), &plan, &mut decisions);
    let minute = |decision: &Decision| decision.launch_at.format("%H:%M").to_string();
    let made = decisions.iter().filter(|decision| decision.skip_reason.is_none()).map(minute).collect();
    let left =
        decisions.iter().filter_map(|decision| Some((minute(decision), decision.skip_reason?))).collect();
    (made, left)
}

fn ruled(misfire: Misfire) -> Child {
    child(Rules { misfire, ..Rules::default() })
}

#[test]
fn a_misfire_rule_keeps_the_latest_of_what_an_outage_missed() {
    let two = Misfire::All(MisfireLaunches::new(2).unwrap());
    // 12:00 is not missed: it is as near to its time as a tick comes.
    for (misfire, made) in [
        (Misfire::Skip, vec!["12:00"]),
        (Misfire::Latest, vec!["11:50", "12:00"]),
        (two, vec!["11:40", "11:50", "12:00"]),
        (Misfire::default(), vec!["11:10", "11:20", "11:30", "11:40", "11:50", "12:00"]),
    ] {
        let (found, left) = outcome(&ruled(misfire), "11:05", "12:02");
        assert_eq!(found, made, "{misfire:?}");
        assert!(left.iter().all(|(_, reason)| *reason == SkipReason::MisfireSkipped));
        assert_eq!(found.len() + left.len(), 6);
    }
}

#[test]
fn an_outage_that_is_caught_up_in_steps_keeps_the_same_launches() {
    let two = ruled(Misfire::All(MisfireLaunches::new(2).unwrap()));
    let mut made = Vec::new();
    for (from, to) in [("11:05", "11:20"), ("11:20", "11:45"), ("11:45", "12:02")] {
        made.extend(outcome(&two, from, to).0);
    }
    assert_eq!(made, ["11:40", "11:50", "12:00"]);
}

#[test]
fn jitter_moves_every_launch_by_the_same_offset() {
    let jitter = Jitter::new(3_600).unwrap();
    let moved = child(Rules { jitter, ..Rules::default() });
    let offset = jitter.offset(&moved.client, &moved.job);
    assert!(offset > TimeDelta::zero());
    let (made, _) = outcome(&moved, "11:50", "12:02");
    let expected = ["11:50", "12:00"].map(|minute| (at(minute) + offset).format("%H:%M").to_string());
    assert_eq!(made, expected);
}

#[test]
fn what_is_outside_of_start_and_end_is_no_launch_at_all() {
    let rules = Rules { start_at: Some(at("11:20")), end_at: Some(at("11:40")), ..Rules::default() };
    assert_eq!(outcome(&child(rules), "11:05", "12:02"), (vec!["11:20".into(), "11:30".into()], vec![]));
    // The latest missed launch is the latest that there was.
    let ended = Rules { end_at: Some(at("11:40")), misfire: Misfire::Latest, ..Rules::default() };
    assert_eq!(outcome(&child(ended), "11:05", "12:02").0, ["11:30"]);
}

#[test]
fn reasons_are_told_apart() {
    let paused = Child { paused: true, ..ruled(Misfire::Skip) };
    assert_eq!(outcome(&paused, "11:50", "11:51").1, [("11:50".to_owned(), SkipReason::Paused)]);
    let mut old = ruled(Misfire::default());
    old.terms.relevancy = Some(Relevancy::new(1_200).unwrap());
    let (made, left) = outcome(&old, "11:25", "11:55");
    assert_eq!(made, ["11:40", "11:50"]);
    assert_eq!(left, [("11:30".to_owned(), SkipReason::Expired)]);
}

#[test]
fn a_minute_s_row_of_several_instants_knows_the_others() {
    use tidegate_domain::time::{AtMinute, Instants};
    let instants = Instants::new([at("11:10"), at("11:20"), at("11:30")]).unwrap();
    let row = |minute| Child {
        cadence: Cadence::At(instants.clone()),
        part: Part::Minute(AtMinute::of(at(minute))),
        ..ruled(Misfire::Latest)
    };
    assert_eq!(
        outcome(&row("11:10"), "11:05", "12:02").1,
        [("11:10".to_owned(), SkipReason::MisfireSkipped)]
    );
    assert_eq!(outcome(&row("11:30"), "11:05", "12:02").0, ["11:30"]);
}
