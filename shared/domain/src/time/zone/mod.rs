//! IANA zones by name. Fixed offsets are refused: they hide what a schedule means when the clocks change.

mod advice;

use chrono_tz::Tz;
use thiserror::Error;

/// Longest name that a refusal repeats, in characters: twice what any zone has.
const GIVEN_CHARACTERS: usize = 64;

/// Why a zone is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// No zone was named.
    #[error("zone is empty: name an IANA zone such as 'Europe/Berlin' or 'UTC'")]
    Empty,
    /// The database has no zone of this name.
    #[error("zone '{given}' {problem}")]
    Unknown {
        /// What was given.
        given: String,
        /// What it is, and what to write instead.
        problem: String,
    },
    /// An offset in the place of a zone.
    #[error("zone '{given}' is a fixed offset, not a zone: {fix}")]
    FixedOffset {
        /// What was given.
        given: String,
        /// What to write instead.
        fix: String,
    },
}

/// The zone of an IANA name, such as `America/New_York`. Names are case-sensitive.
///
/// ```
/// use tidegate_domain::time::parse_zone;
///
/// assert_eq!(parse_zone("Europe/Berlin")?.name(), "Europe/Berlin");
/// assert!(parse_zone("+05:30").is_err(), "an offset has no rules for changes of the clocks");
/// # Ok::<(), tidegate_domain::time::ZoneError>(())
/// ```
///
/// # Errors
/// [`ZoneError::Empty`] without a name; [`ZoneError::Unknown`] when the database has no such zone (the text names the
/// one that was meant, where that is beyond doubt); [`ZoneError::FixedOffset`] for an offset such as `GMT+3` or
/// `+05:30`.
pub fn parse_zone(text: &str) -> Result<Tz, ZoneError> {
    let given = text.trim();
    if given.is_empty() {
        return Err(ZoneError::Empty);
    }
    if let Ok(zone) = given.parse::<Tz>() {
        return Ok(zone);
    }
    let (problem, fix) = (advice::advice(given), offset_fix(given));
    let given = match given.char_indices().nth(GIVEN_CHARACTERS).and_then(|(end, _)| given.get(..end)) {
        Some(start) => format!("{start}..."),
        None => given.to_owned(),
    };
    Err(match fix {
        Some(fix) => ZoneError::FixedOffset { given, fix },
        None => ZoneError::Unknown { given, problem },
    })
}

/// What to write for `GMT+3`, `UTC-05:00`, `+0530` and the like; `None` when the text is no offset.
fn offset_fix(text: &str) -> Option<String> {
    let upper = text.to_ascii_uppercase();
    let offset = ["GMT", "UTC", "Z"].iter().find_map(|name| upper.strip_prefix(name)).unwrap_or(&upper);
    let east = match offset.as_bytes().first()? {
        b'+' => true,
        b'-' => false,
        _ => return None,
    };
    let digits: String = offset.chars().skip(1).filter(|c| *c != ':').collect();
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let before_minutes = digits.len().checked_sub(2).filter(|at| *at > 0);
    let (hours, minutes) =
        before_minutes.and_then(|at| digits.split_at_checked(at)).unwrap_or((&*digits, "0"));
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    let most = if east { 14 } else { 12 };
    Some(match (hours, minutes) {
        (0, 0) => "write 'UTC'".to_owned(),
        (hours, 0) if hours <= most => {
            let sign = if east { '-' } else { '+' };
            let side = if east { "ahead of" } else { "behind" };
            format!(
                "write the zone of a city, or 'Etc/GMT{sign}{hours}' for {hours} hours {side} UTC \
                 (the sign in that name is reversed)"
            )
        }
        _ => "write the zone of a city, such as 'Asia/Kolkata'".to_owned(),
    })
}
