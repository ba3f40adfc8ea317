//! Telling a client something of a run: a message to a queue, or a signed POST to an endpoint, now or, when that fails, later.
//!
//! At least once, under an id that is the same each time.

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::retry::Tries;
use tidegate_domain::target::Target;
use tidegate_domain::time::shifted;
use tidegate_store::runs::Announced;
use tracing::{info, warn};

use super::{Delivery, Sent};
use crate::EngineError;
use crate::queues::Outgoing;
use crate::queues::message::{Message, Telling};

/// What a client is told, and where.
pub(super) struct Told<'t> {
    pub(super) client: &'t ClientId,
    pub(super) run: &'t RunId,
    pub(super) target: &'t Target,
    /// What it is known by: in its body, as `webhook-id`, and where a FIFO queue suppresses repeats.
    pub(super) id: String,
    pub(super) body: String,
    /// Since when there is something to tell.
    pub(super) since: DateTime<Utc>,
}

impl Delivery {
    /// Tells a client something, and what became of it: it was told, or given up for a reason. `None`: that failed, and a message
    /// that is `again` a telling sees to it later, as `wait` says of the tries so far, what the endpoint asks for, the present
    /// instant and a draw.
    pub(super) async fn tell(
        &self,
        told: Told<'_>,
        telling: &Telling,
        again: fn(Telling) -> Message,
        wait: impl Fn(Tries, Option<Duration>, DateTime<Utc>, u64) -> Option<Duration>,
    ) -> Result<Option<Announced>, EngineError> {
        let Told { client, run, target, id, body, since } = told;
        let now = self.clock.now();
        let made = telling.failures.saturating_add(1);
        let tries = Tries { made, failed: made, since_s: since.timestamp() };
        let failure = match self.send_completion((client, run), target, (&id, body)).await? {
            Sent::Done => None,
            Sent::Failed { reason, retry_after, .. } => {
                match wait(tries, retry_after, now, self.random.next_u64()) {
                    Some(wait) => {
                        info!(%client, id, reason, failures = telling.failures, "what a client is told is told again");
                        let due_at = shifted(now, wait);
                        let message = again(telling.again(made, due_at));
                        self.queues.dispatch(&[Outgoing::at(client, message, due_at)]).await?;
                        return Ok(None);
                    }
                    None => Some(reason),
                }
            }
            Sent::Refused { reason } => Some(reason),
        };
        if let Some(reason) = &failure {
            warn!(%client, id, reason, "a client cannot be told");
        }
        Ok(Some(Announced { at: now, failure }))
    }
}
