//! A dispatch message arrives: find out what it is and do it.

use chrono::DateTime;
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::token::Token;
use tidegate_store::slots::Outcome;
use tracing::{error, warn};

use crate::message::Message;
use crate::queue::Outgoing;
use crate::throttle::release::Release;
use crate::{Engine, EngineError};

/// What came of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It can be deleted.
    Done,
    /// It must come again; after too many times it ends in the dead-letter queue.
    Again,
}

impl Engine {
    /// Handles a message of the dispatch queue. `received` is how often it came, from 1.
    ///
    /// Messages are independent: one that cannot be read or handled stops no other.
    pub async fn handle(&self, body: &str, received: u32) -> Handled {
        match Box::pin(self.try_handle(body, received)).await {
            Ok(()) => Handled::Done,
            Err(error @ EngineError::Message { .. }) => {
                error!(%error, received, "a dispatch message is poison: it goes to the dead-letter queue");
                Handled::Again
            }
            Err(error) => {
                warn!(%error, received, "a dispatch message comes again");
                Handled::Again
            }
        }
    }

    async fn try_handle(&self, body: &str, received: u32) -> Result<(), EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        match Message::decode(body)? {
            Message::Chunk(chunk) => self.deliver_chunk(&chunk, received).await,
            Message::Event(event) => self.deliver_granted(&event, received).await,
            Message::Scan { part } => self.scan_part(&part).await,
            Message::Callback { client, run, failures } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                let run: RunId = run.parse().map_err(|e| bad(format!("'run': {e}")))?;
                self.call_back(&client, &run, failures).await
            }
            Message::Wake { client, policy, due_s } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                let policy: PolicyId = policy.parse().map_err(|e| bad(format!("'policy': {e}")))?;
                let due_at = due_s.and_then(|second| DateTime::from_timestamp(second, 0));
                match due_at.filter(|due_at| self.is_early(*due_at)) {
                    Some(due_at) => {
                        let wake =
                            Message::Wake { client: client.to_string(), policy: policy.to_string(), due_s };
                        self.dispatch(&[Outgoing::at(&client, wake, due_at)]).await
                    }
                    // What is due in it: the tick looks after the rest.
                    None if due_at.is_some() => self.attend_line(&client, &policy).await,
                    None => self.attend(&client, &policy).await,
                }
            }
            Message::Release { token, succeeded, dead, text } => {
                let token: Token = token.parse().map_err(|e| bad(format!("'token': {e}")))?;
                let outcome = match (succeeded, dead) {
                    (true, _) => Outcome::Succeeded,
                    (false, true) => Outcome::Dead,
                    (false, false) => Outcome::Failed,
                };
                let client = token.client.clone();
                self.release_now(&client, vec![Release { token, outcome, text }]).await.map(drop)
            }
        }
    }
}
