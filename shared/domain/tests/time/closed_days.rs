//! Launches that are moved off closed days: by tables, and against a model that goes from day to day.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Days, Duration, NaiveDate, NaiveTime, TimeZone as _, Utc, Weekday};
use chrono_tz::Tz;
use proptest::prelude::*;
use tidegate_domain::calendar::{Day, EarlyClose, Exclusions, OpenDays};
use tidegate_domain::limits::{MAX_CHILDREN, SHIFT_DAYS};
use tidegate_domain::time::{
    Cadence, CronSpec, DstRules, Firing, Gap, LocalWindow, OnClosedDay, Overlap, WallClock, Window, eligible,
};

use crate::strategies::{calendar, config, place};
use crate::{cron, instant, oracle, window, zone};

const NEXT: OnClosedDay = OnClosedDay::NextOpenDay;
const PREVIOUS: OnClosedDay = OnClosedDay::PreviousOpenDay;

fn weekends() -> Exclusions {
    let weekdays = [Weekday::Sat, Weekday::Sun].into_iter().collect();
    Exclusions { weekdays, ..Exclusions::default() }
}

fn closed(exclusions: Exclusions, on_closed_day: OnClosedDay) -> OpenDays {
    let excluded = vec![Arc::new(exclusions.checked().unwrap())];
    OpenDays { excluded, on_closed_day, ..OpenDays::default() }
}

fn cadence(text: &str, zone_name: &str) -> Cadence {
    Cadence::Cron { cron: cron(text), zone: zone(zone_name) }
}

/// The launches that are made, with where they are moved from.
fn made(days: &OpenDays, cadence: &Cadence, window: Window) -> Vec<String> {
    let zone = cadence.index_zone().unwrap();
    let shown = |at: DateTime<Utc>| at.format("%m-%dT%H:%M").to_string();
    let open = days.firings(cadence, window).into_iter().filter(|one| !days.excludes(one.launch_at, zone));
    open.map(|one| match one.moved_from {
        Some(from) => format!("{} from {}", shown(one.launch_at), shown(from)),
        None => shown(one.launch_at),
    })
    .collect()
}

