//! Whole numbers of bodies, as they were sent: the type of a field says which bounds it has.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use tidegate_domain::bounded::{Bounded, PageRows};

use crate::problem::FieldErrors;

/// A number of any size and sign that is to become an `L`, so that one out of bounds is refused by its bounds and not by
/// its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<L> {
    given: i128,
    limit: PhantomData<L>,
}

/// What the parameter `limit` of a list is described as. An alias, because utoipa asks each type argument that it sees for a schema.
pub(crate) type PageLimit = Number<PageRows>;

impl<L: Bounded> Number<L> {
    /// The number, if it lies within its bounds; otherwise notes that it does not.
    pub(crate) fn check(self, errors: &mut FieldErrors) -> Option<L> {
        self.check_so("", errors)
    }

    /// The same where the refusal ends in what may be done instead, or why.
    pub(crate) fn check_so(self, so: &str, errors: &mut FieldErrors) -> Option<L> {
        match L::checked(self.given) {
            Ok(number) => Some(number),
            Err(error) => {
                let value = i64::try_from(self.given)
                    .map_or_else(|_| self.given.to_string().into(), serde_json::Value::from);
                errors.add(L::NAME, value, format!("{error}{so}"));
                None
            }
        }
    }
}

/// Checks a number that may be left out.
pub(crate) fn check_given<L: Bounded>(
    given: Option<Number<L>>,
    errors: &mut FieldErrors,
) -> Option<Option<L>> {
    given.map_or(Some(None), |number| number.check(errors).map(Some))
}

/// Checks a number that stands for its default when it is left out.
pub(crate) fn check_or_default<L: Bounded + Default>(
    given: Option<Number<L>>,
    errors: &mut FieldErrors,
) -> Option<L> {
    given.map_or_else(|| Some(L::default()), |number| number.check(errors))
}

impl<L> Serialize for Number<L> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_i128(self.given)
    }
}

impl<'de, L> Deserialize<'de> for Number<L> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = i128;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<i128, E> {
                Ok(number.into())
            }

            fn visit_u64<E>(self, number: u64) -> Result<i128, E> {
                Ok(number.into())
            }
        }
        reader.deserialize_i64(Reading).map(|given| Self { given, limit: PhantomData })
    }
}
