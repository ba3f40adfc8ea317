//! Answers that are not what was asked for: `application/problem+json` (RFC 9457) that names the field, the value
//! and the fix.
//!
//! Deliberately absent: the reasons of internal failures. They go to the log under the request id, not to the caller.

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;
use tidegate_engine::EngineError;
use tidegate_protocol::{self as protocol, FieldError};
use tidegate_store::StoreError;

/// Longest text of a value that is repeated to the caller, in characters.
pub(crate) const ECHOED_CHARACTERS: usize = 200;
/// Faults of one body that are listed; further ones are counted.
const LISTED_FAULTS: usize = 50;

/// What kind of refusal an answer is: its `type`, title and status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    MalformedBody,
    MalformedRequest,
    MissingKey,
    UnknownKey,
    ScopeMissing,
    ClientSuspended,
    ClientDeleted,
    TargetNotAllowed,
    NotFound,
    UnknownRoute,
    MethodNotAllowed,
    IdTaken,
    InUse,
    ChangedMeanwhile,
    RunOver,
    NotTriggered,
    NotSkipped,
    NotRescheduled,
    TooMany,
    OverQuota,
    RevisionMismatch,
    AlreadyExists,
    AlreadyMade,
    BodyTooLarge,
    UnsupportedMediaType,
    InvalidBody,
    Internal,
    Unreadable,
    Unavailable,
}

impl Kind {
    fn facts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::MalformedBody => (StatusCode::BAD_REQUEST, "malformed-body", "The body is not JSON"),
            Self::MalformedRequest => {
                (StatusCode::BAD_REQUEST, "malformed-request", "The request cannot be read")
            }
            Self::MissingKey => (StatusCode::UNAUTHORIZED, "missing-key", "A key is needed"),
            Self::UnknownKey => (StatusCode::UNAUTHORIZED, "unknown-key", "The key is not valid"),
            Self::ScopeMissing => (StatusCode::FORBIDDEN, "scope-missing", "The key is not for this"),
            Self::ClientSuspended => (StatusCode::FORBIDDEN, "client-suspended", "The client is suspended"),
            Self::ClientDeleted => (StatusCode::FORBIDDEN, "client-deleted", "The client is being deleted"),
            Self::TargetNotAllowed => {
                (StatusCode::FORBIDDEN, "target-not-allowed", "The target is not allowed")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Self::UnknownRoute => (StatusCode::NOT_FOUND, "unknown-route", "There is no such route"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The route has no such method")
            }
            Self::IdTaken => (StatusCode::CONFLICT, "id-taken", "The id is taken"),
            Self::InUse => (StatusCode::CONFLICT, "in-use", "It is in use"),
            Self::ChangedMeanwhile => {
                (StatusCode::CONFLICT, "changed-meanwhile", "It changed at the same time")
            }
            Self::RunOver => (StatusCode::CONFLICT, "run-over", "The run is over"),
            Self::NotTriggered => (StatusCode::CONFLICT, "not-triggered", "The job was not triggered"),
            Self::NotSkipped => (StatusCode::CONFLICT, "not-skipped", "No launch was left out"),
            Self::NotRescheduled => (StatusCode::CONFLICT, "not-rescheduled", "The job was not rescheduled"),
            Self::TooMany => (StatusCode::CONFLICT, "too-many", "There are as many as there may be"),
            Self::OverQuota => (StatusCode::TOO_MANY_REQUESTS, "over-quota", "The quota is used up"),
            Self::RevisionMismatch => {
                (StatusCode::PRECONDITION_FAILED, "revision-mismatch", "It has another revision")
            }
            Self::AlreadyExists => (StatusCode::PRECONDITION_FAILED, "already-exists", "It exists already"),
            Self::AlreadyMade => {
                (StatusCode::CONFLICT, "already-made", "Another call has this Idempotency-Key")
            }
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The body is too large"),
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-media-type",
                "The body is not declared as JSON",
            ),
            Self::InvalidBody => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-body", "The body is not valid"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something went wrong here"),
            Self::Unreadable => {
                (StatusCode::INTERNAL_SERVER_ERROR, "unreadable", "What is stored cannot be read")
            }
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Not possible right now"),
        }
    }
}

