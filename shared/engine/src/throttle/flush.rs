//! Packing: outcomes of released events move from their slot group into the history of their runs.
//!
//! The outcomes are set apart under a flush number, then written as a row whose key follows from that number, then added
//! to the run's tally, which counts each flush number once, then forgotten. Each step may be repeated, by anybody who
//! finds outcomes set apart.

use std::collections::BTreeMap;

use tidegate_domain::limits::OUTCOMES_PER_FLUSH;
use tidegate_store::runs::Tally;
use tidegate_store::slots::{Change, Ended, SlotGroup};
use tracing::error;

use crate::{Engine, EngineError};

impl Engine {
    /// Packs outcomes when they are many, when somebody waits for them, or when nothing else will happen in the group.
    pub(crate) async fn flush_if_due(&self, seen: SlotGroup) -> Result<SlotGroup, EngineError> {
        let quiet = (seen.held == 0 && seen.range.left == 0) || seen.is_awaited();
        self.flush(seen, if quiet { 1 } else { OUTCOMES_PER_FLUSH }).await
    }

    /// Packs the outcomes of a group if it has at least `least`, and finishes a packing that somebody else began.
    pub(crate) async fn flush(&self, mut seen: SlotGroup, least: usize) -> Result<SlotGroup, EngineError> {
        if seen.packing.is_empty() {
            if seen.outcomes.is_empty() || seen.outcomes.len() < least {
                return Ok(seen);
            }
            match self.store().begin_packing(&seen).await? {
                Change::Done(now_seen) => seen = now_seen,
                Change::Refused(now_seen) => return Ok(now_seen.unwrap_or(seen)),
            }
        }
        let mut by_run: BTreeMap<u32, Vec<Ended>> = BTreeMap::new();
        for entry in &seen.packing {
            by_run.entry(entry.run_number).or_default().push(entry.ended);
        }
        let packing = (seen.key.group, seen.flush);
        for (run_number, outcomes) in by_run {
            let Some(run) = seen.run(run_number) else {
                error!(group = ?seen.key, run_number, "outcomes name a run that their group does not know");
                continue;
            };
            let client = &seen.key.client;
            self.store().keep_outcomes(client, run, packing, &outcomes, self.now()).await?;
            let tally = Tally::of(outcomes.iter().map(|ended| ended.outcome));
            let added = self.store().add_outcomes(client, run, packing, tally, self.now()).await?;
            if let Some(row) = added.row {
                Box::pin(self.conclude_run(client, &row)).await?;
            }
        }
        Ok(match self.store().end_packing(&seen).await? {
            Change::Done(now_seen) | Change::Refused(Some(now_seen)) => now_seen,
            Change::Refused(None) => seen,
        })
    }
}
