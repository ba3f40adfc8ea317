//! From a text to five fields: nicknames are expanded, and the forms of other schedulers are refused by name.
//!
//! Not taken here: seconds, AWS `cron(...)` and `rate(...)`, `@every`, years. Each gets a sentence that says what to
//! write instead.

use super::error::{CronError, EXPRESSION_BYTES, Field};

const NICKNAMES: [(&str, &str); 7] = [
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@DAILY", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@HOURLY", "0 * * * *"),
];

/// Splits `CRON_TZ=Zone` or `TZ=Zone` off an expression: the zone's name if there is one, and the rest.
///
/// The name is not checked; [`parse_zone`](crate::time::parse_zone) does that.
pub fn split_zone_prefix(text: &str) -> (Option<&str>, &str) {
    let text = text.trim();
    for prefix in ["CRON_TZ=", "TZ="] {
        if let Some(start) = text.get(..prefix.len())
            && start.eq_ignore_ascii_case(prefix)
        {
            let rest = &text[prefix.len()..];
            let (zone, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            return (Some(zone), rest.trim());
        }
    }
    (None, text)
}

/// The five fields of an expression, in upper case.
pub(super) fn split_fields(text: &str) -> Result<[String; 5], CronError> {
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
    for (name, refuse) in [("CRON(", aws_cron as fn(&str, &str) -> CronError), ("RATE(", aws_rate)] {
        if let Some(inner) = upper.strip_prefix(name) {
            return Err(refuse(given, inner.trim_end_matches(')')));
        }
    }
    let fields: Vec<String> = upper.split_whitespace().map(str::to_owned).collect();
    fields.try_into().map_err(|fields: Vec<String>| wrong_count(given, &fields))
}

fn unsupported(given: &str, problem: impl Into<String>) -> CronError {
    CronError::Unsupported { given: given.to_owned(), problem: problem.into() }
}

fn nickname(given: &str, upper: &str) -> Result<[String; 5], CronError> {
    if let Some((_, fields)) = NICKNAMES.iter().find(|(name, _)| *name == upper) {
        return split_fields(fields);
    }
    let problem = match upper.split_whitespace().next() {
        Some("@EVERY") => {
            "is an interval from the start of a program, not a calendar time: write one such as '*/5 * * * *'"
        }
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

/// Refuses AWS's `cron(...)`; `inner` is what the brackets hold.
fn aws_cron(given: &str, inner: &str) -> CronError {
    let fields: Vec<&str> = inner.split_whitespace().collect();
    let Some((year, five)) = fields.split_last().filter(|_| fields.len() == 6) else {
        let write = if fields.len() == 5 {
            format!("write '{inner}' without the brackets")
        } else {
            "write five fields without the brackets".to_owned()
        };
        return unsupported(
            given,
            format!("has {} fields in cron(...), where AWS has 6: {write}", fields.len()),
        );
    };
    if year.bytes().any(|b| b.is_ascii_alphabetic()) {
        let problem = format!(
            "has '{year}' in the year's place: AWS's fields are minute, hour, day of month, month, day of week, year"
        );
        return unsupported(given, problem);
    }
    let weekday = five.last().copied().unwrap_or_default();
    let write = if *year != "*" {
        "years are not taken, so write five fields without them".to_owned()
    } else if weekday.bytes().any(|b| b.is_ascii_digit()) {
        format!(
            "write '{}', with a name or our number (0 is Sunday, AWS's is 1) for '{weekday}'",
            five.join(" ")
        )
    } else {
        format!("write '{}'", five.join(" "))
    };
    unsupported(given, format!("is AWS's form with a year: {write}"))
}

/// Refuses AWS's `rate(...)`; `inner` is what the brackets hold.
fn aws_rate(given: &str, inner: &str) -> CronError {
    let mut words = inner.split_whitespace();
    let (value, unit) = (words.next().and_then(|word| word.parse::<u32>().ok()), words.next().unwrap_or(""));
    let same = match (value, unit.trim_end_matches('S')) {
        (Some(1), "MINUTE") => Some("* * * * *".to_owned()),
        (Some(n @ 2..=30), "MINUTE") if 60 % n == 0 => Some(format!("*/{n} * * * *")),
        (Some(1), "HOUR") => Some("0 * * * *".to_owned()),
        (Some(n @ 2..=12), "HOUR") if 24 % n == 0 => Some(format!("0 */{n} * * *")),
        (Some(1), "DAY") => Some("0 0 * * *".to_owned()),
        _ => None,
    };
    let write =
        same.map_or_else(|| "a calendar time such as '*/5 * * * *'".to_owned(), |same| format!("'{same}'"));
    let singular = value == Some(1);
    let spelling = if value.is_some() && !unit.is_empty() && unit.ends_with('S') == singular {
        ", and AWS takes the singular with 1 only"
    } else {
        ""
    };
    unsupported(given, format!("is an interval, not a calendar time{spelling}: write {write}"))
}

/// What to say when there are not five fields.
fn wrong_count(given: &str, fields: &[String]) -> CronError {
    let join = |fields: &[String]| fields.join(" ");
    let is_blank = |index: usize| fields.get(index).is_some_and(|field| field == "?");
    let fix = match fields.len() {
        0 => return CronError::Empty,
        found @ 1..=4 => {
            let missing: Vec<String> = Field::ALL.iter().skip(found).map(Field::to_string).collect();
            format!("add {} ('*' for every one)", missing.join(", "))
        }
        6 if is_blank(2) || is_blank(4) => {
            format!("the last one, '{}', is a year as AWS has it: write '{}'", fields[5], join(&fields[..5]))
        }
        6 => {
            let (seconds, rest) = (&fields[0], join(&fields[1..]));
            let rest =
                if seconds == "0" { format!("write '{rest}'") } else { format!("'{rest}' is nearest") };
            format!("the first one, '{seconds}', is seconds, and launches lie at second 0: {rest}")
        }
        7 => format!(
            "seconds and years as Quartz has them are not taken: write '{}' (1 is Monday here, Sunday in Quartz)",
            join(&fields[1..6])
        ),
        _ => "write minute, hour, day of month, month, day of week; lists take no blanks".to_owned(),
    };
    CronError::FieldCount { given: given.to_owned(), found: fields.len(), fix }
}
