//! The table for people.

use std::fmt::Write as _;

use tidegate_forecast::counted::Peak;
use tidegate_forecast::report::{Lateness, Part, Report};

use super::Forecast;
use super::json::instant;

/// Limits that are listed: those that are used by more than this part, and some others.
const SHARE: f64 = 0.5;
const LIMITS: usize = 6;
/// Refused rows that are shown.
const REFUSED: usize = 5;
/// Policies that are listed, those that cost most.
const POLICIES: usize = 30;

/// All of it.
pub(super) fn render(forecast: &Forecast) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = head(forecast, &mut out);
    let _ = services(forecast, &mut out);
    let _ = policies(forecast, &mut out);
    let _ = jobs(forecast, &mut out);
    let _ = peaks(&forecast.report, &mut out);
    let _ = limits(&forecast.report, &mut out);
    let _ = left_out(forecast, &mut out);
    out
}

fn head(forecast: &Forecast, out: &mut String) -> std::fmt::Result {
    let Forecast { window, intake, report, scale, .. } = forecast;
    let at = |at: chrono::DateTime<chrono::Utc>| instant(at.timestamp() as f64).unwrap_or_default();
    writeln!(
        out,
        "{} to {}: {} jobs, {} firings, {} events",
        at(window.from()),
        at(window.to()),
        count(intake.roster.len() as f64),
        count(report.total.firings),
        count(report.total.events)
    )?;
    if *scale > 1.0 {
        writeln!(out, "EXTRAPOLATED: each job stands for {} like it", count(*scale))?;
    }
    if !intake.refused.is_empty() {
        writeln!(out, "{} rows are refused and not counted:", intake.refused.len())?;
        for refused in intake.refused.iter().take(REFUSED) {
            writeln!(out, "  {refused}")?;
        }
    }
    Ok(())
}

fn services(forecast: &Forecast, out: &mut String) -> std::fmt::Result {
    let (total, months) = (&forecast.report.total, forecast.months());
    let cost = &total.cost;
    writeln!(out, "\n{:<18} {:>24} {:>14} {:>14}", "service", "used", "$", "$ a month")?;
    let used = [
        format!("{} W", count(cost.write_units)),
        format!("{} R", count(cost.read_units)),
        format!("{} requests", count(cost.sqs_requests)),
        format!("{} calls", count(cost.lambda_requests)),
        format!("{} GB-s", count(cost.gb_seconds)),
        String::new(),
        String::new(),
        String::new(),
    ];
    for ((service, dollars), used) in
        total.bill.services().into_iter().zip(used).filter(|((_, dollars), _)| *dollars > 0.0)
    {
        writeln!(out, "{service:<18} {used:>24} {:>14} {:>14}", money(dollars), money(dollars * months))?;
    }
    let dollars = total.bill.total();
    writeln!(out, "{:<18} {:>24} {:>14} {:>14}", "together", "", money(dollars), money(dollars * months))?;
    let idle = forecast.report.idle.bill.total();
    writeln!(out, "{:<18} {:>24} {:>14} {:>14}", "  of it idle", "", money(idle), money(idle * months))
}

fn policies(forecast: &Forecast, out: &mut String) -> std::fmt::Result {
    let report = &forecast.report;
    writeln!(
        out,
        "\n{:<24} {:>14} {:>8} {:>12} {:>10} {:>9} {:>9} {:>9}  backlog",
        "policy", "events", "W each", "$ a month", "$ million", "late 50%", "99%", "most"
    )?;
    let months = forecast.months();
    let mut line = |name: &str, part: &Part, late: Lateness, backlog: String| {
        writeln!(
            out,
            "{name:<24} {:>14} {:>8.2} {:>12} {:>10} {:>9} {:>9} {:>9}  {backlog}",
            count(part.events),
            part.cost.write_units / part.events.max(1.0),
            money(part.bill.total() * months),
            money(part.bill.total() / part.events.max(1.0) * 1e6),
            time(late.median_s),
            time(late.p99_s),
            time(late.most_s),
        )
    };
    if report.unthrottled.events > 0.0 {
        line("(none)", &report.unthrottled, report.unthrottled_lateness, String::new())?;
    }
    let mut policies: Vec<_> = report.policies.iter().zip(&forecast.named.policies).collect();
    policies.sort_by(|(a, _), (b, _)| b.part.bill.total().total_cmp(&a.part.bill.total()));
    for (policy, id) in policies.iter().take(POLICIES) {
        let backlog = match (policy.load.longest, policy.load.last) {
            (Some(longest), Some(last)) => format!(
                "up to {} wait, for {} at the longest; the last ends {}",
                count(longest.most),
                time(longest.to_s - longest.from_s),
                instant(last.to_s).unwrap_or_else(|| "never".to_owned())
            ),
            _ => "none".to_owned(),
        };
        line(id, &policy.part, policy.lateness, backlog)?;
    }
    if policies.len() > POLICIES {
        writeln!(out, "... and {} more: --output json has all", policies.len() - POLICIES)?;
    }
    Ok(())
}

