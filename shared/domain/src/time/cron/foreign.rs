//! What people write for a cron expression who come from elsewhere: sentences such as `every 5 minutes`, and lines of a
//! crontab. Each is refused with what to write; a sentence is translated only where that is exact.

use super::dialect::split_zone_prefix;
use super::error::unsupported;
use super::error::{CronError, Field};
use super::field::normalise;
use crate::time::interval::parse_interval;

const NICKNAMES: [&str; 8] =
    ["@YEARLY", "@ANNUALLY", "@MONTHLY", "@WEEKLY", "@DAILY", "@MIDNIGHT", "@HOURLY", "@REBOOT"];
const FIVE_FIELDS: &str = "write five fields (minute, hour, day of month, month, day of week), such as '0 3 * * *' for 03:00 of each day";

/// Why a text that is no expression is refused, when it is one of these.
pub(super) fn refusal(given: &str) -> Option<CronError> {
    // A zone in front has a sentence of its own.
    if split_zone_prefix(given).0.is_some() {
        return None;
    }
    crontab_line(given).or_else(|| sentence(given)).map(|problem| unsupported(given, problem))
}

/// What to say about a text that is a line of a crontab; `None` when it is none.
fn crontab_line(given: &str) -> Option<String> {
    if given.starts_with('#') {
        return Some(format!("is a comment of a crontab: {FIVE_FIELDS}"));
    }
    let words: Vec<&str> = given.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    if let Some((name, _)) = given.split_once('=')
        && is_variable(name.trim_end())
    {
        return Some(format!(
            "is a line of a crontab that sets the variable '{}': leave it out, and make a job of each line with a schedule",
            name.trim_end()
        ));
    }
    if NICKNAMES.contains(&&*first.to_uppercase()) && !rest.is_empty() {
        return Some(format!("is a line of a crontab: leave the command out, write '{first}'"));
    }
    let (fields, command) = words.split_at_checked(5)?;
    let (user, command) = match command {
        [user, command, ..] if is_plain_word(user) && is_command(command) => (Some(*user), *command),
        [command, ..] if is_command(command) => (None, *command),
        [word, _, ..] if is_plain_word(word) => (None, *word),
        _ => return None,
    };
    let pairs = Field::OF_FIVE.into_iter().zip(fields);
    let is_valid = pairs.into_iter().all(|(field, text)| normalise(field, &text.to_uppercase()).is_ok());
    let what = match user {
        Some(user) => format!("the user '{user}' and the command"),
        None => format!("the command, from '{command}' on,"),
    };
    let write =
        if is_valid { format!("write '{}'", fields.join(" ")) } else { "keep its five fields".to_owned() };
    Some(format!("is a line of a crontab: leave {what} out, {write}"))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A word that no field can be, such as a path.
fn is_command(word: &str) -> bool {
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    letters >= 2
        && word.contains(['/', '.', '$', '_', '~', '&', '|', '>', '<', ';', '"', '\'', '=', '['])
        && {
            // Names and steps such as MON-FRI/2 are fields.
            !word
                .split(['/', '-', ',', '#'])
                .all(|part| part.bytes().all(|b| b.is_ascii_digit()) || is_name(part))
        }
}

/// A word of letters that is no name of a month or weekday, such as the name of a user or of a program.
fn is_plain_word(word: &str) -> bool {
    word.len() >= 2
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        && !word.split('-').any(is_name)
}

/// Whether a word begins with the name of a month or weekday, or is made of the letters with a meaning.
fn is_name(word: &str) -> bool {
    let upper = word.to_uppercase();
    let mut names = Field::Month.names().iter().chain(Field::DayOfWeek.names());
    upper.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'L' | b'W' | b'H'))
        || upper.bytes().all(|b| b.is_ascii_alphanumeric()) && names.any(|name| upper.starts_with(name))
}

