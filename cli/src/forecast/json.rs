//! `--output json`: one object. Its names stay; more may come. `docs/forecast.md` says what each means.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use tidegate_forecast::counted::SecondPeaks;
use tidegate_forecast::prices::{Bill, Service};
use tidegate_forecast::report::{Lateness, MinutePeaks, Part, Report};
use tidegate_forecast::steps::Step;
use tidegate_forecast::{Cost, Peak, Use, Waiting};

use super::Forecast;
use crate::dry_run::intake::Refused;

/// Keys that are listed.
const KEYS: usize = 20;

#[derive(Serialize)]
struct Document<'a> {
    window: WindowDoc,
    jobs: usize,
    refused: &'a [Refused],
    skipped: BTreeMap<&'static str, u64>,
    /// For how many jobs like it each stands; above 1 all figures are extrapolated.
    scale: f64,
    extrapolated: bool,
    total: PartDoc,
    services: Vec<ServiceDoc>,
    idle: PartDoc,
    unthrottled: PartDoc,
    unthrottled_lateness: LatenessDoc,
    policies: Vec<PolicyDoc<'a>>,
    top_jobs: Vec<JobDoc<'a>>,
    peaks: PeaksDoc<'a>,
    limits: Vec<LimitDoc<'a>>,
    /// The fullest limit, whether it is met or not.
    first_limit: Option<&'a str>,
    steps: Vec<StepDoc>,
    left_out: &'a [String],
}

#[derive(Serialize)]
struct WindowDoc {
    from: String,
    to: String,
    minutes: f64,
}

#[derive(Serialize)]
struct PartDoc {
    firings: f64,
    events: f64,
    #[serde(flatten)]
    cost: Cost,
    dollars: f64,
    dollars_a_month: f64,
    dollars_per_million_events: Option<f64>,
}

#[derive(Serialize)]
struct ServiceDoc {
    service: &'static str,
    dollars: f64,
    dollars_a_month: f64,
}

#[derive(Serialize)]
struct LatenessDoc {
    median_seconds: f64,
    p99_seconds: f64,
    most_seconds: f64,
}

#[derive(Serialize)]
struct PolicyDoc<'a> {
    policy_id: &'a str,
    #[serde(flatten)]
    part: PartDoc,
    lateness: LatenessDoc,
    /// Events that begin in a second when some wait.
    events_a_second: f64,
    longest_backlog: Option<BacklogDoc>,
    backlog_ends_at: Option<String>,
}

#[derive(Serialize)]
struct BacklogDoc {
    from: String,
    to: String,
    events: f64,
}

#[derive(Serialize)]
struct JobDoc<'a> {
    job_id: &'a str,
    #[serde(flatten)]
    part: PartDoc,
}

#[derive(Serialize)]
struct PeaksDoc<'a> {
    minute: BTreeMap<&'static str, PeakDoc>,
    second: BTreeMap<&'static str, PeakDoc>,
    /// The busiest keys, the one that is asked for most of what it gives before the others.
    key: Vec<KeyDoc<'a>>,
}

#[derive(Serialize)]
struct KeyDoc<'a> {
    key: &'a str,
    unit: &'static str,
    value: f64,
    at: Option<String>,
}

#[derive(Serialize)]
struct PeakDoc {
    value: f64,
    at: Option<String>,
}

#[derive(Serialize)]
struct LimitDoc<'a> {
    #[serde(flatten)]
    limit: &'a Use,
    at: Option<String>,
    is_met: bool,
}

#[derive(Serialize)]
struct StepDoc {
    step: Step,
    count: f64,
    #[serde(flatten)]
    each: Cost,
}

/// The document, with a line break at its end.
pub(super) fn render(forecast: &Forecast) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&document(forecast))? + "\n")
}

