//! Sets of event numbers, as half-open ranges.

/// Numbers of events. A run of a million of them waits in one range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// Sorted, and no two touch.
    spans: Vec<(u32, u32)>,
}

impl Spans {
    /// Adds the numbers from `from` up to, not including, `to`.
    pub(super) fn add(&mut self, from: u32, to: u32) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        self.spans.retain(|(start, end)| {
            let is_apart = *end < from || to < *start;
            if !is_apart {
                (from, to) = (from.min(*start), to.max(*end));
            }
            is_apart
        });
        let place = self.spans.partition_point(|(start, _)| *start < from);
        self.spans.insert(place, (from, to));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> u32 {
        self.spans.iter().fold(0, |sum, (from, to)| sum.saturating_add(to.saturating_sub(*from)))
    }

    pub(super) fn has(&self, number: u32) -> bool {
        let behind = self.spans.partition_point(|(start, _)| *start <= number);
        behind.checked_sub(1).and_then(|place| self.spans.get(place)).is_some_and(|(_, end)| number < *end)
    }

    /// The numbers below `count` that are not there.
    pub(super) fn missing_below(&self, count: u32) -> Self {
        let (mut missing, mut from) = (Self::default(), 0);
        for (start, end) in &self.spans {
            missing.add(from, (*start).min(count));
            from = from.max(*end);
        }
        missing.add(from, count);
        missing
    }

    /// The ranges, in their order.
    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(ranges: &[(u32, u32)]) -> Spans {
        ranges.iter().fold(Spans::default(), |mut spans, (from, to)| {
            spans.add(*from, *to);
            spans
        })
    }

    #[test]
    fn ranges_are_joined_and_what_is_missing_is_the_rest() {
        let some = spans(&[(5, 7), (0, 2), (7, 9), (3, 3), (1, 3)]);
        assert_eq!(some.ranges(), [(0, 3), (5, 9)]);
        assert_eq!((some.count(), some.has(2), some.has(3), some.has(8)), (7, true, false, true));
        assert_eq!(some.missing_below(12).ranges(), [(3, 5), (9, 12)]);
        assert_eq!(some.missing_below(6).ranges(), [(3, 5)]);
        assert_eq!(Spans::default().missing_below(2).ranges(), [(0, 2)]);
        assert!(spans(&[(0, 4)]).missing_below(4).is_empty());
    }

    #[test]
    fn they_say_what_a_set_says() {
        for seed in 0..200_u32 {
            let (mut ranges, mut state) = (Vec::new(), seed.wrapping_mul(2_654_435_761).wrapping_add(1));
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 27
            };
            for _ in 0..6 {
                let from = next();
                ranges.push((from, from + next() % 6));
            }
            let set: std::collections::BTreeSet<u32> =
                ranges.iter().flat_map(|(from, to)| *from..*to).collect();
            let some = spans(&ranges);
            assert_eq!(some.count() as usize, set.len(), "{ranges:?}");
            let missing = some.missing_below(40);
            for number in 0..40 {
                assert_eq!(some.has(number), set.contains(&number), "{number} of {ranges:?}");
                assert_eq!(missing.has(number), !set.contains(&number), "{number} of {ranges:?}");
            }
        }
    }
}
