//! IANA zones by name. Fixed offsets are refused: they hide what a schedule means when the clocks change.

use chrono_tz::{TZ_VARIANTS, Tz};
use thiserror::Error;

/// Why a zone is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// No zone was named.
    #[error("zone is empty: name an IANA zone such as 'Europe/Berlin' or 'UTC'")]
    Empty,
    /// The database has no zone of this name.
    #[error("zone '{given}' is unknown: did you mean '{suggestion}'?")]
    Unknown {
        /// What was given.
        given: String,
        /// The nearest name in the database.
        suggestion: &'static str,
    },
    /// An offset in the place of a zone.
    #[error("zone '{given}' is a fixed offset, not a zone: {fix}")]
    FixedOffset {
        /// What was given.
        given: String,
        /// What to write.
        fix: String,
    },
}

/// The zone of an IANA name, such as `America/New_York`. Names are case-sensitive.
///
/// # Errors
/// When the name is unknown (the text names the nearest one) or an offset such as `GMT+3` or `+05:30`.
pub fn parse_zone(text: &str) -> Result<Tz, ZoneError> {
    let given = text.trim();
    if given.is_empty() {
        return Err(ZoneError::Empty);
    }
    if let Ok(zone) = given.parse::<Tz>() {
        return Ok(zone);
    }
    if let Some(fix) = offset_fix(given) {
        return Err(ZoneError::FixedOffset { given: given.to_owned(), fix });
    }
    Err(ZoneError::Unknown { given: given.to_owned(), suggestion: nearest(given) })
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
    let digits: String = offset[1..].chars().filter(|c| *c != ':').collect();
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) =
        if digits.len() > 2 { digits.split_at(digits.len() - 2) } else { (&digits[..], "0") };
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

/// The name in the database with the fewest edits, upper and lower case being equal; the first of equals.
fn nearest(text: &str) -> &'static str {
    let wanted: Vec<char> = text.chars().take(64).map(|c| c.to_ascii_lowercase()).collect();
    // A city without its area ("Berlin") is compared with the last part of each name too.
    let distance = |name: &str| {
        let whole = edits(&wanted, name);
        let city = name.rsplit('/').next().map_or(whole, |city| edits(&wanted, city));
        whole.min(city.saturating_add(1))
    };
    TZ_VARIANTS.iter().map(|zone| zone.name()).min_by_key(|name| distance(name)).unwrap_or("UTC")
}

/// The edit distance between two words, one of them folded to lower case here.
fn edits(wanted: &[char], name: &str) -> usize {
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (line, have) in name.chars().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut corner = row[0];
        row[0] = line + 1;
        for (column, want) in wanted.iter().enumerate() {
            let substituted = corner + usize::from(*want != have);
            corner = row[column + 1];
            row[column + 1] = substituted.min(corner + 1).min(row[column] + 1);
        }
    }
    row[wanted.len()]
}
