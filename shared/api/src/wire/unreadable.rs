//! Why a text is no instant: its day or its hour does not exist, or a part of it is missing.

use chrono::{DateTime, NaiveDate, SecondsFormat};

const EXAMPLES: &str = "write it as 2026-11-21T12:00:00Z or 2026-11-21T13:00:00+01:00";
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What is wrong with a text that does not read as an instant, and what to write: the end of a sentence.
pub(super) fn why_unreadable(text: &str) -> String {
    let general = || format!("is no instant in ISO 8601; {EXAMPLES}");
    if let Some(reason) = why_a_number(text) {
        return reason;
    }
    let Some((year, month, day, time)) = take_apart(text) else { return general() };
    if NaiveDate::from_ymd_opt(year, month, day).is_none() {
        return match MONTHS.get(month.wrapping_sub(1) as usize) {
            Some(name) => {
                format!("names a day that there is not: there is no {day} {name} {year}; give another day")
            }
            None => format!("has the month {month}, and months are 01 to 12; {EXAMPLES}"),
        };
    }
    if time.is_empty() {
        let day = format!("{year:04}-{month:02}-{day:02}");
        return format!("has no time of day; write {day}T00:00:00Z for its beginning in UTC");
    }
    why_no_time(time).unwrap_or_else(general)
}

/// Seconds or milliseconds since 1970, which other systems take.
fn why_a_number(text: &str) -> Option<String> {
    let number: i64 = text.parse().ok()?;
    let at = match text.len() {
        10 => DateTime::from_timestamp(number, 0),
        13 => DateTime::from_timestamp_millis(number),
        _ => None,
    }?;
    let at = at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    Some(format!("counts from 1970 and is no instant in ISO 8601; write {at}"))
}

/// Year, month and day at the beginning of a text, and what follows them.
fn take_apart(text: &str) -> Option<(i32, u32, u32, &str)> {
    let (date, time) = text.split_at_checked(10).unwrap_or((text, ""));
    let mut parts = date.split('-');
    let mut part = |digits: usize| {
        let text = parts.next()?;
        let is_number = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let time = match time.strip_prefix(['T', 't', ' ']) {
        Some(time) => time,
        None if time.is_empty() => "",
        None => return None,
    };
    Some((i32::try_from(year).ok()?, month, day, time))
}

/// What no clock shows.
fn why_no_time(time: &str) -> Option<String> {
    let clock: &str = time.split(['Z', 'z', '+', '-', '.']).next()?;
    for ((name, most), text) in
        [("hour", 23), ("minute", 59), ("second", 59)].into_iter().zip(clock.split(':'))
    {
        let number = text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))?;
        if number > most {
            let fix = if (name, number) == ("hour", 24) { "; midnight is 00:00 of the next day" } else { "" };
            return Some(format!("has the {name} {number}, and {name}s are 00 to {most}{fix}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::why_unreadable;

    #[test]
    fn what_there_is_not_is_named() {
        for (text, says) in [
            ("2027-01-01", "has no time of day; write 2027-01-01T00:00:00Z for its beginning in UTC"),
            ("2027-02-30T09:00:00Z", "there is no 30 February 2027"),
            ("2027-02-29", "there is no 29 February 2027"),
            ("2027-00-10T09:00:00Z", "has the month 0, and months are 01 to 12"),
            ("2027-13-01T09:00:00Z", "has the month 13"),
            ("2027-01-01T25:00", "has the hour 25, and hours are 00 to 23"),
            ("2027-01-01T24:00:00Z", "midnight is 00:00 of the next day"),
            ("2027-01-01T09:60:00+01:00", "has the minute 60, and minutes are 00 to 59"),
            ("2027-01-01T09:00:61Z", "has the second 61"),
            ("1790000000", "counts from 1970 and is no instant in ISO 8601; write 2026-09-21T14:13:20Z"),
            ("1790000000500", "write 2026-09-21T14:13:20.500Z"),
            ("17900000001790000000", "is no instant in ISO 8601; write it as"),
            ("tomorrow", "is no instant in ISO 8601; write it as 2026-11-21T12:00:00Z"),
            ("", "is no instant in ISO 8601"),
            ("2027-1-1", "is no instant in ISO 8601"),
            ("2027-01-01 at nine", "is no instant in ISO 8601"),
            ("2027-01-0é", "is no instant in ISO 8601"),
            ("09:00", "is no instant in ISO 8601"),
        ] {
            let told = why_unreadable(text);
            assert!(told.contains(says), "{text}: {told}");
        }
    }
}
