//! Random expressions, zones and windows, the windows mostly near a change of the clocks.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, Duration, NaiveTime, Utc, Weekday};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tidegate_domain::calendar::{Day, EarlyClose, Exclusions};
use tidegate_domain::time::{CronSpec, DstRules, Gap, Overlap, Window};

use crate::{instant, zone};

/// Zones, each with instants at which its clocks change (or any instant, for those that do not).
const CHANGES: [(&str, &[&str]); 29] = [
    ("UTC", &["2028-02-29T00:00:00Z", "2027-01-01T00:00:00Z"]),
    ("Asia/Kolkata", &["2026-12-31T18:30:00Z"]),
    ("Asia/Kathmandu", &["1985-12-31T18:30:00Z", "2026-06-30T18:15:00Z"]),
    ("America/New_York", &["2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"]),
    ("America/St_Johns", &["2026-03-08T05:30:00Z", "2026-11-01T04:30:00Z", "2010-11-07T02:31:00Z"]),
    ("America/Sao_Paulo", &["2018-11-04T03:00:00Z", "2019-02-17T02:00:00Z"]),
    ("America/Havana", &["2026-03-08T05:00:00Z", "2026-11-01T05:00:00Z"]),
    ("America/Caracas", &["2007-12-09T07:00:00Z", "2016-05-01T07:00:00Z"]),
    ("America/Scoresbysund", &["2024-03-31T01:00:00Z"]),
    ("Europe/London", &["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"]),
    ("Europe/Dublin", &["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"]),
    ("Europe/Moscow", &["2011-03-26T23:00:00Z", "2014-10-25T22:00:00Z"]),
    ("Africa/Casablanca", &["2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z", "2018-10-28T02:00:00Z"]),
    ("Africa/Cairo", &["2010-09-09T22:00:00Z", "2026-04-23T22:00:00Z", "2026-10-29T21:00:00Z"]),
    ("Africa/Monrovia", &["1972-01-07T00:44:30Z"]),
    ("Asia/Gaza", &["2024-04-20T00:00:00Z"]),
    ("Asia/Pyongyang", &["2015-08-14T15:00:00Z", "2018-05-04T15:00:00Z"]),
    ("Asia/Tehran", &["2022-03-21T20:30:00Z", "2022-09-21T19:30:00Z"]),
    ("Australia/Lord_Howe", &["2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"]),
    ("Pacific/Chatham", &["2026-04-04T14:00:00Z", "2026-09-26T14:00:00Z"]),
    ("Pacific/Apia", &["2011-12-30T10:00:00Z", "2021-04-03T14:00:00Z"]),
    ("Pacific/Fakaofo", &["2011-12-30T11:00:00Z"]),
    ("Pacific/Kwajalein", &["1969-09-30T13:00:00Z", "1993-08-21T12:00:00Z"]),
    ("Antarctica/Troll", &["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"]),
    ("Antarctica/Casey", &["2018-03-10T17:00:00Z"]),
    ("Asia/Kolkata", &["1945-10-14T17:30:00Z"]),
    ("Europe/Istanbul", &["2015-11-08T01:00:00Z", "2016-03-27T01:00:00Z", "2016-09-06T21:00:00Z"]),
    ("America/Mexico_City", &["2022-04-03T08:00:00Z", "2022-10-30T07:00:00Z"]),
    ("America/Juneau", &["1867-10-19T00:00:00Z", "2026-03-08T11:00:00Z"]),
];

pub fn config() -> ProptestConfig {
    ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() }
}

/// A zone and an instant within about two days of one of its changes, to the second.
pub fn place() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let minutes = prop_oneof![4 => -200i64..200, 1 => -3_000i64..3_000];
    let seconds = prop_oneof![4 => Just(0i64), 1 => 0i64..60];
    (select(&CHANGES[..]), any::<Index>(), minutes, seconds).prop_map(
        |((name, changes), index, minutes, seconds)| {
            let at = instant(changes[index.index(changes.len())]);
            (zone(name), at + Duration::minutes(minutes) + Duration::seconds(seconds))
        },
    )
}

