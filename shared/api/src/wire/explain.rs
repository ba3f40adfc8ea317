//! Why an event is where it is, as it travels: only ever read.

use tidegate_engine::{ExpectationBasis, Explanation, TokenKey};
use tidegate_protocol as protocol;

use crate::sentences;
use crate::wire::{holder, instant, policy, run};

/// An explanation as it is answered.
pub(crate) fn view(explanation: Explanation, key: &TokenKey) -> protocol::Explanation {
    protocol::Explanation {
        because: sentences::because(&explanation),
        because_code: explanation.reason.code(),
        reasoning: sentences::expectation(&explanation),
        reasoning_codes: explanation.basis.iter().map(ExpectationBasis::code).collect(),
        events_before: explanation.events_before,
        policy: explanation.policy.as_ref().map(policy::status_view),
        holders: explanation.holders.iter().map(|one| holder::view(one, key)).collect(),
        expected_at: explanation.expected_at.map(instant),
        event: run::event_view(explanation.record),
    }
}
