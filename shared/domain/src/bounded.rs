//! Whole numbers with bounds: a type for each, declared once with its field, its bounds and its default.
//!
//! Whoever has such a number need not check it again, and whoever reads one learns its bounds from its type: the check of a
//! body, the message that refuses it and the OpenAPI document say the same because they ask the same [`Bounded`].
//!
//! Deliberately absent: bounds that depend on another number, such as a cost above its policy's limit.

use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::limits::{PAGE_ROWS, ROWS_ASKED};

/// A whole number that lies within bounds of its own.
///
/// Invariant: there is no value outside [`Bounded::BOUNDS`].
pub trait Bounded: Copy {
    /// What it is called where it is written: its field in a body.
    const NAME: &'static str;
    /// Its least and its greatest value.
    const BOUNDS: RangeInclusive<u32>;

    /// Takes a number of any size and sign.
    ///
    /// # Errors
    /// When it lies outside the bounds.
    fn checked(value: i128) -> Result<Self, OutOfBounds>;

    /// Takes a number that is written as text.
    ///
    /// # Errors
    /// When it is no whole number, or lies outside the bounds.
    fn read(text: &str) -> Result<Self, OutOfBounds> {
        text.parse().ok().and_then(|value| Self::checked(value).ok()).ok_or_else(|| Self::refused(text))
    }

    /// What is said of a value that lies outside the bounds, or is no whole number at all.
    fn refused(value: impl Display) -> OutOfBounds {
        OutOfBounds { name: Self::NAME, value: value.to_string(), bounds: Self::BOUNDS }
    }
}

/// A number that lies outside its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name} is {value}; it must lie between {} and {}", bounds.start(), bounds.end())]
pub struct OutOfBounds {
    /// What the number is called.
    pub name: &'static str,
    /// What was given.
    pub value: String,
    /// The least and the greatest value that it may have.
    pub bounds: RangeInclusive<u32>,
}

/// Declares a [`Bounded`] number: its type, the field that it is written in, its bounds, and what it is when the field is left
/// out, if that is the same for everybody.
macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident($whole:ty), $field:literal, $bounds:expr $(, default $default:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($whole);

        impl $name {
            $(
                /// The number when nobody names one.
                pub const DEFAULT: Self = Self($default);
            )?

            /// Takes a number.
            ///
            /// # Errors
            /// When it lies outside the bounds.
            pub fn new(value: u64) -> Result<Self, $crate::bounded::OutOfBounds> {
                $crate::bounded::Bounded::checked(value.into())
            }

            /// The number.
            pub const fn get(self) -> $whole {
                self.0
            }
        }

        impl $crate::bounded::Bounded for $name {
            const NAME: &'static str = $field;
            const BOUNDS: std::ops::RangeInclusive<u32> = $bounds;

            fn checked(value: i128) -> Result<Self, $crate::bounded::OutOfBounds> {
                match <$whole>::try_from(value) {
                    Ok(number) if Self::BOUNDS.contains(&number.into()) => Ok(Self(number)),
                    _ => Err(Self::refused(value)),
                }
            }
        }

        $(
            impl Default for $name {
                fn default() -> Self {
                    Self::DEFAULT
                }
            }

            const _: () = {
                let bounds = <$name as $crate::bounded::Bounded>::BOUNDS;
                let default = $default as u32;
                assert!(*bounds.start() <= default && default <= *bounds.end());
            };
        )?
    };
}

pub(crate) use bounded;

bounded! {
    /// The revision of a job, a policy or a calendar, which its first write makes 1.
    Revision(u32), "revision", 1..=u32::MAX
}

bounded! {
    /// The most rows of a page of a list.
    PageRows(u8), "limit", ROWS_ASKED, default PAGE_ROWS as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    bounded! {
        /// For the test.
        Shelf(u8), "shelf", 2..=9, default 3
    }

    #[test]
    fn what_lies_outside_its_bounds_is_refused_with_them_whatever_its_size() {
        for value in [2, 9] {
            assert_eq!(Shelf::checked(value).map(|shelf| i128::from(shelf.get())), Ok(value));
        }
        for value in [i128::MIN, -1, 0, 1, 10, 256 + 3, i128::MAX] {
            let says = Shelf::checked(value).unwrap_err().to_string();
            assert_eq!(says, format!("shelf is {value}; it must lie between 2 and 9"));
        }
        assert_eq!(Shelf::new(3), Ok(Shelf::default()));
    }
}