fn document(forecast: &Forecast) -> Document<'_> {
    let Forecast { window, intake, named, report, .. } = forecast;
    let months = forecast.months();
    let part = |part: &Part| part_doc(part, months);
    let services = report.total.bill.services().into_iter();
    let policies = report.policies.iter().zip(&named.policies).map(|(policy, id)| PolicyDoc {
        policy_id: id,
        part: part(&policy.part),
        lateness: lateness(policy.lateness),
        events_a_second: rounded(policy.load.per_second),
        longest_backlog: policy.load.longest.map(backlog),
        backlog_ends_at: policy.load.last.and_then(|waiting| instant(waiting.to_s)),
    });
    Document {
        window: WindowDoc {
            from: text(window.from()),
            to: text(window.to()),
            minutes: (window.to() - window.from()).num_seconds() as f64 / 60.0,
        },
        jobs: intake.roster.len(),
        refused: &intake.refused,
        skipped: forecast.skipped.iter().map(|(reason, count)| (reason.as_str(), *count)).collect(),
        scale: forecast.scale,
        extrapolated: forecast.scale > 1.0,
        total: part(&report.total),
        services: services
            .map(|Service { id, dollars, .. }| ServiceDoc {
                service: id,
                dollars: rounded(dollars),
                dollars_a_month: rounded(dollars * months),
            })
            .collect(),
        idle: part(&report.idle),
        unthrottled: part(&report.unthrottled),
        unthrottled_lateness: lateness(report.unthrottled_lateness),
        policies: policies.collect(),
        top_jobs: forecast.top_jobs().map(|(id, job)| JobDoc { job_id: id, part: part(job) }).collect(),
        peaks: PeaksDoc {
            minute: of_minute(&report.busiest_minutes),
            second: of_second(&report.seconds),
            key: of_keys(report),
        },
        limits: report.limits.iter().map(limit).collect(),
        first_limit: report.limits.first().map(|first| first.limit),
        steps: report
            .steps
            .counted()
            .map(|(step, count)| StepDoc { step, count: rounded(count), each: step.cost() })
            .collect(),
        left_out: &forecast.left_out,
    }
}

fn part_doc(part: &Part, months: f64) -> PartDoc {
    let dollars = Bill::total(&part.bill);
    let Cost { write_units, read_units, sqs_requests, lambda_requests, gb_seconds, log_bytes, gb_months } =
        part.cost;
    PartDoc {
        firings: part.firings,
        events: part.events,
        cost: Cost {
            write_units: rounded(write_units),
            read_units: rounded(read_units),
            sqs_requests: rounded(sqs_requests),
            lambda_requests: rounded(lambda_requests),
            gb_seconds: rounded(gb_seconds),
            log_bytes: rounded(log_bytes),
            gb_months: rounded(gb_months),
        },
        dollars: rounded(dollars),
        dollars_a_month: rounded(dollars * months),
        dollars_per_million_events: (part.events > 0.0).then(|| rounded(dollars / part.events * 1e6)),
    }
}

fn lateness(of: Lateness) -> LatenessDoc {
    let Lateness { median_s, p99_s, most_s } = of;
    LatenessDoc {
        median_seconds: rounded(median_s),
        p99_seconds: rounded(p99_s),
        most_seconds: rounded(most_s),
    }
}

fn backlog(waiting: Waiting) -> BacklogDoc {
    let at = |second| instant(second).unwrap_or_default();
    BacklogDoc { from: at(waiting.from_s), to: at(waiting.to_s), events: rounded(waiting.most) }
}

fn limit(limit: &Use) -> LimitDoc<'_> {
    LimitDoc { limit, at: limit.at_s.and_then(|at_s| instant(at_s as f64)), is_met: limit.share >= 1.0 }
}

fn of_keys(report: &Report) -> Vec<KeyDoc<'_>> {
    let keys = report.busiest_keys().take(KEYS).map(|Use { of, unit, used, at_s, .. }| KeyDoc {
        key: of,
        unit,
        value: rounded(*used),
        at: at_s.and_then(|at_s| instant(at_s as f64)),
    });
    keys.collect()
}

fn of_minute(peaks: &MinutePeaks) -> BTreeMap<&'static str, PeakDoc> {
    let MinutePeaks { firings, events, write_units, read_units, sqs_requests, lambda_requests, released } =
        *peaks;
    named([
        ("firings", firings),
        ("events", events),
        ("write_units", write_units),
        ("read_units", read_units),
        ("sqs_requests", sqs_requests),
        ("lambda_requests", lambda_requests),
        ("releases", released),
    ])
}

fn of_second(peaks: &SecondPeaks) -> BTreeMap<&'static str, PeakDoc> {
    named([
        ("firings", peaks.firings),
        ("events", peaks.events),
        ("dispatch_messages", peaks.messages),
        ("creates", peaks.creates),
        ("releases", peaks.released),
        ("write_units", peaks.cost.write_units),
        ("read_units", peaks.cost.read_units),
        ("sqs_requests", peaks.cost.sqs_requests),
        ("lambda_requests", peaks.cost.lambda_requests),
    ])
}

fn named<const N: usize>(peaks: [(&'static str, Peak); N]) -> BTreeMap<&'static str, PeakDoc> {
    let peak = |Peak { value, at_s }: Peak| PeakDoc {
        value: rounded(value),
        at: if value > 0.0 { instant(at_s as f64) } else { None },
    };
    peaks.into_iter().map(|(name, of)| (name, peak(of))).collect()
}

/// Six digits behind the point: fractions of a cent for a single event.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// An instant that is given in Unix seconds; `None` of what lies beyond all calendars.
pub(super) fn instant(second: f64) -> Option<String> {
    DateTime::from_timestamp(second.ceil() as i64, 0).map(text)
}

pub(super) fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
