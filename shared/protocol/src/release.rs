//! What a consumer sends when an event is finished, by a call or by a message.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How an event ended, as its consumer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The consumer did what the event asked for.
    #[default]
    Succeeded,
    /// The consumer gave up on it.
    Failed,
}

impl Outcome {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}

/// A token, and how its event ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Ended))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The token of the delivered message.
    #[cfg_attr(feature = "openapi", schema(example = "tok.acme.small.0.3.17.2.9"))]
    pub token: String,
    /// How the event ended; `succeeded` when left out.
    #[serde(default)]
    pub outcome: Outcome,
    /// What came of the event, in at most 2,048 bytes: shown with it. Only with `succeeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why the event failed, in at most 2,048 bytes: shown with it. Only with `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Release {
    /// A token whose event succeeded.
    ///
    /// ```
    /// use tidegate_protocol::Release;
    ///
    /// let entries = [
    ///     Release::succeeded("tok.acme.small.0.3.17.2.9").result("1,204 rows"),
    ///     Release::failed("tok.acme.small.0.4.18.2.10").error("the shop does not answer"),
    /// ];
    /// assert_eq!(entries[0].result.as_deref(), Some("1,204 rows"));
    /// ```
    pub fn succeeded(token: impl Into<String>) -> Self {
        Self { token: token.into(), outcome: Outcome::Succeeded, result: None, error: None }
    }

    /// A token whose event failed.
    pub fn failed(token: impl Into<String>) -> Self {
        Self { token: token.into(), outcome: Outcome::Failed, result: None, error: None }
    }

    /// The same with what came of the event.
    #[must_use]
    pub fn result(mut self, text: impl Into<String>) -> Self {
        self.result = Some(text.into());
        self
    }

    /// The same with why the event failed.
    #[must_use]
    pub fn error(mut self, text: impl Into<String>) -> Self {
        self.error = Some(text.into());
        self
    }
}

/// One token, with or without how its event ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum ReleaseEntry {
    /// The event succeeded.
    Succeeded(String),
    /// The event ended as it says.
    Ended(Release),
}

impl From<ReleaseEntry> for Release {
    fn from(entry: ReleaseEntry) -> Self {
        match entry {
            ReleaseEntry::Succeeded(token) => Self::succeeded(token),
            ReleaseEntry::Ended(release) => release,
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
                Release::deserialize(MapAccessDeserializer::new(map)).map(ReleaseEntry::Ended)
            }
        }
        reader.deserialize_any(Reading)
    }
}

/// A message of the release queue: the body of a release call. It may name its client; then other clients' tokens are passed
/// over. Each entry is a [`ReleaseEntry`], kept as its text so that one that cannot be read spoils no other.
///
/// A consumer wrote it, so a member that is not known is a typo, and refused as the API refuses it: `outcom` must not become a
/// success.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseMessage {
    /// The client whose tokens these are; not looked at when `None`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The entries, 1 to 100.
    pub tokens: Vec<Box<RawValue>>,
}
