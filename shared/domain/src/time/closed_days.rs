//! Launches that are moved off closed days, to the same time of the next or the previous day that is open then.
//!
//! Nothing is written ahead. A job that moves launches is looked at at its times of every day
//! ([`CompiledCron::on_every_day`]). What becomes of such a candidate is worked out at it, by a look over the closed days on one
//! side of it for one on which the expression launches at that time. So a window may be cut anywhere, and launches that meet are one.
//!
//! A day is open at a time if it is at one of the instants at which the clocks show it then. One that does not have the time,
//! because the clocks skip it and the expression says `skip`, is passed over.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;

use super::bounds::shifted;
use super::cron::CompiledCron;
use super::dst::{Gap, Overlap};
use super::firing::{Dst, Firing};
use super::local::{Day, LocalWindow, Part, Pass};
use super::span::{days, seconds};
use super::wall::WallClock;
use super::window::Window;
use crate::limits::SHIFT_DAYS;

/// Times that one gap skips of one day, of which each is looked at: those of an expression for every minute in a gap of an hour.
/// Those after them go as these do.
const GAP_TIMES: usize = 60;
/// How far the first instant after a gap may lie from a time that it skips, if that is read as one of UTC, in seconds: a day
/// for the longest gap, and the offset.
const GAP_SECONDS: i64 = 42 * 3_600;

/// What becomes of a launch on a day that is closed at that time: the calendars of its job leave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnClosedDay {
    /// It is left out.
    #[default]
    LeaveOut,
    /// It is moved to the same time of the next day that is open then.
    NextOpenDay,
    /// It is moved to the same time of the last day before it that is open then.
    PreviousOpenDay,
}

/// Says of an instant whether the calendars of a job let it launch then.
pub type IsOpen<'a> = &'a dyn Fn(DateTime<Utc>) -> bool;

/// A time of a day, as an expression says it, whether the clocks show it or not.
#[derive(Debug, Clone, Copy)]
struct TimeOfDay {
    date: NaiveDate,
    second: u32,
    label: Dst,
}

impl OnClosedDay {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LeaveOut, Self::NextOpenDay, Self::PreviousOpenDay];

    /// Its word in the API, which never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeaveOut => "leave_out",
            Self::NextOpenDay => "next_open_day",
            Self::PreviousOpenDay => "previous_open_day",
        }
    }

    /// Whether launches are moved.
    pub fn moves(self) -> bool {
        self != Self::LeaveOut
    }

    /// How much earlier, and how much later, than its trigger says a launch may be due at the most. Days on which the clocks
    /// change are longer.
    pub fn reach(self) -> (TimeDelta, TimeDelta) {
        let most = days(i64::from(SHIFT_DAYS) + 2);
        match self {
            Self::LeaveOut => (TimeDelta::zero(), TimeDelta::zero()),
            Self::NextOpenDay => (TimeDelta::zero(), most),
            Self::PreviousOpenDay => (most, TimeDelta::zero()),
        }
    }

    /// The day that comes next on the way of a launch that is moved.
    fn onward(self, from: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::LeaveOut => None,
            Self::NextOpenDay => from.succ_opt(),
            Self::PreviousOpenDay => from.pred_opt(),
        }
    }

    /// The day from which a launch comes to this one.
    fn back(self, from: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::LeaveOut => None,
            Self::NextOpenDay => from.pred_opt(),
            Self::PreviousOpenDay => from.succ_opt(),
        }
    }
}

impl CompiledCron {
    /// What becomes of a candidate, a launch of the expression on every day: it is one of the expression itself, open or not;
    /// one that is moved there, with the instant it is moved from; or none.
    pub(super) fn settled(
        &self,
        zone: Tz,
        rule: OnClosedDay,
        candidate: Firing,
        is_open: IsOpen<'_>,
    ) -> Option<Firing> {
        let times = self.times_at(zone, &candidate);
        if let Some(own) = times.iter().find(|time| self.matches_day(Day::on(time.date))) {
            return Some(Firing { label: own.label, ..candidate });
        }
        if !is_open(candidate.launch_at) {
            return None;
        }
        let moved_from = times.iter().find_map(|time| self.origin(zone, rule, time, is_open))?;
        Some(Firing { moved_from: Some(moved_from), ..candidate })
    }

