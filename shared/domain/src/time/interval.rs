//! Intervals as people write them: `5 minutes`, `90s`, `1h30m`, AWS's `rate(5 minutes)`, `@every 1h`.

use thiserror::Error;

use crate::bounded::{Bounded, bounded};
use crate::limits::RATE_SECONDS;

const SECOND: (&str, u64) = ("second", 1);
const MINUTE: (&str, u64) = ("minute", 60);
const HOUR: (&str, u64) = ("hour", 3_600);
const DAY: (&str, u64) = ("day", 86_400);
const WEEK: (&str, u64) = ("week", 7 * 86_400);

const DAY_SECONDS: u32 = 86_400;

bounded! {
    /// The interval of a rate, in seconds.
    RateSeconds(u32), "trigger.rate.every_seconds", RATE_SECONDS
}

/// Why a rate is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RateError {
    /// Too short or too long.
    #[error(
        "a rate of {seconds} seconds is not possible; it must lie between {} second and {} days",
        RateSeconds::BOUNDS.start(), RateSeconds::BOUNDS.end() / DAY_SECONDS
    )]
    Bounds {
        /// What was given.
        seconds: u64,
    },
}

/// The interval of a rate.
///
/// # Errors
/// When it is too short or too long.
pub(super) fn check_interval(seconds: u64) -> Result<RateSeconds, RateError> {
    RateSeconds::new(seconds).map_err(|_| RateError::Bounds { seconds })
}

/// Why a text is no interval.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RateTextError {
    /// It does not read as one.
    #[error("interval '{given}' {problem}")]
    Text {
        /// The text as it was given.
        given: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// It is too short or too long for a rate.
    #[error(transparent)]
    Bounds(#[from] RateError),
}

/// Whether a text says by its form that it is an interval: `rate(...)` or `@every ...`.
pub(super) fn is_interval(text: &str) -> bool {
    let lower = text.trim().to_lowercase();
    lower.starts_with("rate(") || lower.split_whitespace().next() == Some("@every")
}

/// The seconds of an interval: `5 minutes`, `90s`, `1h30m`, `2d`, `rate(5 minutes)` or `@every 1h`. Within `rate(...)`
/// the rules of AWS EventBridge hold: one number and `minute`, `hour` or `day`, plural unless it is 1.
///
/// ```
/// use tidegate_domain::time::parse_interval;
///
/// assert_eq!(parse_interval("1h30m")?, 5_400);
/// assert!(parse_interval("rate(5 minute)").is_err(), "AWS wants a plural");
/// # Ok::<(), tidegate_domain::time::RateTextError>(())
/// ```
///
/// # Errors
/// [`RateTextError::Text`] when it does not read as one, [`RateTextError::Bounds`] when it is out of the bounds of a
/// rate; the text says what to write.
pub fn parse_interval(text: &str) -> Result<u64, RateTextError> {
    let given: String = text.trim().chars().take(64).collect();
    let lower = given.to_lowercase();
    let seconds = if let Some(rest) = lower.strip_prefix("rate(") {
        aws_rate(rest)
    } else {
        read_sum(lower.strip_prefix("@every").unwrap_or(&lower))
    };
    let seconds = seconds.map_err(|problem| RateTextError::Text { given, problem })?;
    Ok(check_interval(seconds)?.get().into())
}

fn aws_rate(rest: &str) -> Result<u64, String> {
    let Some(inner) = rest.strip_suffix(')') else {
        return Err("does not end with the bracket of rate(...): close it".to_owned());
    };
    let words: Vec<&str> = inner.split_whitespace().collect();
    let [value, unit] = words[..] else {
        return Err("is not a number and a unit, such as 'rate(5 minutes)'".to_owned());
    };
    let value = number(value)?;
    let singular = unit.trim_end_matches('s');
    let Some((_, seconds)) = [MINUTE, HOUR, DAY].into_iter().find(|(name, _)| *name == singular) else {
        let fix = match unit_seconds(unit) {
            Ok(_) => format!("write '{value} {unit}' without rate(...)"),
            Err(_) => "write one of them".to_owned(),
        };
        return Err(format!("has the unit '{unit}', and AWS has minutes, hours and days: {fix}"));
    };
    if (value == 1) != (unit == singular) {
        let fix = if value == 1 { format!("1 {singular}") } else { format!("{value} {singular}s") };
        return Err(format!(
            "has '{unit}' with {value}, and AWS takes the singular with 1 only: write 'rate({fix})'"
        ));
    }
    value.checked_mul(seconds).ok_or_else(too_long)
}

/// Numbers with units, added up.
fn read_sum(text: &str) -> Result<u64, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(format!("names no time: {EXAMPLES}"));
    }
    let mut sum = 0u64;
    while !rest.is_empty() {
        let (digits, after) = split_at_first(rest, |c| !c.is_ascii_digit());
        if digits.is_empty() {
            return Err(format!("has '{}' where a number should be: {EXAMPLES}", first_word(rest)));
        }
        let value = number(digits)?;
        let after = after.trim_start();
        if after.starts_with(['.', ',']) {
            return Err("has a fraction: write whole seconds, such as '90s' for 1.5 minutes".to_owned());
        }
        let (unit, after) = split_at_first(after, |c| !c.is_alphabetic());
        if unit.is_empty() {
            return Err(format!("has no unit behind {value}: write '{value}s' or '{value} minutes'"));
        }
        let seconds = unit_seconds(unit)?;
        sum = value.checked_mul(seconds).and_then(|part| sum.checked_add(part)).ok_or_else(too_long)?;
        rest = after.trim_start();
    }
    Ok(sum)
}

const EXAMPLES: &str = "write one such as '5 minutes', '90s' or '1h30m'";

fn unit_seconds(unit: &str) -> Result<u64, String> {
    let (_, seconds) = match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => WEEK,
        "ms" | "us" | "µs" | "ns" => return Err("is finer than a second: write whole seconds".to_owned()),
        "month" | "months" | "year" | "years" => {
            return Err(format!(
                "has the unit '{unit}', which has no fixed length: write a cron expression such as '0 0 1 * *'"
            ));
        }
        _ => {
            return Err(format!(
                "has the unit '{unit}', which is none: write seconds, minutes, hours, days or weeks"
            ));
        }
    };
    Ok(seconds)
}

fn number(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        Err(_) if digits => Err(too_long()),
        _ => Err(format!("has '{text}' where a whole number should be: {EXAMPLES}")),
    }
}

fn too_long() -> String {
    "is longer than anything that can be counted: write a shorter one".to_owned()
}

fn split_at_first(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.find(stop).and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or(text)
}
