//! Stopping a run before its end: cancelled, over its deadline, failed too often, left out, or its job is gone.
//!
//! What is in flight goes on. The rest is taken out of the line and the slot groups, and counted in the run's row, so
//! that the row of a stopped run adds up as well.

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_store::Write;
use tidegate_store::runs::RunRow;
use tidegate_store::slots::{GroupKey, SlotGroup};

use super::shares::{GROUPS_AT_ONCE, group_key};
use crate::message::Message;
use crate::queue::Outgoing;
use crate::{Engine, EngineError};

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

/// The reason that a cancelled run is stopped with.
pub(crate) const CANCELLED: &str = "cancelled";
/// The reason of a run whose window is over.
pub(crate) const DEADLINE: &str = "deadline";
/// The reason of a run of which too many events did not succeed.
pub(crate) const FAILURE_LIMIT: &str = "failure_limit";
/// The reason of a run whose payload cannot be read any more.
pub(crate) const PAYLOAD_GONE: &str = "payload deleted with its job";

impl Engine {
    /// Cancels what is left of a run.
    ///
    /// # Errors
    /// When the store does not answer. Repeating the call is safe.
    pub async fn cancel_run(&self, client: &ClientId, run: &RunId) -> Result<RunCancel, EngineError> {
        let Some(row) = self.store().run(client, run).await? else { return Ok(RunCancel::Absent) };
        let over = row.stopped.as_deref().is_some_and(|reason| reason != CANCELLED);
        let Some(policy) = row.terms.policy.clone().filter(|_| !over && !row.has_ended()) else {
            self.conclude_run(client, &row).await?;
            return Ok(RunCancel::Over);
        };
        let first = row.stopped.is_none();
        self.stop_rest(client, &policy, (run, row.terms.flow.priority.get()), CANCELLED).await?;
        Ok(if first { RunCancel::Done } else { RunCancel::Over })
    }

    /// Stops a run and takes what is left of it out of the line and of the slot groups. A first reason stays.
    pub(crate) async fn stop_rest(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        (run, priority): (&RunId, u8),
        reason: &str,
    ) -> Result<(), EngineError> {
        self.store().stop_run(client, run, reason).await?;
        self.forget_run(client, run);
        let places = self.store().exhaust(client, policy, (run, priority)).await?;
        if let Some(policy) = self.store().policy(client, policy).await? {
            let keys: Vec<GroupKey> =
                (0..policy.plan.groups()).map(|group| group_key(&policy, group)).collect();
            let drops: Vec<_> = keys.iter().map(|key| self.drop_from(key, run)).collect();
            stream::iter(drops).buffer_unordered(GROUPS_AT_ONCE).try_collect::<()>().await?;
        }
        if let Some(row) = self.store().run(client, run).await? {
            self.conclude_run(client, &row).await?;
        }
        // Last: whoever finds an entry that was left behind concludes the run once more.
        for place in places {
            if let Some(entry) = self.store().line_entry(client, policy, &place).await? {
                self.remove_if_settled(client, policy, &entry).await?;
            }
        }
        Ok(())
    }

    /// Drops what one group still has of a run.
    async fn drop_from(&self, key: &GroupKey, run: &RunId) -> Result<(), EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let Some(group) = self.store().slot_group(key).await?.filter(|group| group.serves(run)) else {
                return Ok(());
            };
            if self.drop_range(&group, run).await? == Write::Done {
                return Ok(());
            }
        }
        // Whoever grants of it sees that the run is stopped, and drops the rest.
        Ok(())
    }

    pub(crate) async fn drop_range(&self, group: &SlotGroup, run: &RunId) -> Result<Write, EngineError> {
        Ok(self.store().drop_range(group, run).await?)
    }

    /// What follows when outcomes were added to a run's row, or the rest of it was left out: the failure limit, the
    /// callback, and the turn of the run that waits for its end. Repeating it is safe.
    pub(crate) async fn conclude_run(&self, client: &ClientId, row: &RunRow) -> Result<(), EngineError> {
        let flow = &row.terms.flow;
        let Some(policy) = row.terms.policy.as_ref().filter(|_| flow.is_watched()) else { return Ok(()) };
        let unsuccessful = row.tally.failed + row.tally.expired + row.tally.dead;
        let too_many = flow.max_failures.is_some_and(|most| unsuccessful >= most);
        if too_many && row.stopped.is_none() && !row.has_ended() {
            let place = (&row.id, flow.priority.get());
            return Box::pin(self.stop_rest(client, policy, place, FAILURE_LIMIT)).await;
        }
        if !row.has_ended() {
            return Ok(());
        }
        if flow.on_completion.is_some() && row.announced.is_none() {
            self.announce(client, &row.id).await?;
        }
        if flow.overlap == tidegate_domain::flow::Overlap::BufferOne {
            let (client_text, policy) = (client.to_string(), policy.to_string());
            let wake = Message::Wake { client: client_text, policy, due_s: Some(self.now().timestamp()) };
            self.dispatch(&[Outgoing::now(client, wake)]).await?;
        }
        Ok(())
    }
}
