//! The table for people.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use tidegate_forecast::prices::Service;
use tidegate_forecast::report::{Lateness, Part, PolicyReport, Report};
use tidegate_forecast::{Peak, Use};

use super::Forecast;
use super::columns::Columns;
use super::columns::Side::{Left, Right};
use super::json::instant;
use super::numbers::{count, money, time};

/// Limits that are listed: those that are used by more than this part, and some others.
const SHARE: f64 = 0.5;
const LIMITS: usize = 6;
/// Keys that are listed, the fullest.
const KEYS: usize = 3;
/// Refused rows that are shown.
const REFUSED: usize = 5;
/// Policies that are listed, those that cost most.
const POLICIES: usize = 30;

/// All of it.
pub(super) fn render(forecast: &Forecast) -> String {
    let report = &forecast.report;
    let mut out = head(forecast);
    let blocks =
        [services(forecast), policies(forecast), jobs(forecast), peaks(report), keys(report), limits(report)];
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        out.push('\n');
        out.push_str(block);
    }
    out.push_str("\nleft out:\n");
    for sentence in &forecast.left_out {
        line(&mut out, format_args!("- {sentence}"));
    }
    out
}

/// Writing to a string cannot fail.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}

fn head(forecast: &Forecast) -> String {
    let Forecast { window, intake, report, scale, account, .. } = forecast;
    let at = |at: DateTime<Utc>| instant(at.timestamp() as f64).unwrap_or_default();
    let (jobs, total) = (count(intake.roster.len() as f64), &report.total);
    let (from, to) = (at(window.from()), at(window.to()));
    let mut out = String::new();
    line(
        &mut out,
        format_args!(
            "{from} to {to}: {jobs} jobs, {} firings, {} events",
            count(total.firings),
            count(total.events)
        ),
    );
    if *scale > 1.0 {
        line(&mut out, format_args!("EXTRAPOLATED: each job stands for {} like it", count(*scale)));
    }
    let pollers = account.pollers();
    line(
        &mut out,
        format_args!(
            "an account with {} invocations at once, of which {} to {} handle the dispatch queue",
            count(account.lambda_concurrency),
            count(pollers.at_first),
            count(pollers.most)
        ),
    );
    let refused = &intake.refused;
    if !refused.is_empty() {
        line(&mut out, format_args!("{} rows are refused and not counted:", refused.len()));
        refused.iter().take(REFUSED).for_each(|refused| line(&mut out, format_args!("  {refused}")));
        and_more(&mut out, refused.len(), REFUSED, "  ");
    }
    out
}

fn and_more(out: &mut String, all: usize, shown: usize, indent: &str) {
    if all > shown {
        line(
            out,
            format_args!("{indent}... and {} more: --output json has all", count((all - shown) as f64)),
        );
    }
}

fn services(forecast: &Forecast) -> String {
    let (total, months) = (&forecast.report.total, forecast.months());
    let cost = &total.cost;
    let used = |id: &str| match id {
        "dynamodb_writes" => format!("{} W", count(cost.write_units)),
        "dynamodb_reads" => format!("{} R", count(cost.read_units)),
        "dynamodb_storage" => format!("{} GB-months", count(cost.gb_months)),
        "sqs" => format!("{} requests", count(cost.sqs_requests)),
        "lambda_requests" => format!("{} calls", count(cost.lambda_requests)),
        "lambda_time" => format!("{} GB-s", count(cost.gb_seconds)),
        "cloudwatch_logs" => format!("{} MB", count(cost.log_bytes / 1e6)),
        _ => String::new(),
    };
    let mut columns = Columns::new([("service", Left), ("used", Right), ("$", Right), ("$ a month", Right)]);
    let mut row = |name: &str, used: String, dollars: f64| {
        columns.add([name.to_owned(), used, money(dollars), money(dollars * months)]);
    };
    for Service { id, name, dollars } in total.bill.services() {
        if dollars > 0.0 {
            row(name, used(id), dollars);
        }
    }
    row("together", String::new(), total.bill.total());
    row("  of it idle", String::new(), forecast.report.idle.bill.total());
    columns.render()
}

/// What each event of a part takes, and what that costs.
fn of_each(part: &Part, months: f64) -> [String; 7] {
    let (cost, dollars, events) = (&part.cost, part.bill.total(), part.events.max(1.0));
    [
        count(part.events),
        format!("{:.2}", cost.write_units / events),
        format!("{:.2}", cost.read_units / events),
        format!("{:.2}", cost.sqs_requests / events),
        format!("{:.4}", cost.gb_seconds / events),
        money(dollars * months),
        money(dollars / events * 1e6),
    ]
}

/// The columns of [`of_each`].
const EACH: [&str; 7] = ["events", "W", "R", "SQS", "GB-s", "$ a month", "$ million"];

