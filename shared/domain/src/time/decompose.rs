//! From an expression to its children: the keys under which a job lies in the time index.
//!
//! The exact product of an expression's fields can be large; it is then coarsened, never refused. Of the shapes that
//! stay under the bound the one that reads the fewest rows is taken. A child may be read when its job does not launch;
//! a launch that no child covers would be lost.

use super::cron::CompiledCron;
use super::launch::{ChildKey, Days, LaunchExpression};
use super::local::days_in_month;
use crate::limits::MAX_CHILDREN;

/// Years after which months, days and weekdays fall together again, century years apart.
const CYCLE_YEARS: u64 = 28;
const LEAP_YEARS: u64 = CYCLE_YEARS / 4;
/// The days of a cycle.
pub(super) const CYCLE_DAYS: u64 = CYCLE_YEARS * 365 + LEAP_YEARS;
const ALL_WEEKDAYS: u8 = 0x7f;

/// The children of an expression, at most [`MAX_CHILDREN`], in the order of their keys.
///
/// Takes the shape with the fewest reads, of equals the one with the fewest children.
pub fn decompose(cron: &CompiledCron) -> Vec<ChildKey> {
    let times = Times { hours: cron.hours(), minutes: cron.minutes() };
    best_children(day_shapes(cron), &times)
}

/// The children of something that launches at some times of every day.
pub(super) fn decompose_times(times: &Times) -> Vec<ChildKey> {
    best_children(vec![vec![Days::Every]], times)
}

/// Times of day: each of these hours at each of these minutes, as masks.
pub(super) struct Times {
    pub(super) hours: u32,
    pub(super) minutes: u64,
}

fn best_children(day_shapes: Vec<Vec<Days>>, times: &Times) -> Vec<ChildKey> {
    let shapes = day_shapes.into_iter().flat_map(|days| {
        let detail = [(true, true), (false, true), (true, false), (false, false)];
        detail
            .into_iter()
            .filter_map(move |(by_hour, by_minute)| Shape::new(times, &days, by_hour, by_minute))
    });
    let fitting = shapes.filter(|shape| shape.count() <= MAX_CHILDREN);
    let best = fitting.min_by_key(|shape| (shape.reads(), shape.count()));
    let mut children = best.map_or_else(|| vec![ChildKey::any_minute(None)], |shape| shape.children());
    children.sort_unstable();
    children
}

/// How often the rows of some children are read in 28 years, by scans of a minute each.
pub fn reads_per_cycle(children: &[ChildKey]) -> u64 {
    let reads = |key: &ChildKey| {
        let hours = if key.launch_expression().hour().is_some() { 1 } else { 24 };
        let minutes = if key.minute().is_some() { 1 } else { 60 };
        days_per_cycle(key.launch_expression().days()) * hours * minutes
    };
    children.iter().map(reads).sum()
}

/// How often an expression launches in 28 years, changes of the clocks apart: the 28 years from the first that it names
/// on. What its children are read beyond that is over-selection.
pub fn launches_per_cycle(cron: &CompiledCron) -> u64 {
    let times = u64::from(cron.hours().count_ones()) * u64::from(cron.minutes().count_ones());
    cron.days_per_cycle() * times * u64::from(cron.seconds().count_ones())
}

/// How many rows are read for an expression, by scans of a minute each, per launch. Above 1 is over-selection; below it
/// an expression launches several times a minute.
///
/// As if it launched in every year: the rows of an expression whose years are over are read until its job goes.
pub(super) fn reads_per_launch(cron: &CompiledCron) -> f64 {
    reads_per_cycle(&decompose(cron)) as f64 / launches_per_cycle(&cron.in_every_year()) as f64
}

/// A way to lay an expression out: some days, with or without its hours and minutes.
struct Shape {
    days: Vec<Days>,
    hours: Vec<Option<u8>>,
    minutes: Vec<Option<u8>>,
}

impl Shape {
    /// `None` when the shape does not exist: only class H has rows for any minute.
    fn new(times: &Times, days: &[Days], by_hour: bool, by_minute: bool) -> Option<Self> {
        if !by_minute && days != [Days::Every] {
            return None;
        }
        let hours = if by_hour { bits(u64::from(times.hours)).map(Some).collect() } else { vec![None] };
        let minutes = if by_minute { bits(times.minutes).map(Some).collect() } else { vec![None] };
        Some(Self { days: days.to_vec(), hours, minutes })
    }

