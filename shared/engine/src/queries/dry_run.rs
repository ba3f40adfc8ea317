//! The production scan without consequences: what would be launched, and what skipped.

use futures::stream::StreamExt;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::time::Window;
use tidegate_store::launch::{Child, Shard};

use super::Queries;
use crate::EngineError;
use crate::scan::evaluate::{Decision, Plan};
use crate::scan::{Scan, ScanReport, Sink, plan_at_once, rows_of};

/// Somebody who looks on. Launches of different jobs come in no particular order.
pub trait Observer {
    /// Whether a shard may hold rows. Whoever filled the stores may know that it is empty, and spares its read.
    fn reads(&self, _shard: &Shard) -> bool {
        true
    }

    /// A launch of a row was evaluated: it is made, or skipped with a reason.
    fn decided(&mut self, row: &Child, launch: &Decision);
}

struct Observing<'r, R>(&'r mut R);

impl<R: Observer> Sink for Observing<'_, R> {
    fn reads(&self, shard: &Shard) -> bool {
        self.0.reads(shard)
    }

    async fn launch(&mut self, row: &Child, launch: &Decision) -> Result<(), EngineError> {
        self.0.decided(row, launch);
        Ok(())
    }

    async fn skip(
        &mut self,
        row: &Child,
        skipped: &[Decision],
        _reason: SkipReason,
    ) -> Result<(), EngineError> {
        skipped.iter().for_each(|launch| self.0.decided(row, launch));
        Ok(())
    }
}

impl Queries {
    /// Scans a window as the emitter would in time, and tells `into` what it would do. Nothing is sent or recorded, and
    /// the watermark stays where it is.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn dry_run(&self, window: Window, into: &mut impl Observer) -> Result<ScanReport, EngineError> {
        // At its beginning nothing of the window has been missed, or emitted before.
        let plan = Plan { window, ..plan_at_once(window.from(), false) };
        self.look_over(plan, &mut Observing(into)).await
    }

    /// Hands all launches of the plan's window to somebody who only looks.
    async fn look_over(&self, plan: Plan, sink: &mut impl Sink) -> Result<ScanReport, EngineError> {
        let mut scan = Scan::new(&self.store, &self.contents, plan);
        let shards = scan.shards(sink).await?;
        let mut shards = rows_of(&self.store, &shards);
        while let Some(rows) = shards.next().await {
            let mut rows = rows?;
            while let Some(row) = rows.next_row().await? {
                scan.row(row, None, sink).await?;
            }
        }
        Ok(scan.report)
    }
}
