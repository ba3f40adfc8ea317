//! Tokens as they travel: released and extended by the hundred.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use tidegate_domain::limits::TOKENS_PER_CALL;
use utoipa::ToSchema;

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
    /// 1 to 100 tokens: each either the token's text, or an object that adds how the event ended.
    #[schema(min_items = 1, max_items = 100, example = json!(["tok.acme.small.0.3.17.2.9"]))]
    pub(crate) tokens: Vec<ReleaseEntry>,
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
    pub(crate) token: String,
    /// How the event ended; `succeeded` when left out.
    #[serde(default)]
    pub(crate) outcome: OutcomeWord,
}

impl ReleaseEntry {
    pub(crate) fn into_parts(self) -> (String, OutcomeWord) {
        match self {
            Self::Succeeded(token) => (token, OutcomeWord::Succeeded),
            Self::Ended(Ended { token, outcome }) => (token, outcome),
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
    #[schema(value_type = Option<u32>, minimum = 5, maximum = 43_200)]
    pub(crate) lease_seconds: Option<Whole>,
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
    /// It was free already: released before, or reclaimed after its lease.
    AlreadyReleased,
    /// Taken down, and done within moments.
    Accepted,
    /// Another client's token. Nothing changed.
    NotYours,
    /// No such lease. Nothing changed.
    Unknown,
    /// Not the text of a token. Nothing changed.
    Malformed,
}

/// What a release did to one token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReleaseResult {
    /// The token as it was sent.
    pub(crate) token: String,
    /// What came of it.
    pub(crate) status: ReleaseStatus,
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
