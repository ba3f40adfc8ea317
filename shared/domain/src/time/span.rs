//! Spans of time that end at the bounds of what they can say, and never panic.
//!
//! `chrono`'s constructors panic there. They are denied by lint in every crate that sees values from outside, and these
//! stand in their place; `shifted` stands in the place of `+` and `-` on instants.

use chrono::{DateTime, TimeDelta, Utc};

/// A span of so many seconds, or the longest there is.
pub const fn seconds(count: i64) -> TimeDelta {
    match TimeDelta::try_seconds(count) {
        Some(span) => span,
        None if count < 0 => TimeDelta::MIN,
        None => TimeDelta::MAX,
    }
}

/// A span of so many milliseconds, or the longest there is.
pub const fn milliseconds(count: i64) -> TimeDelta {
    match TimeDelta::try_milliseconds(count) {
        Some(span) => span,
        None => TimeDelta::MIN,
    }
}

/// A span of so many days, or the longest there is.
pub const fn days(count: i64) -> TimeDelta {
    seconds(count.saturating_mul(86_400))
}

/// The first whole second at or after an instant, in seconds since the epoch: rounded up to it, nothing is early. With it,
/// `second < to` holds exactly when the second's instant is before `to`.
pub fn ceil_second(instant: DateTime<Utc>) -> i64 {
    instant.timestamp() + i64::from(instant.timestamp_subsec_nanos() > 0)
}

/// The same as an instant.
pub fn whole_second(instant: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(ceil_second(instant), 0).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_asked_for_ends_at_the_bounds() {
        assert_eq!(seconds(90), TimeDelta::minutes(1) + TimeDelta::seconds(30));
        assert_eq!((seconds(i64::MAX), seconds(i64::MIN)), (TimeDelta::MAX, TimeDelta::MIN));
        assert_eq!((days(2), days(i64::MAX)), (TimeDelta::hours(48), TimeDelta::MAX));
        assert_eq!(milliseconds(i64::MIN), TimeDelta::MIN);
    }
}
