//! Policies: how many events may be in flight, for how long, and how fast they may begin.

use serde::Serialize;
use tidegate_protocol::{
    Holder, HolderList, OnExpiry, PolicyList, PolicySamples, PolicyStatus, PolicyView, Rate, StrainedTarget,
    StrainedTargetList,
};

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// A throttling policy. The bounds of its numbers are those of the OpenAPI document; the API refuses others with status
/// 422 and names the field.
///
/// ```
/// use tidegate_client::{OnExpiry, Policy, Rate};
///
/// let policy = Policy { rate: Some(Rate::per_second(100)), on_expiry: OnExpiry::Hold, ..Policy::new(8) };
/// assert_eq!((policy.max_in_flight, policy.lease_seconds), (8, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The most tokens held at once, 1 to 10,000; an event takes one, or its job's cost.
    pub max_in_flight: u32,
    /// How long a token may be held without a heartbeat, in seconds; 60 when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u32>,
    /// What becomes of a token whose lease ran out.
    pub on_expiry: OnExpiry,
    /// How fast events may begin; as fast as tokens allow when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many runs may wait in its line; any number when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_waiting_runs: Option<u32>,
}

impl Policy {
    /// At most `max_in_flight` tokens at once, 1 to 10,000, each held for 60 seconds unless it is extended; no rate,
    /// and any number of waiting runs.
    pub fn new(max_in_flight: u32) -> Self {
        Self {
            max_in_flight,
            lease_seconds: None,
            on_expiry: OnExpiry::Reclaim,
            rate: None,
            max_waiting_runs: None,
        }
    }
}

/// A body with the name that is part of it when posted.
#[derive(Serialize)]
struct Named<'a> {
    policy_id: &'a str,
    #[serde(flatten)]
    body: &'a Policy,
}

/// Until when a policy is closed, and why.
#[derive(Serialize)]
struct ClosePolicy<'a> {
    until: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
}

impl Client {
    /// Creates a policy. One that says the same already is no error, one that says something else is.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 when the id names another policy, 422 when a field is wrong. Otherwise as
    /// every call of [`Client`].
    pub async fn create_policy(&self, policy_id: &str, policy: &Policy) -> Result<PolicyView, Error> {
        self.post(Route::Policies, &Named { policy_id, body: policy }).await
    }

    /// Creates or replaces a policy; with `expected`, only at that revision. A new limit acts on the next grant.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 412 when it is at another revision, 422 when a field is wrong. Otherwise as every
    /// call of [`Client`].
    pub async fn put_policy(
        &self,
        policy_id: &str,
        policy: &Policy,
        expected: Option<u32>,
    ) -> Result<PolicyView, Error> {
        self.put(Route::Policy(policy_id), policy, expected).await
    }

    /// Changes some fields of a policy by a JSON merge patch (RFC 7396), such as `json!({"max_in_flight": 6})`: null
    /// takes a field out, which brings back its default, and what is not named stays. With `expected`, only at that
    /// revision; without, the patch is merged into whatever is there.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, 409 when it changed at the same time, 412 when
    /// it is at another revision, 422 when a field of what would come of it is wrong. Otherwise as every call of
    /// [`Client`].
    pub async fn patch_policy(
        &self,
        policy_id: &str,
        changes: &impl Serialize,
        expected: Option<u32>,
    ) -> Result<PolicyView, Error> {
        self.patch(Route::Policy(policy_id), changes, expected).await
    }

    /// A policy by its name, with what it holds at present.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy. Otherwise as every call of [`Client`].
    pub async fn policy(&self, policy_id: &str) -> Result<PolicyStatus, Error> {
        self.get(Route::Policy(policy_id)).await
    }

    /// What went on in a policy from `since` up to, not including, `until`, two RFC 3339 instants at most 7 days apart: minute by
    /// minute.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, and nothing is kept of one, 400 when an instant is wrong.
    /// Otherwise as every call of [`Client`].
    pub async fn policy_samples(
        &self,
        policy_id: &str,
        since: &str,
        until: &str,
    ) -> Result<PolicySamples, Error> {
        let query = [("since", since), ("until", until)];
        self.get_with(Route::PolicySamples(policy_id), &query).await
    }

    /// A page of the client's policies, by name; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when the cursor is not one of this list. Otherwise as every call of
    /// [`Client`].
    pub async fn policies(&self, cursor: Option<&str>) -> Result<Page<PolicyView>, Error> {
        let page: PolicyList = self.get_page(Route::Policies, &[], cursor).await?;
        Ok(Page { rows: page.policies, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// Deletes a policy that no job names and that holds nothing; with `expected`, only at that revision.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, 409 when it is in use, 412 when it is at
    /// another revision. Otherwise as every call of [`Client`].
    pub async fn delete_policy(&self, policy_id: &str, expected: Option<u32>) -> Result<(), Error> {
        self.delete(Route::Policy(policy_id), expected).await
    }

    /// Pauses a policy: nothing more is admitted, what is in flight ends as it would. With `expected`, only at that
    /// revision. Repeating it without is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, 412 when it is at another revision. Otherwise
    /// as every call of [`Client`].
    pub async fn pause_policy(&self, policy_id: &str, expected: Option<u32>) -> Result<PolicyView, Error> {
        self.act(Route::PausePolicy(policy_id), expected).await
    }

    /// Resumes a policy: its line goes on where it stood. With `expected`, only at that revision. Repeating it without
    /// is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, 412 when it is at another revision. Otherwise
    /// as every call of [`Client`].
    pub async fn resume_policy(&self, policy_id: &str, expected: Option<u32>) -> Result<PolicyView, Error> {
        self.act(Route::ResumePolicy(policy_id), expected).await
    }

    /// Closes a policy until an instant (ISO 8601 with its offset, at most 7 days ahead): nothing is admitted before it, and its line
    /// goes on then by itself. `because` is for those who look at it. With `expected`, only at that revision. Repeating it
    /// without is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, 412 when it is at another revision, 422 for an instant that
    /// is past or too far ahead. Otherwise as every call of [`Client`].
    pub async fn close_policy(
        &self,
        policy_id: &str,
        until: &str,
        because: Option<&str>,
        expected: Option<u32>,
    ) -> Result<PolicyView, Error> {
        let body = ClosePolicy { until, because };
        self.act_with(Route::ClosePolicy(policy_id), &body, expected).await
    }

    /// Opens a policy at once, whoever closed it, and takes back what its limit was lowered by since its consumer could not keep
    /// up. With `expected`, only at that revision. Repeating it without is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy, 412 when it is at another revision. Otherwise
    /// as every call of [`Client`].
    pub async fn open_policy(&self, policy_id: &str, expected: Option<u32>) -> Result<PolicyView, Error> {
        self.act(Route::OpenPolicy(policy_id), expected).await
    }

    /// A page of the targets without a policy that cannot keep up; `cursor` is the `next_cursor` of the page before.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn strained_targets(&self, cursor: Option<&str>) -> Result<Page<StrainedTarget>, Error> {
        let list: StrainedTargetList = self.get_page(Route::Targets, &[], cursor).await?;
        Ok(Page { rows: list.targets, unreadable: list.unreadable, next_cursor: list.next_cursor })
    }

    /// All who hold a token of a policy, those whose lease ends first in front.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such policy. Otherwise as every call of [`Client`].
    pub async fn holders(&self, policy_id: &str) -> Result<Vec<Holder>, Error> {
        let list: HolderList = self.get(Route::Holders(policy_id)).await?;
        Ok(list.holders)
    }
}
