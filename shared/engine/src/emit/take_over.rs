//! For a process that does everything alone: local mode and the simulator.
//!
//! Deployed functions never call this. They cannot know that nobody else is at work, and the next tick does the same.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;

use super::Emission;
use super::housekeeping::Waking;
use crate::{EngineError, TickReport};

impl Emission {
    /// Takes over from a process that is gone: ends its tick's lease, publishes its outbox, wakes the active policies.
    ///
    /// Only for a caller who knows that no other process uses the tables. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Queue` and `EngineError::ScanQueue` when our queues do not take messages, `EngineError::Panicked`
    /// when this version failed at a launch. What is left then waits for the ticks.
    pub fn take_over(&self) -> BoxFuture<'_, Result<TickReport, EngineError>> {
        Box::pin(async move {
            let mut report = TickReport::default();
            self.store.break_tick_lease().await?;
            self.store.break_part_leases().await?;
            // Whoever wrote the outbox is gone, whatever the clock says now: no grace, and no hurry.
            let forever = DateTime::<Utc>::MAX_UTC;
            self.keep_house(&mut Waking::of_all(), i64::MIN, forever, &mut report).await?;
            Ok(report)
        })
    }

    /// Wakes the active policies between ticks, so that leases which ran out are taken back soon. Returns how many.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, `EngineError::Queue` when the dispatch
    /// queue does not take the wake-ups. Some may be sent then; repeating the call is safe.
    pub fn wake_policies(&self) -> BoxFuture<'_, Result<u64, EngineError>> {
        Box::pin(async move {
            let mut report = TickReport::default();
            self.wake_active(&mut Waking::of_all(), DateTime::<Utc>::MAX_UTC, &mut report).await?;
            Ok(report.policies_woken)
        })
    }
}
