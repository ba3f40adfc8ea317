//! I7: work of one client or policy never waits for another's tokens.
//!
//! A token is held by an event of its own client's policy. While nobody releases the tokens of some policies, or one has
//! more to do than a history lasts, everybody else's work comes to its end (the checks of I2, made once before those
//! policies go on).

use super::{Verdict, Violation};
use crate::sim::model::{Model, PolicyModel};
use crate::sim::watch::Change;

/// The leases that began are of events of the group's own policy. Unknown runs are I3's.
pub(crate) fn own_policy(model: &Model, change: &Change<'_>) -> Verdict {
    for lease in change.began() {
        let event = change.event_of(lease);
        let revision = event.and_then(|event| model.revision(&change.key.client, event.run()));
        // Its writer may not have been told of the newest revision yet.
        let Some(revision) = revision else { continue };
        if revision.job.terms.policy.as_ref() != Some(&change.key.policy) {
            let message = format!("{lease:?} of {} in {:?}", revision.job.id, change.key);
            return Err(Violation::new("I7", "an event holds a token of another policy", message));
        }
    }
    Ok(())
}

/// What is missing while the tokens of a policy are held may have waited for them.
pub(crate) fn beside_held(model: &Model, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Violation>() {
        Ok(violation) if model.policies.iter().any(PolicyModel::is_last) => {
            Violation { invariant: "I2 or I7", ..violation }.into()
        }
        Ok(violation) => violation.into(),
        Err(error) => error,
    }
}
