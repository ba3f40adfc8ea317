//! How emission gets on: whether launches that are due have been looked at.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::job::emit_from;

use super::Queries;
use crate::EngineError;

/// How emission gets on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EmissionStatus {
    /// Every launch before it is planned: emitted, skipped with a reason, or in a part of a scan. `None` before
    /// anything was planned.
    pub scanned_to: Option<DateTime<Utc>>,
    /// Launches since then are late: no tick has confirmed them, or a part of a large emission is not done. `None` when none is.
    pub late_since: Option<DateTime<Utc>>,
}

impl Queries {
    /// How emission gets on now.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn emission_status(&self) -> BoxFuture<'_, Result<EmissionStatus, EngineError>> {
        Box::pin(async move {
            let watermark = self.store.watermark().await?;
            let scanned_to = watermark.as_ref().map(|watermark| watermark.scanned_to);
            // Before the first tick it stands where the first job was written, whose launches are not a tick's for a while.
            let emitted_to = watermark.map(|watermark| match watermark.fence {
                0 => emit_from(watermark.scanned_to),
                _ => watermark.scanned_to,
            });
            let window_from = self.store.oldest_window_part().await?;
            let run_from = self.store.oldest_run_part().await?;
            let now = self.clock.now();
            let oldest = emitted_to.into_iter().chain(window_from).chain(run_from).min();
            let late_since = oldest.filter(|oldest| *oldest < now);
            Ok(EmissionStatus { scanned_to, late_since })
        })
    }
}