/// The length of a window: a tick's, some hours, or some days.
pub fn length() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => (0i64..300).prop_map(Duration::minutes),
        1 => (0i64..8_000).prop_map(Duration::seconds),
        1 => (0i64..3_000).prop_map(Duration::minutes),
        1 => (0i64..7_200_000).prop_map(Duration::milliseconds),
    ]
}

pub fn placed_window() -> impl Strategy<Value = (Tz, Window)> {
    (place(), length()).prop_map(|((zone, from), length)| (zone, Window::new(from, from + length).unwrap()))
}

/// Calendars whose days lie some days before and after an instant.
pub fn calendar(around: DateTime<Utc>, zone: Tz) -> impl Strategy<Value = Exclusions> {
    let first = around.date_naive() - Days::new(60);
    let day = move |number: u64| first + Days::new(number);
    let dates = prop_oneof![
        2 => proptest::collection::btree_set(0_u64..120, 0..70),
        1 => (0_u64..100, 0_u64..45).prop_map(|(from, count)| (from..from + count).collect::<BTreeSet<u64>>()),
    ];
    let early = proptest::collection::vec((0_u64..120, 0_u32..24), 0..30);
    let intervals = proptest::collection::vec((0_i64..120 * 24, 1_i64..60), 0..6);
    let weekdays = proptest::collection::vec(0_u8..7, 0..4);
    (dates, early, intervals, weekdays, any::<bool>()).prop_map(
        move |(dates, early, intervals, weekdays, is_of_job)| {
            let begin = first.and_time(NaiveTime::MIN).and_utc();
            let interval = |(from, hours): (i64, i64)| {
                let from = begin + Duration::hours(from);
                Window::new(from, from + Duration::hours(hours)).unwrap()
            };
            let close = |(date, hour): (u64, u32)| EarlyClose {
                day: Day::Once(day(date)),
                from: NaiveTime::from_hms_opt(hour, 30, 0).unwrap(),
            };
            let listed = Exclusions {
                zone: (!is_of_job).then_some(if zone == Tz::UTC { Tz::Asia__Tokyo } else { Tz::UTC }),
                dates: dates.into_iter().map(day).collect(),
                weekdays: weekdays.into_iter().map(|day| Weekday::try_from(day).unwrap()).collect(),
                early_close: early.into_iter().map(close).collect(),
                intervals: intervals.into_iter().map(interval).collect(),
                ..Exclusions::default()
            };
            listed.clone().checked().unwrap_or(listed)
        },
    )
}

/// An expression that parses and fires, of five to seven fields, some with rules of their own for the clocks.
pub fn spec() -> impl Strategy<Value = CronSpec> {
    let fields = (second(), minute(), hour(), day_of_month(), month(), day_of_week(), year());
    (fields, dst()).prop_filter_map(
        "it never fires",
        |((second, minute, hour, day, month, weekday, year), dst)| {
            let five = format!("{minute} {hour} {day} {month} {weekday}");
            let text = match (second, year) {
                (None, None) => five,
                (Some(second), None) => format!("{second} {five}"),
                (second, Some(year)) => format!("{} {five} {year}", second.as_deref().unwrap_or("0")),
            };
            CronSpec::parse(&text).ok().map(|spec| spec.with_dst(dst))
        },
    )
}

fn dst() -> impl Strategy<Value = DstRules> {
    let gap = prop_oneof![2 => Just(None), 1 => Just(Some(Gap::Skip)), 1 => Just(Some(Gap::NextValid))];
    let overlap =
        prop_oneof![2 => Just(None), 1 => Just(Some(Overlap::First)), 1 => Just(Some(Overlap::Both))];
    (gap, overlap).prop_map(|(gap, overlap)| DstRules { gap, overlap })
}

