//! Tokens as they travel: released and extended by the hundred.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_domain::ids::IdError;
use tidegate_domain::limits::{LEASE_SECONDS, RESULT_BYTES, TOKENS_PER_CALL};
use tidegate_domain::token::{SignedToken, Token};
use tidegate_engine::{Outcome, Release, TokenKey};
use utoipa::ToSchema;

use crate::form::{self, Form};
use crate::problem::FieldErrors;
use crate::wire::Whole;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Outcome)]
pub(crate) enum OutcomeWord {
    /// The consumer did what the event asked for.
    #[default]
    Succeeded,
    /// The consumer gave up on it.
    Failed,
}

/// Tokens whose events are finished.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseBody {
    /// 1 to 100 tokens: each either the token's text, or an object that adds how the event ended. Each is read and answered
    /// by itself.
    #[schema(value_type = Vec<ReleaseEntry>, min_items = 1, max_items = 100, example = json!(["tok.acme.small.0.3.17.2.9.5f0c8d7a2b914e63a8d1f4077be2960c"]))]
    pub(crate) tokens: Vec<Box<RawValue>>,
}

/// One token, with or without how its event ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ReleaseEntry {
    /// The event succeeded.
    Succeeded(String),
    /// The event ended as it says.
    Ended(Ended),
}

/// A token and how its event ended.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    /// The token of the delivered message.
    #[schema(example = "tok.acme.small.0.3.17.2.9")]
    token: String,
    /// How the event ended; `succeeded` when left out.
    #[serde(default)]
    outcome: OutcomeWord,
    /// What came of the event, in at most 2,048 bytes: shown with it. Only with `succeeded`.
    #[schema(max_length = 2_048)]
    result: Option<String>,
    /// Why the event failed, in at most 2,048 bytes: shown with it. Only with `failed`.
    #[schema(max_length = 2_048)]
    error: Option<String>,
}

/// Why a token of a call cannot be served.
#[derive(Debug)]
pub(crate) enum Unread {
    /// What is wrong with it and what to do about it.
    Malformed(String),
    /// This deployment gave no such token.
    Unknown,
}

impl Form for ReleaseBody {
    const PARTS: Option<&'static str> = Some("tokens");

    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        check_number_of_tokens(self.tokens.len(), errors);
    }
}

impl Form for ReleaseEntry {
    const CALLED: &'static str = "the entry";

    fn note_faults(self, _: DateTime<Utc>, _: &mut FieldErrors) {}
}

/// Reads the text of a token, which must be one that this deployment gave.
pub(crate) fn read_token(text: &str, key: &TokenKey) -> Result<Token, Unread> {
    let signed: SignedToken = text.parse().map_err(|error: IdError| Unread::Malformed(error.to_string()))?;
    key.verify(signed).ok_or(Unread::Unknown)
}

/// Reads one entry by itself: the text of its token, as far as there is one, and what is to be done.
pub(crate) fn read_entry(
    entry: &RawValue,
    key: &TokenKey,
    now: DateTime<Utc>,
) -> (String, Result<Release, Unread>) {
    let ended = match form::read::<ReleaseEntry>(entry.get().as_bytes(), now) {
        Ok(ReleaseEntry::Succeeded(token)) => {
            Ended { token, outcome: OutcomeWord::Succeeded, result: None, error: None }
        }
        Ok(ReleaseEntry::Ended(ended)) => ended,
        Err(problem) => {
            return (token_of(entry), Err(Unread::Malformed(problem.into_messages().join("; "))));
        }
    };
    let release = ended.text().map_err(Unread::Malformed).and_then(|text| {
        let token = read_token(&ended.token, key)?;
        Ok(Release { token, outcome: ended.outcome.into(), text })
    });
    (ended.token, release)
}

/// What an entry that does not read names as its token, for the answer.
fn token_of(entry: &RawValue) -> String {
    let read = serde_json::from_str::<Value>(entry.get()).unwrap_or_default();
    let token = read.as_str().or_else(|| read.get("token").and_then(Value::as_str));
    token.unwrap_or_default().to_owned()
}

impl Ended {
    fn text(&self) -> Result<Option<String>, String> {
        let (field, text, fits) = match (&self.result, &self.error) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let detail = "the entry has both 'result' and 'error'; give 'result' with the outcome 'succeeded', or 'error' \
                    with 'failed'";
                return Err(detail.to_owned());
            }
            (Some(text), None) => ("result", text, OutcomeWord::Succeeded),
            (None, Some(text)) => ("error", text, OutcomeWord::Failed),
        };
        if self.outcome != fits {
            let (outcome, fits) = (self.outcome.as_str(), fits.as_str());
            return Err(format!(
                "'{field}' goes with the outcome '{fits}', and the outcome is '{outcome}'; change one of them"
            ));
        }
        match text.len() {
            0..=RESULT_BYTES => Ok(Some(text.clone())),
            bytes => Err(format!(
                "'{field}' is {bytes} bytes long; {RESULT_BYTES} is the most: store the rest elsewhere and say where"
            )),
        }
    }
}