/// An answer that is not what was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    errors: FieldErrors,
    /// In how many seconds another try is worth it.
    retry_after: Option<u32>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: FieldErrors::default(), retry_after: None }
    }

    /// The same, with the seconds after which another try is worth it.
    pub(crate) fn retried_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// A problem that lies in fields: the detail is what is said about the first.
    fn of_fields(kind: Kind, errors: FieldErrors) -> Self {
        let detail = match (errors.listed.as_slice(), errors.further) {
            ([], _) => String::new(),
            ([only], 0) => only.message.clone(),
            ([first, rest @ ..], 0) => format!("{} (and {} more, see errors)", first.message, rest.len()),
            ([first, rest @ ..], further) => format!(
                "{} (and {} more, the first {LISTED_FAULTS} of all are in errors)",
                first.message,
                rest.len() + further
            ),
        };
        Self { kind, detail, errors, retry_after: None }
    }

    /// A problem that lies in one field.
    pub(crate) fn of_field(
        kind: Kind,
        field: &str,
        value: impl Into<Value>,
        message: impl Into<String>,
    ) -> Self {
        let mut errors = FieldErrors::default();
        errors.add(field, value, message);
        Self::of_fields(kind, errors)
    }

    /// Its status, its detail and its fields: what a bulk call tells of one job.
    pub(crate) fn into_parts(self) -> (StatusCode, String, Vec<FieldError>) {
        (self.kind.facts().0, self.detail, self.errors.listed)
    }

    /// What is wrong, a sentence for each field, or one for the whole.
    pub(crate) fn into_messages(self) -> Vec<String> {
        if self.errors.is_empty() { vec![self.detail] } else { self.errors.into_messages() }
    }

    /// A failure that is not the caller's. Its reason is logged here and told to nobody.
    pub(crate) fn internal(operation: &'static str, error: &dyn Display) -> Self {
        tracing::error!(operation, %error, "failed to answer");
        Self::new(
            Kind::Internal,
            "the request failed for a reason on this side; its x-request-id finds it in the log",
        )
    }

    /// Takes an error of the engine: one that may pass is worth another try.
    pub(crate) fn of_engine(operation: &'static str, error: &EngineError) -> Self {
        match error {
            EngineError::Store(error) => Self::of_store(operation, error),
            error if error.is_retryable() => Self::unavailable(operation, error),
            error => Self::internal(operation, error),
        }
    }

    /// Takes an error of the store: one that may pass is worth another try, and of a row that cannot be read it is said why.
    pub(crate) fn of_store(operation: &'static str, error: &StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => {
                tracing::error!(operation, %error, "a row cannot be read");
                Self::new(Kind::Unreadable, format!("{error}; it was left as it is"))
            }
            error if error.is_retryable() => Self::unavailable(operation, error),
            error => Self::internal(operation, error),
        }
    }

    fn unavailable(operation: &'static str, error: &dyn Display) -> Self {
        tracing::warn!(operation, %error, "the store is not available");
        let detail =
            "the store did not answer in time, so the call may or may not have taken effect; send it again";
        Self::new(Kind::Unavailable, detail).retried_after(1)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, name, title) = self.kind.facts();
        let body = protocol::Problem {
            kind: format!("urn:tidegate:problem:{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            errors: self.errors.listed,
        };
        let mut response = (status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.kind {
            Kind::MissingKey => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tidegate\""));
            }
            Kind::UnknownKey => {
                let challenge =
                    HeaderValue::from_static("Bearer realm=\"tidegate\", error=\"invalid_token\"");
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
            _ => {}
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The fields of one body that are wrong, collected so that the caller learns of all at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldErrors {
    /// The first of them.
    listed: Vec<FieldError>,
    /// How many there are beyond these.
    further: usize,
}

impl FieldErrors {
    /// Notes that a field is wrong.
    pub(crate) fn add(
        &mut self,
        field: impl Into<String>,
        value: impl Into<Value>,
        message: impl Into<String>,
    ) {
        let value = match value.into() {
            Value::Null => None,
            Value::String(text) => Some(Value::String(cut(&text, ECHOED_CHARACTERS))),
            value => Some(value),
        };
        self.push(FieldError { field: field.into(), value, message: message.into() });
    }

    fn push(&mut self, error: FieldError) {
        if self.is_full() {
            return self.count_only();
        }
        self.listed.push(error);
    }

    /// Whether no further fault is listed.
    pub(crate) fn is_full(&self) -> bool {
        self.listed.len() >= LISTED_FAULTS
    }

    /// Notes that a further field is wrong, of which nothing can be told.
    pub(crate) fn count_only(&mut self) {
        self.further = self.further.saturating_add(1);
    }

    /// Takes the value out of a check, or notes what the check says.
    pub(crate) fn keep<T, E: Display>(
        &mut self,
        field: &str,
        value: impl Into<Value>,
        checked: Result<T, E>,
    ) -> Option<T> {
        match checked {
            Ok(good) => Some(good),
            Err(error) => {
                self.add(field, value, error.to_string());
                None
            }
        }
    }

    /// Says of everything noted about a field that another one is meant, where a short form stands for it.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        for error in self.listed.iter_mut().filter(|error| error.field == from) {
            to.clone_into(&mut error.field);
        }
    }

    /// The fields that are listed.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.listed.iter().map(|error| &*error.field)
    }

    /// Adds what was noted elsewhere about the fields that `takes` says.
    pub(crate) fn append(&mut self, other: Self, takes: impl Fn(&str) -> bool) {
        for error in other.listed {
            if takes(&error.field) {
                self.push(error);
            }
        }
        self.further = self.further.saturating_add(other.further);
    }

    /// Adds what was noted about the members of an object.
    pub(crate) fn append_within(&mut self, object: &str, within: Self) {
        for error in within.listed {
            let field = format!("{object}.{}", error.field);
            self.push(FieldError { field, ..error });
        }
        self.further = self.further.saturating_add(within.further);
    }

    /// Whether every field was right so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Nothing, or the problem that these fields are.
    pub(crate) fn into_result(self, kind: Kind) -> Result<(), Problem> {
        if self.is_empty() { Ok(()) } else { Err(Problem::of_fields(kind, self)) }
    }

    /// What is wrong, a sentence for each.
    pub(crate) fn into_messages(self) -> Vec<String> {
        let Self { listed, further } = self;
        let further = (further > 0).then(|| format!("and {further} more"));
        listed.into_iter().map(|error| error.message).chain(further).collect()
    }
}

/// The beginning of a text, and dots when that is not all of it.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
