//! Deleting a client with all that is its own: in steps of some pages, each a message that sends the next.
//!
//! How far it came stands in the client's row, and a step that is taken twice moves that once: so no crash loses the rest, and a
//! message that comes again starts no second chain. Where a message was lost, a tick sends another.

use std::sync::Arc;

use chrono::Duration;
use futures::future::BoxFuture;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::sideline::SidelineOf;
use tidegate_domain::slots::Epoch;
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::clients::{Client, Deletion, Stage};
use tidegate_store::{Store, Write};
use tracing::info;

use crate::queues::{Outgoing, Queues};
use crate::sidelining::Sidelining;
use crate::{EngineError, deadline};

/// How long keys are believed, and calls last that were begun with them: nothing is removed before.
const CALLS_END: Duration = seconds(120);
/// How long what was emitted before its job was removed may be on its way: longer than any message is delayed.
const ARRIVALS_END: Duration = seconds(1_200);
/// Pages that one message looks at.
const PAGES_AT_A_TIME: usize = 20;
/// What has been planned until so long after the end is looked up before it is delivered.
const LOOKED_UP: Duration = seconds(90);

/// What admins do to take clients away.
pub struct Deletions {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) sidelining: Arc<Sidelining>,
}

impl Deletions {
    /// Begins to delete a client: its keys are refused, nothing of it is delivered, and all that it has is removed by and by. The
    /// client as it is then; `None`: there is none. Repeating it has a deletion go on that stands still.
    ///
    /// # Errors
    /// As [`Sidelining::sideline`]. The deletion may have begun then; repeating the call is safe.
    pub fn begin<'a>(&'a self, id: &'a ClientId) -> BoxFuture<'a, Result<Option<Client>, EngineError>> {
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let Some(seen) = self.store.client_as_it_is(id).await? else { return Ok(None) };
                let now = self.clock.now();
                let deletion = seen.deleting.clone().unwrap_or_else(|| Deletion {
                    since_ms: now.timestamp_millis(),
                    stage: Stage::Index,
                    after: None,
                    step: 1,
                    removed: 0,
                    not_before_ms: shifted(now, CALLS_END).timestamp_millis(),
                    moved_ms: now.timestamp_millis(),
                });
                if seen.deleting.is_none()
                    && self.store.begin_deletion(&seen, &deletion).await? == Write::Refused
                {
                    continue;
                }
                self.store.list_deletion(id, true).await?;
                self.sidelining.sideline(id, &SidelineOf::Client, "it is being deleted").await?;
                self.queues.dispatch(&[Outgoing::next_step(id, &deletion)]).await?;
                let revision = seen.revision.saturating_add(u32::from(seen.deleting.is_none()));
                return Ok(Some(Client { revision, deleting: Some(deletion), ..seen }));
            }
            Err(EngineError::Contended { what: "a client", rounds: WRITE_ROUNDS })
        })
    }

    /// Takes a step of a deletion, and has the next one asked for.
    pub(crate) async fn go_on(&self, id: &ClientId, asked: u64) -> Result<(), EngineError> {
        let deletion = self.store.client_as_it_is(id).await?.and_then(|client| client.deleting);
        let Some(seen) = deletion else { return Ok(()) };
        if asked.saturating_add(1) == seen.step {
            // Whoever took it may have died before the next one was asked for.
            return self.queues.dispatch(&[Outgoing::next_step(id, &seen)]).await;
        }
        if asked != seen.step {
            return Ok(());
        }
        if seen.not_before() > self.clock.now() {
            return self.queues.dispatch(&[Outgoing::next_step(id, &seen)]).await;
        }
        let moved_ms = self.clock.now().timestamp_millis();
        let mut next = Deletion { step: seen.step.saturating_add(1), moved_ms, ..seen.clone() };
        for _ in 0..PAGES_AT_A_TIME {
            let swept = self.store.sweep(id, next.stage, next.after.clone()).await?;
            next.removed = next.removed.saturating_add(swept.removed);
            next.after = swept.next;
            if next.after.is_none() {
                let Some(stage) = next.stage.next() else { return self.end(id, &seen).await };
                next.stage = stage;
                if stage == Stage::Policies {
                    next.not_before_ms = shifted(self.clock.now(), ARRIVALS_END).timestamp_millis();
                    // What arrives until then is looked up, and its job is gone.
                    self.store.mark_dirty(id, next.not_before()).await?;
                    break;
                }
            }
            if deadline::is_over(&*self.clock) {
                break;
            }
        }
        match self.store.move_deletion(id, &seen, &next).await? {
            Write::Done => self.queues.dispatch(&[Outgoing::next_step(id, &next)]).await,
            // Somebody else took the step.
            Write::Refused => Ok(()),
        }
    }

    /// Nothing is left: whoever has the name next begins anew.
    async fn end(&self, id: &ClientId, seen: &Deletion) -> Result<(), EngineError> {
        let now = self.clock.now();
        // Tokens that were given under the name end no lease of whoever has it next.
        self.store.begin_epoch(Epoch::from_millis(now.timestamp_millis())).await?;
        self.store.forget_sidelines(id, shifted(now, LOOKED_UP)).await?;
        if self.store.end_deletion(id, seen).await? == Write::Done {
            info!(client = %id, removed = seen.removed, "a client is deleted");
        }
        Ok(())
    }
}
