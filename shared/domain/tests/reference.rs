//! The launches of real schedules against the brute-force reference in `tests/data` (I6).
//!
//! Every row of the reference is either equal or named here with its reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helper functions too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use chrono::{DateTime, LocalResult, NaiveDate, NaiveTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;
use croner::parser::CronParser;
use croner::{Cron, Direction};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_domain::time::{
    Cadence, CronSpec, Dst, Expression, Firing, LocalWindow, Rate, WallClock, Window, parse_zone,
    zone_database_version,
};

/// Refused schedules that the reference computes: no launches. A job that never fires is refused instead.
const NEVER: [&str; 2] = ["s0593", "s0666"];
/// Schedules that the reference does not compute and that are taken all the same: how many, by what its notes say.
const TAKEN_BEYOND: [(&str, usize); 3] = [
    ("an interval from the rule's creation, not calendar times", 2),
    ("has a seconds field", 46),
    ("not a calendar nickname", 1),
];

struct Schedule {
    id: String,
    expression: String,
    zone: String,
}

struct Row {
    id: String,
    window: Window,
    count: usize,
    firings: Vec<(String, String)>,
    sha256_all: Option<String>,
}

fn data(name: &str) -> File {
    let path =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../tests/data").join(name);
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

/// The schedules that are taken, by id; and the texts of the refusals of the others.
type Taken = BTreeMap<String, (Expression, Tz)>;
type Refused = BTreeMap<String, String>;

fn read(name: &str) -> (Taken, Refused) {
    let (mut taken, mut refused) = (Taken::new(), Refused::new());
    for schedule in schedules(name) {
        let found = Expression::parse(&schedule.expression).map_err(|error| error.to_string()).and_then(
            |(prefix, expression)| {
                let zone = parse_zone(prefix.unwrap_or(&schedule.zone)).map_err(|error| error.to_string())?;
                Ok((expression, zone))
            },
        );
        match found {
            Ok(found) => drop(taken.insert(schedule.id, found)),
            Err(error) => drop(refused.insert(schedule.id, error)),
        }
    }
    (taken, refused)
}

fn cadence(expression: &Expression, zone: Tz, anchor: DateTime<Utc>) -> Cadence {
    match expression {
        Expression::Cron(spec) => Cadence::Cron { cron: *spec.compiled(), zone },
        Expression::Rate { every_seconds } => Cadence::Rate(Rate::new(*every_seconds, anchor).unwrap()),
    }
}

fn compare(name: &str) -> usize {
    let (taken, _) = read(&format!("schedules_{name}.jsonl"));
    let rows = firing_rows(&format!("firings_{name}.jsonl.gz"));
    let compared = rows.iter().filter_map(|row| Some((row, taken.get(&row.id)?)));
    let differences: Vec<String> = compared
        .clone()
        .filter_map(|(row, (expression, zone))| {
            difference(row, &cadence(expression, *zone, row.window.from()).firings(row.window))
        })
        .collect();
    assert!(differences.is_empty(), "zone database {}:\n{}", zone_database_version(), differences.join("\n"));
    let left: Vec<&Row> = rows.iter().filter(|row| !taken.contains_key(&row.id)).collect();
    assert!(left.iter().all(|row| NEVER.contains(&&*row.id) && row.count == 0), "rows of refused schedules");
    rows.len() - left.len()
}

/// All computed rows: 319 posix, 2 nicknames and 21 of AWS, of which two never fire. Six windows each.
#[test]
fn launches_equal_the_reference() {
    assert_eq!(compare("public"), (319 + 2 + 21 - 2) * 6);
}

/// Real fixed-time expressions in six zones whose clocks change.
#[test]
fn launches_near_clock_changes_equal_the_reference() {
    assert_eq!(compare("dst_extra_public"), 100);
}

/// Both hold firings of both labels: the comparison above is about them too.
#[test]
fn the_reference_has_gaps_and_overlaps() {
    let labels = |name: &str, label: &str| {
        let rows = firing_rows(name);
        rows.iter().flat_map(|row| &row.firings).filter(|(_, of)| of == label).count()
    };
    let (public, extra) = ("firings_public.jsonl.gz", "firings_dst_extra_public.jsonl.gz");
    assert_eq!([labels(public, "gap"), labels(public, "overlap")], [11, 51]);
    assert_eq!([labels(extra, "gap"), labels(extra, "overlap")], [47, 53]);
}

/// I6 on real expressions, those with seconds and intervals too: the children of each, read where a scan finds them,
/// launch the whole.
#[test]
fn children_of_real_schedules_share_out_their_launches() {
    for name in ["public", "dst_extra_public"] {
        let (taken, _) = read(&format!("schedules_{name}.jsonl"));
        let mut windows: Vec<Window> = Vec::new();
        for row in firing_rows(&format!("firings_{name}.jsonl.gz")) {
            if !windows.contains(&row.window) {
                windows.push(row.window);
            }
        }
        for ((id, (expression, zone)), window) in
            taken.iter().flat_map(|t| windows.iter().map(move |w| (t, *w)))
        {
            let cadence = cadence(expression, *zone, window.from());
            let local = LocalWindow::new(cadence.index_zone().unwrap(), window);
            let eligible = local.eligible();
            let mut owned = Vec::new();
            for child in cadence.children() {
                if eligible.iter().any(|range| range.covers(&child)) {
                    cadence.owned_firings_in(&child, &local, &mut owned);
                }
            }
            owned.sort_unstable();
            assert!(owned == cadence.firings(window), "{id} {window:?}");
        }
    }
}

#[test]
fn every_refusal_is_listed() {
    let (_, refused) = read("schedules_public.jsonl");
    let listed: Vec<(String, String)> = json_lines(data("refused_public.jsonl"))
        .iter()
        .map(|row| (text(row, "id"), text(row, "says")))
        .collect();
    assert_eq!(refused.keys().collect::<Vec<_>>(), listed.iter().map(|(id, _)| id).collect::<Vec<_>>());
    for (id, part) in listed {
        assert!(refused[&id].contains(&part), "{id}: {}", refused[&id]);
    }
    assert!(read("schedules_dst_extra_public.jsonl").1.is_empty());
}

/// What the reference calls invalid is refused too, and its word for the kind of an expression is ours.
#[test]
fn what_the_reference_says_of_an_expression_holds() {
    let (taken, _) = read("schedules_public.jsonl");
    let mut beyond = BTreeMap::<String, usize>::new();
    for note in json_lines(data("notes_public.jsonl")) {
        let (id, status, detail) =
            (text(&note, "id"), text(&note, "status"), note["detail"].as_str().unwrap_or(""));
        let Some((expression, _)) = taken.get(&id) else { continue };
        match (&*status, expression) {
            ("ok", Expression::Cron(spec)) => {
                assert_eq!(spec.is_interval(), detail == "interval", "{id}: {}", spec.canonical());
            }
            ("not_computed", _) => *beyond.entry(detail.to_owned()).or_default() += 1,
            _ => panic!("{id} is {status}"),
        }
    }
    assert_eq!(beyond.iter().map(|(detail, count)| (&**detail, *count)).collect::<Vec<_>>(), TAKEN_BEYOND);
}

fn croner(spec: &CronSpec) -> Cron {
    CronParser::builder().sloppy_ranges(true).build().parse(spec.canonical()).unwrap()
}

/// Where croner, iterating by itself in a zone, does something else, and the reference agrees with us: of fixed times it
/// keeps those with a single hour (`30 2 * * *`) through changes of the clocks. With several hours (`0 2,14 * * *`, `30 0-23/1
/// * * *`) it drops a time in a gap and launches a repeated time twice, as for interval-like expressions.
#[test]
fn croner_itself_differs_for_fixed_times_of_several_hours() {
    let (mut dropped, mut doubled, mut differing) = (0, 0, BTreeSet::new());
    for name in ["public", "dst_extra_public"] {
        let (taken, _) = read(&format!("schedules_{name}.jsonl"));
        for row in firing_rows(&format!("firings_{name}.jsonl.gz")) {
            let Some((Expression::Cron(spec), zone)) = taken.get(&row.id) else { continue };
            let ours = spec.compiled().firings(*zone, row.window);
            let theirs: BTreeSet<_> = croner(spec)
                .iter_from(row.window.from().with_timezone(&WallClock::of(*zone)), Direction::Forward)
                .map(|at| at.to_utc())
                .take_while(|at| *at < row.window.to())
                .collect();
            let only_ours = ours.iter().filter(|firing| !theirs.contains(&firing.launch_at));
            let ours_at: BTreeSet<_> = ours.iter().map(|firing| firing.launch_at).collect();
            let only_theirs = theirs.iter().filter(|at| !ours_at.contains(at));
            let before = dropped + doubled;
            for firing in only_ours {
                assert_eq!(firing.label, Dst::Gap, "{} {}", row.id, spec.canonical());
                dropped += 1;
            }
            for at in only_theirs {
                let clock = WallClock::of(*zone);
                let local = at.with_timezone(&clock).naive_local();
                let is_second = clock.from_local_datetime(&local).latest() == Some(at.with_timezone(&clock));
                let twice = matches!(clock.from_local_datetime(&local), LocalResult::Ambiguous(..));
                assert!(twice && is_second, "{} {} at {at}", row.id, spec.canonical());
                doubled += 1;
            }
            if dropped + doubled > before {
                let hours = spec.canonical().split(' ').nth(1).unwrap();
                assert!(!spec.is_interval() && hours.contains([',', '-']), "{} {}", row.id, spec.canonical());
                differing.insert(row.id);
            }
        }
    }
    assert_eq!((dropped, doubled, differing.len()), (19, 29, 34));
}
