//! A body of the wrong form with stand-ins in the place of what is wrong, so that the rest of it can be checked too.
//!
//! What comes of it is checked and dropped. No route ever sees it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde_json::value::{RawValue, to_raw_value};

use super::Form;
use super::schema::{Kind, Schema};
use crate::problem::FieldErrors;

/// Notes what is wrong with the members that have the right form. Of a member with a fault of form nothing more is told.
pub(super) fn note_further<T: Form>(
    text: &[u8],
    schema: &'static Schema,
    now: DateTime<Utc>,
    errors: &mut FieldErrors,
) {
    let wrong: BTreeSet<String> = errors.fields().map(|field| member_of(field).to_owned()).collect();
    let Some(mended) = mend(text, schema, &wrong) else { return };
    let Ok(body) = serde_json::from_slice::<T>(&mended) else { return };
    let mut further = FieldErrors::default();
    body.note_faults(now, &mut further);
    errors.append(further, |field| field != "(body)" && !wrong.contains(member_of(field)));
}

/// The member of the body that a field lies in.
fn member_of(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or(field)
}

fn mend(text: &[u8], schema: &'static Schema, wrong: &BTreeSet<String>) -> Option<Vec<u8>> {
    let object = schema.taking(Kind::Object)?;
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(text).ok()?;
    members.retain(|name, _| object.properties.contains_key(name));
    for (name, schema) in object.properties.iter().filter(|(name, _)| wrong.contains(*name)) {
        members.insert(name.clone(), to_raw_value(&schema.stand_in()).ok()?);
    }
    serde_json::to_vec(&members).ok()
}
