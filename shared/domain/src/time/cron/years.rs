//! The years of an expression: any, or some of those from 1970 to 2199 as a mask.

/// The first year that an expression can name.
pub(super) const FIRST_YEAR: u16 = 1970;
/// The last one: AWS's.
pub(super) const LAST_YEAR: u16 = 2199;
/// How many words a mask has.
pub(super) const WORDS: usize = 4;

/// A set of years. Bit `n` of the words stands for 1970 + n; any year is all bits, beyond 2199 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::time) struct Years([u64; WORDS]);

impl Years {
    pub(super) const ANY: Self = Self([u64::MAX; WORDS]);

    /// Those of some years that can be kept.
    pub(super) fn of(years: impl IntoIterator<Item = u16>) -> Self {
        let mut words = [0; WORDS];
        for year in years.into_iter().filter(|year| (FIRST_YEAR..=LAST_YEAR).contains(year)) {
            let bit = usize::from(year - FIRST_YEAR);
            if let Some(word) = words.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
        Self(words)
    }

    /// The words of a stored mask; `None` when they hold no year, or one beyond the last.
    pub(super) fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let years = Self(words);
        let some = years.named().next().is_some() && Self::of(years.named()) == years;
        (some || years.is_any()).then_some(years)
    }

    pub(super) fn words(self) -> [u64; WORDS] {
        self.0
    }

    pub(in crate::time) fn is_any(self) -> bool {
        self == Self::ANY
    }

    pub(in crate::time) fn contains(self, year: i32) -> bool {
        match usize::try_from(year - i32::from(FIRST_YEAR)) {
            Ok(bit) => self.0.get(bit / 64).map_or(self.is_any(), |word| word >> (bit % 64) & 1 == 1),
            Err(_) => self.is_any(),
        }
    }

    /// The first of them that is not before a year.
    pub(in crate::time) fn next(self, year: i32) -> Option<i32> {
        if self.is_any() {
            return Some(year);
        }
        (year.max(FIRST_YEAR.into())..=LAST_YEAR.into()).find(|year| self.contains(*year))
    }

    /// Those from 1970 to 2199.
    pub(super) fn named(self) -> impl Iterator<Item = u16> {
        (FIRST_YEAR..=LAST_YEAR).filter(move |year| self.contains((*year).into()))
    }
}
