//! The launches of real schedules against the brute-force reference in `tests/data` (I6).
//!
//! Every row of the reference is either equal or named here with its reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helper functions too")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_domain::time::{
    CronSpec, Firing, LocalWindow, Window, decompose, parse_zone, split_zone_prefix, zone_database_version,
};

/// Posix schedules and nicknames that are refused, with what their refusal says.
const REFUSED: [(&str, &str); 14] = [
    ("s0027", "'60' is outside 0-59"),
    ("s0123", "'A' is not a number"),
    ("s0133", "Jenkins"),
    ("s0214", "extra comma"),
    ("s0266", "'60' is outside 0-59"),
    ("s0288", "Jenkins"),
    ("s0301", "is an interval"),
    ("s0361", "'99' is outside 0-59"),
    ("s0444", "'R/5' is not a number"),
    ("s0510", "Jenkins"),
    // The reference computes the next two: no launches. A job that never fires is refused instead.
    ("s0593", "never fires"),
    ("s0664", "Jenkins"),
    ("s0666", "never fires"),
    ("s0705", "Jenkins"),
];
/// Dialects that are not taken yet: how many rows each has, and what their refusal says.
const REFUSED_DIALECTS: [(&str, usize, &str); 4] = [
    ("aws6", 29, "cron expression '"),
    ("quartz6", 16, "has 6 fields instead of 5: the first one"),
    ("quartz7", 2, "has 7 fields instead of 5"),
    ("seconds6", 29, "has 6 fields instead of 5: the first one"),
];

struct Schedule {
    id: String,
    expression: String,
    zone: String,
    dialect: String,
}

struct Row {
    id: String,
    window: Window,
    count: usize,
    firings: Vec<(String, String)>,
    sha256_all: Option<String>,
}

fn data(name: &str) -> File {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name);
    File::open(&path).unwrap_or_else(|error| panic!("{} should open: {error}", path.display()))
}

fn json_lines(source: impl Read) -> Vec<Value> {
    BufReader::new(source).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_else(|| panic!("{key} should be text in {row}")).to_owned()
}

fn schedules(name: &str) -> Vec<Schedule> {
    let schedule = |row: &Value| Schedule {
        id: text(row, "id"),
        expression: text(row, "expression"),
        zone: text(row, "zone"),
        dialect: text(row, "dialect"),
    };
    json_lines(data(name)).iter().map(schedule).collect()
}

fn firing_rows(name: &str) -> Vec<Row> {
    json_lines(GzDecoder::new(data(name))).iter().map(firing_row).collect()
}

fn firing_row(row: &Value) -> Row {
    let midnight = |index: usize| -> DateTime<Utc> {
        let date: NaiveDate = row["window"][index].as_str().unwrap().parse().unwrap();
        date.and_time(NaiveTime::MIN).and_utc()
    };
    let pair = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned());
    Row {
        id: text(row, "id"),
        window: Window::new(midnight(0), midnight(1)).unwrap(),
        count: row["count"].as_u64().unwrap() as usize,
        firings: row["firings"].as_array().unwrap().iter().map(pair).collect(),
        sha256_all: row.get("sha256_all").and_then(Value::as_str).map(str::to_owned),
    }
}

