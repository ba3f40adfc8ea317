//! The production scan without consequences: what would be launched, and what left out.

use futures::stream::{self, StreamExt};
use tidegate_domain::occurrence::NonRun;
use tidegate_domain::time::Window;
use tidegate_store::launch::{Child, Shard};

use super::Queries;
use crate::EngineError;
use crate::scan::judge::{Plan, Verdict};
use crate::scan::{Scan, ScanReport, Sink, first_rows, plan_at_once};

/// Somebody who looks on. Launches of different jobs come in no particular order.
pub trait Rehearsal {
    /// Whether a shard may hold rows. Whoever filled the stores may know that it is empty, and spares its read.
    fn reads(&self, _shard: &Shard) -> bool {
        true
    }

    /// A launch of a row was judged: it is made, or left out with a reason.
    fn judged(&mut self, row: &Child, launch: &Verdict);
}

/// Shards read at once.
const READS_AT_ONCE: usize = 16;

struct Looking<'r, R>(&'r mut R);

impl<R: Rehearsal> Sink for Looking<'_, R> {
    fn reads(&self, shard: &Shard) -> bool {
        self.0.reads(shard)
    }

    async fn launch(&mut self, row: &Child, launch: &Verdict) -> Result<(), EngineError> {
        self.0.judged(row, launch);
        Ok(())
    }

    async fn leave_out(
        &mut self,
        row: &Child,
        left_out: &[Verdict],
        _reason: NonRun,
    ) -> Result<(), EngineError> {
        left_out.iter().for_each(|launch| self.0.judged(row, launch));
        Ok(())
    }
}

impl Queries {
    /// Scans a window as the emitter would in time, and tells `into` what it would do. Nothing is sent or recorded, and
    /// the watermark stays where it is.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn rehearse(
        &self,
        window: Window,
        into: &mut impl Rehearsal,
    ) -> Result<ScanReport, EngineError> {
        // At its beginning nothing of the window has been missed, or emitted before.
        let plan = Plan { window, ..plan_at_once(window.from(), false) };
        self.look_over(plan, &mut Looking(into)).await
    }

    /// Hands all launches of the plan's window to somebody who only looks.
    async fn look_over(&self, plan: Plan, sink: &mut impl Sink) -> Result<ScanReport, EngineError> {
        let mut scan = Scan::new(&self.store, &self.contents, plan);
        let shards = scan.shards(sink).await?;
        let reads: Vec<_> = shards.iter().map(|shard| first_rows(&self.store, shard)).collect();
        let mut shards = stream::iter(reads).buffered(READS_AT_ONCE);
        while let Some(rows) = shards.next().await {
            let mut rows = rows?;
            while let Some(row) = rows.next_row().await? {
                scan.row(row, None, sink).await?;
            }
        }
        Ok(scan.report)
    }
}
