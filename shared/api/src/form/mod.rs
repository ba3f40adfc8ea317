//! Reading a body: its form, as its schema in the OpenAPI document says it, and then its fields.
//!
//! Every fault of form is found in one pass, and then, of a body that has any, what its other fields say is checked
//! too, so that one answer tells all. A body of the right form is read by serde; its routes check its fields.
//!
//! Deliberately absent: forms that the document does not describe. What is accepted and what is documented cannot differ.

mod mend;
mod names;
mod schema;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::problem::{FieldErrors, Kind, Problem};
use schema::Schema;
use walk::{Body, walk};

/// What can be sent as a body, or as a part of one that is read by itself.
pub(crate) trait Form: DeserializeOwned + ToSchema {
    /// What it is called in sentences.
    const CALLED: &'static str = "the body";
    /// The member whose items are read each by itself, so that one that is wrong spoils no other.
    const PARTS: Option<&'static str> = None;

    /// Whether no answer repeats what it holds.
    const HIDES_VALUES: bool = false;

    /// Notes each field that is wrong although its form is right. Asks no store.
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors);
}

/// Reads a body. `now` is what its instants are measured by.
///
/// # Errors
/// When it is not JSON, or not of this form; then every fault is told that can be told without asking the store.
pub(crate) fn read<T: Form>(text: &[u8], now: DateTime<Utc>) -> Result<T, Problem> {
    let mut errors = FieldErrors::default();
    if let Some(schema) = Schema::named(&T::name()) {
        let body = Body { called: T::CALLED, schema, parts: T::PARTS, hides_values: T::HIDES_VALUES };
        walk(text, &body, &mut errors).map_err(|error| unreadable::<T>(text, &error))?;
        if !errors.is_empty() {
            mend::note_further::<T>(text, schema, now, &mut errors);
        }
    }
    errors.into_result(Kind::InvalidBody)?;
    serde_json::from_slice(text).map_err(|error| unreadable::<T>(text, &error))
}

/// Reads the members of a JSON object, each as it is written.
///
/// # Errors
/// When the text is not JSON, or no object.
pub(crate) fn read_members(text: &[u8]) -> Result<BTreeMap<String, Box<RawValue>>, Problem> {
    serde_json::from_slice(text).map_err(|error| match serde_json::from_slice::<IgnoredAny>(text) {
        Ok(_) => {
            let message = "the body must be a JSON object";
            Problem::of_field(Kind::InvalidBody, "(body)", (), message)
        }
        Err(_) => not_json("the body", text, &error),
    })
}

/// A text that is not JSON, or is JSON with a number or a text in it that nothing here can hold.
fn unreadable<T: Form>(text: &[u8], error: &serde_json::Error) -> Problem {
    let is_json = std::str::from_utf8(text).is_ok() && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    if !is_json {
        return not_json(T::CALLED, text, error);
    }
    let (reason, line, column) = told(error);
    let message = format!("{} cannot be read: {reason} at line {line}, column {column}", T::CALLED);
    Problem::of_field(Kind::InvalidBody, "(body)", (), message)
}

fn not_json(called: &str, text: &[u8], error: &serde_json::Error) -> Problem {
    if text.is_empty() {
        return Problem::new(Kind::MalformedBody, "the body is empty; send a JSON object");
    }
    let (reason, line, column) = told(error);
    let detail = format!("{called} is not JSON: {reason} at line {line}, column {column}");
    Problem::new(Kind::MalformedBody, detail)
}

/// What serde_json says, and where in the text.
fn told(error: &serde_json::Error) -> (String, usize, usize) {
    let told = error.to_string();
    let reason = told.rsplit_once(" at line ").map_or(&*told, |(reason, _)| reason);
    (reason.to_owned(), error.line(), error.column())
}
