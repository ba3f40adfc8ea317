//! What travels over the API: bodies that are read and checked, answers that are written.
//!
//! Reading is in two stages. `form` judges the form by the schemas that are derived here; `check` turns a body into
//! domain values and collects every fault. Nothing here asks the store: whether a queue or policy exists is the routes' part.

pub(crate) mod bulk;
pub(crate) mod calendar;
pub(crate) mod client;
pub(crate) mod explain;
pub(crate) mod flow;
pub(crate) mod holder;
pub(crate) mod index;
pub(crate) mod job;
pub(crate) mod payload;
pub(crate) mod policy;
pub(crate) mod preview;
pub(crate) mod read_only;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod spoiled;
pub(crate) mod target;
pub(crate) mod token;
pub(crate) mod trigger;
mod unreadable;
pub(crate) mod upcoming;
pub(crate) mod when;

use std::fmt;
use std::ops::RangeInclusive;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::problem::FieldErrors;

/// A whole number of any size and sign, so that one out of bounds is refused by its bounds and not by its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole(i128);

impl Whole {
    /// The number, if it lies within the bounds; otherwise notes that it does not.
    pub(crate) fn within(
        self,
        field: &str,
        bounds: RangeInclusive<u32>,
        errors: &mut FieldErrors,
    ) -> Option<u32> {
        self.within_so(field, bounds, "", errors)
    }

    /// The same where the refusal ends in what may be done instead, or why.
    pub(crate) fn within_so(
        self,
        field: &str,
        bounds: RangeInclusive<u32>,
        so: &str,
        errors: &mut FieldErrors,
    ) -> Option<u32> {
        let number = u32::try_from(self.0).ok().filter(|number| bounds.contains(number));
        if number.is_none() {
            let (least, most) = bounds.into_inner();
            let message = format!("{field} is {}; it must lie between {least} and {most}{so}", self.0);
            let value =
                i64::try_from(self.0).map_or_else(|_| self.0.to_string().into(), serde_json::Value::from);
            errors.add(field, value, message);
        }
        number
    }
}

impl From<u32> for Whole {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_i128(self.0)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Whole, E> {
                Ok(Whole(number.into()))
            }
        }
        reader.deserialize_i64(Reading)
    }
}

/// An instant as the API writes it: UTC, with milliseconds where there are any.
pub(crate) fn instant(at: DateTime<Utc>) -> String {
    let digits = if at.timestamp_subsec_millis() == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
    at.to_rfc3339_opts(digits, true)
}
