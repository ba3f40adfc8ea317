//! AWS's `cron(...)`: minute, hour, day of month, month, day of week, year, translated into our fields.
//!
//! Its weekdays are 1 (Sunday) to 7; they become names. `*/n` of a year begins at 1970 there. One day field must be `?`
//! there; `*` does here too, but two restricted ones are refused as AWS does: either one would count here.

use super::error::{CronError, Field, unsupported};
use super::split::Split;
use super::years::{FIRST_YEAR, LAST_YEAR};

/// Takes what follows `cron(`, in upper case.
pub(super) fn translate(given: &str, rest: &str) -> Result<Split, CronError> {
    let Some(inner) = rest.strip_suffix(')').map(str::trim) else {
        return Err(unsupported(given, "does not end with the bracket of cron(...): close it"));
    };
    let fields: Vec<&str> = inner.split_whitespace().collect();
    let [minute, hour, day, month, weekday, year] = fields[..] else {
        return Err(unsupported(given, wrong_count(inner, fields.len())));
    };
    if year.bytes().any(|b| b.is_ascii_alphabetic()) {
        let problem = format!(
            "has '{year}' in the year's place: AWS's fields are minute, hour, day of month, month, day of week, year"
        );
        return Err(unsupported(given, problem));
    }
    let restricts = |field: &str| !matches!(field, "*" | "?");
    if restricts(day) && restricts(weekday) {
        let problem = format!(
            "sets both day of month '{day}' and day of week '{weekday}': AWS takes one of them and '?' for the other; \
             write two schedules"
        );
        return Err(unsupported(given, problem));
    }
    let star = |field: &str| if field == "?" { "*".to_owned() } else { field.to_owned() };
    let items = weekday.split(',').map(translate_weekday).collect::<Result<Vec<_>, _>>()?;
    let [minute, hour, month] = [minute, hour, month].map(str::to_owned);
    let (day, weekday) = (star(day), star(&items.join(",")));
    Ok(match year {
        "*" => Split::five([minute, hour, day, month, weekday]),
        year => {
            let year = match year.strip_prefix("*/") {
                Some(step) => format!("{FIRST_YEAR}-{LAST_YEAR}/{step}"),
                None => year.to_owned(),
            };
            Split::seven(["0".to_owned(), minute, hour, day, month, weekday, year])
        }
    })
}

fn wrong_count(inner: &str, found: usize) -> String {
    let write = match found {
        5 => format!("write '{inner}' without the brackets"),
        _ => "write minute, hour, day of month, month, day of week, year".to_owned(),
    };
    format!("has {found} fields in cron(...), where AWS has 6: {write}")
}

/// An item of the day of week, with names for numbers.
fn translate_weekday(item: &str) -> Result<String, CronError> {
    if item == "L" {
        // The last day of AWS's week.
        return Ok("SAT".to_owned());
    }
    if let Some((base, step)) = item.split_once('/') {
        return Ok(match base {
            "*" => item.to_owned(),
            base if base.contains('-') => format!("{}/{step}", translate_weekday(base)?),
            base => format!("{}-SAT/{step}", name(item, base)?),
        });
    }
    if let Some((from, to)) = item.split_once('-') {
        let (from, to) = (name(item, from)?, name(item, to)?);
        let place = |name: &str| Field::DayOfWeek.names().iter().position(|known| *known == name);
        if place(&from) > place(&to) && to != "SUN" {
            let fix = if from == "SAT" { format!("SAT,SUN-{to}") } else { format!("{from}-SAT,SUN-{to}") };
            return Err(Field::DayOfWeek.error(item, format!("runs backward: write '{fix}'")));
        }
        return Ok(format!("{from}-{to}"));
    }
    match item.split_once('#') {
        Some((base, nth)) => Ok(format!("{}#{nth}", name(item, base)?)),
        None => match item.strip_suffix('L') {
            Some(base) => Ok(format!("{}L", name(item, base)?)),
            None => name(item, item),
        },
    }
}

/// The name of a weekday that AWS counts from 1, Sunday. Words stay as they are.
fn name(item: &str, text: &str) -> Result<String, CronError> {
    let Ok(number) = text.parse::<usize>() else { return Ok(text.to_owned()) };
    match number.checked_sub(1).and_then(|index| Field::DayOfWeek.names().get(index)) {
        Some(name) => Ok((*name).to_owned()),
        None => {
            Err(Field::DayOfWeek.error(item, "is outside 1-7: in cron(...) 1 is Sunday and 7 is Saturday"))
        }
    }
}
