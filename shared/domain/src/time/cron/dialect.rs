//! From a text to the seven fields: nicknames are expanded, AWS's `cron(...)` is translated, and what is no cron
//! expression is refused by name.
//!
//! Five fields begin with the minute, six and seven with the second, as in croner; the seventh is the year.

use super::aws;
use super::error::{CronError, EXPRESSION_BYTES, Field, unsupported};
use super::split::Split;
use super::years::{FIRST_YEAR, LAST_YEAR};
use crate::time::interval::parse_interval;

const NICKNAMES: [(&str, &str); 7] = [
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@DAILY", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@HOURLY", "0 * * * *"),
];

/// Splits `CRON_TZ=Zone` or `TZ=Zone` off an expression: the zone's name, `None` if there is no such prefix, and the
/// rest.
///
/// The name is not checked; [`parse_zone`](crate::time::parse_zone) does that.
pub fn split_zone_prefix(text: &str) -> (Option<&str>, &str) {
    let text = text.trim();
    for prefix in ["CRON_TZ=", "TZ="] {
        if let Some((start, rest)) = text.split_at_checked(prefix.len())
            && start.eq_ignore_ascii_case(prefix)
        {
            let (zone, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            return (Some(zone), rest.trim());
        }
    }
    (None, text)
}

/// The fields of an expression.
pub(super) fn split(text: &str) -> Result<Split, CronError> {
    if text.len() > EXPRESSION_BYTES {
        return Err(CronError::TooLong { bytes: text.len() });
    }
    let given = text.trim();
    if let (Some(zone), rest) = split_zone_prefix(given) {
        return Err(unsupported(
            given,
            format!("has a zone in front of it: write '{rest}' and name '{zone}' as the zone"),
        ));
    }
    let upper = given.to_uppercase();
    if upper.starts_with('@') {
        return nickname(given, &upper);
    }
    if upper.starts_with("RATE(") {
        return Err(unsupported(given, INTERVAL));
    }
    if let Some(inner) = upper.strip_prefix("CRON(") {
        return aws::translate(given, inner);
    }
    let fields: Vec<String> = upper.split_whitespace().map(str::to_owned).collect();
    if let Some(problem) = misplaced(given, &fields) {
        return Err(unsupported(given, problem));
    }
    match fields.len() {
        5 => fields.try_into().map(Split::five),
        6 => fields.try_into().map(Split::six),
        _ => fields.try_into().map(Split::seven),
    }
    .map_err(|fields| wrong_count(given, &fields))
}

const INTERVAL: &str = "is an interval, not a calendar time: give it as a rate, such as '5 minutes'";

fn nickname(given: &str, upper: &str) -> Result<Split, CronError> {
    if let Some((_, fields)) = NICKNAMES.iter().find(|(name, _)| *name == upper) {
        return split(fields);
    }
    let problem = match upper.split_whitespace().next() {
        Some("@EVERY") => INTERVAL,
        Some("@REBOOT") => {
            "waits for a boot, and nothing boots here: write a calendar time such as '0 3 * * *'"
        }
        Some("@ONCE") => "is not a calendar time: give a job that fires once an 'at' instant",
        _ => {
            "is not a known nickname: @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly are"
        }
    };
    Err(unsupported(given, problem))
}

/// Whether a field can only be a year: four digits, alone or at the beginning.
fn is_year(field: &str) -> bool {
    let digits = field.bytes().take_while(u8::is_ascii_digit).count();
    digits == 4 && field.as_bytes().get(4).is_none_or(|next| matches!(next, b'-' | b',' | b'/'))
}

/// What to say about six fields whose last one is a year.
fn misplaced(given: &str, fields: &[String]) -> Option<String> {
    let [_, _, hour, _, month, last] = fields else { return None };
    let weekdays = Field::DayOfWeek.names().iter().any(|name| month.contains(name));
    if (hour == "?" || month == "?" || weekdays) && (last == "*" || is_year(last)) {
        return Some(format!(
            "has the fields of AWS, where the last of six is the year: write 'cron({given})'; \
             six fields begin with the second here"
        ));
    }
    is_year(last).then(|| {
        format!(
            "has the year '{last}' in the place of the day of week: a year is the seventh field, \
             behind second, minute, hour, day of month, month and day of week: write '0 {given}'"
        )
    })
}

/// What to say when there are not five, six or seven fields.
fn wrong_count(given: &str, fields: &[String]) -> CronError {
    let fix = match fields.len() {
        0 => return CronError::Empty,
        _ if parse_interval(given).is_ok() => format!("it is an interval: write 'rate({given})'"),
        found @ 1..=4 => {
            let missing: Vec<String> = Field::OF_FIVE.iter().skip(found).map(Field::to_string).collect();
            format!("add {} ('*' for every one)", missing.join(", "))
        }
        _ => format!(
            "write minute, hour, day of month, month, day of week, with the second before and the year \
             ({FIRST_YEAR} to {LAST_YEAR}) behind them if need be; lists take no blanks"
        ),
    };
    CronError::FieldCount { given: given.to_owned(), found: fields.len(), fix }
}
