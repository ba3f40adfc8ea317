//! I6: emitted occurrences equal those of the cron engine.
//!
//! An event arrives no earlier than its launch by any process's clock, and its launch is one that the oracle finds for
//! the revision that it is of. That all of them arrive is I2's.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::EventId;

use super::{Verdict, Violation};
use crate::sim::model::Model;

/// An event came to a consumer. `latest` is the latest instant that any process goes by.
pub(crate) fn arrived(event: &EventId, latest: DateTime<Utc>) -> Verdict {
    if event.run().launch_at() > latest {
        let message = format!("{event} came at {latest}");
        return Err(Violation::new("I6", "an event came before its launch", message));
    }
    Ok(())
}

/// Every launch of which an event was delivered is one of its trigger's. Ids that are none are I3's.
pub(crate) fn delivered(model: &Model) -> Verdict {
    for (client, ids) in &model.delivered {
        for event in ids.iter().filter_map(|id| id.parse::<EventId>().ok()) {
            let run = event.run();
            if model.revision(client, run).is_some_and(|revision| !revision.may_launch_at(run.launch_at())) {
                let message = format!("event {client}/{event} was delivered");
                return Err(Violation::new(
                    "I6",
                    "an event was delivered of a time that no trigger names",
                    message,
                ));
            }
        }
    }
    Ok(())
}
