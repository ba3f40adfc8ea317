//! I3: an occurrence yields exactly the event ids 0..n, whoever emits it and however often.
//!
//! An event is granted for the first time once, and is one of its run's. Whatever was delivered is an event of a revision
//! of a job that a client was told of. That every event came is I2's; that its instant is one of the trigger's is I6's.

use std::collections::BTreeSet;

use tidegate_domain::ids::{ClientId, EventId, RunId};

use super::{Verdict, Violation};
use crate::sim::model::Model;
use crate::sim::watch::Change;

/// The events that were granted a token so far.
#[derive(Debug, Default)]
pub(crate) struct Grants(BTreeSet<(ClientId, EventId)>);

impl Grants {
    /// Holds the leases that began against the runs that they are of.
    pub(crate) fn check(&mut self, model: &Model, change: &Change<'_>) -> Verdict {
        for lease in change.began() {
            let key = change.key;
            let Some(event) = change.event_of(lease) else {
                let message = format!("{key:?}: {lease:?}");
                return Err(Violation::new("I3", "a slot names an unknown event", message));
            };
            let run = event.run();
            // Its writer may not have been told of the newest revision yet.
            let revision = model.revision(&key.client, run);
            if revision.is_some_and(|revision| event.index() >= revision.job.terms.count.get()) {
                let message = format!("event {event} was granted in {key:?}");
                return Err(Violation::new("I3", "an event was granted that its run has not", message));
            }
            let is_first = lease.attempt == 1 && !change.is_sent_again(lease);
            if is_first && !self.0.insert((key.client.clone(), event.clone())) {
                let message = format!("event {event} was granted anew in {key:?}");
                return Err(Violation::new("I3", "an event was granted for the first time twice", message));
            }
        }
        Ok(())
    }
}

/// Whatever was delivered is an event of a revision that a client was told of.
pub(crate) fn delivered(model: &Model) -> Verdict {
    for (client, ids) in &model.delivered {
        for id in ids {
            let Ok(event) = id.parse::<EventId>() else {
                return Err(Violation::new("I3", "what was delivered has no event id", id.clone()));
            };
            let (run, count) = (event.run(), model.revision(client, event.run()).map(|r| r.job.terms.count));
            if count.map_or(!is_nameless(run), |count| event.index() >= count.get()) {
                let message = format!("event {client}/{id} was delivered");
                return Err(Violation::new("I3", "an event was delivered that no job has", message));
            }
        }
    }
    Ok(())
}

/// The answer to the creation of a job with a generated id can be lost: then nobody knows it.
fn is_nameless(run: &RunId) -> bool {
    run.job().one_time_shard().is_some() || run.job().as_str().starts_with("job_")
}
