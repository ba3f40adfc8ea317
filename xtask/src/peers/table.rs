//! The tables: figures of all works, and what each system promises.

use std::fmt::Write as _;

use anyhow::Result;

use crate::peers::guarantees;
use crate::peers::results::Results;
use crate::peers::servers::Servers;
use crate::peers::systems::System;
use crate::peers::works::{Figure, Unit, Work, thousands};

/// What stands where there is no figure.
const NOTHING: &str = "-";

/// Both tables, as Markdown.
///
/// # Errors
/// Never: writing into a text does not fail.
pub fn tables(works: &[Work], servers: &Servers, results: &Results) -> Result<String> {
    let mut text = figures(works, results)?;
    writeln!(text)?;
    writeln!(
        text,
        "| | {} |\n|{}",
        guarantees::COLUMNS.join(" | "),
        " --- |".repeat(guarantees::COLUMNS.len() + 1)
    )?;
    // Ours promises the same whoever plays it.
    for &system in servers.systems.iter().filter(|system| **system != System::TidegateRust) {
        writeln!(text, "| {} | {} |", system.title(), system.guarantees().join(" | "))?;
    }
    Ok(text)
}

fn figures(works: &[Work], results: &Results) -> Result<String> {
    let titles = System::ALL.map(System::title).join(" | ");
    let mut text = format!(
        "| work | figure | aim | {titles} | to the best peer |\n|{}\n",
        " --- |".repeat(System::ALL.len() + 4)
    );
    for work in works {
        let mut title = work.title.as_str();
        for figure in &work.figures {
            let aim = figure.aim.map_or(NOTHING.to_owned(), |aim| shown(aim, figure.unit));
            write!(text, "| {title} | {} | {aim} |", figure.title)?;
            for system in System::ALL {
                write!(text, " {} |", cell(work, *figure, system, results))?;
            }
            let ratio = ratio(work, *figure, results).map_or(NOTHING.to_owned(), factor);
            writeln!(text, " {ratio} |")?;
            title = "";
        }
    }
    Ok(text)
}

fn cell(work: &Work, figure: Figure, system: System, results: &Results) -> String {
    let Some(median) = results.median(work.name, system, figure.key) else {
        return if results.only_failed(work.name, system) { "failed" } else { NOTHING }.to_owned();
    };
    let remark = results.of(work.name, system).iter().find_map(|played| played.remark(work));
    let remark = remark.map(|remark| format!(" ({remark})")).unwrap_or_default();
    format!("{}{remark}{}", shown(median, figure.unit), created_late(work, system, results))
}

/// Says so where jobs were still being created when they were due: the figure then tells of the creates.
fn created_late(work: &Work, system: System, results: &Results) -> String {
    match results.median(work.name, system, "created_before_due_s") {
        Some(before) if before < 0.0 => format!(" (the last created {:.0} s after it)", -before),
        _ => String::new(),
    }
}

/// How many times better than the best peer Tidegate is, both played in Node; below 1 it is worse. A peer's play
/// that lost events or exceeded its limit is no measure.
fn ratio(work: &Work, figure: Figure, results: &Results) -> Option<f64> {
    let ours = results.median(work.name, System::Tidegate, figure.key)?;
    let sound =
        |system: &System| results.of(work.name, *system).iter().all(|played| played.remark(work).is_none());
    let peers = System::ALL.into_iter().filter(|system| !system.is_ours()).filter(sound);
    let theirs = peers.filter_map(|system| results.median(work.name, system, figure.key));
    if figure.unit.more_is_better() {
        Some(ours / theirs.max_by(f64::total_cmp)?)
    } else {
        Some(theirs.min_by(f64::total_cmp)? / ours)
    }
}

/// A ratio with two digits that say something.
fn factor(ratio: f64) -> String {
    if ratio < 0.095 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds if value < 0.1 => format!("{value:.3} s"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::PerSecond => thousands(value.round() as u64),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Megabytes => format!("{value:.0} MB"),
        Unit::Microseconds => format!("{value:.0} µs"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::peers::options::Options;
    use crate::peers::results::Played;
    use crate::peers::works;

    fn herd() -> Work {
        let options = Options::read(&[]).unwrap();
        works::all(&options).into_iter().next().unwrap()
    }

    fn played(late: f64, rate: f64, arrived: u64) -> Played {
        let check = json!({"wanted": 20_000, "arrived": arrived, "early": 0, "most_in_hand": 1});
        Played::read(&json!({"figures": {"p99_late_s": late, "per_second": rate}, "check": check}))
    }

    #[test]
    fn a_row_has_medians_and_the_ratio_to_the_best_peer() {
        let mut results = Results::default();
        for late in [2.0, 0.5, 1.0] {
            results.add("herd", System::Tidegate, played(late, 10_000.0, 20_000));
        }
        // No peer, however fast.
        results.add("herd", System::TidegateRust, played(0.1, 90_000.0, 20_000));
        results.add("herd", System::BullMq, played(2.5, 7_512.4, 20_000));
        results.add("herd", System::PgBoss, played(0.9, 22_000.0, 20_000));
        let text = figures(&[herd()], &results).unwrap();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        let title = "20,000 one-time jobs of one instant, created in bulk 25 s ahead";
        assert_eq!(
            rows[0],
            format!("| {title} | p99 late | 1.00 s | 1.00 s | 0.10 s | 2.50 s | 0.90 s | - | 0.90 |")
        );
        assert_eq!(rows[1], "|  | drained a second | 20,000 | 10,000 | 90,000 | 7,512 | 22,000 | - | 0.45 |");
    }

    #[test]
    fn work_that_was_created_too_late_says_so() {
        let mut late = played(40.0, 400.0, 20_000);
        late.figures.insert("created_before_due_s".to_owned(), json!(-28.3));
        let mut results = Results::default();
        results.add("herd", System::Tidegate, late);
        results.add("herd", System::BullMq, played(0.1, 20_000.0, 20_000));
        let text = figures(&[herd()], &results).unwrap();
        assert!(
            text.contains("| 40.00 s (the last created 28 s after it) | - | 0.10 s | - | - | 0.003 |"),
            "{text}"
        );
    }

    #[test]
    fn a_peer_that_lost_events_is_marked_and_is_no_measure() {
        let mut results = Results::default();
        results.add("herd", System::Tidegate, played(1.0, 10_000.0, 20_000));
        results.add("herd", System::BullMq, played(0.1, 90_000.0, 19_999));
        let text = figures(&[herd()], &results).unwrap();
        assert!(text.contains("90,000 (only 19999 of 20000 came) | - | - | - |"), "{text}");
    }
}
