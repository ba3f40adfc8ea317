//! What GET answers can be put back: the rule for the fields that only answers have.
//!
//! | field | in a body |
//! | --- | --- |
//! | `revision` | of a PUT or PATCH: the revision that is expected, as in `If-Match`; else not looked at |
//! | `paused` | must say what holds, since only the calls to pause and to resume change it |
//! | any other | not looked at |

use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer};
use tidegate_domain::bounded::Revision;
use tidegate_engine::Expect;

use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::number::Number;

/// A field of an answer that a body may have, as the answer has it, and that is not looked at.
#[derive(Debug)]
pub(crate) struct Unread<T>(PhantomData<T>);

impl<T> Default for Unread<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unread<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(reader).map(|_| Self::default())
    }
}

/// What a write expects to find: by the headers, and by the `revision` of its body.
pub(crate) fn expectation(by_header: Expect, revision: Option<Number<Revision>>) -> Result<Expect, Problem> {
    let Some(revision) = revision else { return Ok(by_header) };
    let mut errors = FieldErrors::default();
    let number = revision.check(&mut errors).map(Revision::get);
    errors.into_result(Kind::InvalidBody)?;
    let Some(number) = number else { return Ok(by_header) };
    let message = match by_header {
        Expect::Anything => return Ok(Expect::Revision(number)),
        Expect::Revision(same) if same == number => return Ok(by_header),
        Expect::Revision(other) => {
            format!("revision is {number}, but If-Match says {other}; send one of them")
        }
        Expect::Nothing => {
            format!("revision is {number}, but If-None-Match: * creates; leave one of them out")
        }
    };
    Err(Problem::of_field(Kind::InvalidBody, "revision", number, message))
}

/// Notes a `paused` that is not what holds. `path` is that of the thing.
pub(crate) fn check_paused(given: Option<bool>, holds: bool, path: &str, errors: &mut FieldErrors) {
    if let Some(given) = given.filter(|given| *given != holds) {
        let call = if given { "pause" } else { "resume" };
        let message = format!(
            "paused is {given}, and it is {holds} at present, which this call does not change: \
                leave it out, and call POST {path}/{call}"
        );
        errors.add("paused", given, message);
    }
}
