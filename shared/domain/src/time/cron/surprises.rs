//! What the fields of an expression say, but probably do not mean.

use super::compiled::CompiledCron;
use super::error::Field;
use super::split::Split;
use super::years::LAST_YEAR;

/// A sentence for each thing in an expression that often surprises.
pub(super) fn surprises(split: &Split, cron: &CompiledCron) -> Vec<String> {
    let mut found = Vec::new();
    for (field, text) in Field::ALL.into_iter().zip(&split.fields) {
        found.extend(text.split(',').filter_map(|item| step_warning(field, item)));
    }
    let weekday = split.field(Field::DayOfWeek);
    if cron.is_either_day() {
        found.push(format!(
            "day of month '{}' and day of week '{weekday}' are both set: it fires on days that match either one, \
             not only on days that match both",
            split.field(Field::DayOfMonth)
        ));
    }
    if split.is_quartz() && weekday.split(',').any(|item| item.starts_with(|c: char| c.is_ascii_digit())) {
        found.push(format!(
            "day of week '{weekday}': 1 is Monday here and Sunday in Quartz; names such as MON mean the same in both"
        ));
    }
    found.extend(often(split, cron));
    found
}

/// An expression that fires in every second or every minute of a part of the day.
fn often(split: &Split, cron: &CompiledCron) -> Option<String> {
    let (seconds, minutes) = (cron.seconds().count_ones(), cron.minutes().count_ones());
    let hours = cron.hours().count_ones();
    let [second, minute, hour] = [Field::Second, Field::Minute, Field::Hour].map(|field| split.field(field));
    if seconds == 60 && (minutes < 60 || hours < 24) {
        return Some(format!(
            "second '{second}' with minute '{minute}' and hour '{hour}' fires in every second of {} a day: \
             write second '0' for once a minute",
            plural(minutes * hours, "minute")
        ));
    }
    (minutes == 60 && hours < 24).then(|| {
        format!(
            "minute '{minute}' with hour '{hour}' fires in every minute of {} a day: write minute '0' for once an hour",
            plural(hours, "hour")
        )
    })
}

fn plural(count: u32, unit: &str) -> String {
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

/// A step that is larger than its field, or that does not divide it.
fn step_warning(field: Field, item: &str) -> Option<String> {
    let (base, step) = item.split_once('/')?;
    let step: u16 = step.parse().ok()?;
    if field == Field::Year {
        return (base == "*" && step > 1).then(|| {
            format!("year: the steps of '{item}' are counted from year 1: write '2026-{LAST_YEAR}/{step}' to say from when")
        });
    }
    let (low, high) = field.bounds();
    let size = if field == Field::DayOfWeek { 7 } else { high - low + 1 };
    if step >= size && size > 1 {
        let first = if base == "*" { low.to_string() } else { base.split('-').next()?.to_owned() };
        return Some(format!(
            "{field}: step {step} in '{item}' passes the end of the field: only {first} matches"
        ));
    }
    let uneven = base == "*" && (size % step != 0 || field == Field::DayOfMonth && step > 1);
    uneven.then(|| {
        format!(
            "{field}: the steps of '{item}' are uneven: they begin again at {low} when the field comes round"
        )
    })
}
