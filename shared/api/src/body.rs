//! Reading requests: JSON bodies, ids in paths, cursors, `If-Match`. Whatever does not read becomes a problem.
//!
//! What a body must look like is `form`'s to say.

use std::error::Error as _;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_domain::bounded::{Bounded, PageRows};
use tidegate_domain::ids::IdError;
use tidegate_domain::limits::REQUEST_BODY_BYTES;
use tidegate_engine::{EngineError, Expect};
use tidegate_store::{PageOf, StoreError};
use utoipa::IntoParams;

use crate::ApiState;
use crate::form::{self, Form};
use crate::problem::{Kind, Problem};
use crate::wire::number::PageLimit;

/// A JSON body of at most `LIMIT` bytes.
pub(crate) struct Body<T, const LIMIT: usize = REQUEST_BODY_BYTES>(pub(crate) T);

impl<T: Form, const LIMIT: usize> FromRequest<ApiState> for Body<T, LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        declared_as_json(request.headers())?;
        let bytes = collect(request.into_body(), LIMIT).await?;
        form::read(&bytes, state.engine.clock().now()).map(Self)
    }
}

/// A JSON body that may be left out.
pub(crate) struct MaybeBody<T>(pub(crate) Option<T>);

impl<T: Form> FromRequest<ApiState> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = collect(body, REQUEST_BODY_BYTES).await?;
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        declared_as_json(&parts.headers)?;
        form::read(&bytes, state.engine.clock().now()).map(Some).map(Self)
    }
}

/// What a body is declared as, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let declared = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("unreadable"));
    declared.and_then(|text| text.split(';').next()).map(|text| text.trim().to_ascii_lowercase())
}

pub(crate) fn declared_as_json(headers: &HeaderMap) -> Result<(), Problem> {
    match media_type(headers) {
        Some(essence) if essence == "application/json" || essence.ends_with("+json") => Ok(()),
        Some(essence) => Err(Problem::new(
            Kind::UnsupportedMediaType,
            format!(
                "the body is declared as '{essence}'; send JSON with the header 'Content-Type: application/json'"
            ),
        )),
        None => Err(Problem::new(
            Kind::UnsupportedMediaType,
            "the body is not declared; send JSON with the header 'Content-Type: application/json'",
        )),
    }
}

pub(crate) async fn collect(body: axum::body::Body, limit: usize) -> Result<Bytes, Problem> {
    axum::body::to_bytes(body, limit).await.map_err(|error| {
        let too_large = error.source().is_some_and(|source| source.to_string().contains("length limit"));
        if too_large {
            let detail = format!("the body is over {limit} bytes, the most that is read; send less");
            return Problem::new(Kind::BodyTooLarge, detail);
        }
        Problem::new(Kind::MalformedRequest, format!("the body ended early: {error}"))
    })
}

/// The query of a request.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(query) = Query::<T>::from_request_parts(parts, state).await.map_err(|error| {
            let reason = error.source().map_or_else(|| error.body_text(), |source| source.to_string());
            Problem::new(Kind::MalformedRequest, format!("the query cannot be read: {reason}"))
        })?;
        Ok(Self(query))
    }
}

/// The query of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The `next_cursor` of the page before; left out for the first.
    cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    limit: Option<String>,
}

/// The page that the query of a list asks for.
pub(crate) struct Paged(pub(crate) PageOf);

impl Paged {
    /// Reads what a query says of its page.
    pub(crate) fn read(cursor: Option<String>, limit: Option<&str>) -> Result<PageOf, Problem> {
        let after = Cursor::read(cursor)?;
        let Some(text) = limit else { return Ok(after.into()) };
        let rows = PageRows::read(text).map_err(|refused| {
            let detail = format!("{refused}; leave it out for a whole page");
            Problem::of_field(Kind::MalformedRequest, PageRows::NAME, text, detail)
        })?;
        Ok(PageOf { after, rows })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Paged {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Asked(query) = Asked::<ListQuery>::from_request_parts(parts, state).await?;
        Self::read(query.cursor, query.limit.as_deref()).map(Self)
    }
}

/// Where in its list a page begins. Opaque to callers: the store's own text in base64.
pub(crate) enum Cursor {}

impl Cursor {
    /// Reads what a page gave as its `next_cursor`; `None` when there is none.
    pub(crate) fn read(given: Option<String>) -> Result<Option<String>, Problem> {
        let Some(given) = given.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
        let text = URL_SAFE_NO_PAD.decode(given).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(Some).ok_or_else(Self::unknown)
    }

