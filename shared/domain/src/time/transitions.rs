//! The instants at which a zone's offset changes, found by asking the database for offsets on a fixed grid.

use chrono_tz::Tz;

use super::zone_rules::offset_s;

/// Distance of the grid, in seconds. A zone that changed its offset and changed it back within twelve hours would be
/// missed; the shortest such time since 1970 is a week (America/Boa_Vista, October 2000).
const GRID_SECONDS: i64 = 12 * 3600;

/// A stretch of real time with one offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First Unix second.
    pub from_s: i64,
    /// Last Unix second, exclusive.
    pub to_s: i64,
    /// Wall clock minus UTC, in seconds.
    pub offset_s: i64,
}

/// The spans that cover `[from_s, to_s)`, in order, adjacent ones with different offsets.
///
/// The outer two may begin earlier and end later, up to the grid: the result depends on the zone alone, not on how
/// the time line is cut.
pub(super) fn spans(zone: Tz, from_s: i64, to_s: i64) -> Vec<Span> {
    let mut at_s = from_s.div_euclid(GRID_SECONDS) * GRID_SECONDS;
    let mut current = Span { from_s: at_s, to_s: at_s, offset_s: offset_s(zone, at_s) };
    let mut spans = Vec::with_capacity(1);
    while at_s < to_s {
        let next_s = at_s + GRID_SECONDS;
        let next_offset_s = offset_s(zone, next_s);
        // Two changes may lie in one cell: go on from the one found until the cell's end is reached.
        while current.offset_s != next_offset_s {
            let change_s = first_change(zone, current.from_s.max(at_s), next_s, current.offset_s);
            current.to_s = change_s;
            spans.push(current);
            current = Span { from_s: change_s, to_s: change_s, offset_s: offset_s(zone, change_s) };
        }
        at_s = next_s;
    }
    current.to_s = at_s;
    spans.push(current);
    spans
}

/// A second in `(low_s, high_s]` at which the offset stops being `old_s`, which it is at `low_s` and is not at `high_s`.
fn first_change(zone: Tz, mut low_s: i64, mut high_s: i64, old_s: i64) -> i64 {
    while high_s - low_s > 1 {
        let middle_s = low_s + (high_s - low_s) / 2;
        if offset_s(zone, middle_s) == old_s { low_s = middle_s } else { high_s = middle_s }
    }
    high_s
}

#[cfg(test)]
mod tests {
    use chrono_tz::TZ_VARIANTS;

    use super::{offset_s, spans};

    /// Every change of every zone in 2026 to 2028, found hour by hour, is found on the grid.
    #[test]
    fn the_grid_finds_every_change() {
        let (from_s, to_s) = (1_767_225_600, 1_861_920_000);
        let mut changes = 0;
        for zone in TZ_VARIANTS {
            let hours = (from_s..=to_s).step_by(3600).map(|at_s| offset_s(zone, at_s)).collect::<Vec<_>>();
            let by_hour = hours.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert_eq!(spans(zone, from_s, to_s).len() - 1, by_hour, "{zone}");
            changes += by_hour;
        }
        assert!(changes > 1_000, "{changes}");
    }

    #[test]
    fn spans_meet_and_differ() {
        let spans = spans(chrono_tz::Australia::Lord_Howe, 1_767_225_600, 1_861_920_000);
        for pair in spans.windows(2) {
            assert_eq!(pair[0].to_s, pair[1].from_s);
            assert_eq!((pair[0].offset_s - pair[1].offset_s).abs(), 1_800);
        }
    }
}
