//! LaunchExpressions and child keys: where in the time index a child lies.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::local::Day;

/// The class of a LaunchExpression, most significant fixed field first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaunchClass {
    /// A month and a day of it are fixed.
    MM,
    /// A month and a weekday are fixed.
    MW,
    /// A day of the month is fixed.
    M,
    /// A weekday is fixed.
    W,
    /// At most the hour is fixed.
    H,
}

/// The days of a LaunchExpression. 0 is Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Days {
    MonthDay { month: u8, day: u8 },
    MonthWeekday { month: u8, weekday: u8 },
    Day { day: u8 },
    Weekday { weekday: u8 },
    Every,
}

/// Class and values of the most significant fixed fields of a trigger, with the hour or `*` for every hour.
///
/// Its text is a stable key: `MM:08-03:12`, `MW:08-1:*`, `M:15:*`, `W:1:03`, `H:03`, and `H:03:any` for the rows that
/// match any minute. 0 is Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchExpression {
    days: Days,
    hour: Option<u8>,
    any_minute: bool,
}

/// Where a child lies: its LaunchExpression and its minute.
///
/// Invariant: the minute is absent exactly when the LaunchExpression is an `any` one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildKey {
    launch_expression: LaunchExpression,
    minute: Option<u8>,
}

/// A text that is no LaunchExpression or no minute of one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not a key of the time index")]
pub struct KeyError {
    text: String,
}

impl KeyError {
    pub(super) fn of(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

impl LaunchExpression {
    /// One whose rows carry a minute. `hour` is `None` for every hour.
    pub(super) fn new(days: Days, hour: Option<u8>) -> Self {
        Self { days, hour, any_minute: false }
    }

    /// One whose rows match any minute; only class H has such rows.
    pub(super) fn any_minute(hour: Option<u8>) -> Self {
        Self { days: Days::Every, hour, any_minute: true }
    }

    /// Its class: which of its fields are fixed.
    pub fn class(&self) -> LaunchClass {
        match self.days {
            Days::MonthDay { .. } => LaunchClass::MM,
            Days::MonthWeekday { .. } => LaunchClass::MW,
            Days::Day { .. } => LaunchClass::M,
            Days::Weekday { .. } => LaunchClass::W,
            Days::Every => LaunchClass::H,
        }
    }

    pub(super) fn days(&self) -> Days {
        self.days
    }

    /// Its hour, 0 to 23; `None` stands for every hour.
    pub fn hour(&self) -> Option<u8> {
        self.hour
    }

    /// Whether its rows match any minute of the hour.
    pub fn is_any_minute(&self) -> bool {
        self.any_minute
    }

    /// Whether its class counts weekdays.
    pub(super) fn is_by_weekday(&self) -> bool {
        matches!(self.days, Days::MonthWeekday { .. } | Days::Weekday { .. })
    }

    /// Whether its class counts days of the month.
    pub(super) fn is_by_day_of_month(&self) -> bool {
        matches!(self.days, Days::MonthDay { .. } | Days::Day { .. })
    }

    /// Whether a calendar day is one of its days.
    pub(super) fn covers_day(&self, on: Day) -> bool {
        match self.days {
            Days::MonthDay { month, day } => on.month == month && on.day == day,
            Days::MonthWeekday { month, weekday } => on.month == month && on.weekday == weekday,
            Days::Day { day } => on.day == day,
            Days::Weekday { weekday } => on.weekday == weekday,
            Days::Every => true,
        }
    }
}

impl ChildKey {
    /// The key of a child; `None` when the minute is over 59 or does not go with the LaunchExpression.
    pub fn new(launch_expression: LaunchExpression, minute: Option<u8>) -> Option<Self> {
        let fits =
            launch_expression.any_minute == minute.is_none() && minute.is_none_or(|minute| minute < 60);
        fits.then_some(Self { launch_expression, minute })
    }

    /// One whose minute is known to be under 60.
    pub(super) fn at_minute(launch_expression: LaunchExpression, minute: u8) -> Self {
        Self { launch_expression, minute: Some(minute) }
    }

    /// The row of class H that matches any minute.
    pub(super) fn any_minute(hour: Option<u8>) -> Self {
        Self { launch_expression: LaunchExpression::any_minute(hour), minute: None }
    }

    /// The LaunchExpression that it lies under.
    pub fn launch_expression(&self) -> LaunchExpression {
        self.launch_expression
    }

    /// Its minute, 0 to 59; `None` for every minute.
    pub fn minute(&self) -> Option<u8> {
        self.minute
    }

    /// The beginning of its sort key: the minute in two digits, or `--` in a LaunchExpression of `any` rows.
    pub fn sort_prefix(&self) -> String {
        self.minute.map_or_else(|| "--".to_owned(), |minute| format!("{minute:02}"))
    }

    /// The hours of its local times, as a mask.
    pub(super) fn hour_mask(&self) -> u32 {
        self.launch_expression.hour.map_or(u32::MAX, |hour| 1 << hour)
    }

    /// The minutes of its local times, as a mask.
    pub(super) fn minute_mask(&self) -> u64 {
        self.minute.map_or(u64::MAX, |minute| 1 << minute)
    }

    /// Reads the two texts that [`LaunchExpression`]'s `Display` and [`Self::sort_prefix`] write.
    ///
    /// ```
    /// use tidegate_domain::time::ChildKey;
    ///
    /// let key = ChildKey::parse("W:1:03", "15")?;
    /// assert_eq!((key.launch_expression().hour(), key.minute()), (Some(3), Some(15)));
    /// assert!(ChildKey::parse("W:1:03", "--").is_err(), "only an `any` one has no minute");
    /// # Ok::<(), tidegate_domain::time::KeyError>(())
    /// ```
    ///
    /// # Errors
    /// [`KeyError`] when either is not such a text, or they do not go together.
    pub fn parse(launch_expression: &str, sort_prefix: &str) -> Result<Self, KeyError> {
        let minute = match sort_prefix {
            "--" => Some(None),
            digits => two_digits(digits, 0..=59).map(Some),
        };
        let expression: LaunchExpression = launch_expression.parse()?;
        minute
            .and_then(|minute| Self::new(expression, minute))
            .ok_or_else(|| KeyError { text: format!("{launch_expression} {sort_prefix}") })
    }
}

impl fmt::Display for LaunchExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.days {
            Days::MonthDay { month, day } => write!(f, "MM:{month:02}-{day:02}:")?,
            Days::MonthWeekday { month, weekday } => write!(f, "MW:{month:02}-{weekday}:")?,
            Days::Day { day } => write!(f, "M:{day:02}:")?,
            Days::Weekday { weekday } => write!(f, "W:{weekday}:")?,
            Days::Every => write!(f, "H:")?,
        }
        match self.hour {
            Some(hour) => write!(f, "{hour:02}")?,
            None => write!(f, "*")?,
        }
        if self.any_minute { write!(f, ":any") } else { Ok(()) }
    }
}

