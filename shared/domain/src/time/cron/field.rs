//! One field, checked item by item and rewritten in the stricter form that croner takes.
//!
//! Names become numbers, `5/15` becomes `5-59/15`, and a step that is larger than its range becomes the range's first
//! value. croner then parses the result and is the second judge of it. In the day of week `a/n` runs up to 7, Sunday;
//! `*/n` of the years counts from year 1, as in croner.

use super::error::{CronError, Field};

/// Rewrites a field, which must be in upper case.
///
/// # Errors
/// When an item is no value, range or step of the field; the text names the item and what to write.
pub(super) fn normalise(field: Field, text: &str) -> Result<String, CronError> {
    if text == "*" || text == "?" && field.is_day() {
        return Ok("*".to_owned());
    }
    if let (Field::DayOfWeek, Some(rest)) = (field, text.strip_prefix('+')) {
        return Ok(format!("+{}", normalise(field, rest)?));
    }
    let items: Vec<&str> = text.split(',').collect();
    if items.iter().any(|item| matches!(*item, "*" | "?")) {
        return Err(field.error(text, "has a wildcard in a list: every value matches, so write '*' alone"));
    }
    if field == Field::DayOfMonth && items.contains(&"L") && items.contains(&"LW") {
        return Err(field.error(text, "has both 'L' and 'LW': write one of them, or two schedules"));
    }
    let items = items.iter().map(|item| normalise_item(field, item)).collect::<Result<Vec<_>, _>>()?;
    Ok(items.join(","))
}

fn normalise_item(field: Field, item: &str) -> Result<String, CronError> {
    if item.is_empty() {
        return Err(field.error(item, "is an empty item: remove the extra comma"));
    }
    let special = match field {
        Field::DayOfMonth => special_day(item)?,
        Field::DayOfWeek => special_weekday(item)?,
        _ => None,
    };
    if let Some(special) = special {
        return Ok(special);
    }
    let (base, step) = match item.split_once('/') {
        Some((base, step)) => (base, Some(parse_step(field, item, step)?)),
        None => (item, None),
    };
    let (low, high) = field.bounds();
    let (low, high) = match base {
        "" => return Err(field.error(item, format!("has no start: write '*{item}'"))),
        "*" => (low, high),
        base => match base.split_once('-') {
            Some((from, to)) => parse_range(field, item, from, to)?,
            None => {
                let value = parse_value(field, item, base)?;
                (value, if step.is_some() { high } else { value })
            }
        },
    };
    Ok(match step {
        Some(step) if base == "*" && field == Field::Year => format!("*/{step}"),
        // A step beyond the end leaves the first value; croner would describe `*/90` as every 90 minutes.
        Some(step) if step > high - low => low.to_string(),
        Some(step) if base == "*" => format!("*/{step}"),
        Some(step) => format!("{low}-{high}/{step}"),
        None if low == high => low.to_string(),
        None => format!("{low}-{high}"),
    })
}

fn parse_step(field: Field, item: &str, step: &str) -> Result<u16, CronError> {
    match parse_number(step) {
        Some(0) => Err(field.error(item, "has step 0: write a step of 1 or more")),
        Some(step) => Ok(step),
        None => Err(field.error(item, format!("has step '{step}', which is not a number"))),
    }
}

fn parse_range(field: Field, item: &str, from: &str, to: &str) -> Result<(u16, u16), CronError> {
    let low = parse_value(field, item, from)?;
    let high = match to {
        // As the end of a range Sunday is the last day of the week.
        "SUN" if field == Field::DayOfWeek && from != "SUN" => 7,
        to => parse_value(field, item, to)?,
    };
    if low <= high {
        return Ok((low, high));
    }
    let (least, greatest) = if field == Field::DayOfWeek { (0, 6) } else { field.bounds() };
    let range = |a: u16, b: u16| if a >= b { a.to_string() } else { format!("{a}-{b}") };
    let fix = format!("{},{}", range(low, greatest), range(least, high));
    Err(field.error(item, format!("runs backward: write '{fix}'")))
}