    /// The text that asks for the page after this one.
    pub(crate) fn next_of(next: Option<String>) -> Option<String> {
        next.map(|text| URL_SAFE_NO_PAD.encode(text))
    }

    /// A cursor that no page of the list gave.
    pub(crate) fn unknown() -> Problem {
        Problem::new(
            Kind::MalformedRequest,
            "cursor is not one of this list; give the next_cursor of the page before, or leave it out for the first page",
        )
    }

    /// What a failed read of a page means: the store refuses a cursor that is not of its list.
    pub(crate) fn refusal(given: bool, operation: &'static str, error: &StoreError) -> Problem {
        match error {
            StoreError::Aws { code, .. } if given && code == "ValidationException" => Self::unknown(),
            error => Problem::of_store(operation, error),
        }
    }

    /// The same for a page that the engine reads.
    pub(crate) fn refusal_of_engine(given: bool, operation: &'static str, error: &EngineError) -> Problem {
        match error {
            EngineError::Store(error) => Self::refusal(given, operation, error),
            error => Problem::of_engine(operation, error),
        }
    }
}

/// The revision that the caller expects, from `If-Match: "<revision>"`.
pub(crate) struct Expected(pub(crate) Option<u32>);

impl<S: Send + Sync> FromRequestParts<S> for Expected {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(IF_MATCH) else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default().trim();
        let revision =
            text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).and_then(|n| n.parse().ok());
        match revision {
            Some(revision) => Ok(Self(Some(revision))),
            None => Err(Problem::new(
                Kind::MalformedRequest,
                format!(
                    "the header If-Match is '{text}'; give the ETag of one answer, such as If-Match: \"3\""
                ),
            )),
        }
    }
}

/// The most characters of an idempotency key.
const KEY_CHARACTERS: usize = 255;

/// What the caller names its call by, from `Idempotency-Key`: a call that is made again with it does nothing twice.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default();
        let is_key = (1..=KEY_CHARACTERS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if is_key && values.next().is_none() {
            return Ok(Self(Some(text.to_owned())));
        }
        Err(Problem::new(
            Kind::MalformedRequest,
            format!(
                "the header Idempotency-Key is no key; give one of 1 to {KEY_CHARACTERS} characters from '!' to '~', such as a UUID, and give it once"
            ),
        ))
    }
}

/// What a PUT expects to find: `If-Match: "<revision>"`, `If-None-Match: *`, or anything.
pub(crate) struct Precondition(pub(crate) Expect);

impl<S: Send + Sync> FromRequestParts<S> for Precondition {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Expected(revision) = Expected::from_request_parts(parts, state).await?;
        let Some(value) = parts.headers.get(IF_NONE_MATCH) else { return Ok(Self(revision.into())) };
        let text = value.to_str().unwrap_or_default().trim();
        if text != "*" {
            let detail = format!(
                "the header If-None-Match is '{text}'; a PUT takes If-None-Match: * only, which creates and never replaces"
            );
            return Err(Problem::new(Kind::MalformedRequest, detail));
        }
        if revision.is_some() {
            let detail = "the request has both If-Match, which replaces, and If-None-Match: *, which creates; send one";
            return Err(Problem::new(Kind::MalformedRequest, detail));
        }
        Ok(Self(Expect::Nothing))
    }
}

/// An id from a path that is looked up: one that cannot exist is not found.
pub(crate) fn id_to_find<T: FromStr<Err = IdError>>(what: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: IdError| {
        Problem::new(Kind::NotFound, format!("there is no {what} of this name: {error}"))
    })
}

/// An id from a path that is written to: one that cannot exist is the caller's mistake.
pub(crate) fn id_to_write<T: FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|error: IdError| Problem::of_field(Kind::InvalidBody, field, text, error.to_string()))
}