fn jobs(forecast: &Forecast, out: &mut String) -> std::fmt::Result {
    let months = forecast.months();
    writeln!(
        out,
        "\n{:<40} {:>14} {:>14} {:>12} {:>10}",
        "jobs that cost most", "firings", "events", "$ a month", "$ million"
    )?;
    for (id, job) in forecast.top_jobs() {
        let dollars = job.bill.total();
        writeln!(
            out,
            "{id:<40} {:>14} {:>14} {:>12} {:>10}",
            count(job.firings),
            count(job.events),
            money(dollars * months),
            money(dollars / job.events.max(1.0) * 1e6)
        )?;
    }
    Ok(())
}

fn peaks(report: &Report, out: &mut String) -> std::fmt::Result {
    let (minute, second) = (&report.busiest_minutes, &report.seconds);
    writeln!(out, "\n{:<28} {:>16}  at", "peaks", "")?;
    for (name, Peak { value, at_s }) in [
        ("events in a minute", minute.events),
        ("events in a second", second.events),
        ("write units in a minute", minute.write_units),
        ("read units in a minute", minute.read_units),
        ("releases in a minute", minute.released),
        ("creates in a second", second.creates),
    ] {
        if value > 0.0 {
            writeln!(out, "{name:<28} {:>16}  {}", count(value), instant(at_s as f64).unwrap_or_default())?;
        }
    }
    Ok(())
}

fn limits(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n{:<52} {:>12} {:>12} {:>8}", "limits, the fullest first", "used", "there is", "share")?;
    let listed =
        (0..).zip(&report.limits).take_while(|(place, limit)| *place < LIMITS || limit.share > SHARE);
    for (_, limit) in listed {
        writeln!(
            out,
            "{:<52} {:>12} {:>12} {:>7.1}%",
            format!("{} ({})", limit.limit, limit.of),
            count(limit.used),
            count(limit.available),
            100.0 * limit.share
        )?;
        if limit.share >= 1.0 {
            writeln!(out, "    in {}: {}", limit.unit, limit.beyond)?;
            writeln!(out, "    raised by: {}", limit.raised_by)?;
        }
    }
    let first = report.limits.first().filter(|first| first.share < 1.0);
    if let Some(first) = first {
        writeln!(
            out,
            "none is met; {} of {} would be the first, raised by: {}",
            first.limit, first.of, first.raised_by
        )?;
    }
    Ok(())
}

fn left_out(forecast: &Forecast, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\nleft out:")?;
    forecast.left_out.iter().try_for_each(|sentence| writeln!(out, "- {sentence}"))
}

/// A whole number with commas; one below ten with two digits behind the point.
pub(super) fn count(number: f64) -> String {
    if number < 10.0 && number.fract() > 1e-9 {
        return format!("{number:.2}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn money(dollars: f64) -> String {
    if dollars >= 100.0 { count(dollars) } else { format!("{dollars:.2}") }
}

/// A time in the unit that fits it.
fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let counts = [0.0, 1.0, 1.5, 999.0, 1_000.0, 43_115_761.0].map(count);
        assert_eq!(counts, ["0", "1", "1.50", "999", "1,000", "43,115,761"]);
        assert_eq!([0.004, 12.345, 22_000.0].map(money), ["0.00", "12.35", "22,000"]);
        assert_eq!([0.3, 600.0, 7_200.0, 864_000.0].map(time), ["0.3 s", "10 min", "2.0 h", "10.0 d"]);
    }
}
