//! Releasing, extending and freeing tokens.

use serde_json::json;
use tidegate_protocol::{
    ExtendResults, Extended, FreeResults, Freed, Outcome, Release, ReleaseResults, Released,
};

use crate::client::{Attempt, Client, Route};
use crate::error::Error;

impl Client {
    /// Releases tokens whose events succeeded: 1 to 100. The answer has one entry for each, in the same order.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are no tokens or too many. Otherwise as every call of [`Client`].
    /// A single token never fails the others: its [`Released::status`] says what came of it.
    pub async fn release<T: AsRef<str>>(&self, tokens: &[T]) -> Result<Vec<Released>, Error> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let answer: ReleaseResults = self.post(Route::Release, &json!({ "tokens": tokens })).await?;
        Ok(answer.results)
    }

    /// Releases tokens, each with how its event ended: 1 to 100. The answer has one entry for each, in the same order.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are no tokens or too many. Otherwise as every call of [`Client`].
    /// A single token never fails the others: its [`Released::status`] says what came of it.
    pub async fn release_with_outcome<T: AsRef<str>>(
        &self,
        tokens: &[(T, Outcome)],
    ) -> Result<Vec<Released>, Error> {
        let entry = |(token, outcome): &(T, Outcome)| json!({"token": token.as_ref(), "outcome": outcome});
        let tokens: Vec<_> = tokens.iter().map(entry).collect();
        let answer: ReleaseResults = self.post(Route::Release, &json!({ "tokens": tokens })).await?;
        Ok(answer.results)
    }

    /// Releases tokens, each with how its event ended and what is to be kept of that: 1 to 100. The answer has one
    /// entry for each, in the same order. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are no tokens or too many. Otherwise as every call of [`Client`].
    /// A single token never fails the others: its [`Released::status`] says what came of it.
    pub async fn release_each(&self, entries: &[Release]) -> Result<Vec<Released>, Error> {
        self.attempt_release(entries).await.outcome
    }

    /// [`Client::release_each`], with what the headers of the answer say.
    pub(crate) async fn attempt_release(&self, entries: &[Release]) -> Attempt<Vec<Released>> {
        let attempt = self.attempt(Route::Release, &json!({ "tokens": entries })).await;
        attempt.map(|answer: ReleaseResults| answer.results)
    }

    /// Ends leases, whether they ran out or not: 1 to 100 tokens. With `redeliver` their events are delivered again
    /// under new leases, else they are recorded as expired. It is what ends a lease that ran out under
    /// [`OnExpiry::Hold`](crate::OnExpiry). The answer has one entry for each, in the same order.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are no tokens or too many. Otherwise as every call of [`Client`].
    /// A single token never fails the others: its [`Freed::status`] says what came of it.
    pub async fn free<T: AsRef<str>>(&self, tokens: &[T], redeliver: bool) -> Result<Vec<Freed>, Error> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let body = json!({"tokens": tokens, "redeliver": redeliver});
        let answer: FreeResults = self.post(Route::Free, &body).await?;
        Ok(answer.results)
    }

    /// Makes leases last `lease_seconds` from now, 10 to 43,200, or as long as their policy's when that is `None`: 1 to
    /// 100 tokens. The answer has one entry for each, in the same order. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are no tokens or too many, or `lease_seconds` is out of bounds.
    /// Otherwise as every call of [`Client`]. A single token never fails the others: its [`Extended::status`] says what
    /// came of it.
    pub async fn extend<T: AsRef<str>>(
        &self,
        tokens: &[T],
        lease_seconds: Option<u32>,
    ) -> Result<Vec<Extended>, Error> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        self.attempt_extend(&tokens, lease_seconds).await.outcome
    }

    /// [`Client::extend`], with what the headers of the answer say.
    pub(crate) async fn attempt_extend(
        &self,
        tokens: &[&str],
        lease_seconds: Option<u32>,
    ) -> Attempt<Vec<Extended>> {
        let body = json!({"tokens": tokens, "lease_seconds": lease_seconds});
        let attempt = self.attempt(Route::Extend, &body).await;
        attempt.map(|answer: ExtendResults| answer.results)
    }
}
