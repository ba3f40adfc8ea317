//! Cancelling a run.

use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::occurrence::StopReason;
use tidegate_domain::policy::PolicyRef;
use tidegate_store::runs::RunRow;

use super::Jobs;
use crate::EngineError;
use crate::effect::{Effect, WaitingRun};
use crate::queries::history::Live;

/// What came of cancelling a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCancel {
    /// Nothing more of it is admitted; what is in flight goes on.
    Done,
    /// There is no such run.
    Absent,
    /// It had come to its end, or was stopped before.
    Over,
}

impl Jobs {
    /// Cancels what is left of a run: nothing more of it is admitted, and what is in flight goes on. A run that no
    /// policy throttles cannot be cancelled: it is `Over`.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Queue` when the dispatch queue does not take what follows, `EngineError::Contended` when a slot
    /// group was changed by others in each round. Repeating the call is safe.
    pub fn cancel_run<'a>(
        &'a self,
        client: &'a ClientId,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<RunCancel, EngineError>> {
        Box::pin(async move {
            let Some(row) = self.store.find_run(client, run).await? else {
                return match self.queries.under_way(client, run).await? {
                    Some(single) => self.cancel_single(client, &RunRow::waiting(&single)).await,
                    None => Ok(RunCancel::Absent),
                };
            };
            if row.member.is_some() {
                return self.cancel_single(client, &row).await;
            }
            let cancelled = StopReason::Cancelled.as_str();
            let over = row.stopped.as_deref().is_some_and(|reason| reason != cancelled);
            let Some(policy) = row.terms.policy.as_ref().filter(|_| !over && !row.has_ended()) else {
                let effects = self.throttle.conclude_run(client, &row);
                self.effects.carry_out(effects).await?;
                return Ok(RunCancel::Over);
            };
            let rank = row.terms.flow.rank();
            let waiting = WaitingRun { policy: PolicyRef::new(client, policy), run: run.clone(), rank };
            self.effects.carry_out(vec![Effect::Stop(waiting, cancelled)]).await?;
            Ok(if row.stopped.is_none() { RunCancel::Done } else { RunCancel::Over })
        })
    }

    /// Cancels a single event that waits in a pack.
    async fn cancel_single(&self, client: &ClientId, run: &RunRow) -> Result<RunCancel, EngineError> {
        let groups = self.queries.groups_of(client, run).await?;
        let live = Live::of(run, &groups);
        let ended = self.queries.summary(client, run.clone(), &live).await?.tally.total() > 0;
        let Some(policy) = run.terms.policy.as_ref().filter(|_| !ended && run.stopped.is_none()) else {
            return Ok(RunCancel::Over);
        };
        self.contents.mark_dirty(client).await?;
        self.tokens.recheck_packs_with(&PolicyRef::new(client, policy), run.id.job()).await?;
        let reason = StopReason::Cancelled.as_str();
        self.store.stop_single(&run.occurrence(client), reason, self.clock.now()).await?;
        Ok(RunCancel::Done)
    }
}
