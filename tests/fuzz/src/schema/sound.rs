//! Values that the API takes: what the document says of a field only in words.

use chrono::{DateTime, Duration, SecondsFormat};
use tidegate_simulation::sim::Dice;

use crate::extremes::any_of;
use crate::json::Json;
use crate::known::Known;

/// Noon of the day on which worlds begin, in seconds since the epoch.
const NOON: i64 = 1_795_262_400;
const ZONES: &[&str] = &["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"];
const CRONS: &[&str] = &[
    "* * * * *",
    "*/2 * * * *",
    "5 12 * * *",
    "0 9 * * MON-FRI",
    "30 2 28 3 *",
    "@daily",
    "0 0 L * *",
    "15 30 12 * * *",
];
const RATES: &[&str] = &["1 minute", "90s", "5 minutes", "2h", "1 day"];
const DATES: &[&str] = &["2026-11-21", "2026-12-25", "12-25", "02-29", "2026-11-22"];
const TIMES: &[&str] = &["00:00", "12:00", "12:30", "23:59"];
const TOPICS: &[&str] =
    &["arn:aws:sns:eu-west-1:123456789012:orders", "arn:aws:sns:eu-west-1:123456789012:orders.fifo"];
const NAMES: &[&str] = &["nightly", "minutely", "small", "hooks", "holidays", "a", "b-1", "c_2"];

/// One of several fields that exclude each other.
struct Choice {
    field: &'static str,
    /// What is taken beside it only.
    with: &'static [&'static str],
}

