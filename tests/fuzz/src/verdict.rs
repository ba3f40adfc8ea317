//! Whether an answer of the API is one that may be given.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use serde_json::Value;

use crate::fault::Fault;
use crate::schema::Request;

/// The fault of an answer, if it has one.
pub fn of(request: &Request, parts: &Parts, body: &[u8]) -> Option<Fault> {
    let (status, text) = (parts.status.as_u16(), || String::from_utf8_lossy(body).into_owned());
    if parts.status.is_server_error() {
        return Some(Fault::ServerError { status, body: text() });
    }
    if !parts.status.is_success() {
        // The answer to HEAD has no body.
        let why = if request.method == "HEAD" { None } else { refusal_lacks(parts, body) };
        return why.map(|why| Fault::Refusal { status, why, body: text() });
    }
    let may_be_empty = parts.status == StatusCode::NO_CONTENT || request.method == "HEAD";
    let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(body).is_ok();
    // The only answer for people.
    let is_page = request.target.starts_with("/v1/docs")
        && parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    (!may_be_empty && !is_json && !is_page).then(|| Fault::Answer { status, body: text() })
}

/// What a refusal lacks of a problem that names something.
fn refusal_lacks(parts: &Parts, body: &[u8]) -> Option<&'static str> {
    if !parts.status.is_client_error() {
        return Some("no status of a refusal");
    }
    if parts.headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/problem+json") {
        return Some("another content type than application/problem+json");
    }
    let Ok(problem) = serde_json::from_slice::<Value>(body) else { return Some("no JSON") };
    let says = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    if problem["status"] != parts.status.as_u16() {
        return Some("another status in its body");
    }
    if !["type", "title", "detail"].into_iter().all(|name| says(&problem[name])) {
        return Some("no type, title or detail");
    }
    let errors = problem["errors"].as_array();
    // The name of a field may be empty: somebody sent such a field.
    if errors.into_iter().flatten().any(|error| !error["field"].is_string() || !says(&error["message"])) {
        return Some("an error that names no field or says nothing of it");
    }
    let names_a_field = errors.is_some_and(|errors| !errors.is_empty());
    let must = parts.status == StatusCode::UNPROCESSABLE_ENTITY;
    (must && !names_a_field).then_some("no field that is wrong")
}
