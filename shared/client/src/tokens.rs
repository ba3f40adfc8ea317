//! Releasing, extending and freeing tokens.

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
    /// It was free already: released before.
    AlreadyReleased,
    /// Its lease had run out and it was taken back. The event may be with another consumer.
    Reclaimed,
    /// Taken down, and done within moments.
    Accepted,
    /// Another client's token.
    NotYours,
    /// No such lease.
    Unknown,
    /// The entry cannot be read: [`Released::detail`] says why.
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
    /// What is wrong with the entry; only when it is malformed.
    #[serde(default)]
    pub detail: Option<String>,
}

/// A token, and how its event ended.
///
/// ```
/// use tidegate_client::Release;
///
/// let entries = [
///     Release::succeeded("tok.acme.small.0.3.17.2.9").result("1,204 rows"),
///     Release::failed("tok.acme.small.0.4.18.2.10").error("the shop does not answer"),
/// ];
/// assert_eq!(entries[0].result.as_deref(), Some("1,204 rows"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Release {
    /// The token of the delivered event.
    pub token: String,
    /// How the event ended.
    pub outcome: Outcome,
    /// What came of it, in at most 2,048 bytes; only with [`Outcome::Succeeded`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it failed, in at most 2,048 bytes; only with [`Outcome::Failed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Release {
    /// A token whose event succeeded.
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

/// What came of a token that was to be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FreeStatus {
    /// The token is free.
    Freed,
    /// It was released before.
    AlreadyReleased,
    /// Its lease had run out and it was taken back before.
    Reclaimed,
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

/// What came of one token that was to be freed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Freed {
    /// The token as it was sent.
    pub token: String,
    /// What came of it.
    pub status: FreeStatus,
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

    /// Releases tokens, each with how its event ended and what is to be kept of that: 1 to 100.
    ///
    /// # Errors
    /// When the call as a whole fails; a single token never fails the others.
    pub async fn release_each(&self, entries: &[Release]) -> Result<Vec<Released>, Error> {
        let answer: Results<Released> = self.post(Route::Release, &json!({ "tokens": entries })).await?;
        Ok(answer.results)
    }

    /// Ends leases, whether they ran out or not: 1 to 100 tokens. With `redeliver` their events are delivered again under new
    /// leases, else they are recorded as expired. It is what ends a lease that ran out under [`OnExpiry::Hold`](crate::OnExpiry).
    ///
    /// # Errors
    /// When the call as a whole fails; a single token never fails the others.
    pub async fn free<T: AsRef<str>>(&self, tokens: &[T], redeliver: bool) -> Result<Vec<Freed>, Error> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let body = json!({"tokens": tokens, "redeliver": redeliver});
        let answer: Results<Freed> = self.post(Route::Free, &body).await?;
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
