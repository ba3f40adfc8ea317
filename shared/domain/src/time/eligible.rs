//! Which keys of the time index a scan window has to read in a zone: about a dozen, however many schedules exist.
//!
//! Invariant: whatever launches in the window lies under one of them (it may over-select, it never under-selects).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono_tz::Tz;

use super::launch::{ChildKey, Days, LaunchExpression};
use super::local::{Day, LocalWindow};
use super::window::Window;

/// One key-range query: a LaunchExpression and the minutes of it that the window holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRange {
    /// The LaunchExpression whose rows are read.
    pub launch_expression: LaunchExpression,
    /// Which of its rows are read.
    pub minutes: Minutes,
}

/// The rows of a LaunchExpression that a scan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Minutes {
    /// Those whose sort key begins with one of these minutes, 0 to 59.
    Range(RangeInclusive<u8>),
    /// All: its rows match any minute.
    Any,
}

/// The eligible ranges of a window in a zone: [`LocalWindow::eligible`] for a caller that needs nothing else.
pub fn eligible(zone: Tz, window: Window) -> Vec<ShardRange> {
    LocalWindow::new(zone, window).eligible()
}

impl LocalWindow {
    /// The eligible LaunchExpressions with their minutes, each row covered once, in the order of the keys.
    ///
    /// A window within one local hour has twelve. Every minute of which it holds a second counts.
    pub fn eligible(&self) -> Vec<ShardRange> {
        let mut minutes_by_expression = BTreeMap::<LaunchExpression, u64>::new();
        for part in self.parts() {
            let (first, end) = part.touched_minutes();
            for hour in first / 60..=(end - 1) / 60 {
                let minutes = sixtieths(hour, first, end);
                for expression in expressions(part.day, hour as u8) {
                    *minutes_by_expression.entry(expression).or_default() |= minutes;
                }
            }
        }
        minutes_by_expression
            .into_iter()
            .flat_map(|(expression, minutes)| ranges(expression, minutes))
            .collect()
    }
}

impl ShardRange {
    /// Whether a child's row lies in it.
    pub fn covers(&self, key: &ChildKey) -> bool {
        self.launch_expression == key.launch_expression()
            && match (&self.minutes, key.minute()) {
                (Minutes::Any, None) => true,
                (Minutes::Range(range), Some(minute)) => range.contains(&minute),
                _ => false,
            }
    }
}

/// The minutes of an hour that lie in `[first, end)` minutes of the day, as a mask; and the same for the seconds of a
/// minute of the day.
pub(super) fn sixtieths(whole: u32, first: u32, end: u32) -> u64 {
    let start = whole * 60;
    let low = first.saturating_sub(start).min(60);
    let high = end.saturating_sub(start).min(60);
    (1u64 << high) - (1u64 << low.min(high))
}

/// The twelve LaunchExpressions of a local hour.
fn expressions(on: Day, hour: u8) -> impl Iterator<Item = LaunchExpression> {
    let days = [
        Days::MonthDay { month: on.month, day: on.day },
        Days::MonthWeekday { month: on.month, weekday: on.weekday },
        Days::Day { day: on.day },
        Days::Weekday { weekday: on.weekday },
        Days::Every,
    ];
    [Some(hour), None].into_iter().flat_map(move |hour| {
        let by_minute = days.into_iter().map(move |days| LaunchExpression::new(days, hour));
        by_minute.chain(std::iter::once(LaunchExpression::any_minute(hour)))
    })
}

/// The runs of set bits of a mask of minutes, as ranges of one LaunchExpression.
fn ranges(launch_expression: LaunchExpression, mut minutes: u64) -> Vec<ShardRange> {
    if launch_expression.is_any_minute() {
        return vec![ShardRange { launch_expression, minutes: Minutes::Any }];
    }
    let mut ranges = Vec::with_capacity(1);
    while minutes != 0 {
        let low = minutes.trailing_zeros();
        let length = (minutes >> low).trailing_ones();
        minutes &= !(((1u64 << length) - 1) << low);
        let range = low as u8..=(low + length - 1) as u8;
        ranges.push(ShardRange { launch_expression, minutes: Minutes::Range(range) });
    }
    ranges
}
