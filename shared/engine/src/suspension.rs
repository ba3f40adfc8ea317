//! Suspending a client: an admin stops it, whatever it does, and lets it go on later.
//!
//! Its row says so, by which its keys are refused; and it is sidelined, so that nothing of it is delivered. What is launched
//! meanwhile waits.

use std::sync::Arc;

use futures::future::BoxFuture;
use tidegate_domain::change::What;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::retry::RedrivePace;
use tidegate_domain::sideline::{Sideline, SidelineOf};
use tidegate_store::clients::{Client, Suspension};
use tidegate_store::{Store, Write};

use crate::EngineError;
use crate::author;
use crate::sidelining::Sidelining;

/// What admins do to stop clients.
pub struct Suspensions {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sidelining: Arc<Sidelining>,
}

impl Suspensions {
    /// Suspends a client: its keys are refused with the reason, those of consumers for releases aside, and nothing of it is
    /// delivered. What is in flight goes on. Repeating it changes nothing but the reason, and one that is being deleted stays as
    /// it is. The client as it is then; `None`: there is none.
    ///
    /// # Errors
    /// As [`Sidelining::sideline`]. Its keys may be refused then while some of its policies are not held yet; repeating the call is
    /// safe.
    pub fn suspend<'a>(
        &'a self,
        id: &'a ClientId,
        because: &'a str,
    ) -> BoxFuture<'a, Result<Option<Client>, EngineError>> {
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let Some(seen) = self.store.registered_client(id).await? else { return Ok(None) };
                if seen.deleting.is_some() {
                    return Ok(Some(seen));
                }
                let suspension = match seen.suspended.clone() {
                    Some(known) => Suspension { because: because.to_owned(), ..known },
                    None => Suspension {
                        since_ms: self.clock.now().timestamp_millis(),
                        because: because.to_owned(),
                        held_before: self.is_held(id).await?,
                    },
                };
                let held_before = suspension.held_before;
                let revision = seen.revision.saturating_add(1);
                let changed = Client { suspended: Some(suspension), revision, ..seen };
                let change = author::change(What::Suspended, self.clock.now());
                if self.store.replace_suspension(&changed, &change).await? == Write::Refused {
                    continue;
                }
                if !held_before {
                    self.sidelining.sideline(id, &SidelineOf::Client, because).await?;
                }
                return Ok(Some(changed));
            }
            Err(EngineError::Contended { what: "a client", rounds: WRITE_ROUNDS })
        })
    }

    /// Lets a client go on: what waited drains at a pace, and then its keys are good again. One that was sidelined before it was
    /// suspended stays so. One that is not suspended, or is being deleted, stays as it is. The client as it is then; `None`: there
    /// is none.
    ///
    /// # Errors
    /// As [`Sidelining::drain`]. It may drain then while its keys are still refused; repeating the call is safe.
    pub fn resume<'a>(
        &'a self,
        id: &'a ClientId,
        pace: RedrivePace,
    ) -> BoxFuture<'a, Result<Option<Client>, EngineError>> {
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let Some(seen) = self.store.registered_client(id).await? else { return Ok(None) };
                let suspension = seen.suspended.as_ref().filter(|_| seen.deleting.is_none());
                let Some(suspension) = suspension else { return Ok(Some(seen)) };
                if !suspension.held_before {
                    self.sidelining.drain(id, &SidelineOf::Client, pace).await?;
                }
                let changed =
                    Client { suspended: None, revision: seen.revision.saturating_add(1), ..seen.clone() };
                let change = author::change(What::Resumed, self.clock.now());
                if self.store.replace_suspension(&changed, &change).await? == Write::Done {
                    return Ok(Some(changed));
                }
            }
            Err(EngineError::Contended { what: "a client", rounds: WRITE_ROUNDS })
        })
    }

    async fn is_held(&self, id: &ClientId) -> Result<bool, EngineError> {
        Ok(self.store.recheck(id).await?.sidelines.client.is_some_and(|client| Sideline::is_held(&client)))
    }
}
