//! Telling a client that a run has come to its end: a message to its queue or a signed POST to its endpoint.
//!
//! At least once, under the id `<run>.completed`. It travels through the dispatch queue, so nobody who counts the last
//! outcome waits for an endpoint.

use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::retry::Tries;
use tidegate_domain::time::shifted;
use tidegate_protocol::Completion;
use tidegate_store::runs::{Announced, RunRow};
use tracing::{info, warn};

use super::event::rfc3339;
use super::{Delivery, Sent};
use crate::EngineError;
use crate::queues::Outgoing;
use crate::queues::message::Message;

impl Delivery {
    /// Tells a client of a run's end, now or, when that fails, later. `failures` is how often it failed.
    pub(crate) async fn call_back(
        &self,
        client: &ClientId,
        run: &RunId,
        failures: u8,
    ) -> Result<(), EngineError> {
        let Some(row) = self.store.run(client, run).await?.filter(|row| row.announced.is_none()) else {
            return Ok(());
        };
        let Some(target) = &row.terms.flow.on_completion else { return Ok(()) };
        let body = serde_json::to_string(&completion(client, &row)).unwrap_or_default();
        let now = self.clock.now();
        let made = failures.saturating_add(1);
        // From the end of the run on: the first call comes soon after it.
        let since_s = row.last_outcome_at.unwrap_or(now).timestamp();
        let tries = Tries { made, failed: made, since_s };
        let wait = |asked_for| row.terms.retry_in(tries, asked_for, now, self.random.next_u64());
        let id = completion_id(run);
        let failure = match self.send_completion((client, run), target, (&id, body)).await? {
            Sent::Done => None,
            Sent::Failed { reason, retry_after, .. } => match wait(retry_after) {
                Some(wait) => {
                    info!(%client, %run, reason, failures, "a completion is tried again");
                    let due_at = shifted(now, wait);
                    let again = Message::callback(client, run, made, Some(due_at));
                    return self.queues.dispatch(&[Outgoing::at(client, again, due_at)]).await;
                }
                None => Some(reason),
            },
            Sent::Refused { reason } => Some(reason),
        };
        if let Some(reason) = &failure {
            warn!(%client, %run, reason, "a completion cannot be delivered");
        }
        self.store.mark_announced(client, run, &Announced { at: now, failure }).await?;
        Ok(())
    }
}

/// What a client is told of a run's end.
fn completion(client: &ClientId, run: &RunRow) -> Completion {
    let tally = run.tally;
    Completion {
        r#type: "run.completed".to_owned(),
        id: completion_id(&run.id),
        run_id: run.id.to_string(),
        job_id: run.id.job().to_string(),
        client_id: client.to_string(),
        state: if run.stopped.is_some() { "stopped" } else { "finished" }.to_owned(),
        reason: run.stopped.clone(),
        count: run.terms.count.get(),
        succeeded: tally.succeeded,
        failed: tally.failed,
        expired: tally.expired,
        dead: tally.dead,
        left_out: tally.left_out,
        launch_at: rfc3339(run.id.launch_at()),
        started_at: run.started_at.map(rfc3339),
        finished_at: run.last_outcome_at.map(rfc3339),
    }
}

/// What a completion is known by: in its body, as `webhook-id`, and where a FIFO queue suppresses repeats.
fn completion_id(run: &RunId) -> String {
    format!("{run}.completed")
}
