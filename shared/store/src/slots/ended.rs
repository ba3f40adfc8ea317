//! How one event came to its end, as a slot group keeps it and as it is packed into its run's history.
//!
//! Written as `17s`: the event's number and the code of its outcome. After more than one delivery their number stands
//! between the two: `17*3s`.

use super::Outcome;

/// Stands before the number of deliveries.
const DELIVERIES: char = '*';

/// How an event came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The event's number in its run.
    pub index: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// Which delivery of it was the last one, from 1.
    pub attempts: u8,
}

impl Ended {
    pub(crate) fn encode(self) -> String {
        let Self { index, outcome, attempts } = self;
        let code = outcome.code();
        match attempts {
            ..=1 => format!("{index}{code}"),
            _ => format!("{index}{DELIVERIES}{attempts}{code}"),
        }
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let (numbers, code) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let (index, attempts) = match numbers.split_once(DELIVERIES) {
            Some((index, attempts)) => (index, attempts.parse().ok()?),
            None => (numbers, 1),
        };
        Some(Self { index: index.parse().ok()?, outcome: Outcome::from_code(code)?, attempts })
    }

    /// Reads several that stand in a row; the error is the part that cannot be read.
    pub(crate) fn decode_all(packed: &str) -> Result<Vec<Self>, &str> {
        let is_code = |c: char| !c.is_ascii_digit() && c != DELIVERIES;
        packed.split_inclusive(is_code).map(|part| Self::decode(part).ok_or(part)).collect()
    }
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
        for end in &ends {
            assert_eq!(Ended::decode(&end.encode()), Some(*end));
        }
        let packed: String = ends.iter().map(|end| end.encode()).collect();
        assert_eq!(Ended::decode_all(&packed), Ok(ends));
        assert_eq!(
            Ended::decode_all("17s18*3x"),
            Ok(vec![
                Ended { index: 17, outcome: Outcome::Succeeded, attempts: 1 },
                Ended { index: 18, outcome: Outcome::Expired, attempts: 3 },
            ])
        );
    }

    #[test]
    fn what_is_no_end_is_refused() {
        for broken in ["", "3", "s", "3q", "xs", "3é", "3*s", "*2s", "3*x2s", "3*900s"] {
            assert_eq!(Ended::decode(broken), None, "{broken}");
        }
        assert_eq!(Ended::decode_all("3s4q5s"), Err("4q"));
        assert_eq!(Ended::decode_all("3s4"), Err("4"));
    }
}