fn instant_text(firing: &Firing) -> String {
    firing.launch_at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What the launches have that the row does not; `None` when they are equal.
fn difference(row: &Row, firings: &[Firing]) -> Option<String> {
    let found: Vec<(String, String)> =
        firings.iter().map(|firing| (instant_text(firing), firing.label.as_str().to_owned())).collect();
    if let Some((want, have)) = row.firings.iter().zip(&found).find(|(want, have)| want != have) {
        return Some(format!("{} {:?}: want {want:?}, have {have:?}", row.id, row.window));
    }
    if found.len() != row.count {
        return Some(format!(
            "{} {:?}: want {} launches, have {}",
            row.id,
            row.window,
            row.count,
            found.len()
        ));
    }
    let joined = found.iter().map(|(instant, _)| instant.as_str()).collect::<Vec<_>>().join("\n");
    let sha256 =
        Sha256::digest(joined.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match &row.sha256_all {
        Some(want) if *want != sha256 => {
            Some(format!("{} {:?}: the hash of all instants differs", row.id, row.window))
        }
        _ => None,
    }
}

/// The schedules that are taken, by id.
type Taken = BTreeMap<String, (CronSpec, Tz)>;

/// Reads schedules: those that are taken, and those that are refused with the text of their refusal.
fn read(name: &str) -> (Taken, Vec<(Schedule, String)>) {
    let (mut taken, mut refused) = (Taken::new(), Vec::new());
    for schedule in schedules(name) {
        let (prefix, expression) = split_zone_prefix(&schedule.expression);
        let zone_name = prefix.unwrap_or(&schedule.zone);
        match CronSpec::parse(expression) {
            Ok(spec) => {
                let zone = parse_zone(zone_name).unwrap_or_else(|error| panic!("{}: {error}", schedule.id));
                taken.insert(schedule.id, (spec, zone));
            }
            Err(error) => refused.push((schedule, error.to_string())),
        }
    }
    (taken, refused)
}

/// The zone that a row has to be computed in to agree with release 2026f of the zone database.
///
/// 2026f knows that Morocco leaves its clocks at UTC from 20 September 2026 on; a release before it does not.
fn zone_of_reference(zone: Tz, window: Window) -> Tz {
    let changed_at: DateTime<Utc> = "2026-09-20T02:00:00Z".parse().unwrap();
    let old_release = zone_database_version() < "2026";
    if zone == Tz::Africa__Casablanca && window.from() > changed_at && old_release { Tz::UTC } else { zone }
}

fn compare(name: &str) -> usize {
    let (taken, _) = read(&format!("schedules_{name}.jsonl"));
    let rows = firing_rows(&format!("firings_{name}.jsonl.gz"));
    let compared = rows.iter().filter_map(|row| Some((row, taken.get(&row.id)?)));
    let differences: Vec<String> = compared
        .clone()
        .filter_map(|(row, (spec, zone))| {
            let zone = zone_of_reference(*zone, row.window);
            difference(row, &spec.compiled().firings(zone, row.window))
        })
        .collect();
    assert!(differences.is_empty(), "zone database {}:\n{}", zone_database_version(), differences.join("\n"));
    compared.count()
}

/// 319 posix rows and 2 nicknames have status `ok`; two of them never fire. Six windows each.
#[test]
fn launches_equal_the_reference() {
    assert_eq!(compare("public"), (319 + 2 - 2) * 6);
}

#[test]
fn launches_near_clock_changes_equal_the_reference() {
    assert_eq!(compare("dst_extra_public"), firing_rows("firings_dst_extra_public.jsonl.gz").len());
}

/// I6 on real expressions: the children of each, read where a scan finds them, launch the whole.
#[test]
fn children_of_real_schedules_share_out_their_launches() {
    for name in ["public", "dst_extra_public"] {
        let (taken, _) = read(&format!("schedules_{name}.jsonl"));
        for row in firing_rows(&format!("firings_{name}.jsonl.gz")) {
            let Some((spec, zone)) = taken.get(&row.id) else { continue };
            let local = LocalWindow::new(*zone, row.window);
            let eligible = local.eligible();
            let mut owned = Vec::new();
            for child in decompose(spec.compiled()) {
                if eligible.iter().any(|range| range.covers(&child)) {
                    spec.compiled().owned_firings_in(&child, &local, &mut owned);
                }
            }
            owned.sort_unstable();
            assert_eq!(owned, spec.compiled().firings(*zone, row.window), "{} {:?}", row.id, row.window);
        }
    }
}

#[test]
fn every_refusal_is_listed() {
    let (_, refused) = read("schedules_public.jsonl");
    let posix: BTreeMap<&str, &str> = refused
        .iter()
        .filter(|(schedule, _)| matches!(schedule.dialect.as_str(), "posix5" | "nickname"))
        .map(|(schedule, error)| (schedule.id.as_str(), error.as_str()))
        .collect();
    assert_eq!(posix.keys().collect::<Vec<_>>(), REFUSED.iter().map(|(id, _)| id).collect::<Vec<_>>());
    for (id, part) in REFUSED {
        assert!(posix[id].contains(part), "{id}: {}", posix[id]);
    }
    for (dialect, rows, part) in REFUSED_DIALECTS {
        let texts =
            refused.iter().filter(|(schedule, _)| schedule.dialect == dialect).map(|(_, error)| error);
        assert_eq!(texts.clone().count(), rows, "{dialect}");
        for text in texts {
            assert!(text.contains(part), "{dialect}: {text}");
        }
    }
    assert!(read("schedules_dst_extra_public.jsonl").1.is_empty());
}

/// What the reference calls invalid or leaves out is refused too.
#[test]
fn nothing_is_taken_that_the_reference_does_not_compute() {
    let (taken, _) = read("schedules_public.jsonl");
    for note in json_lines(data("notes_public.jsonl")) {
        let (id, status) = (text(&note, "id"), text(&note, "status"));
        assert!(status == "ok" || !taken.contains_key(&id), "{id} is {status}");
        if let (Some((spec, _)), Some(kind)) = (taken.get(&id), note["detail"].as_str()) {
            assert_eq!(spec.compiled().is_interval(), kind == "interval", "{id}: {}", spec.canonical());
        }
    }
}
