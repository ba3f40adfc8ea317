//! Telling a client that a launch was not over in time: a message to the queue, or a signed POST to the endpoint, that its admin
//! named for that.
//!
//! At least once, under the id `<run>.overdue`.

use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::retry::{Retry, Tries};
use tidegate_domain::time::shifted;
use tidegate_protocol::LaunchOverdue;
use tidegate_store::overdue::Overdue;
use tidegate_store::runs::Announced;
use tracing::{info, warn};

use super::event::rfc3339;
use super::{Delivery, Sent};
use crate::EngineError;
use crate::queues::Outgoing;
use crate::queues::message::Message;

impl Delivery {
    /// Tells a client of a launch that was not over in time, now or, when that fails, later. `failures` is how often it failed.
    pub(crate) async fn tell_overdue(
        &self,
        client: &ClientId,
        run: &RunId,
        failures: u8,
    ) -> Result<(), EngineError> {
        let Some(overdue) = self.store.overdue(client, run).await?.filter(|row| row.told.is_none()) else {
            return Ok(());
        };
        let Some(target) = self.store.client(client).await?.and_then(|client| client.alerts) else {
            return Ok(());
        };
        let body = serde_json::to_string(&message(client, &overdue)).unwrap_or_default();
        let now = self.clock.now();
        let made = failures.saturating_add(1);
        let tries = Tries { made, failed: made, since_s: overdue.seen_at.timestamp() };
        let wait = |asked_for| Retry::default().wait(tries, asked_for, now, self.random.next_u64());
        let failure = match self.send_completion((client, run), &target, (&message_id(run), body)).await? {
            Sent::Done => None,
            Sent::Failed { reason, retry_after, .. } => match wait(retry_after) {
                Some(wait) => {
                    info!(%client, %run, reason, failures, "that a launch is overdue is told again");
                    let due_at = shifted(now, wait);
                    let again = Message::overdue(client, run, made, Some(due_at));
                    return self.queues.dispatch(&[Outgoing::at(client, again, due_at)]).await;
                }
                None => Some(reason),
            },
            Sent::Refused { reason } => Some(reason),
        };
        if let Some(reason) = &failure {
            warn!(%client, %run, reason, "nobody can be told that a launch is overdue");
        }
        self.store.mark_told(client, run, &Announced { at: now, failure }).await?;
        Ok(())
    }
}

/// What a client is told of a launch that was not over in time.
fn message(client: &ClientId, overdue: &Overdue) -> LaunchOverdue {
    let run = &overdue.run;
    LaunchOverdue {
        r#type: "launch.overdue".to_owned(),
        id: message_id(run),
        client_id: client.to_string(),
        job_id: run.job().to_string(),
        run_id: run.to_string(),
        launch_at: rfc3339(run.launch_at()),
        within_seconds: overdue.within_seconds,
        state: overdue.state.as_str().to_owned(),
        reason: overdue.reason.clone(),
        seen_at: rfc3339(overdue.seen_at),
    }
}

/// What it is known by: in its body, as `webhook-id`, and where a FIFO queue suppresses repeats.
fn message_id(run: &RunId) -> String {
    format!("{run}.overdue")
}