    fn count(&self) -> usize {
        self.days.len() * self.hours.len() * self.minutes.len()
    }

    /// Rows read in a cycle by scans of a minute each.
    fn reads(&self) -> u64 {
        let days: u64 = self.days.iter().map(|days| days_per_cycle(*days)).sum();
        let hours = if self.hours == [None] { 24 } else { self.hours.len() as u64 };
        let minutes = if self.minutes == [None] { 60 } else { self.minutes.len() as u64 };
        days * hours * minutes
    }

    fn children(&self) -> Vec<ChildKey> {
        let mut children = Vec::with_capacity(self.count());
        for days in &self.days {
            for hour in &self.hours {
                for minute in &self.minutes {
                    children.push(match minute {
                        Some(minute) => ChildKey::at_minute(LaunchExpression::new(*days, *hour), *minute),
                        None => ChildKey::any_minute(*hour),
                    });
                }
            }
        }
        children
    }
}

/// The sets of days that cover an expression, each of one kind per day field.
///
/// When either day field suffices, both kinds are in a set: whoever owns a day is decided by which field matches it,
/// so a set for such an expression never covers one field's days by the other's kind.
fn day_shapes(cron: &CompiledCron) -> Vec<Vec<Days>> {
    let mut shapes = vec![vec![Days::Every]];
    // Naming months that are not restricted would write more rows to read each of them less.
    let by_month = cron.restricts_month();
    let by_day = || by_month.then(|| days_of_months(cron)).into_iter().chain([days_of_month(cron)]);
    let by_weekday = || {
        let of_months = by_month.then(|| weekdays_of_months(cron, cron.weekday_cover()));
        of_months.into_iter().chain([weekdays(cron)])
    };
    if cron.is_either_day() {
        for days in by_day() {
            shapes.extend(by_weekday().map(|weekdays| [&days[..], &weekdays[..]].concat()));
        }
        return shapes;
    }
    if cron.restricts_day_of_month() {
        shapes.extend(by_day());
    }
    if cron.restricts_weekday() {
        shapes.extend(by_weekday());
    }
    if by_month {
        shapes.push(weekdays_of_months(cron, ALL_WEEKDAYS));
    }
    shapes
}

fn days_of_months(cron: &CompiledCron) -> Vec<Days> {
    let of_month =
        |month: u8| bits(u64::from(cron.day_cover(month))).map(move |day| Days::MonthDay { month, day });
    bits(u64::from(cron.months())).flat_map(of_month).collect()
}

fn days_of_month(cron: &CompiledCron) -> Vec<Days> {
    let days = bits(u64::from(cron.months())).fold(0, |days, month| days | cron.day_cover(month));
    bits(u64::from(days)).map(|day| Days::Day { day }).collect()
}

fn weekdays_of_months(cron: &CompiledCron, weekdays: u8) -> Vec<Days> {
    let of_month =
        |month: u8| bits(u64::from(weekdays)).map(move |weekday| Days::MonthWeekday { month, weekday });
    bits(u64::from(cron.months())).flat_map(of_month).collect()
}

fn weekdays(cron: &CompiledCron) -> Vec<Days> {
    bits(u64::from(cron.weekday_cover())).map(|weekday| Days::Weekday { weekday }).collect()
}

/// How many days of a cycle a LaunchExpression covers.
fn days_per_cycle(days: Days) -> u64 {
    let month_days = |month: u8| {
        let (common, leap) = (days_in_month(month, false), days_in_month(month, true));
        u64::from(common) * (CYCLE_YEARS - LEAP_YEARS) + u64::from(leap) * LEAP_YEARS
    };
    let day_of_month = |month: u8, day: u8| match () {
        () if day <= days_in_month(month, false) => CYCLE_YEARS,
        () if day <= days_in_month(month, true) => LEAP_YEARS,
        () => 0,
    };
    match days {
        Days::MonthDay { month, day } => day_of_month(month, day),
        Days::MonthWeekday { month, .. } => month_days(month) / 7,
        Days::Day { day } => (1..=12).map(|month| day_of_month(month, day)).sum(),
        Days::Weekday { .. } => (1..=12).map(month_days).sum::<u64>() / 7,
        Days::Every => (1..=12).map(month_days).sum(),
    }
}

/// The positions of the set bits of a mask, lowest first.
fn bits(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as u8);
        mask &= mask.wrapping_sub(1);
        lowest
    })
}
