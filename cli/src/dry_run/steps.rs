//! The pieces that a window is cut into, so that what is held at a time stays the same however long it is.

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::time::Window;

/// What a piece should hold, in launches: eight megabytes.
const PIECE_LAUNCHES: i64 = 1_000_000;
const FIRST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 86_400;
/// By how much a piece may be longer than the one before, of which alone is known how much was due.
const GROWTH: i64 = 6;
/// By how much a piece is shorter than one that held too much.
const SHRINKAGE: i64 = 8;

/// Cuts the window into pieces, by what was due in the piece before.
pub(crate) struct Steps {
    last_from: DateTime<Utc>,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    span_s: i64,
}

impl Steps {
    /// The pieces of a window.
    pub(crate) fn new(window: Window) -> Self {
        Self { last_from: window.from(), from: window.from(), to: window.to(), span_s: FIRST_SECONDS }
    }

    /// The next piece; `None` after the last.
    pub(crate) fn next(&mut self) -> Option<Window> {
        let to = self.to.min(self.from + Duration::seconds(self.span_s));
        let piece = Window::new(self.from, to).ok().filter(|piece| piece.from() < piece.to())?;
        (self.last_from, self.from) = (self.from, to);
        Some(piece)
    }

    /// Whether a piece cannot be shorter.
    pub(crate) fn are_shortest(&self) -> bool {
        self.span_s <= 1
    }

    /// Begins the last piece again, shorter.
    pub(crate) fn shorten(&mut self) {
        self.from = self.last_from;
        self.span_s = (self.span_s / SHRINKAGE).max(1);
    }

    /// Learns how much the last piece held.
    pub(crate) fn saw(&mut self, launches: usize) {
        let per_second = launches.max(1) as i64 / self.span_s.max(1) + 1;
        let wanted_s = PIECE_LAUNCHES / per_second;
        self.span_s = wanted_s.clamp(1, LONGEST_SECONDS).min(self.span_s * GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::MOST_LAUNCHES;
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn pieces_cover_the_window_once_and_shrink_when_much_is_due() {
        let window = Window::new(at(0), at(40 * LONGEST_SECONDS)).unwrap();
        // A thousand a second on the eleventh day, out of the blue.
        let busy = (10 * LONGEST_SECONDS)..(11 * LONGEST_SECONDS);
        let mut steps = Steps::new(window);
        let (mut next_from, mut longest_s, mut fullest, mut pieces) = (at(0), 0, 0, 0);
        while let Some(piece) = steps.next() {
            assert_eq!(piece.from(), next_from);
            let (from_s, to_s) = (piece.from().timestamp(), piece.to().timestamp());
            let held = (to_s.min(busy.end) - from_s.max(busy.start)).max(0) as usize * 1_000;
            if held > MOST_LAUNCHES {
                steps.shorten();
                continue;
            }
            steps.saw(held);
            (next_from, pieces) = (piece.to(), pieces + 1);
            (longest_s, fullest) = (longest_s.max(to_s - from_s), fullest.max(held));
        }
        assert_eq!((next_from, longest_s), (window.to(), LONGEST_SECONDS));
        assert!(fullest > PIECE_LAUNCHES as usize / 2 && (80..200).contains(&pieces), "{fullest} {pieces}");
    }

    #[test]
    fn a_single_second_is_as_short_as_it_gets() {
        let mut steps = Steps::new(Window::new(at(0), at(600)).unwrap());
        for _ in 0..9 {
            steps.next();
            steps.shorten();
        }
        assert!(steps.are_shortest());
        assert_eq!(steps.next(), Window::new(at(0), at(1)).ok());
    }
}
