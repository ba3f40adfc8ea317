//! The last line: how much there was, when it was most, and what it took.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use serde::Serialize;
use tidegate_domain::time::zone_database_version;
use tidegate_embedded::Usage;

use super::intake::Intake;
use super::print::{Busiest, Tally};

/// What the stores and the clock on the wall say.
pub(super) struct Spent {
    /// What was consumed when all jobs were stored.
    pub(super) stored: Usage,
    /// What was consumed at the end.
    pub(super) scanned: Usage,
    /// Rows of the index that were read.
    pub(super) rows_read: u64,
    /// Real time.
    pub(super) elapsed: Duration,
}

#[derive(Debug, Serialize)]
struct Line {
    summary: Summary,
}

/// The summary. Its fields keep their names; more may come.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Jobs that were stored.
    jobs: u64,
    /// Rows that were refused.
    refused: u64,
    firings: u64,
    /// Events of all firings.
    events: u64,
    /// Launches that are skipped, by reason. The name in the output is older than the word.
    #[serde(rename = "non_runs")]
    skipped: BTreeMap<&'static str, u64>,
    peak_minute: Option<Peak>,
    peak_second: Option<Peak>,
    /// Rows that minute ticks of a deployment read for each that launches in the minute; 1 is none too many.
    over_selection: Option<f64>,
    /// Rows of the index that this dry run read, in longer pieces than minutes.
    rows_read: u64,
    reads_per_firing: Option<f64>,
    read_units: f64,
    write_units: f64,
    /// What the units were spent on.
    units_of: UnitsOf,
    zone_database: &'static str,
    /// Real time that it took.
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Peak {
    at: String,
    firings: u64,
}

#[derive(Debug, Serialize)]
struct UnitsOf {
    read_units: &'static str,
    write_units: &'static str,
}

const UNITS_OF: UnitsOf = UnitsOf {
    read_units: "index rows read for the window",
    write_units: "rows written to store the jobs and their index",
};

impl Summary {
    /// Puts it together.
    pub(super) fn new(intake: &Intake, tally: &Tally, spent: &Spent) -> Self {
        let of_window = spent.scanned.since(&spent.stored);
        let skipped = tally.skipped.iter().map(|(reason, count)| (reason.as_str(), *count));
        let rows_read = spent.rows_read;
        Self {
            jobs: intake.roster.len() as u64,
            refused: intake.refused.len() as u64,
            firings: tally.firings,
            events: tally.events,
            skipped: skipped.collect(),
            peak_minute: peak(&tally.minutes),
            peak_second: peak(&tally.seconds),
            over_selection: intake.shape.over_selection().map(thousandths),
            rows_read,
            reads_per_firing: (tally.firings > 0)
                .then(|| thousandths(rows_read as f64 / tally.firings as f64)),
            read_units: of_window.read_units(),
            write_units: spent.stored.write_units(),
            units_of: UNITS_OF,
            zone_database: zone_database_version(),
            seconds: thousandths(spent.elapsed.as_secs_f64()),
        }
    }

    /// Writes it as a JSON line.
    pub(super) fn write(self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &Line { summary: self })?;
        out.write_all(b"\n")
    }
}

fn peak(busiest: &Busiest) -> Option<Peak> {
    let (at_s, firings) = busiest.peak()?;
    let at = DateTime::from_timestamp(at_s, 0)?.to_rfc3339_opts(SecondsFormat::Secs, true);
    Some(Peak { at, firings })
}

fn thousandths(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}
