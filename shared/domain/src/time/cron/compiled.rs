//! A cron expression as bit masks, taken from the fields that croner parsed: what a scan matches with.

use croner::Cron;

use super::years::Years;
use crate::time::dst::{Gap, Overlap};
use crate::time::local::{Day, days_in_month, days_of_year};

// Marks that croner puts on the values of a field; the constants themselves are private there.
const PLAIN_BIT: u8 = 1;
const NTH_BITS: [u8; 5] = [1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5];
const LAST_BIT: u8 = 1 << 6;
const NEAREST_BIT: u8 = 1 << 7;
const ALL_MONTHS: u16 = 0x1ffe;
const ALL_DAYS: u32 = 0xffff_fffe;
const ALL_WEEKDAYS: u8 = 0x7f;
/// Years after which months, days and weekdays fall together again, century years apart.
const CYCLE_YEARS: i32 = 28;

/// A compiled expression. Matching takes a few nanoseconds and no parser.
///
/// Bit `n` of a mask stands for the value `n`; 0 is Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompiledCron {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) months: u16,
    /// Days of the month, without `L` and `W`.
    pub(super) days: u32,
    /// `nW`: the weekday (Monday to Friday) nearest to day n.
    pub(super) nearest: u32,
    pub(super) weekdays: u8,
    /// `nL`: the last such weekday of the month.
    pub(super) last_weekdays: u8,
    /// `d#n`: bit `7 (n - 1) + d`.
    pub(super) nth_weekdays: u64,
    pub(super) years: Years,
    pub(super) flags: Flags,
}

/// What an expression says besides its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Flags {
    /// `L` in the day of month.
    pub last_day: bool,
    /// `LW`: the last weekday, Monday to Friday, of the month.
    pub last_workday: bool,
    /// The day of month is `*`.
    pub any_day: bool,
    /// The day of week is `*`.
    pub any_weekday: bool,
    /// `+`: a day must match both day fields.
    pub both_days: bool,
    /// A time in a gap does not launch.
    pub skips_gaps: bool,
    /// A time that happens twice launches both times.
    pub repeats: bool,
}

impl CompiledCron {
    /// Takes the masks of an expression. What it says about years, and whether it is interval-like, its text says best.
    pub(super) fn of(cron: &Cron, any_year: bool, interval: bool) -> Self {
        let pattern = &cron.pattern;
        let mask = |values: Vec<u16>| values.into_iter().fold(0u64, |mask, value| mask | 1 << value);
        let weekdays = |bit: u8| mask(pattern.days_of_week.get_set_values(bit)) & 0x7f;
        let last_day = pattern.days.is_feature_enabled(LAST_BIT);
        let last_workday = last_day && pattern.days.is_feature_enabled(NEAREST_BIT);
        Self {
            seconds: mask(pattern.seconds.values()),
            minutes: mask(pattern.minutes.values()),
            hours: mask(pattern.hours.values()) as u32,
            months: mask(pattern.months.values()) as u16,
            days: mask(pattern.days.values()) as u32,
            nearest: mask(pattern.days.get_set_values(NEAREST_BIT)) as u32,
            weekdays: weekdays(PLAIN_BIT) as u8,
            last_weekdays: weekdays(LAST_BIT) as u8,
            nth_weekdays: NTH_BITS.iter().rev().fold(0, |nth, bit| nth << 7 | weekdays(*bit)),
            years: if any_year { Years::ANY } else { Years::of(pattern.years.values()) },
            flags: Flags {
                last_day: last_day && !last_workday,
                last_workday,
                any_day: pattern.is_dom_wildcard(),
                any_weekday: pattern.is_dow_wildcard(),
                both_days: pattern.matches_dom_and_dow(),
                skips_gaps: interval,
                repeats: interval,
            },
        }
    }

    pub(in crate::time) fn seconds(&self) -> u64 {
        self.seconds
    }

    pub(in crate::time) fn minutes(&self) -> u64 {
        self.minutes
    }

    pub(in crate::time) fn hours(&self) -> u32 {
        self.hours
    }

    pub(in crate::time) fn months(&self) -> u16 {
        self.months
    }

    pub(in crate::time) fn years(&self) -> Years {
        self.years
    }

    /// The same, in every year.
    pub(in crate::time) fn in_every_year(&self) -> Self {
        Self { years: Years::ANY, ..*self }
    }

    /// The same times, on every day.
    pub(in crate::time) fn on_every_day(&self) -> Self {
        let flags = Flags {
            last_day: false,
            last_workday: false,
            any_day: true,
            any_weekday: true,
            both_days: false,
            ..self.flags
        };
        Self {
            months: ALL_MONTHS,
            days: ALL_DAYS,
            nearest: 0,
            weekdays: ALL_WEEKDAYS,
            last_weekdays: 0,
            nth_weekdays: 0,
            years: Years::ANY,
            flags,
            ..*self
        }
    }

    /// What becomes of its times that the clocks jump over.
    pub fn gap(&self) -> Gap {
        if self.flags.skips_gaps { Gap::Skip } else { Gap::NextValid }
    }

    /// What becomes of its times that happen twice.
    pub fn overlap(&self) -> Overlap {
        if self.flags.repeats { Overlap::Both } else { Overlap::First }
    }