impl fmt::Display for ChildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.launch_expression, self.sort_prefix())
    }
}

impl FromStr for LaunchExpression {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse_expression(text).ok_or_else(|| KeyError { text: text.to_owned() })
    }
}

fn parse_expression(text: &str) -> Option<LaunchExpression> {
    let parts: Vec<&str> = text.split(':').collect();
    let (days, hour, any_minute) = match parts[..] {
        ["H", hour] => (Days::Every, hour, false),
        ["H", hour, "any"] => (Days::Every, hour, true),
        ["W", weekday, hour] => (Days::Weekday { weekday: weekday_digit(weekday)? }, hour, false),
        ["M", day, hour] => (Days::Day { day: two_digits(day, 1..=31)? }, hour, false),
        ["MM", month_day, hour] => {
            let (month, day) = month_day.split_once('-')?;
            (Days::MonthDay { month: two_digits(month, 1..=12)?, day: two_digits(day, 1..=31)? }, hour, false)
        }
        ["MW", month_weekday, hour] => {
            let (month, weekday) = month_weekday.split_once('-')?;
            let (month, weekday) = (two_digits(month, 1..=12)?, weekday_digit(weekday)?);
            (Days::MonthWeekday { month, weekday }, hour, false)
        }
        _ => return None,
    };
    let hour = if hour == "*" { None } else { Some(two_digits(hour, 0..=23)?) };
    Some(LaunchExpression { days, hour, any_minute })
}

fn two_digits(text: &str, range: std::ops::RangeInclusive<u8>) -> Option<u8> {
    let shaped = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|value| shaped && range.contains(value))
}

fn weekday_digit(text: &str) -> Option<u8> {
    let shaped = text.len() == 1 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|value| shaped && *value <= 6)
}
