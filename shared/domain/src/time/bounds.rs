//! The instants that Tidegate works with, and arithmetic that stays among them.
//!
//! Every instant that somebody sends is checked here once, so what follows may add spans to it, show it on a wall clock
//! and store it. Rows of older versions may hold others: those are brought to the nearer bound when they are read.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use thiserror::Error;

use crate::limits::INSTANTS_S;

/// Longest text of an instant that is repeated in a refusal, in characters.
const ECHOED_CHARACTERS: usize = 64;

/// Why an instant is refused: it lies outside of [`INSTANTS_S`]. The text names the field, what was given, and the
/// bounds.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{name} '{given}' is out of range; it must lie between {} and {}", shown(*INSTANTS_S.start()), shown(*INSTANTS_S.end())
)]
pub struct InstantError {
    /// What the instant is called.
    name: String,
    /// What was given.
    given: String,
}

fn shown(second: i64) -> String {
    at_second(second).to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn at_second(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 0).unwrap_or_default()
}

/// The instant, if it lies within [`INSTANTS_S`]. `name` and `given` are what the refusal calls it and shows of it.
///
/// # Errors
/// [`InstantError`] when it lies outside of them.
pub fn within_bounds(name: &str, given: &str, at: DateTime<Utc>) -> Result<DateTime<Utc>, InstantError> {
    if clamped(at) == at {
        return Ok(at);
    }
    Err(InstantError { name: name.to_owned(), given: given.chars().take(ECHOED_CHARACTERS).collect() })
}

/// The instant, or the bound of [`INSTANTS_S`] that it lies beyond.
pub fn clamped(at: DateTime<Utc>) -> DateTime<Utc> {
    at.clamp(at_second(*INSTANTS_S.start()), at_second(*INSTANTS_S.end()))
}

/// The instant that is `by` later (or earlier, when `by` is negative), at most a bound of [`INSTANTS_S`]. Never panics,
/// unlike `+` and `-`.
///
/// ```
/// use chrono::{DateTime, TimeDelta, Utc};
/// use tidegate_domain::time::shifted;
///
/// assert_eq!(shifted(DateTime::UNIX_EPOCH, TimeDelta::MAX).to_rfc3339(), "2200-01-01T00:00:00+00:00");
/// assert_eq!(shifted(DateTime::<Utc>::MIN_UTC, TimeDelta::MIN), DateTime::UNIX_EPOCH);
/// ```
pub fn shifted(at: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    let beyond = if by < TimeDelta::zero() { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
    clamped(at.checked_add_signed(by).unwrap_or(beyond))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_out_of_range_are_refused_by_name_and_value() {
        let check = |text: &str| {
            let at: DateTime<Utc> = text.parse().unwrap();
            within_bounds("start_at", text, at).map(|_| ()).map_err(|e| e.to_string())
        };
        for good in ["1970-01-01T00:00:00Z", "2026-11-21T12:00:00Z", "2200-01-01T00:00:00Z"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["1969-12-31T23:59:59Z", "2200-01-01T00:00:01Z", "-262143-01-01T00:00:00Z"] {
            let message = format!(
                "start_at '{bad}' is out of range; it must lie between 1970-01-01T00:00:00Z and 2200-01-01T00:00:00Z"
            );
            assert_eq!(check(bad), Err(message));
        }
    }

    #[test]
    fn arithmetic_ends_at_the_bounds() {
        let end = at_second(*INSTANTS_S.end());
        assert_eq!(shifted(end, TimeDelta::seconds(1)), end);
        assert_eq!(shifted(end, TimeDelta::seconds(-1)), at_second(INSTANTS_S.end() - 1));
        for at in [DateTime::<Utc>::MIN_UTC, DateTime::UNIX_EPOCH, end, DateTime::<Utc>::MAX_UTC] {
            for by in [TimeDelta::MIN, TimeDelta::zero(), TimeDelta::MAX] {
                assert_eq!(clamped(shifted(at, by)), shifted(at, by));
            }
        }
    }
}