    /// Whether both day fields are restricted and a day that matches either one counts.
    pub(in crate::time) fn is_either_day(&self) -> bool {
        self.restricts_day_of_month() && self.restricts_weekday() && !self.flags.both_days
    }

    pub(in crate::time) fn restricts_day_of_month(&self) -> bool {
        !self.flags.any_day
    }

    pub(in crate::time) fn restricts_weekday(&self) -> bool {
        !self.flags.any_weekday
    }

    pub(in crate::time) fn restricts_month(&self) -> bool {
        self.months.count_ones() < 12
    }

    /// Whether it launches on a day.
    pub(in crate::time) fn matches_day(&self, on: Day) -> bool {
        self.months >> on.month & 1 == 1
            && self.years.contains(on.year)
            && match (self.flags.any_day, self.flags.any_weekday) {
                (true, true) => true,
                (true, false) => self.matches_weekday(on),
                (false, true) => self.matches_day_of_month(on),
                (false, false) if self.flags.both_days => {
                    self.matches_day_of_month(on) && self.matches_weekday(on)
                }
                (false, false) => self.matches_day_of_month(on) || self.matches_weekday(on),
            }
    }

    /// Whether the day of month field matches a day.
    pub(in crate::time) fn matches_day_of_month(&self, on: Day) -> bool {
        self.days >> on.day & 1 == 1
            || self.flags.last_day && on.day == on.month_days
            || self.flags.last_workday && on.day == nearest_workday(on, on.month_days)
            || self.nearest != 0 && self.matches_nearest(on)
    }

    fn matches_nearest(&self, on: Day) -> bool {
        let low = on.day.saturating_sub(2).max(1);
        let high = (on.day + 2).min(on.month_days);
        (low..=high).any(|day| self.nearest >> day & 1 == 1 && nearest_workday(on, day) == on.day)
    }

    /// Whether the day of week field matches a day.
    pub(in crate::time) fn matches_weekday(&self, on: Day) -> bool {
        let nth = u32::from((on.day - 1) / 7) * 7 + u32::from(on.weekday);
        self.weekdays >> on.weekday & 1 == 1
            || self.nth_weekdays >> nth & 1 == 1
            || self.last_weekdays >> on.weekday & 1 == 1 && on.day + 7 > on.month_days
    }

    /// The days of a month (1 to 12) on which the day of month field can match in some year, as a mask.
    pub(in crate::time) fn day_cover(&self, month: u8) -> u32 {
        let lengths = [days_in_month(month, false), days_in_month(month, true)];
        lengths.iter().fold(0, |cover, length| cover | self.day_cover_of_length(*length))
    }

    fn day_cover_of_length(&self, length: u8) -> u32 {
        let mut cover = self.days;
        if self.flags.last_day {
            cover |= 1 << length;
        }
        if self.flags.last_workday {
            cover |= 0b111 << (length - 2);
        }
        for day in (1..=length).filter(|day| self.nearest >> day & 1 == 1) {
            // The weekday before, the one after, or across a weekend when the month begins or ends there.
            let low = if day == length { day - 2 } else { day.saturating_sub(1).max(1) };
            let high = if day == 1 { 3 } else { (day + 1).min(length) };
            cover |= (low..=high).fold(0, |days, day| days | 1 << day);
        }
        cover & ((1u64 << (length + 1)) - 2) as u32
    }

    /// The weekdays on which the day of week field can match, as a mask.
    pub(in crate::time) fn weekday_cover(&self) -> u8 {
        let nth = (0..5).fold(0, |cover, nth| cover | (self.nth_weekdays >> (7 * nth)) as u8 & 0x7f);
        self.weekdays | self.last_weekdays | nth
    }

    /// How many days of 28 years it launches on: the 28 years from the first that it names on, else those from 2001.
    pub(in crate::time) fn days_per_cycle(&self) -> u64 {
        let first = self.first_year();
        let years = (first..first + CYCLE_YEARS).filter(|year| self.years.contains(*year));
        years.flat_map(days_of_year).filter(|day| self.matches_day(*day)).count() as u64
    }

    /// Whether some day of the calendar matches.
    pub(super) fn ever_fires(&self) -> bool {
        if self.years.is_any() {
            // In 28 years each weekday meets each day of common and of leap years: no other year has another calendar.
            let first = self.first_year();
            return (first..first + CYCLE_YEARS).flat_map(days_of_year).any(|day| self.matches_day(day));
        }
        self.years.named().flat_map(|year| days_of_year(year.into())).any(|day| self.matches_day(day))
    }

    fn first_year(&self) -> i32 {
        if self.years.is_any() { 2001 } else { self.years.named().next().map_or(2001, i32::from) }
    }
}

/// The day from Monday to Friday that is nearest to a day of the month of `on`, without leaving the month.
fn nearest_workday(on: Day, day: u8) -> u8 {
    match (i16::from(on.weekday) + i16::from(day) - i16::from(on.day)).rem_euclid(7) {
        6 if day > 1 => day - 1,
        6 => day + 2,
        0 if day < on.month_days => day + 1,
        0 => day - 2,
        _ => day,
    }
}
