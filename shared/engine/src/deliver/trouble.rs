//! What the log says of events that did not reach their target: one line for each job of a message, however many events.
//!
//! Deliberately absent: payloads, secrets and URLs, which may carry secrets. The event's id leads to its record.

use std::collections::BTreeMap;

use tidegate_domain::ids::{ClientId, EventId, JobId, PolicyId};
use tidegate_domain::job::Terms;
use tracing::warn;

use crate::figures::DEAD_EVENTS;

/// Characters of a reason that are logged: some services answer at length.
const REASON_CHARS: usize = 300;

/// Events that did not reach their target, by their job.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    dead: BTreeMap<JobId, Trouble>,
    retried: BTreeMap<JobId, Trouble>,
}

/// Events of one job: the first of them, what it was told, and how many they are.
#[derive(Debug)]
struct Trouble {
    first: EventId,
    policy: Option<PolicyId>,
    target: &'static str,
    reason: String,
    events: u32,
}

impl Troubles {
    /// Notes an event that is given up.
    pub(super) fn dead(&mut self, event: &EventId, terms: &Terms, reason: &str) {
        note(&mut self.dead, event, terms, reason);
    }

    /// Notes an event that is tried again.
    pub(super) fn retried(&mut self, event: &EventId, terms: &Terms, reason: &str) {
        note(&mut self.retried, event, terms, reason);
    }

    /// Logs what was noted: events of a client, after delivery number `attempts` of each.
    pub(super) fn log(&self, client: &ClientId, attempts: u8) {
        for (job, Trouble { first, policy, target, reason, events }) in &self.dead {
            let (run, policy) = (first.run(), policy.as_ref().map(tracing::field::display));
            // `DEAD_EVENTS` is what an alarm counts: no other line has it.
            warn!(%client, %job, %run, event = %first, policy, target, attempts, reason, { DEAD_EVENTS } = u64::from(*events), "events cannot be delivered");
        }
        for (job, Trouble { first, policy, target, reason, events }) in &self.retried {
            let (run, policy) = (first.run(), policy.as_ref().map(tracing::field::display));
            warn!(%client, %job, %run, event = %first, policy, target, attempts, reason, events, "events are tried again");
        }
    }
}

fn note(troubles: &mut BTreeMap<JobId, Trouble>, event: &EventId, terms: &Terms, reason: &str) {
    let job = event.run().job();
    match troubles.get_mut(job) {
        Some(trouble) => trouble.events += 1,
        None => {
            let trouble = Trouble {
                first: event.clone(),
                policy: terms.policy.clone(),
                target: terms.target.transport().name,
                reason: reason.chars().take(REASON_CHARS).collect(),
                events: 1,
            };
            troubles.insert(job.clone(), trouble);
        }
    }
}