/// What to say about a text that is a sentence; `None` when it is none.
fn sentence(given: &str) -> Option<String> {
    let lower = given.to_lowercase().replace(',', " ");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    let nickname = matches!(*first, "yearly" | "annually" | "monthly" | "weekly" | "daily" | "hourly");
    if nickname && rest.is_empty() {
        return Some(format!("is not a cron expression: write '@{first}'"));
    }
    if let Some(write) = at_a_time(&words).or_else(|| in_a_beat(&words)) {
        return Some(format!("is not a cron expression: {write}"));
    }
    let begins = matches!(
        *first,
        "every"
            | "each"
            | "at"
            | "on"
            | "once"
            | "twice"
            | "in"
            | "daily"
            | "hourly"
            | "weekly"
            | "monthly"
            | "yearly"
            | "weekdays"
            | "weekends"
            | "tomorrow"
            | "today"
            | "now"
            | "noon"
            | "midnight"
    );
    begins.then(|| {
        format!("is not a cron expression: {FIVE_FIELDS}, or an interval such as {{\"rate\": \"5 minutes\"}}")
    })
}

/// `every 5 minutes`, `every hour`.
fn in_a_beat(words: &[&str]) -> Option<String> {
    let (number, unit) = match words {
        ["every" | "each", unit] => (1, *unit),
        ["every" | "each", number, unit] => (number.parse::<u64>().ok()?, *unit),
        _ => return None,
    };
    let singular = unit.trim_end_matches('s').trim_end_matches('.');
    let (unit, whole, of) = match singular {
        "sec" | "second" => ("second", "* * * * * *", Some((60, "*/{} * * * * *"))),
        "m" | "min" | "minute" => ("minute", "* * * * *", Some((60, "*/{} * * * *"))),
        "h" | "hr" | "hour" => ("hour", "0 * * * *", Some((24, "0 */{} * * *"))),
        "day" => ("day", "0 0 * * *", None),
        _ => return None,
    };
    let interval = format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
    parse_interval(&interval).ok()?;
    let cron = match of {
        _ if number == 1 => Some(whole.to_owned()),
        // Only a step that divides its field evenly is the same beat.
        Some((full, step)) if full % number == 0 && number < full => {
            Some(step.replace("{}", &number.to_string()))
        }
        _ => None,
    };
    let rate = format!("{{\"rate\": \"{interval}\"}}");
    Some(match cron {
        Some(cron) if of.is_none() => {
            format!("write '{cron}' for each midnight, or {rate} in the place of 'cron'")
        }
        Some(cron) => format!("write '{cron}', or {rate} in the place of 'cron'"),
        None => format!("write {rate} in the place of 'cron'"),
    })
}

/// `at 3am`, `every day at 3am`, `daily at 15:30`, `weekdays at noon`, `every monday at 9:00`.
fn at_a_time(words: &[&str]) -> Option<String> {
    let place = words.iter().position(|word| *word == "at");
    let (days, time) = match place {
        Some(place) => (words.get(..place)?, words.get(place + 1..)?),
        None => (&[][..], words),
    };
    let days = match days {
        [] | ["every" | "each", "day"] | ["daily" | "everyday"] => "*".to_owned(),
        ["every" | "each", "weekday"] | ["weekdays"] | ["on", "weekdays"] => "MON-FRI".to_owned(),
        ["every" | "each", "weekend"] | ["weekends"] | ["on", "weekends"] => "SAT,SUN".to_owned(),
        ["every" | "each" | "on", day] | [day] => {
            let day = day.strip_suffix('s').unwrap_or(day);
            let names = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
            names.contains(&day).then(|| day.chars().take(3).collect::<String>().to_uppercase())?
        }
        _ => return None,
    };
    let (hour, minute) = match time {
        ["noon"] => (12, 0),
        ["midnight"] => (0, 0),
        [time] => clock(time)?,
        [time, half @ ("am" | "pm" | "a.m." | "p.m.")] => clock(&format!("{time}{}", half.replace('.', "")))?,
        _ => return None,
    };
    Some(format!("write '{minute} {hour} * * {days}'"))
}

/// `3am`, `3:30pm`, `15:30`: hour and minute. A bare number may be either half of the day, so it is none.
fn clock(text: &str) -> Option<(u8, u8)> {
    let (digits, half) = match text.strip_suffix("am") {
        Some(digits) => (digits, Some(0)),
        None => text.strip_suffix("pm").map_or((text, None), |digits| (digits, Some(12))),
    };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) if minute.len() == 2 => (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?),
        None if half.is_some() => (digits.parse::<u8>().ok()?, 0),
        _ => return None,
    };
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}