fn policies(forecast: &Forecast) -> String {
    let report = &forecast.report;
    let numbers = EACH.into_iter().chain(["late 50%", "99%", "most"]).map(|name| (name, Right));
    let first = std::iter::once(("policy, each event", Left));
    let mut columns = Columns::new(first.chain(numbers).chain([("backlog", Left)]));
    let mut row = |name: &str, part: &Part, late: Lateness, backlog: String| {
        let late = [late.median_s, late.p99_s, late.most_s].map(time);
        let numbers = of_each(part, forecast.months()).into_iter().chain(late);
        columns.add(std::iter::once(name.to_owned()).chain(numbers).chain([backlog]));
    };
    if report.unthrottled.events > 0.0 {
        row("(none)", &report.unthrottled, report.unthrottled_lateness, String::new());
    }
    let mut policies: Vec<_> = report.policies.iter().zip(&forecast.named.policies).collect();
    policies.sort_by(|(a, _), (b, _)| b.part.bill.total().total_cmp(&a.part.bill.total()));
    for (policy, id) in policies.iter().take(POLICIES) {
        row(id, &policy.part, policy.lateness, backlog(policy));
    }
    let mut out = columns.render();
    and_more(&mut out, policies.len(), POLICIES, "");
    out
}

fn backlog(policy: &PolicyReport) -> String {
    match (policy.load.longest, policy.load.last) {
        (Some(longest), Some(last)) => format!(
            "up to {} wait, for {} at the longest; the last ends {}",
            count(longest.most),
            time(longest.to_s - longest.from_s),
            instant(last.to_s).unwrap_or_else(|| "never".to_owned())
        ),
        _ => "none".to_owned(),
    }
}

fn jobs(forecast: &Forecast) -> String {
    let first = [("jobs that cost most, each event", Left), ("firings", Right)];
    let mut columns = Columns::new(first.into_iter().chain(EACH.map(|name| (name, Right))));
    let mut shown = 0;
    for (id, job) in forecast.top_jobs() {
        let first = [id.to_owned(), count(job.firings)];
        columns.add(first.into_iter().chain(of_each(job, forecast.months())));
        shown += 1;
    }
    let mut out = columns.render();
    let fired = forecast.report.jobs.iter().filter(|job| job.firings > 0.0).count();
    if fired > shown {
        line(
            &mut out,
            format_args!("... and {} more that fire: --top lists more", count((fired - shown) as f64)),
        );
    }
    out
}

fn peaks(report: &Report) -> String {
    let (minute, second) = (&report.busiest_minutes, &report.seconds);
    let mut columns = Columns::new([("peaks", Left), ("", Right), ("at", Left)]);
    for (name, Peak { value, at_s }) in [
        ("events in a minute", minute.events),
        ("events in a second", second.events),
        ("write units in a minute", minute.write_units),
        ("write units in a second", second.cost.write_units),
        ("read units in a minute", minute.read_units),
        ("read units in a second", second.cost.read_units),
        ("requests to SQS in a minute", minute.sqs_requests),
        ("requests to SQS in a second", second.cost.sqs_requests),
        ("invocations in a minute", minute.lambda_requests),
        ("invocations in a second", second.cost.lambda_requests),
        ("releases in a minute", minute.released),
        ("creates in a second", second.creates),
    ] {
        if value > 0.0 {
            let at = instant(at_s as f64).unwrap_or_default();
            columns.add([name.to_owned(), count(value), at]);
        }
    }
    columns.render()
}

/// When a limit is used most.
fn at(of: &Use) -> String {
    of.at_s.and_then(|at_s| instant(at_s as f64)).unwrap_or_default()
}

fn keys(report: &Report) -> String {
    let mut columns = Columns::new([("busiest keys", Left), ("", Right), ("in", Left), ("at", Left)]);
    let mut keys = report.busiest_keys().take(KEYS).peekable();
    if keys.peek().is_none() {
        return String::new();
    }
    for key in keys {
        columns.add([key.of.clone(), count(key.used), key.unit.to_owned(), at(key)]);
    }
    columns.render()
}

fn limits(report: &Report) -> String {
    let mut columns = Columns::new([
        ("limits, the fullest first", Left),
        ("used", Right),
        ("there is", Right),
        ("share", Right),
        ("in", Left),
        ("at", Left),
    ]);
    let listed: Vec<&Use> = (0..)
        .zip(&report.limits)
        .take_while(|(place, limit)| *place < LIMITS || limit.share > SHARE)
        .map(|(_, limit)| limit)
        .collect();
    for limit in &listed {
        columns.add([
            format!("{} ({})", limit.limit, limit.of),
            count(limit.used),
            count(limit.available),
            format!("{:.1}%", 100.0 * limit.share),
            limit.unit.to_owned(),
            at(limit),
        ]);
    }
    let mut out = columns.render();
    for limit in listed.iter().filter(|limit| limit.share >= 1.0) {
        line(&mut out, format_args!("{} ({}) is met: {}", limit.limit, limit.of, limit.beyond));
        line(&mut out, format_args!("  raised by: {}", limit.raised_by));
    }
    if let Some(first) = report.limits.first().filter(|first| first.share < 1.0) {
        let Use { limit, of, raised_by, .. } = first;
        line(
            &mut out,
            format_args!("none is met; {limit} of {of} would be the first, raised by: {raised_by}"),
        );
    }
    out
}