const fn choice(field: &'static str, with: &'static [&'static str]) -> Choice {
    Choice { field, with }
}

/// Fields of which one at most is taken, by schema.
const CHOICES: &[(&str, &[Choice])] = &[
    (
        "TriggerBody",
        &[choice("cron", &["zone", "dst"]), choice("rate", &["anchor"]), choice("at", &["past"])],
    ),
    ("PreviewBody", &[choice("expression", &["zone"]), choice("trigger", &[])]),
    (
        "Target",
        // The others are read and then refused, since nothing stands in for their services: the first two come more often.
        &[
            choice("sqs", &[]),
            choice("sqs", &[]),
            choice("sqs", &[]),
            choice("http", &[]),
            choice("http", &[]),
            choice("http", &[]),
            choice("event_bridge", &[]),
            choice("sns", &[]),
            choice("lambda", &[]),
            choice("step_functions", &[]),
        ],
    ),
    ("Window", &[choice("seconds", &[]), choice("until", &[])]),
];
/// Fields of which one at most is taken, and none need be.
const PAYLOADS: [&str; 3] = ["payload", "payloads", "payload_template"];
/// Fields of a job that only a policy gives a meaning to.
const OF_POLICY: &[&str] =
    &["cost", "priority", "overlap", "window", "max_failures", "on_completion", "heartbeat_url"];

/// A text that a field of this name takes.
pub(crate) fn text(dice: &Dice, name: &str, known: &Known) -> Json {
    Json::text(match name {
        "zone" => any_of(dice, ZONES),
        "cron" | "expression" => any_of(dice, CRONS),
        "rate" | "Text" => any_of(dice, RATES),
        "dates" | "date" => any_of(dice, DATES),
        "queue_url" => known.queue_url.clone(),
        "url" | "heartbeat_url" => known.endpoint.clone(),
        "bus_arn" => "arn:aws:events:eu-west-1:123456789012:event-bus/orders".to_owned(),
        "topic_arn" => any_of(dice, TOPICS),
        "function_arn" => "arn:aws:lambda:eu-west-1:123456789012:function:work".to_owned(),
        "state_machine_arn" => "arn:aws:states:eu-west-1:123456789012:stateMachine:import".to_owned(),
        "expected_statuses" => any_of(dice, &["2xx", "204", "404"]),
        "retry_statuses" => any_of(dice, &["429", "5xx", "503"]),
        "allowed_targets" => "https://hooks.example.invalid/*".to_owned(),
        "launch_expression" => any_of(dice, &["H:03", "*:*", "D:MON", "M:21"]),
        "token" | "tokens" => known.tokens.any(dice),
        "policy_id" => known.policies.any(dice),
        "calendars" | "only_on" | "calendar_id" => known.calendars.any(dice),
        "job_id" | "client_id" => any_of(dice, NAMES),
        "Minute" | "Hour" => any_of(dice, &["0", "*", "*/5"]),
        "DayOfMonth" | "Month" | "DayOfWeek" => any_of(dice, &["*", "1"]),
        "start_at" | "from" | "anchor" => instant(dice, -3_600, 600),
        "end_at" | "to" | "until" => instant(dice, 3_600, 90_000),
        "at" | "after" => instant(dice, 0, 900),
        _ => any_of(dice, NAMES),
    })
}

/// Another lower bound than that of the document, for numbers whose smallest values are the most work.
pub(crate) fn least(name: &str) -> Option<i64> {
    (name == "every_seconds").then_some(60)
}

/// A small payload.
pub(crate) fn payload(dice: &Dice) -> Json {
    Json::Raw(any_of(dice, &["null", "7", r#""x""#, r#"{"shop":7}"#, "[1,2,3]", r#"{"a":{"b":[]}}"#]))
}

fn instant(dice: &Dice, from_seconds: i64, to_seconds: i64) -> String {
    let span = (to_seconds - from_seconds).unsigned_abs();
    let second = NOON + from_seconds + dice.below(span) as i64;
    let at = DateTime::from_timestamp(second, 0).unwrap_or_default();
    let east = at + Duration::hours(1);
    match dice.below(4) {
        0 => format!("{}+01:00", east.format("%Y-%m-%dT%H:%M:%S")),
        _ => at.to_rfc3339_opts(SecondsFormat::Secs, true),
    }
}

fn choices_of(schema: &str) -> &'static [Choice] {
    CHOICES.iter().find(|(of, _)| *of == schema).map_or(&[], |(_, choices)| choices)
}

/// What must stand beside a field for it to mean something, by the name of the schema.
pub(crate) fn beside(dice: &Dice, schema: &str, field: &str) -> Vec<&'static str> {
    let choices = choices_of(schema);
    let is_choice = choices.iter().any(|choice| choice.field == field);
    let owner = choices.iter().find(|choice| choice.with.contains(&field));
    let chosen = owner.or_else(|| dice.pick(choices)).map(|choice| choice.field).filter(|_| !is_choice);
    let calendars = (field == "on_closed_day").then_some("calendars");
    chosen.into_iter().chain(OF_POLICY.contains(&field).then_some("policy_id")).chain(calendars).collect()
}

/// Takes out of an object what excludes each other, by the name of its schema.
pub(crate) fn settled(dice: &Dice, schema: &str, value: Json) -> Json {
    let Json::Object(mut members) = value else { return value };
    choose(dice, choices_of(schema), &mut members);
    match schema {
        "JobBody" => settle_job(dice, &mut members),
        "EarlyClose" => settle_early_close(dice, &mut members),
        _ => {}
    }
    Json::Object(members)
}

/// Keeps one field with what goes with it. Where none is there, the object stays as it is.
fn choose(dice: &Dice, choices: &[Choice], members: &mut Vec<(String, Json)>) {
    let is_there = |choice: &&Choice| members.iter().any(|(name, _)| name == choice.field);
    let there: Vec<&Choice> = choices.iter().filter(is_there).collect();
    let Some(chosen) = dice.pick(&there) else { return };
    members.retain(|(name, _)| {
        let is = |choice: &Choice| choice.field == name || choice.with.contains(&name.as_str());
        is(chosen) || !choices.iter().any(is)
    });
}

/// Its `from` is a time of day, where others are instants.
fn settle_early_close(dice: &Dice, members: &mut [(String, Json)]) {
    for (_, from) in members.iter_mut().filter(|(name, _)| name == "from") {
        *from = Json::text(any_of(dice, TIMES));
    }
}

fn settle_job(dice: &Dice, members: &mut Vec<(String, Json)>) {
    let there: Vec<&str> =
        PAYLOADS.into_iter().filter(|name| members.iter().any(|(n, _)| n == name)).collect();
    let chosen = dice.pick(&there).copied();
    members.retain(|(name, _)| !PAYLOADS.contains(&name.as_str()) || Some(name.as_str()) == chosen);
    if chosen == Some("payloads") {
        members.retain(|(name, _)| name != "count");
    }
    if !members.iter().any(|(name, _)| name == "policy_id") {
        members.retain(|(name, _)| !OF_POLICY.contains(&name.as_str()));
    }
    // Moved are launches of cron triggers off the days of calendars.
    let has_days = members.iter().any(|(name, value)| {
        let names_one = matches!(value, Json::List(names) if !names.is_empty());
        names_one && matches!(&**name, "calendars" | "only_on")
    });
    let is_cron = members.iter().any(|(name, value)| {
        name == "trigger" && matches!(value, Json::Object(of) if of.iter().any(|(name, _)| name == "cron"))
    });
    if !has_days || !is_cron {
        members.retain(|(name, _)| name != "on_closed_day");
    }
}
