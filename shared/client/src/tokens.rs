//! Releasing and extending tokens.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::{Client, Route};
use crate::error::Error;

/// How an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The consumer did what the event asked for.
    Succeeded,
    /// The consumer gave up on it.
    Failed,
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReleaseStatus {
    /// The token is free; the next event of its policy may go.
    Released,
    /// It was free already: released before, or reclaimed after its lease.
    AlreadyReleased,
    /// Taken down, and done within moments.
    Accepted,
    /// Another client's token.
    NotYours,
    /// No such lease.
    Unknown,
    /// Not the text of a token.
    Malformed,
    /// A status of a later version.
    #[serde(other)]
    Other,
}

/// What came of the release of one token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Released {
    /// The token as it was sent.
    pub token: String,
    /// What came of it.
    pub status: ReleaseStatus,
}

/// What came of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExtendStatus {
    /// The token is held until [`Extended::lease_expires_at`].
    Extended,
    /// The lease had ended. The event may be with another consumer: stop.
    Expired,
    /// Another client's token.
    NotYours,
    /// No such lease.
    Unknown,
    /// Not the text of a token.
    Malformed,
    /// A status of a later version.
    #[serde(other)]
    Other,
}

/// What came of the extension of one token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Extended {
    /// The token as it was sent.
    pub token: String,
    /// What came of it.
    pub status: ExtendStatus,
    /// Until when it is held, RFC 3339; only when it was extended.
    #[serde(default)]
    pub lease_expires_at: Option<String>,
}

#[derive(Deserialize)]
struct Results<T> {
    results: Vec<T>,
}

impl Client {
    /// Releases tokens whose events succeeded: 1 to 100. The answer has one entry for each, in the same order.
    ///
    /// # Errors
    /// When the call as a whole fails; a single token never fails the others.
    pub async fn release<T: AsRef<str>>(&self, tokens: &[T]) -> Result<Vec<Released>, Error> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let answer: Results<Released> = self.post(Route::Release, &json!({ "tokens": tokens })).await?;
        Ok(answer.results)
    }

    /// Releases tokens, each with how its event ended: 1 to 100.
    ///
    /// # Errors
    /// When the call as a whole fails; a single token never fails the others.
    pub async fn release_with_outcome<T: AsRef<str>>(
        &self,
        tokens: &[(T, Outcome)],
    ) -> Result<Vec<Released>, Error> {
        let entry = |(token, outcome): &(T, Outcome)| json!({"token": token.as_ref(), "outcome": outcome});
        let tokens: Vec<_> = tokens.iter().map(entry).collect();
        let answer: Results<Released> = self.post(Route::Release, &json!({ "tokens": tokens })).await?;
        Ok(answer.results)
    }

    /// Makes leases last `lease_seconds` from now, or as long as their policy's when that is `None`: 1 to 100 tokens.
    ///
    /// # Errors
    /// When the call as a whole fails; a single token never fails the others.
    pub async fn extend<T: AsRef<str>>(
        &self,
        tokens: &[T],
        lease_seconds: Option<u32>,
    ) -> Result<Vec<Extended>, Error> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let body = json!({"tokens": tokens, "lease_seconds": lease_seconds});
        let answer: Results<Extended> = self.post(Route::Extend, &body).await?;
        Ok(answer.results)
    }
}
