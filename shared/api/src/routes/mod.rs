//! The routes, one module per noun. Each reads, checks, asks one part of the engine, and answers. What is a row and nothing else
//! (a client, a page of jobs) is read from the store.
//!
//! Deliberately absent: rules. What may happen is the domain's and the engine's to say; nothing is written before
//! every check has passed.

mod acceptance;
pub(crate) mod backfills;
pub(crate) mod bulk;
pub(crate) mod calendars;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod dead_letters;
pub(crate) mod events;
mod filling;
pub(crate) mod health;
pub(crate) mod index;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod lateness;
pub(crate) mod one_times;
pub(crate) mod overdue;
pub(crate) mod patches;
pub(crate) mod policies;
pub(crate) mod quotas;
pub(crate) mod reschedules;
pub(crate) mod runs;
pub(crate) mod samples;
pub(crate) mod schedules;
pub(crate) mod secrets;
pub(crate) mod selections;
pub(crate) mod sidelines;
pub(crate) mod skips;
pub(crate) mod targets;
pub(crate) mod tokens;
pub(crate) mod triggers;
pub(crate) mod versions;

use axum::response::{IntoResponse, Response};
use http::header::{ETAG, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use crate::problem::{Kind, Problem};

/// An answer with the revision of what it shows as its ETag.
fn with_revision(status: StatusCode, revision: u32, view: impl Serialize) -> Response {
    let mut response = (status, axum::Json(view)).into_response();
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{revision}\"")) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// Adds where the thing that was made is found.
fn located(mut response: Response, path: &str) -> Response {
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

/// The path of a job.
fn job_path(id: &str) -> String {
    format!("/v1/jobs/{}", path_segment(id))
}

/// A name as one part of a path: whatever could end the part, or be read otherwise on the way, is percent-encoded.
fn path_segment(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                part.push(char::from(byte))
            }
            other => part.push_str(&format!("%{other:02X}")),
        }
    }
    part
}

fn wrong_revision(what: &str, id: &str, current: u32) -> Problem {
    Problem::new(
        Kind::RevisionMismatch,
        format!(
            "{what} '{id}' is at revision {current}, not at the one that If-Match or the body expects; read it again and decide anew"
        ),
    )
}

/// An expected revision of something that is not there.
fn nothing_to_match(what: &str, id: &str) -> Problem {
    Problem::new(
        Kind::RevisionMismatch,
        format!(
            "there is no {what} '{id}' that If-Match or the body's revision could match; leave them out to create it"
        ),
    )
}

/// `If-None-Match: *` on something that is there.
fn exists_already(what: &str, id: &str) -> Problem {
    Problem::new(
        Kind::AlreadyExists,
        format!(
            "{what} '{id}' exists already, and If-None-Match: * replaces nothing; leave the header out to replace it"
        ),
    )
}

fn not_found(what: &str, id: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no {what} '{id}' among those of this client"))
}

/// An answer that is that of an earlier call.
fn replayed(mut response: Response) -> Response {
    let name = HeaderName::from_static("idempotent-replayed");
    response.headers_mut().insert(name, HeaderValue::from_static("true"));
    response
}

fn id_taken(what: &str, field: &str, id: &str) -> Problem {
    let message = format!(
        "{what} '{id}' exists already and says something else; PUT replaces it, or choose another id"
    );
    Problem::of_field(Kind::IdTaken, field, id, message)
}

/// An id in a body that is put must be the one in the path.
fn same_id(field: &str, in_body: Option<&str>, in_path: &str) -> Result<(), Problem> {
    match in_body {
        Some(id) if id != in_path => {
            let message =
                format!("{field} is '{id}', but the path says '{in_path}'; leave it out of the body");
            Err(Problem::of_field(Kind::InvalidBody, field, id, message))
        }
        _ => Ok(()),
    }
}

/// That others wrote again and again in between.
fn contended(what: &str, id: &str) -> Problem {
    let detail = format!("{what} '{id}' was changed by other calls again and again; send this one again");
    Problem::new(Kind::ChangedMeanwhile, detail)
}