    /// Where a launch of the expression is moved to that is not made for its closed day; `None`: no day is open near enough.
    pub(super) fn destination(
        &self,
        zone: Tz,
        rule: OnClosedDay,
        launch: &Firing,
        is_open: IsOpen<'_>,
    ) -> Option<DateTime<Utc>> {
        if !rule.moves() {
            return None;
        }
        let to = |time: &TimeOfDay| {
            let dates = std::iter::successors(Some(time.date), |date| rule.onward(*date));
            let mut instants =
                dates.take(SHIFT_DAYS as usize + 1).flat_map(|date| self.instants(zone, date, time.second));
            instants.find(|at| is_open(*at))
        };
        let times = self.times_at(zone, launch);
        times.iter().filter(|time| self.matches_day(Day::on(time.date))).find_map(to)
    }

    /// From where a launch is moved to a time of a day that is open then.
    fn origin(
        &self,
        zone: Tz,
        rule: OnClosedDay,
        time: &TimeOfDay,
        is_open: IsOpen<'_>,
    ) -> Option<DateTime<Utc>> {
        let mut date = time.date;
        for _ in 0..SHIFT_DAYS {
            date = rule.back(date)?;
            let mut instants = self.instants(zone, date, time.second);
            let first = instants.clone().next();
            if instants.any(is_open) {
                return None;
            }
            if first.is_some() && self.matches_day(Day::on(date)) {
                return first;
            }
        }
        None
    }

    /// The times that a launch of the expression on every day stands for: one, or those that a gap skips, and the first after it.
    fn times_at(&self, zone: Tz, launch: &Firing) -> Vec<TimeOfDay> {
        if launch.label != Dst::Gap {
            let local = launch.launch_at.with_timezone(&WallClock::of(zone));
            let (date, second) = (local.date_naive(), local.num_seconds_from_midnight());
            return vec![TimeOfDay { date, second, label: launch.label }];
        }
        let (landing, every_day) = (launch.launch_at, self.on_every_day());
        let Ok(window) = Window::new(landing, shifted(landing, seconds(1))) else { return Vec::new() };
        let mut times = Vec::new();
        for part in LocalWindow::new(zone, window).parts() {
            let label = if matches!(part.pass, Pass::Skipped { .. }) { Dst::Gap } else { Dst::Plain };
            let Some(date) = part.day.date() else { continue };
            let mut left = GAP_TIMES;
            every_day.each_second(None, part, |second| {
                if left > 0 {
                    times.push(TimeOfDay { date, second, label });
                    left -= 1;
                }
            });
        }
        times
    }

    /// The instants of a time of a day, in order, by what the expression says of changes of the clocks: none, one or two.
    fn instants(
        &self,
        zone: Tz,
        date: NaiveDate,
        second: u32,
    ) -> impl Iterator<Item = DateTime<Utc>> + Clone + use<> {
        let of_day = NaiveTime::from_num_seconds_from_midnight_opt(second, 0).unwrap_or_default();
        let wall = date.and_time(of_day);
        let instants = match WallClock::of(zone).from_local_datetime(&wall) {
            chrono::MappedLocalTime::Single(at) => [Some(at.to_utc()), None],
            chrono::MappedLocalTime::Ambiguous(a, b) => {
                let (first, again) = (a.min(b).to_utc(), a.max(b).to_utc());
                [Some(first), Some(again).filter(|_| self.overlap() == Overlap::Both)]
            }
            chrono::MappedLocalTime::None if self.gap() == Gap::Skip => [None, None],
            chrono::MappedLocalTime::None => [landing(zone, date, second, wall.and_utc()), None],
        };
        instants.into_iter().flatten()
    }
}

/// The first instant after the gap that skips a time of a day, which is given as one of UTC too.
fn landing(zone: Tz, date: NaiveDate, second: u32, wall: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let around =
        Window::new(shifted(wall, seconds(-GAP_SECONDS)), shifted(wall, seconds(GAP_SECONDS))).ok()?;
    let skips = |part: &Part| match part.pass {
        Pass::Skipped { landing_s } => {
            let is_it = part.day == Day::on(date) && (part.from_s..part.to_s).contains(&second);
            is_it.then_some(landing_s)
        }
        _ => None,
    };
    let landing_s = LocalWindow::new(zone, around).parts().iter().find_map(skips)?;
    DateTime::from_timestamp(landing_s, 0)
}
