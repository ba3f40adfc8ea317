//! Why an expression is refused: each text names the field, the value and the fix.

use std::fmt;

use thiserror::Error;

use super::years::{FIRST_YEAR, LAST_YEAR};
use crate::time::interval::RateTextError;

/// Longest expression, in bytes.
pub(super) const EXPRESSION_BYTES: usize = 512;

/// Why a cron expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CronError {
    /// Nothing was given.
    #[error(
        "cron expression is empty: write five fields (minute, hour, day of month, month, day of week), such as '0 3 * * *'"
    )]
    Empty,
    /// More text than any expression needs.
    #[error(
        "cron expression is {bytes} bytes long; {EXPRESSION_BYTES} is the most: write ranges and steps instead of long lists"
    )]
    TooLong {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// Not five, six or seven fields.
    #[error("cron expression '{given}' has {found} fields instead of 5 to 7: {fix}")]
    FieldCount {
        /// The expression as it was given.
        given: String,
        /// How many fields it has.
        found: usize,
        /// What to write instead.
        fix: String,
    },
    /// A form of another scheduler.
    #[error("cron expression '{given}' {problem}")]
    Unsupported {
        /// The expression as it was given.
        given: String,
        /// What it is, and what to write.
        problem: String,
    },
    /// One field is wrong.
    #[error("{field}: '{value}' {problem}")]
    Field {
        /// Which field is wrong.
        field: Field,
        /// The part of it that is wrong.
        value: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// A field object without a field that has no default.
    #[error("{field} is missing: write {} ('0' for on the hour, '*' for every one)", .field.key())]
    MissingField {
        /// The field that is missing.
        field: Field,
    },
    /// No day of the calendar matches.
    #[error(
        "cron expression '{given}' never fires: none of its years has such a day; change the day, the month or the year"
    )]
    NeverFires {
        /// The expression as it was given.
        given: String,
    },
    /// An interval that does not read as one.
    #[error(transparent)]
    Interval(#[from] RateTextError),
    /// What the checks before it let through, the parser refused.
    #[error("cron expression '{given}' does not parse: {reason}")]
    Parser {
        /// The expression as it was given.
        given: String,
        /// What the parser, croner, said.
        reason: String,
    },
}

/// One of the fields of a cron expression, with the values that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// 0 to 59; 0 when it is left out.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or `JAN` to `DEC`.
    Month,
    /// 0 to 7, both Sunday, or `SUN` to `SAT`.
    DayOfWeek,
    /// 1970 to 2199; every one when it is left out.
    Year,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Field {
    /// The fields, in the order of an expression.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek, Self::Year];
    /// Those of an expression of five, in its order.
    pub(super) const OF_FIVE: [Self; 5] =
        [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// Its name in a field object, such as `DayOfMonth`.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Second => "Second",
            Self::Minute => "Minute",
            Self::Hour => "Hour",
            Self::DayOfMonth => "DayOfMonth",
            Self::Month => "Month",
            Self::DayOfWeek => "DayOfWeek",
            Self::Year => "Year",
        }
    }

    /// Its least and its greatest value.
    pub(super) fn bounds(self) -> (u16, u16) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
            Self::Year => (FIRST_YEAR, LAST_YEAR),
        }
    }

    /// The names of its values, from its least one on.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }

    pub(super) fn error(self, value: &str, problem: impl Into<String>) -> CronError {
        CronError::Field { field: self, value: value.to_owned(), problem: problem.into() }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        })
    }
}

/// What is no expression that this dialect has, and why.
pub(super) fn unsupported(given: &str, problem: impl Into<String>) -> CronError {
    CronError::Unsupported { given: given.to_owned(), problem: problem.into() }
}
