//! Why an event is where it is, as it travels: only ever read.

use serde::Serialize;
use tidegate_engine::{Explanation, TokenKey};
use utoipa::ToSchema;

use crate::wire::holder::HolderView;
use crate::wire::instant;
use crate::wire::policy::PolicyStatusView;
use crate::wire::run::EventView;

/// Why an event is where it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationView {
    event: EventView,
    /// Why it is where it is, in a sentence. Of several reasons to wait it names the first of: its launch is in the future,
    /// the policy is paused or an earlier run must end, pacing, no token is free, the policy's rate.
    because: String,
    /// How many due events of its policy come before it: those in front of it in the line, and those that were taken from
    /// the line and hold no token yet. Null when it does not wait for a token.
    events_before: Option<u64>,
    /// The policy that throttles it, with what it holds; null when none does.
    policy: Option<PolicyStatusView>,
    /// Who holds the policy's tokens: at most 100 of them, those whose lease ends first in front.
    holders: Vec<HolderView>,
    /// When it is expected to be admitted; null when that cannot be said, or when it does not wait.
    #[schema(format = DateTime)]
    expected_at: Option<String>,
    /// What `expected_at` follows from, or why nothing can be expected.
    reasoning: String,
}

impl ExplanationView {
    pub(crate) fn new(explanation: Explanation, key: &TokenKey) -> Self {
        Self {
            event: explanation.record.into(),
            because: explanation.because,
            events_before: explanation.events_before,
            policy: explanation.policy.as_ref().map(PolicyStatusView::new),
            holders: explanation.holders.into_iter().map(|holder| HolderView::new(holder, key)).collect(),
            expected_at: explanation.expected_at.map(instant),
            reasoning: explanation.reasoning,
        }
    }
}
