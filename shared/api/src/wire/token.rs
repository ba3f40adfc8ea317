//! Tokens as they travel: released and extended by the hundred.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_domain::limits::{RESULT_BYTES, TOKENS_PER_CALL};
use tidegate_domain::policy::LeaseSeconds;
use tidegate_engine::{EntryError, Release, TokenKey, read_release};
use tidegate_protocol::{self as protocol, ReleaseEntry};
use utoipa::ToSchema;

use crate::form::{self, Form};
use crate::problem::FieldErrors;
use crate::wire::bounds::{BoundedFields, Bounds, List, bounded_fields};
use crate::wire::number::Number;

/// Tokens whose events are finished.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseBody {
    /// 1 to 100 tokens: each either the token's text, or an object that adds how the event ended. Each is read and answered
    /// by itself.
    #[schema(value_type = Vec<ReleaseEntry>, min_items = 1, example = json!(["tok.acme.small.0.3.17.2.9.5f0c8d7a2b914e63a8d1f4077be2960c"]))]
    pub(crate) tokens: List<Box<RawValue>, TOKENS_PER_CALL>,
}

bounded_fields!(ReleaseBody: tokens);
bounded_fields!(ExtendBody: tokens, lease_seconds);
bounded_fields!(FreeBody: tokens);

impl BoundedFields for protocol::Release {
    fn bounds() -> Vec<(&'static str, Bounds)> {
        vec![("result", Bounds::Text(RESULT_BYTES)), ("error", Bounds::Text(RESULT_BYTES))]
    }
}

impl Form for ReleaseBody {
    const PARTS: Option<&'static str> = Some("tokens");

    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        check_number_of_tokens(&self.tokens, errors);
    }
}

impl Form for ReleaseEntry {
    const CALLED: &'static str = "the entry";

    fn note_faults(self, _: DateTime<Utc>, _: &mut FieldErrors) {}
}

/// Why an entry of a call is not served.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What is wrong with it and what to do about it.
    Malformed(String),
    /// This deployment gave no such token.
    Unknown,
}

impl From<EntryError> for Refused {
    fn from(error: EntryError) -> Self {
        match error {
            EntryError::UnknownToken => Self::Unknown,
            _ => Self::Malformed(error.to_string()),
        }
    }
}

/// Reads one entry by itself: the text of its token, as far as there is one, and what is to be done.
pub(crate) fn read_entry(
    entry: &RawValue,
    key: &TokenKey,
    now: DateTime<Utc>,
) -> (String, Result<Release, Refused>) {
    match form::read::<ReleaseEntry>(entry.get().as_bytes(), now) {
        Ok(read) => {
            let release = protocol::Release::from(read);
            (release.token.clone(), read_release(release, key).map_err(Refused::from))
        }
        Err(problem) => (token_of(entry), Err(Refused::Malformed(problem.into_messages().join("; ")))),
    }
}

/// What an entry that does not read names as its token, for the answer.
fn token_of(entry: &RawValue) -> String {
    let read = serde_json::from_str::<Value>(entry.get()).unwrap_or_default();
    let token = read.as_str().or_else(|| read.get("token").and_then(Value::as_str));
    token.unwrap_or_default().to_owned()
}

/// Tokens whose leases are to last longer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtendBody {
    /// 1 to 100 tokens.
    #[schema(value_type = Vec<String>, min_items = 1)]
    pub(crate) tokens: List<String, TOKENS_PER_CALL>,
    /// From now on, in seconds; the policy's lease when left out.
    #[schema(value_type = Option<u32>)]
    lease_seconds: Option<Number<LeaseSeconds>>,
}

impl Form for ExtendBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl ExtendBody {
    /// Checks every field; how long the leases are to last, if that is said.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<u32> {
        check_number_of_tokens(&self.tokens, errors);
        self.lease_seconds.and_then(|given| given.check(errors)).map(LeaseSeconds::get)
    }
}

/// Notes a list of tokens that is empty or too long.
pub(crate) fn check_number_of_tokens<T>(tokens: &List<T, TOKENS_PER_CALL>, errors: &mut FieldErrors) {
    tokens.check_number("tokens", "give the 'token' of each delivered message that is meant", errors);
}

/// Tokens that an operator takes from their holders.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FreeBody {
    /// 1 to 100 tokens.
    #[schema(value_type = Vec<String>, min_items = 1)]
    pub(crate) tokens: List<String, TOKENS_PER_CALL>,
    /// Whether their events are delivered again, under new leases; they are recorded as expired when not.
    #[serde(default)]
    pub(crate) redeliver: bool,
}

impl Form for FreeBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        check_number_of_tokens(&self.tokens, errors);
    }
}
