//! Policies as they travel.

use serde::{Deserialize, Serialize};
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::{LEASE_SECONDS, MAX_IN_FLIGHT};
use tidegate_domain::policy::{Policy, PolicyTerms};
use tidegate_engine::Load;
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::Whole;

/// The lease of a policy that does not name one, in seconds.
const DEFAULT_LEASE_SECONDS: u32 = 60;

/// A policy as a client defines it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyBody {
    /// Its name: 1 to 32 letters, digits, '-' or '_'. Needed when posted; in the path when put.
    #[schema(max_length = 32, example = "small")]
    policy_id: Option<String>,
    /// The most events in flight at once.
    #[schema(value_type = u32, minimum = 1, maximum = 10_000, example = 3)]
    max_in_flight: Whole,
    /// How long a consumer may hold a token without a heartbeat, in seconds.
    #[schema(value_type = Option<u32>, minimum = 5, maximum = 43_200, default = 60)]
    lease_seconds: Option<Whole>,
}

/// A policy that has been checked.
pub(crate) struct CheckedPolicy {
    /// The name in the body, if there is one.
    pub(crate) id: Option<PolicyId>,
    pub(crate) terms: PolicyTerms,
}

impl PolicyBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<CheckedPolicy> {
        let id = match &self.policy_id {
            Some(text) => errors.keep("policy_id", &**text, text.parse()).map(Some),
            None => Some(None),
        };
        let max_in_flight = self.max_in_flight.within("max_in_flight", 1..=MAX_IN_FLIGHT, errors);
        let lease_seconds = self.lease_seconds.unwrap_or(DEFAULT_LEASE_SECONDS.into());
        let lease_seconds = lease_seconds.within("lease_seconds", LEASE_SECONDS, errors);
        let terms = PolicyTerms::new(max_in_flight?, lease_seconds?);
        Some(CheckedPolicy { id: id?, terms: errors.keep("(body)", (), terms)? })
    }
}

/// A policy as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Policy)]
pub(crate) struct PolicyView {
    /// Its name within the client.
    policy_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    revision: u32,
    /// The most events in flight at once.
    max_in_flight: u32,
    /// How long a consumer may hold a token without a heartbeat, in seconds.
    lease_seconds: u32,
}

impl From<&Policy> for PolicyView {
    fn from(policy: &Policy) -> Self {
        Self {
            policy_id: policy.id.to_string(),
            revision: policy.revision,
            max_in_flight: policy.terms.max_in_flight(),
            lease_seconds: policy.terms.lease_seconds(),
        }
    }
}

/// A policy with what it holds at present.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PolicyStatus)]
pub(crate) struct PolicyStatusView {
    #[serde(flatten)]
    policy: PolicyView,
    /// Events in flight now: delivered or about to be, and neither released nor expired.
    in_flight: u32,
    /// Events that were launched and wait for a token.
    waiting: u32,
    /// Runs in its line, due or not.
    waiting_runs: u32,
    /// Whether more is in flight than the limit, because the limit was lowered: nothing is admitted until it is not.
    draining: bool,
}

impl PolicyStatusView {
    pub(crate) fn new(policy: &Policy, load: Load) -> Self {
        let Load { in_flight, waiting, waiting_runs } = load;
        let draining = in_flight > policy.terms.max_in_flight();
        Self { policy: policy.into(), in_flight, waiting, waiting_runs, draining }
    }
}

/// A page of policies.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyList {
    /// The policies, by name.
    pub(crate) policies: Vec<PolicyView>,
    /// What to ask the next page with; null on the last.
    pub(crate) next_cursor: Option<String>,
}