#[test]
fn a_launch_on_a_weekend_is_moved_to_a_business_day_also_across_months() {
    let year = window("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let first = cadence("0 9 1 * *", "UTC");
    // The first of February and March are Sundays, of August a Saturday, of November a Sunday.
    let plain = ["01-01T09:00", "04-01T09:00", "05-01T09:00", "06-01T09:00", "07-01T09:00", "09-01T09:00"];
    let with = |moved: &[&str]| {
        let moved = moved.iter().map(|one| (*one).to_owned());
        let late = ["10-01T09:00", "12-01T09:00"].map(str::to_owned);
        let mut all: Vec<String> = plain.map(str::to_owned).into_iter().chain(late).chain(moved).collect();
        all.sort();
        all
    };
    let next = with(&[
        "02-02T09:00 from 02-01T09:00",
        "03-02T09:00 from 03-01T09:00",
        "08-03T09:00 from 08-01T09:00",
        "11-02T09:00 from 11-01T09:00",
    ]);
    assert_eq!(made(&closed(weekends(), NEXT), &first, year), next);
    let previous = with(&[
        "01-30T09:00 from 02-01T09:00",
        "02-27T09:00 from 03-01T09:00",
        "07-31T09:00 from 08-01T09:00",
        "10-30T09:00 from 11-01T09:00",
    ]);
    assert_eq!(made(&closed(weekends(), PREVIOUS), &first, year), previous);
    assert_eq!(made(&closed(weekends(), OnClosedDay::LeaveOut), &first, year).len(), 8);
}

#[test]
fn launches_that_meet_are_one() {
    let week = window("2026-11-27T00:00:00Z", "2026-12-02T00:00:00Z");
    let daily = cadence("0 9 * * *", "UTC");
    let days = closed(weekends(), NEXT);
    assert_eq!(made(&days, &daily, week), ["11-27T09:00", "11-30T09:00", "12-01T09:00"]);
    let weekend = cadence("0 9 * * SAT,SUN", "UTC");
    assert_eq!(made(&days, &weekend, week), ["11-30T09:00 from 11-29T09:00"]);
    // Of the two, the nearer is said.
    assert_eq!(made(&closed(weekends(), PREVIOUS), &weekend, week), ["11-27T09:00 from 11-28T09:00"]);
    let days = OpenDays { on_closed_day: PREVIOUS, ..days };
    assert_eq!(made(&days, &daily, week), ["11-27T09:00", "11-30T09:00", "12-01T09:00"]);
}

#[test]
fn a_day_that_closes_early_is_open_before_and_closed_from_then_on() {
    let early = EarlyClose { day: Day::Yearly(12, 24), from: NaiveTime::from_hms_opt(13, 0, 0).unwrap() };
    let christmas = ["2026-12-25", "2026-12-26", "2026-12-27"].map(|date| date.parse().unwrap());
    let calendar =
        Exclusions { early_close: vec![early], dates: christmas.to_vec(), ..Exclusions::default() };
    let days = window("2026-12-23T00:00:00Z", "2026-12-30T00:00:00Z");
    for (text, next, previous) in [
        ("0 14 24 * *", "12-28T14:00 from 12-24T14:00", "12-23T14:00 from 12-24T14:00"),
        ("0 12 24 * *", "12-24T12:00", "12-24T12:00"),
        ("0 12 25 * *", "12-28T12:00 from 12-25T12:00", "12-24T12:00 from 12-25T12:00"),
        ("0 14 25 * *", "12-28T14:00 from 12-25T14:00", "12-23T14:00 from 12-25T14:00"),
    ] {
        let cadence = cadence(text, "UTC");
        assert_eq!(made(&closed(calendar.clone(), NEXT), &cadence, days), [next], "{text}");
        assert_eq!(made(&closed(calendar.clone(), PREVIOUS), &cadence, days), [previous], "{text}");
    }
}

#[test]
fn a_launch_that_finds_no_open_day_in_31_is_left_out() {
    let first: NaiveDate = "2026-12-01".parse().unwrap();
    let closed_for = |count: usize| {
        closed(Exclusions { dates: first.iter_days().take(count).collect(), ..Exclusions::default() }, NEXT)
    };
    let cadence = cadence("0 9 1 12 *", "Europe/Berlin");
    let winter = window("2026-11-01T00:00:00Z", "2027-03-01T00:00:00Z");
    let days = SHIFT_DAYS as usize;
    assert_eq!(made(&closed_for(days), &cadence, winter), ["01-01T08:00 from 12-01T08:00"]);
    let none = closed_for(days + 1);
    assert_eq!(made(&none, &cadence, winter), [""; 0]);
    // It is there, to be recorded as left out, and is moved nowhere.
    let [left] = none.firings(&cadence, winter)[..] else { panic!("there is one") };
    assert_eq!(none.moved_to(&cadence, &left), None);
    let moved = closed_for(days).moved_to(&cadence, &left);
    assert_eq!(moved, Some(instant("2027-01-01T08:00:00Z")));
}

/// The clocks of Berlin skip 02:00 to 03:00 on Sunday, 29 March 2026, and show it twice on Sunday, 25 October.
#[test]
fn changes_of_the_clocks_are_as_the_trigger_has_them() {
    let saturday = Exclusions { weekdays: [Weekday::Sat].into_iter().collect(), ..Exclusions::default() };
    let saturdays = closed(saturday, NEXT);
    let spring = window("2026-03-23T00:00:00Z", "2026-04-01T00:00:00Z");
    let autumn = window("2026-10-19T00:00:00Z", "2026-10-30T00:00:00Z");
    let with = |dst: DstRules| Cadence::Cron {
        cron: *CronSpec::parse("30 2 * * SAT").unwrap().with_dst(dst).compiled(),
        zone: zone("Europe/Berlin"),
    };
    let rules = |gap, overlap| DstRules { gap: Some(gap), overlap: Some(overlap) };
    let plain = with(rules(Gap::NextValid, Overlap::First));
    assert_eq!(made(&saturdays, &plain, spring), ["03-29T01:00 from 03-28T01:30"]);
    assert_eq!(made(&saturdays, &plain, autumn), ["10-25T00:30 from 10-24T00:30"]);
    let other = with(rules(Gap::Skip, Overlap::Both));
    // Sunday does not have the time: it is Monday's.
    assert_eq!(made(&saturdays, &other, spring), ["03-30T00:30 from 03-28T01:30"]);
    assert_eq!(
        made(&saturdays, &other, autumn),
        ["10-25T00:30 from 10-24T00:30", "10-25T01:30 from 10-24T00:30"]
    );
    // What the gap moved to three o'clock is moved to half past two of the next day.
    let sunday = Exclusions { weekdays: [Weekday::Sun].into_iter().collect(), ..Exclusions::default() };
    let sundays = Cadence::Cron { cron: cron("30 2 * * SUN"), zone: zone("Europe/Berlin") };
    assert_eq!(
        made(&closed(sunday, NEXT), &sundays, spring),
        ["03-23T01:30 from 03-22T01:30", "03-30T00:30 from 03-29T01:00"]
    );
}

#[test]
fn what_launches_often_and_is_closed_for_a_year_is_looked_at_as_often_as_it_is_due() {
    let year: NaiveDate = "2026-01-01".parse().unwrap();
    let dates: Vec<NaiveDate> = year.iter_days().take(365).collect();
    let days = closed(Exclusions { dates, ..Exclusions::default() }, NEXT);
    let minutely = cadence("* * * * *", "UTC");
    let month = window("2026-12-01T00:00:00Z", "2027-01-02T00:00:00Z");
    assert_eq!(days.firings(&minutely, month).len(), 32 * 1_440);
    let next = days.upcoming(&minutely, instant("2026-12-31T23:58:30Z"), month.to(), 3);
    let at: Vec<_> = next.iter().map(|one| one.launch_at.format("%F %T").to_string()).collect();
    assert_eq!(at, ["2026-12-31 23:59:00", "2027-01-01 00:00:00", "2027-01-01 00:01:00"]);
    assert!(days.upcoming(&cadence("0 0 1 1 * ", "UTC"), month.from(), month.from(), 3).is_empty());
}

/// Years apart, up to the last instant that there is, and none after it.
#[test]
fn what_is_to_come_is_found_however_far_ahead() {
    let leap = cadence("0 9 29 2 *", "UTC");
    let days = closed(weekends(), NEXT);
    let all = days.upcoming(&leap, instant("2026-01-01T00:00:00Z"), DateTime::<Utc>::MAX_UTC, 1_000);
    // Of 2028 to 2196, but for 2100.
    let open = all.iter().filter(|one| !days.excludes(one.launch_at, Tz::UTC));
    assert_eq!(open.count(), 42);
    let moved = all.iter().find(|one| one.moved_from.is_some()).unwrap();
    assert_eq!(
        (moved.launch_at, moved.moved_from),
        (instant("2032-03-01T09:00:00Z"), Some(instant("2032-02-29T09:00:00Z")))
    );
}

#[derive(Debug, Clone)]
struct Case {
    spec: CronSpec,
    zone: Tz,
    window: Window,
    days: OpenDays,
}

fn case() -> impl Strategy<Value = Case> {
    let times = ("([0-9]|[1-5][0-9])(,(0|15|30|45)){0,2}", "(0|1|2|3|12|23|[0-9])(,(0|1|2|3|23)){0,3}");
    let days = prop_oneof![
        ("([1-9]|[12][0-9]|3[01])(,(1|15|28|30)){0,2}", Just("*".to_owned()))
            .prop_map(|(day, weekday)| format!("{day} * {weekday}")),
        Just("L * *".to_owned()),
        "(1|15|LW) (\\*|2|3,10,11|\\*/2) (\\*|MON|SAT#1|SAT,SUN)",
        "\\* \\* ([0-6]|MON-FRI|SAT,SUN|5L)",
        Just("* * *".to_owned()),
    ];
    let dst = (
        proptest::option::of(prop_oneof![Just(Gap::Skip), Just(Gap::NextValid)]),
        proptest::option::of(prop_oneof![Just(Overlap::First), Just(Overlap::Both)]),
    );
    let spec =
        (times, days, dst).prop_filter_map("it never fires", |((minute, hour), days, (gap, overlap))| {
            let spec = CronSpec::parse(&format!("{minute} {hour} {days}")).ok()?;
            Some(spec.with_dst(DstRules { gap, overlap }))
        });
    let rule = prop_oneof![4 => Just(NEXT), 4 => Just(PREVIOUS), 1 => Just(OnClosedDay::LeaveOut)];
    // There are no launches before 1970.
    let place = place().prop_filter("out of range", |(_, at)| at.timestamp() > 180 * 86_400);
    (place, 0_i64..60 * 24 * 60, spec, rule).prop_flat_map(|((zone, at), before, spec, on_closed_day)| {
        let from = at - Duration::minutes(before);
        let window = Window::new(from, from + Duration::days(61)).unwrap();
        let calendars = |least| proptest::collection::vec(calendar(at, zone), least..3);
        (calendars(1), proptest::option::weighted(0.3, calendars(0))).prop_map(move |(excluded, only_on)| {
            let shared = |all: Vec<Exclusions>| all.into_iter().map(Arc::new).collect::<Vec<_>>();
            let (excluded, only_on) = (shared(excluded), only_on.map(shared));
            let days = OpenDays { excluded, only_on, on_closed_day, skip: Vec::new() };
            Case { spec: spec.clone(), zone, window, days }
        })
    })
}

/// What a model makes of a case that takes the launches of a trigger day by day, and each of them from there to a day that is open.
struct Model {
    /// The launches that are made, each with where it may have been moved from.
    made: BTreeMap<DateTime<Utc>, BTreeSet<DateTime<Utc>>>,
    /// Those that stay where the trigger says.
    stay: BTreeSet<DateTime<Utc>>,
}

fn model(case: &Case) -> Model {
    let Case { spec, zone, window, days } = case;
    let whole = oracle::croner(spec.canonical());
    let fields: Vec<&str> = spec.canonical().split(' ').collect();
    let (minutes, hours) = match fields[..] {
        [minutes, hours, _, _, _] => (minutes, hours),
        _ => panic!("{} has five fields", spec.canonical()),
    };
    let times = oracle::croner(&format!("{minutes} {hours} * * *"));
    let is_interval = [minutes, hours].iter().any(|field| field.starts_with('*'));
    let skips = spec.dst().gap.map_or(is_interval, |gap| gap == Gap::Skip);
    let both = spec.dst().overlap.map_or(is_interval, |overlap| overlap == Overlap::Both);
    let some_day: NaiveDate = "2026-06-10".parse().unwrap();
    let of_day = (0..1_440).map(|minute| NaiveTime::MIN + Duration::minutes(minute));
    let of_day: Vec<NaiveTime> =
        of_day.filter(|time| oracle::matches(&times, some_day.and_time(*time))).collect();
    let instants = |date: NaiveDate, time: NaiveTime| -> Vec<DateTime<Utc>> {
        let wall = date.and_time(time);
        match WallClock::of(*zone).from_local_datetime(&wall) {
            chrono::LocalResult::Single(at) => vec![at.to_utc()],
            chrono::LocalResult::Ambiguous(a, b) if both => vec![a.min(b).to_utc(), a.max(b).to_utc()],
            chrono::LocalResult::Ambiguous(a, b) => vec![a.min(b).to_utc()],
            chrono::LocalResult::None if skips => vec![],
            chrono::LocalResult::None => vec![oracle::landing(*zone, wall)],
        }
    };
    let mut found = Model { made: BTreeMap::new(), stay: BTreeSet::new() };
    let mut date = (window.from() - Duration::days(36)).date_naive();
    while date <= (window.to() + Duration::days(36)).date_naive() {
        for time in of_day.iter().filter(|time| oracle::matches(&whole, date.and_time(**time))) {
            let own = instants(date, *time);
            let Some(first) = own.first() else { continue };
            let most = if days.on_closed_day.moves() { u64::from(SHIFT_DAYS) } else { 0 };
            for count in 0..=most {
                let to = match days.on_closed_day {
                    PREVIOUS => date - Days::new(count),
                    _ => date + Days::new(count),
                };
                let open: Vec<_> =
                    instants(to, *time).into_iter().filter(|at| !days.excludes(*at, *zone)).collect();
                for at in &open {
                    let from = found.made.entry(*at).or_default();
                    match count {
                        0 => drop(found.stay.insert(*at)),
                        _ => drop(from.insert(*first)),
                    }
                }
                if !open.is_empty() {
                    break;
                }
            }
        }
        date = date + Days::new(1);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..config() })]

    #[test]
    fn launches_are_those_of_a_model_that_goes_from_day_to_day(case in case()) {
        let Case { spec, zone, window, days } = &case;
        let cadence = Cadence::Cron { cron: *spec.compiled(), zone: *zone };
        let firings = days.firings(&cadence, *window);
        let model = model(&case);
        let open: BTreeMap<DateTime<Utc>, Firing> = firings
            .iter()
            .filter(|one| !days.excludes(one.launch_at, *zone))
            .map(|one| (one.launch_at, *one))
            .collect();
        let expected: Vec<_> = model.made.keys().filter(|at| window.contains(**at)).collect();
        prop_assert_eq!(open.keys().collect::<Vec<_>>(), expected);
        for (at, one) in &open {
            match one.moved_from {
                None => prop_assert!(model.stay.contains(at), "{one:?}"),
                Some(from) => {
                    prop_assert!(!model.stay.contains(at) && model.made[at].contains(&from), "{one:?}");
                }
            }
        }
        // What the trigger says is there unchanged, closed or not, and says where it goes.
        let own: Vec<Firing> = firings.iter().copied().filter(|one| one.moved_from.is_none()).collect();
        prop_assert_eq!(&own, &cadence.firings(*window));
        for one in own.iter().filter(|one| days.excludes(one.launch_at, *zone)) {
            if let Some(to) = days.moved_to(&cadence, one) {
                prop_assert!(model.made.contains_key(&to), "{one:?} {to}");
            }
        }
    }

    /// Wherever a window is cut, and however its launches are looked for.
    #[test]
    fn launches_to_come_and_the_latest_are_those_of_the_window(case in case(), cut in 0_i64..61 * 1_440, count in 0_usize..40) {
        let Case { spec, zone, window, days } = &case;
        let cadence = Cadence::Cron { cron: *spec.compiled(), zone: *zone };
        let firings = days.firings(&cadence, *window);
        let middle = window.from() + Duration::minutes(cut);
        let pieces = [Window::new(window.from(), middle), Window::new(middle, window.to())];
        let of_pieces: Vec<_> = pieces.into_iter().flat_map(|piece| days.firings(&cadence, piece.unwrap())).collect();
        prop_assert_eq!(&of_pieces, &firings);
        let before = window.from() - Duration::seconds(1);
        prop_assert_eq!(&days.upcoming(&cadence, before, window.to(), 10_000), &firings);
        prop_assert_eq!(&days.upcoming(&cadence, before, window.to(), count), &firings[..count.min(firings.len())]);
        let latest = days.latest(&cadence, *window, count);
        prop_assert_eq!(&latest[..], &firings[firings.len() - count.min(firings.len())..]);
    }

    /// I6: a scan of any minute finds each launch under exactly one child of its job.
    #[test]
    fn each_launch_belongs_to_one_child_that_its_minute_reads(case in case()) {
        let Case { spec, zone, window, days } = &case;
        let cadence = Cadence::Cron { cron: *spec.compiled(), zone: *zone };
        let candidates = cadence.candidates(days.on_closed_day);
        let children = candidates.children();
        prop_assert!(children.len() <= MAX_CHILDREN);
        for launch in days.firings(&cadence, *window) {
            let second = Window::new(launch.launch_at, launch.launch_at + Duration::seconds(1)).unwrap();
            let (local, read) = (LocalWindow::new(*zone, second), eligible(*zone, second));
            let mut owners = 0;
            for child in &children {
                let mut owned = Vec::new();
                candidates.owned_firings_in(child, &local, &mut owned);
                days.settle(&cadence, &mut owned);
                if !owned.is_empty() {
                    prop_assert_eq!(&owned, &[launch]);
                    prop_assert!(read.iter().any(|range| range.covers(child)), "{child:?}");
                    owners += 1;
                }
            }
            prop_assert_eq!(owners, 1, "{:?}", launch);
        }
    }
}
