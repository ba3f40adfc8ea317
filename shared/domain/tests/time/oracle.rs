//! Launches by brute force: croner judges every wall-clock minute, chrono-tz resolves it. Shares no code with the
//! crate beyond its types.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use croner::Cron;
use croner::parser::CronParser;
use tidegate_domain::time::{Dst, Firing, Window};

/// croner's own reading of an expression, in its lenient mode, which takes `5/15`.
pub fn croner(expression: &str) -> Cron {
    CronParser::builder().sloppy_ranges(true).build().parse(expression).unwrap()
}

/// Whether croner's expression matches a wall-clock time.
pub fn matches(cron: &Cron, wall: NaiveDateTime) -> bool {
    cron.is_time_matching(&wall.and_utc()).unwrap()
}

/// The launches of an expression in a window, by the rules of the reference data.
pub fn firings(expression: &str, zone: Tz, window: Window) -> Vec<Firing> {
    let cron = croner(expression);
    let interval = expression.split(' ').take(2).any(|field| field.starts_with('*'));
    let mut found = BTreeMap::new();
    let mut add = |launch_at: DateTime<Utc>, label: Dst| {
        if window.contains(launch_at) {
            let kept = found.entry(launch_at).or_insert(label);
            // A launch that a gap moved and one that is due then anyway are one, and it counts as moved.
            *kept = if label == Dst::Gap { label } else { *kept };
        }
    };
    let (mut wall, end) = wall_clock(zone, window);
    while wall < end {
        if matches(&cron, wall) {
            match zone.from_local_datetime(&wall) {
                LocalResult::Single(at) => add(at.to_utc(), Dst::Plain),
                LocalResult::Ambiguous(a, b) => {
                    add(a.min(b).to_utc(), Dst::Overlap);
                    if interval {
                        add(a.max(b).to_utc(), Dst::Overlap);
                    }
                }
                LocalResult::None if interval => {}
                LocalResult::None => {
                    let landing = GapInfo::new(&wall, &zone).and_then(|gap| gap.end).unwrap();
                    add(landing.to_utc(), Dst::Gap);
                }
            }
        }
        wall += Duration::minutes(1);
    }
    found.into_iter().map(|(launch_at, label)| Firing { launch_at, label }).collect()
}

/// Every wall-clock minute that can have to do with a window: what its clocks show, and what they skip before it.
fn wall_clock(zone: Tz, window: Window) -> (NaiveDateTime, NaiveDateTime) {
    let hours = (window.to() - window.from()).num_hours() + 52;
    let first = window.from() - Duration::hours(26);
    let offsets: Vec<i32> = (0..=hours)
        .map(|hour| {
            zone.offset_from_utc_datetime(&(first + Duration::hours(hour)).naive_utc())
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
