//! What a calendar lists, from an iCalendar file (RFC 5545) as calendar programs and authorities export it.
//!
//! All-day events become dates, those of every year days of every year, timed events intervals. What says in another way when
//! an event is, is refused by the name of the event: nothing is left out silently. `ical_vcard` takes the lines apart; the
//! components that they lie in are a list here, so that no depth of them can exhaust the stack.
//!
//! Deliberately absent: rules of zones that a file brings along (`VTIMEZONE`). A `TZID` names a zone of the IANA database.

mod event;
#[cfg(test)]
mod tests;

use ical_vcard::{ParseError, Parser};
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::limits::CALENDAR_ENTRIES;
use tidegate_domain::time::parse_zone;

use crate::problem::{FieldErrors, cut};
use event::{Event, Fault, is};

/// What some programs begin a file with, to say that it is UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Longest text of a file that a sentence repeats, in characters.
const QUOTED_CHARACTERS: usize = 60;

/// Reads a file. `zone` is that of the calendar, by which times without a zone go.
pub(crate) fn read(file: &[u8], zone: Option<&str>, errors: &mut FieldErrors) -> Option<Exclusions> {
    let zone = match zone {
        Some(given) => Some(errors.keep("zone", given, parse_zone(given))?),
        None => None,
    };
    let events = errors.keep("(body)", (), events(file))?;
    let mut exclusions = Exclusions { zone, ..Exclusions::default() };
    let mut is_sound = true;
    for (index, event) in events.iter().enumerate().filter(|(_, event)| !event.is_cancelled()) {
        if let Err(Fault { property, value, message }) = event.add_to(&mut exclusions) {
            let message = format!("{}: {message}", event.called(index));
            errors.add(format!("VEVENT[{index}].{property}"), value, message);
            is_sound = false;
        }
        // Duplicates are dropped, but not from files without end.
        let found = exclusions.dates.len() + exclusions.yearly.len() + exclusions.intervals.len();
        if found > 10 * CALENDAR_ENTRIES {
            let message =
                format!("the file has more than {found} days and intervals; {CALENDAR_ENTRIES} is the most");
            errors.add("(body)", (), message);
            return None;
        }
    }
    if events.iter().all(Event::is_cancelled) {
        errors.add("(body)", (), "the file has no event that is not cancelled; send one that has");
        return None;
    }
    if is_sound { errors.keep("(body)", (), exclusions.checked()) } else { None }
}

/// The events of a file, or why it is none of iCalendar.
fn events(file: &[u8]) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for line in Parser::new(file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file)) {
        let line = match line {
            Ok(line) => line,
            Err(ParseError::InvalidContentline(line)) if line.invalid_contentline().trim().is_empty() => {
                continue;
            }
            Err(error) => return Err(why_unreadable(&error)),
        };
        let component = || line.value().trim().to_ascii_uppercase();
        if is(&line, "BEGIN") {
            let component = component();
            match (open.len(), &*component) {
                (0, "VCALENDAR") | (1, "VTIMEZONE") | (2.., _) => {}
                (1, "VEVENT") => events.push(Event::default()),
                (0, _) => {
                    return Err("the file is no iCalendar: it must begin with BEGIN:VCALENDAR".to_owned());
                }
                (1, other) => {
                    let other = cut(other, QUOTED_CHARACTERS);
                    return Err(format!("the file has a '{other}', which is no event; take it out"));
                }
            }
            open.push(component);
        } else if is(&line, "END") {
            if open.pop() != Some(component()) {
                let given = cut(line.value(), QUOTED_CHARACTERS);
                return Err(format!(
                    "the file has END:{given} where nothing of that name is open; export it anew"
                ));
            }
        } else if open.is_empty() {
            return Err("the file is no iCalendar: it must begin with BEGIN:VCALENDAR".to_owned());
        } else if let ([_, within], Some(event)) = (&*open, events.last_mut())
            && within == "VEVENT"
        {
            event.add(line);
        }
    }
    match open.pop() {
        Some(open) => {
            Err(format!("the file ends within a '{}'; export it anew", cut(&open, QUOTED_CHARACTERS)))
        }
        None => Ok(events),
    }
}

fn why_unreadable(error: &ParseError) -> String {
    match error {
        ParseError::InvalidContentline(line) => {
            let line = cut(line.invalid_contentline(), QUOTED_CHARACTERS);
            format!("the file has the line '{line}', which is none of iCalendar; export it anew")
        }
        ParseError::IoError(_) => "the file is not UTF-8; save it as such".to_owned(),
        other => format!("the file cannot be read: {other}"),
    }
}
