//! Launches by brute force: croner judges every wall-clock second, chrono-tz resolves it. Shares no code with the
//! crate beyond its types.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Duration, LocalResult, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::CronParser;
use tidegate_domain::time::{CronSpec, Dst, Firing, Gap, Overlap, WallClock, Window};

/// croner's own reading of an expression, in its lenient mode, which takes `5/15`.
pub fn croner(expression: &str) -> Cron {
    CronParser::builder().sloppy_ranges(true).build().parse(expression).unwrap()
}

/// Whether croner's expression matches a wall-clock time.
pub fn matches(cron: &Cron, wall: NaiveDateTime) -> bool {
    cron.is_time_matching(&wall.and_utc()).unwrap()
}

/// Whether an expression names years: of these, those from 1970 to 2199 are kept.
pub fn has_years(expression: &str) -> bool {
    expression.split(' ').nth(6).is_some_and(|year| !matches!(year, "*" | "*/1"))
}

/// An expression with every second of the minutes that it matches in.
fn any_second(expression: &str) -> Cron {
    let fields: Vec<&str> = expression.split(' ').collect();
    let rest = if fields.len() == 5 { &fields[..] } else { &fields[1..] };
    croner(&format!("* {}", rest.join(" ")))
}

/// The launches of an expression in a window, by the rules of the reference data and those that it has of its own.
pub fn firings(spec: &CronSpec, zone: Tz, window: Window) -> Vec<Firing> {
    let (cron, minutes) = (croner(spec.canonical()), any_second(spec.canonical()));
    let fields: Vec<&str> = spec.canonical().split(' ').collect();
    let interval =
        fields.iter().take(if fields.len() == 5 { 2 } else { 3 }).any(|field| field.starts_with('*'));
    let skips = spec.dst().gap.map_or(interval, |gap| gap == Gap::Skip);
    let both = spec.dst().overlap.map_or(interval, |overlap| overlap == Overlap::Both);
    let has_years = has_years(spec.canonical());
    let mut found = BTreeMap::new();
    let mut add = |launch_at: DateTime<Utc>, label: Dst| {
        if window.contains(launch_at) {
            let kept = found.entry(launch_at).or_insert(label);
            // A launch that a gap moved and one that is due then anyway are one, and it counts as moved.
            *kept = if label == Dst::Gap { label } else { *kept };
        }
    };
    let (mut minute, end) = wall_clock(zone, window);
    while minute < end {
        let seconds = if matches(&minutes, minute) { 0..60 } else { 0..0 };
        for wall in seconds.map(|second| minute + Duration::seconds(second)) {
            if !matches(&cron, wall) || has_years && !(1970..=2199).contains(&wall.year()) {
                continue;
            }
            match WallClock::of(zone).from_local_datetime(&wall) {
                LocalResult::Single(at) => add(at.to_utc(), Dst::Plain),
                LocalResult::Ambiguous(a, b) => {
                    add(a.min(b).to_utc(), Dst::Overlap);
                    if both {
                        add(a.max(b).to_utc(), Dst::Overlap);
                    }
                }
                LocalResult::None if skips => {}
                LocalResult::None => {
                    add(landing(zone, wall), Dst::Gap);
                }
            }
        }
        minute += Duration::minutes(1);
    }
    found.into_iter().map(|(launch_at, label)| Firing { launch_at, label, moved_from: None }).collect()
}

/// The first instant after the gap that a local time lies in.
pub fn landing(zone: Tz, wall: NaiveDateTime) -> DateTime<Utc> {
    let at = |seconds: i64| {
        WallClock::of(zone).from_local_datetime(&(wall + Duration::seconds(seconds))).earliest()
    };
    let minute = (60..).step_by(60).find(|seconds| at(*seconds).is_some()).unwrap();
    let second = (minute - 59..=minute).find(|seconds| at(*seconds).is_some()).unwrap();
    at(second).unwrap().to_utc()
}

/// Every wall-clock minute that can have to do with a window: what its clocks show, and what they skip before it.
fn wall_clock(zone: Tz, window: Window) -> (NaiveDateTime, NaiveDateTime) {
    let hours = (window.to() - window.from()).num_hours() + 52;
    let first = window.from() - Duration::hours(26);
    let offsets: Vec<i32> = (0..=hours)
        .map(|hour| {
            WallClock::of(zone)
                .offset_from_utc_datetime(&(first + Duration::hours(hour)).naive_utc())
                .fix()
                .local_minus_utc()
        })
        .collect();
    let (low, high) = (*offsets.iter().min().unwrap(), *offsets.iter().max().unwrap());
    let from = window.from().naive_utc() + Duration::seconds(i64::from(low - (high - low)));
    let to = window.to().naive_utc() + Duration::seconds(i64::from(high));
    let minute = from.and_utc().timestamp().div_euclid(60) * 60;
    (DateTime::from_timestamp(minute, 0).unwrap().naive_utc(), to)
}
