//! A report as a table, for people: how many of each kind were repaired, and one by one what cannot be known.

use std::io::{self, Write};

use chrono::{DateTime, SecondsFormat, Utc};
use tidegate_engine::{FindingKind, RepairReport};

/// Writes it.
pub(super) fn write(report: &RepairReport, tables: &str, out: &mut impl Write) -> io::Result<()> {
    let at = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (did, begin) = match report.applied {
        true => ("repaired", "begin"),
        false => ("to be repaired", "would begin"),
    };
    writeln!(out, "tables    {tables}, as of {} or later", at(report.first_cut))?;
    writeln!(out, "launches  are emitted again from {}", at(report.back_to))?;
    writeln!(out, "numbers   of {} slot groups {begin} at {}", report.groups, report.first_fence)?;
    writeln!(out, "leases    that no table knows end within {} s", report.longest_lease_seconds)?;
    let (looked_at, repairs): (Vec<_>, Vec<_>) =
        report.counts.iter().partition(|(kind, _)| kind.is_for_a_person());
    if repairs.is_empty() {
        writeln!(out, "\nnothing is {did}")?;
    } else {
        writeln!(out, "\n{did}")?;
    }
    for (kind, count) in repairs {
        writeln!(out, "  {count:>8}  {:<22}{}", kind.code(), says(*kind))?;
    }
    if !looked_at.is_empty() {
        writeln!(out, "\nto be looked at")?;
    }
    for (kind, count) in looked_at {
        writeln!(out, "  {count:>8}  {:<22}{}", kind.code(), says(*kind))?;
        for finding in report.findings.iter().filter(|finding| finding.kind == *kind) {
            let whose = [&*finding.client, &*finding.subject, &*finding.detail];
            let whose: Vec<&str> = whose.into_iter().filter(|part| !part.is_empty()).collect();
            writeln!(out, "            {}", whose.join("  "))?;
        }
    }
    if !report.applied {
        writeln!(out, "\nNothing was written. The same with --apply does it.")?;
    }
    Ok(())
}

fn says(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::EventsPutBack => "events whose end is not known wait again",
        FindingKind::RunCounted => "the counts of a run are those of its history",
        FindingKind::RunMadeAgain => "a run has a row again",
        FindingKind::PackLetGo => "single events without a row are emitted again",
        FindingKind::EventsSentAgain => "parts of a run without a record are sent again",
        FindingKind::CompletionChecked => "a client may not have been told that a run ended",
        FindingKind::JobIndexed => "a job has all its rows in the time index",
        FindingKind::IndexRowRemoved => "a row of the time index that is of no job is gone",
        FindingKind::FirstLaunchesOwed => "the first launches of a job are emitted again",
        FindingKind::IndexShapeRaised => "scans know a zone or shard of the time index",
        FindingKind::PartBegunAnew => "a part of an emission begins anew",
        FindingKind::WatermarkSetBack => "the emitter goes back",
        FindingKind::RunUnknown => "events in flight of a run of which nothing else is known",
        FindingKind::PackUnknown => "single events in flight, too old to be emitted again",
        FindingKind::JobUnknown => "a job of which only rows of the time index were there",
        FindingKind::JobChanged => "a job that was changed shortly before",
        FindingKind::ClientUnknown => "a client that is not registered",
        FindingKind::PolicyUnknown => "a policy that is not there",
        FindingKind::CalendarUnknown => "a calendar that is not there",
        FindingKind::TokenHeld => "a token that its policy does not take back",
        FindingKind::RunTooOld => "a run whose history has begun to expire",
        FindingKind::Unreadable => "a row that cannot be read",
    }
}