impl OutcomeWord {
    fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}

impl From<OutcomeWord> for Outcome {
    fn from(word: OutcomeWord) -> Self {
        match word {
            OutcomeWord::Succeeded => Self::Succeeded,
            OutcomeWord::Failed => Self::Failed,
        }
    }
}

impl<'de> Deserialize<'de> for ReleaseEntry {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = ReleaseEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a token's text, or {\"token\": \"...\", \"outcome\": \"succeeded\" or \"failed\"}",
                )
            }

            fn visit_str<E>(self, token: &str) -> Result<ReleaseEntry, E> {
                Ok(ReleaseEntry::Succeeded(token.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReleaseEntry, A::Error> {
                Ended::deserialize(MapAccessDeserializer::new(map)).map(ReleaseEntry::Ended)
            }
        }
        reader.deserialize_any(Reading)
    }
}

/// Tokens whose leases are to last longer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtendBody {
    /// 1 to 100 tokens.
    #[schema(min_items = 1, max_items = 100)]
    pub(crate) tokens: Vec<String>,
    /// From now on, in seconds; the policy's lease when left out.
    #[schema(value_type = Option<u32>, minimum = 10, maximum = 43_200)]
    lease_seconds: Option<Whole>,
}

impl Form for ExtendBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl ExtendBody {
    /// Checks every field; how long the leases are to last, if that is said.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<u32> {
        check_number_of_tokens(self.tokens.len(), errors);
        self.lease_seconds.and_then(|given| given.within("lease_seconds", LEASE_SECONDS, errors))
    }
}

/// Notes a list of tokens that is empty or too long.
pub(crate) fn check_number_of_tokens(listed: usize, errors: &mut FieldErrors) {
    let message = match listed {
        0 => "tokens is empty; give the 'token' of each delivered message that is meant".to_owned(),
        1..=TOKENS_PER_CALL => return,
        _ => format!("tokens holds {listed}; {TOKENS_PER_CALL} is the most, so send several calls"),
    };
    errors.add("tokens", (), message);
}

/// What a release did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReleaseStatus {
    /// The token is free; the next event of its policy may go.
    Released,
    /// It was free already: released before.
    AlreadyReleased,
    /// Its lease had run out and it was taken back. The event may be with another consumer. Nothing changed.
    Reclaimed,
    /// Taken down, and done within moments.
    Accepted,
    /// Another client's token. Nothing changed.
    NotYours,
    /// No such lease. Nothing changed.
    Unknown,
    /// The entry cannot be read: `detail` says why. Nothing changed.
    Malformed,
}

/// What a release did to one token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReleaseResult {
    /// The token as it was sent; empty when the entry names none.
    pub(crate) token: String,
    /// What came of it.
    pub(crate) status: ReleaseStatus,
    /// What is wrong with the entry and what to do about it; only when it is malformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// What a release did, in the order of the call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReleaseResults {
    /// One for each token of the call.
    pub(crate) results: Vec<ReleaseResult>,
}

/// What an extension did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExtendStatus {
    /// The lease lasts until `lease_expires_at`.
    Extended,
    /// The lease had ended. The event may be with another consumer: stop.
    Expired,
    /// Another client's token. Nothing changed.
    NotYours,
    /// No such lease. Nothing changed.
    Unknown,
    /// Not the text of a token. Nothing changed.
    Malformed,
}

/// What an extension did to one token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExtendResult {
    /// The token as it was sent.
    pub(crate) token: String,
    /// What came of it.
    pub(crate) status: ExtendStatus,
    /// Until when the token is held; only when it was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) lease_expires_at: Option<String>,
}

/// What an extension did, in the order of the call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExtendResults {
    /// One for each token of the call.
    pub(crate) results: Vec<ExtendResult>,
}

/// Tokens that an operator takes from their holders.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FreeBody {
    /// 1 to 100 tokens.
    #[schema(min_items = 1, max_items = 100)]
    pub(crate) tokens: Vec<String>,
    /// Whether their events are delivered again, under new leases; they are recorded as expired when not.
    #[serde(default)]
    pub(crate) redeliver: bool,
}

impl Form for FreeBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        check_number_of_tokens(self.tokens.len(), errors);
    }
}

/// What came of a token that was to be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FreeStatus {
    /// The token is free.
    Freed,
    /// It was released before.
    AlreadyReleased,
    /// Its lease had run out and it was taken back before.
    Reclaimed,
    /// Another client's token. Nothing changed.
    NotYours,
    /// No such lease. Nothing changed.
    Unknown,
    /// Not the text of a token. Nothing changed.
    Malformed,
}

/// What came of one token that was to be freed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FreeResult {
    /// The token as it was sent.
    pub(crate) token: String,
    /// What came of it.
    pub(crate) status: FreeStatus,
}

/// What came of tokens that were to be freed, in the order of the call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FreeResults {
    /// One for each token of the call.
    pub(crate) results: Vec<FreeResult>,
}
