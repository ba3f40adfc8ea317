//! What is taken, but probably not meant.

use super::compiled::CompiledCron;
use super::error::Field;

/// A sentence for each thing in an expression that often surprises. `fields` are in the order of an expression.
pub(super) fn warnings(fields: &[String; 5], cron: &CompiledCron) -> Vec<String> {
    let mut found = Vec::new();
    for (field, text) in Field::ALL.into_iter().zip(fields) {
        found.extend(text.split(',').filter_map(|item| step_warning(field, item)));
    }
    if cron.is_either_day() {
        found.push(format!(
            "day of month '{}' and day of week '{}' are both set: it fires on days that match either one, \
             not only on days that match both",
            fields[2], fields[4]
        ));
    }
    let hours = cron.hours().count_ones();
    if cron.minutes().count_ones() == 60 && hours < 24 {
        found.push(format!(
            "minute '{}' with hour '{}' fires in every minute of {hours} {} a day: write minute '0' for once an hour",
            fields[0],
            fields[1],
            if hours == 1 { "hour" } else { "hours" },
        ));
    }
    found
}

/// A step that is larger than its field, or that does not divide it.
fn step_warning(field: Field, item: &str) -> Option<String> {
    let (base, step) = item.split_once('/')?;
    let step: u16 = step.parse().ok()?;
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
