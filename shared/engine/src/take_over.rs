//! For a process that does everything alone: local mode and the simulator.
//!
//! Deployed functions never call this. They cannot know that nobody else is at work, and the next tick does the same.

use crate::{Engine, EngineError, TickReport};

impl Engine {
    /// Takes over from a process that is gone: ends its tick's lease, emits what it owed, wakes the active policies.
    ///
    /// Only for a caller who knows that no other process uses the tables. Repeating it changes nothing.
    ///
    /// # Errors
    /// When a store or queue does not answer. What is left then waits for the ticks.
    pub async fn take_over(&self) -> Result<TickReport, EngineError> {
        let mut report = TickReport::default();
        self.store().break_tick_lease().await?;
        self.store().break_scan_leases().await?;
        self.wake_parts(self.now()).await?;
        // Whoever wrote it is gone, whatever the clock says now: no grace.
        self.pay_owed(self.now(), i64::MIN, &mut report).await?;
        self.wake_active(&mut report).await?;
        Ok(report)
    }

    /// Wakes the active policies between ticks, so that leases which ran out are taken back soon. Returns how many.
    ///
    /// # Errors
    /// When a store or queue does not answer.
    pub async fn wake_policies(&self) -> Result<u64, EngineError> {
        let mut report = TickReport::default();
        self.wake_active(&mut report).await?;
        Ok(report.policies_woken)
    }
}
