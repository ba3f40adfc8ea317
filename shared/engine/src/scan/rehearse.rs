//! The production scan without consequences: what would be launched, and what left out.

use tidegate_domain::occurrence::NonRun;
use tidegate_domain::time::Window;
use tidegate_store::launch::{Child, Shard};

use super::judge::{Plan, Verdict};
use super::{ScanReport, Sink, plan_at_once};
use crate::{Engine, EngineError};

/// Somebody who looks on. Launches of different jobs come in no particular order.
pub trait Rehearsal {
    /// Whether a shard may hold rows. Whoever filled the stores may know that it is empty, and spares its read.
    fn reads(&self, _shard: &Shard) -> bool {
        true
    }

    /// A launch of a row was judged: it is made, or left out with a reason.
    fn judged(&mut self, row: &Child, launch: &Verdict);
}

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

impl Engine {
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
}