/// The second, in a third of the expressions; seldom every one, for the sake of the oracle.
fn second() -> impl Strategy<Value = Option<String>> {
    let some = prop_oneof![
        3 => (0u8..60).prop_map(|second| second.to_string()),
        3 => plain(0, 59),
        1 => Just("*".to_owned()),
        1 => select(vec!["*/30", "0/20", "59", "0,30"]).prop_map(str::to_owned),
    ];
    prop_oneof![2 => Just(None), 1 => some.prop_map(Some)]
}

/// The year, in a fifth of the expressions; mostly those in which the clocks change.
fn year() -> impl Strategy<Value = Option<String>> {
    let near = 2009u16..2030;
    let some = prop_oneof![
        2 => Just("*".to_owned()),
        2 => near.clone().prop_map(|year| year.to_string()),
        2 => (near.clone(), 0u16..100).prop_map(|(from, more)| format!("{from}-{}", from + more)),
        2 => (near.clone(), near.clone(), 1970u16..2199).prop_map(|(a, b, c)| format!("{a},{b},{c}")),
        2 => (near, 1u16..5).prop_map(|(from, step)| format!("{from}-2199/{step}")),
        1 => (1u16..5).prop_map(|step| format!("*/{step}")),
    ];
    prop_oneof![4 => Just(None), 1 => some.prop_map(Some)]
}

fn minute() -> impl Strategy<Value = String> {
    prop_oneof![6 => plain(0, 59), 1 => Just("*".to_owned()), 1 => select(vec!["0", "30", "0,30"]).prop_map(str::to_owned)]
}

fn hour() -> impl Strategy<Value = String> {
    prop_oneof![4 => plain(0, 23), 2 => plain(0, 4), 3 => Just("*".to_owned())]
}

fn month() -> impl Strategy<Value = String> {
    let name = select(vec!["JAN", "feb", "Mar-Nov", "oct-dec", "JAN,JUL"]).prop_map(str::to_owned);
    prop_oneof![5 => Just("*".to_owned()), 2 => plain(1, 12), 1 => name]
}

fn day_of_month() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just("L".to_owned()),
        Just("LW".to_owned()),
        (1u8..=31).prop_map(|day| format!("{day}W")),
        (1u8..=31, 1u8..=31).prop_map(|(day, near)| format!("{day},{near}W,L")),
    ];
    prop_oneof![5 => Just("*".to_owned()), 3 => plain(1, 31), 2 => special, 1 => Just("?".to_owned())]
}

fn day_of_week() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        (0u8..=7).prop_map(|day| format!("{day}L")),
        (0u8..=7, 1u8..=5).prop_map(|(day, nth)| format!("{day}#{nth}")),
        (0u8..=7, 0u8..=7, 1u8..=5).prop_map(|(day, other, nth)| format!("{day},{other}#{nth}")),
        select(vec!["Mon-FRI", "sun,0,7", "friL", "MON#1", "FRI-SUN", "sun-tue"]).prop_map(str::to_owned),
    ];
    let any = prop_oneof![5 => Just("*".to_owned()), 3 => plain(0, 7), 2 => special];
    (any, 0u8..8).prop_map(|(text, and)| if and == 0 { format!("+{text}") } else { text })
}

/// A value, a list, a range or a step.
fn plain(low: u8, high: u8) -> impl Strategy<Value = String> {
    let value = move || low..=high;
    let range = move || (value(), value()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        4 => value().prop_map(|a| a.to_string()),
        2 => prop::collection::vec(value(), 2..5).prop_map(|v| v.iter().map(u8::to_string).collect::<Vec<_>>().join(",")),
        2 => range().prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (range(), 1u8..40).prop_map(|((a, b), step)| format!("{a}-{b}/{step}")),
        2 => (1u8..40).prop_map(|step| format!("*/{step}")),
        1 => (value(), 1u8..40).prop_map(|(a, step)| format!("{a}/{step}")),
        1 => (range(), value()).prop_map(|((a, b), c)| format!("{a}-{b},{c}")),
    ]
}
