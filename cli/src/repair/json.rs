//! A report as one JSON object, for scripts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use tidegate_engine::{Finding, RepairReport};

#[derive(Serialize)]
struct Report<'r> {
    tables: &'r str,
    applied: bool,
    restored_to: String,
    launches_again_from: String,
    first_fence: u64,
    slot_groups: u64,
    longest_lease_seconds: u32,
    counts: BTreeMap<&'static str, u64>,
    repairs: Vec<Found<'r>>,
    to_be_looked_at: Vec<Found<'r>>,
}

#[derive(Serialize)]
struct Found<'r> {
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    client_id: &'r str,
    subject: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'r str,
}

impl<'r> From<&'r Finding> for Found<'r> {
    fn from(Finding { kind, client, subject, detail }: &'r Finding) -> Self {
        Self { kind: kind.code(), client_id: client, subject, detail }
    }
}

/// Writes it with a line's end.
pub(super) fn write(report: &RepairReport, tables: &str, out: &mut impl Write) -> io::Result<()> {
    let text = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (looked_at, repairs): (Vec<_>, Vec<_>) =
        report.findings.iter().partition(|finding| finding.kind.is_for_a_person());
    let report = Report {
        tables,
        applied: report.applied,
        restored_to: text(report.first_cut),
        launches_again_from: text(report.back_to),
        first_fence: report.first_fence,
        slot_groups: report.groups,
        longest_lease_seconds: report.longest_lease_seconds,
        counts: report.counts.iter().map(|(kind, count)| (kind.code(), *count)).collect(),
        repairs: repairs.into_iter().map(Found::from).collect(),
        to_be_looked_at: looked_at.into_iter().map(Found::from).collect(),
    };
    serde_json::to_writer(&mut *out, &report)?;
    out.write_all(b"\n")
}
