//! How outcomes are written: in a slot group one by one, in a run's history packed into one text.
//!
//! An end is written as `17s`: the event's number and the code of its outcome. After more than one delivery their number
//! stands between the two: `17*3s`. In a slot group the number of the run stands before it, `2.17s`, and behind it how many more
//! events ended alike, where some did: `2.17s+9` is of ten.

use tidegate_domain::limits::EVENTS_PER_COMPACTION;
use tidegate_domain::slots::{Ended, Outcome, OutcomeEntry};

/// Stands before the number of deliveries.
const DELIVERIES: char = '*';
/// Stands before how many more events ended alike.
const MORE: char = '+';

pub(crate) fn code(outcome: Outcome) -> char {
    match outcome {
        Outcome::Succeeded => 's',
        Outcome::Failed => 'f',
        Outcome::Expired => 'x',
        Outcome::Dead => 'd',
    }
}

pub(crate) fn from_code(text: &str) -> Option<Outcome> {
    [Outcome::Succeeded, Outcome::Failed, Outcome::Expired, Outcome::Dead]
        .into_iter()
        .find(|outcome| text.len() == 1 && text.starts_with(code(*outcome)))
}

pub(super) fn encode_entry(entry: &OutcomeEntry) -> String {
    let OutcomeEntry { pack_number, first, events } = entry;
    let first = encode(*first);
    match events.saturating_sub(1) {
        0 => format!("{pack_number}.{first}"),
        more => format!("{pack_number}.{first}{MORE}{more}"),
    }
}

pub(super) fn decode_entry(text: &str) -> Option<OutcomeEntry> {
    let (pack_number, ended) = text.split_once('.')?;
    let (first, more) = ended.split_once(MORE).unwrap_or((ended, "0"));
    let more = more.parse::<u32>().ok().filter(|more| *more <= EVENTS_PER_COMPACTION)?;
    let pack_number = pack_number.parse().ok()?;
    Some(OutcomeEntry { pack_number, first: decode(first)?, events: more.saturating_add(1) })
}

pub(crate) fn encode_all(ends: &[Ended]) -> String {
    ends.iter().map(|ended| encode(*ended)).collect()
}

/// Reads what [`encode_all`] wrote; the error is the part that cannot be read.
pub(crate) fn decode_all(packed: &str) -> Result<Vec<Ended>, &str> {
    let is_code = |c: char| !c.is_ascii_digit() && c != DELIVERIES;
    packed.split_inclusive(is_code).map(|part| decode(part).ok_or(part)).collect()
}

fn encode(ended: Ended) -> String {
    let Ended { index, outcome, attempts } = ended;
    let code = code(outcome);
    match attempts {
        ..=1 => format!("{index}{code}"),
        _ => format!("{index}{DELIVERIES}{attempts}{code}"),
    }
}

fn decode(text: &str) -> Option<Ended> {
    let (numbers, code) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let (index, attempts) = match numbers.split_once(DELIVERIES) {
        Some((index, attempts)) => (index, attempts.parse().ok()?),
        None => (numbers, 1),
    };
    Some(Ended { index: index.parse().ok()?, outcome: from_code(code)?, attempts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_read_back_one_by_one_and_in_a_row() {
        let mut ends = Vec::new();
        for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Expired, Outcome::Dead] {
            ends.extend([1, 2, 20].map(|attempts| Ended { index: 999_999, outcome, attempts }));
        }
        for ended in &ends {
            for events in [1, 2, 10] {
                let entry = OutcomeEntry { pack_number: 3, first: *ended, events };
                assert_eq!(decode_entry(&encode_entry(&entry)), Some(entry));
            }
        }
        assert_eq!(decode_all(&encode_all(&ends)), Ok(ends));
        assert_eq!(
            decode_all("17s18*3x"),
            Ok(vec![
                Ended { index: 17, outcome: Outcome::Succeeded, attempts: 1 },
                Ended { index: 18, outcome: Outcome::Expired, attempts: 3 },
            ])
        );
    }

    #[test]
    fn what_is_no_end_is_refused() {
        for broken in ["", "3", "s", "3q", "xs", "3é", "3*s", "*2s", "3*x2s", "3*900s"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
        for broken in
            ["", "3", "3.", "3.1", "3.1q", "x.1s", "3.é", "3.1s+", "3.1+2", "3.s+2", "3.1s+é", "3.1s+200000"]
        {
            assert_eq!(decode_entry(broken), None, "{broken}");
        }
        assert_eq!(decode_all("3s4q5s"), Err("4q"));
        assert_eq!(decode_all("3s4"), Err("4"));
    }
}
