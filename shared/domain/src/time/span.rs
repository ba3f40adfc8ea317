//! Arithmetic on instants and spans that ends at the bounds of what they can say, and never panics.
//!
//! `chrono`'s operators and constructors panic there. They are denied by lint in every crate that sees values from
//! outside, and these stand in their place.

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

/// The instant so much later, or the last there is; with a negative span, earlier.
pub fn later(at: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    let bound = if by < TimeDelta::zero() { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
    at.checked_add_signed(by).unwrap_or(bound)
}

/// The instant so much earlier, or the first there is; with a negative span, later.
pub fn earlier(at: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    let bound = if by < TimeDelta::zero() { DateTime::<Utc>::MAX_UTC } else { DateTime::<Utc>::MIN_UTC };
    at.checked_sub_signed(by).unwrap_or(bound)
}

/// How long after `from` the instant `to` is; negative when it is before.
pub fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> TimeDelta {
    to.signed_duration_since(from)
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
        let noon = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        assert_eq!(later(noon, seconds(5)).timestamp(), 1_790_000_005);
        assert_eq!(earlier(noon, seconds(5)).timestamp(), 1_789_999_995);
        assert_eq!(later(noon, TimeDelta::MAX), DateTime::<Utc>::MAX_UTC);
        assert_eq!(later(noon, TimeDelta::MIN), DateTime::<Utc>::MIN_UTC);
        assert_eq!(earlier(noon, TimeDelta::MAX), DateTime::<Utc>::MIN_UTC);
        assert_eq!(earlier(noon, TimeDelta::MIN), DateTime::<Utc>::MAX_UTC);
        let most = between(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
        assert_eq!(between(DateTime::<Utc>::MAX_UTC, DateTime::<Utc>::MIN_UTC), -most);
    }
}