fn parse_value(field: Field, item: &str, text: &str) -> Result<u16, CronError> {
    let (low, high) = field.bounds();
    if let Some(value) = parse_number(text) {
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        let fix = match (field, value) {
            (Field::Second, 60) => "write '0' for the full minute",
            (Field::Minute, 60) => "write '0' for the full hour",
            (Field::Hour, 24) => "write '0' for midnight",
            (Field::Year, _) => "no other years are kept",
            (Field::DayOfWeek, _) => "0 and 7 are Sunday, 6 is Saturday",
            _ => "write a value in that range",
        };
        return Err(field.error(item, format!("is outside {low}-{high}: {fix}")));
    }
    match field.names().iter().position(|name| *name == text) {
        Some(index) => Ok(low + index as u16),
        None => Err(field.error(item, word_problem(field, text))),
    }
}

/// Digits only, of a length that can be in some range.
fn parse_number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// What to say about a word that is neither a number nor a name of the field.
fn word_problem(field: Field, text: &str) -> String {
    let (low, high) = field.bounds();
    let names = if field.names().is_empty() { "" } else { " or a three-letter name" };
    let known = field.names().iter().find(|name| text.starts_with(**name));
    match text {
        "" => format!("lacks a value: write a number{names} from {low} to {high}"),
        text if field == Field::Year
            && Field::DayOfWeek.names().iter().any(|name| text.starts_with(name)) =>
        {
            "stands in the year's place: the seven fields are second, minute, hour, day of month, month, \
             day of week, year"
                .to_owned()
        }
        "H" => jenkins(),
        text if text.starts_with("H(") => jenkins(),
        text if text.starts_with('*') => "mixes '*' with a value: write '*', '*/n' or a number".to_owned(),
        text if text.contains(['?', 'L', 'W', '#'])
            && text.bytes().all(|b| !b.is_ascii_alphabetic() || matches!(b, b'L' | b'W')) =>
        {
            "uses '?', 'L', 'W' or '#' where they mean nothing: 'L', 'LW' and '15W' belong to day of month, \
             '5L' and '5#2' to day of week, '?' alone to either"
                .to_owned()
        }
        _ => match known {
            Some(name) => format!("is not a name of this field: write '{name}'"),
            None => format!("is not a number{names} from {low} to {high}"),
        },
    }
}

fn jenkins() -> String {
    "is Jenkins' hash, which names no fixed time: write a number, such as 17".to_owned()
}

/// `L`, `LW` and `15W`; `None` when the item is none of these.
fn special_day(item: &str) -> Result<Option<String>, CronError> {
    let field = Field::DayOfMonth;
    match item {
        "L" | "LW" => return Ok(Some(item.to_owned())),
        "WL" => return Ok(Some("LW".to_owned())),
        "W" => return Err(field.error(item, "lacks its day: write '15W' or 'LW'")),
        _ => {}
    }
    if item.starts_with("L-") {
        return Err(
            field.error(item, "counts back from the last day, which is not taken: write 'L' or a day")
        );
    }
    match item.strip_suffix('W') {
        Some(day) if day.contains(['-', '/']) => {
            Err(field.error(item, "puts 'W' on several days: write each, such as '1W,2W'"))
        }
        Some(day) => parse_value(field, item, day).map(|day| Some(format!("{day}W"))),
        None => Ok(None),
    }
}

/// `5L` and `5#2`, names included; `None` when the item is neither.
fn special_weekday(item: &str) -> Result<Option<String>, CronError> {
    let field = Field::DayOfWeek;
    if item == "L" {
        return Err(field.error(item, "lacks its weekday: write '5L' for the last Friday, '6' for Saturday"));
    }
    let (base, mark) = match item.split_once('#') {
        Some((base, "L")) => (base, "L".to_owned()),
        Some((base, nth)) => match parse_number(nth) {
            Some(nth @ 1..=5) => (base, format!("#{nth}")),
            _ => {
                return Err(
                    field.error(item, "names no week of a month: write '#1' to '#5', or 'L' for the last")
                );
            }
        },
        None => match item.strip_suffix('L') {
            Some(base) => (base, "L".to_owned()),
            None => return Ok(None),
        },
    };
    if base.contains(['-', '/', '*']) {
        return Err(field.error(item, "puts a week on several weekdays: write each, such as '1#2,3#2'"));
    }
    parse_value(field, item, base).map(|weekday| Some(format!("{weekday}{mark}")))
}
