//! Compaction: outcomes of released events move from their slot group into the history of their runs.
//!
//! The outcomes are set apart under a number, then written as a row whose key follows from that number, then added to
//! the run's tally, which counts each number once, then forgotten. Each step may be repeated, by anybody who finds
//! outcomes set apart.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::pack::PackId;
use tidegate_domain::slots::{Compaction, Ended, SlotGroup, Transition};
use tidegate_store::events::HistoryOf;
use tidegate_store::runs::Tally;
use tidegate_store::slots::Written;
use tracing::error;

use super::Throttle;
use crate::EngineError;
use crate::effect::Effect;

/// Packs whose outcomes are kept at once.
const PACKS_AT_ONCE: usize = 16;

impl Throttle {
    /// Compacts the outcomes of a group, or finishes a compaction that somebody else began.
    pub(crate) async fn compact(&self, mut seen: SlotGroup) -> Result<Vec<Effect>, EngineError> {
        if seen.compaction == Compaction::Idle {
            if seen.outcomes.is_empty() {
                return Ok(Vec::new());
            }
            match self.store.perform(&seen.key, &Transition::begin_compaction(&seen)).await? {
                Written::Done(now_seen) => seen = now_seen,
                // Somebody else compacts them.
                Written::Refused(_) => return Ok(Vec::new()),
            }
        }
        let mut by_pack: BTreeMap<u32, Vec<Ended>> = BTreeMap::new();
        for entry in seen.compacting() {
            by_pack.entry(entry.pack_number).or_default().push(entry.ended);
        }
        let number = (seen.key.group, seen.compactions);
        let keeps: Vec<_> =
            by_pack.iter().map(|(pack, ends)| self.keep_ends(&seen, number, *pack, ends)).collect();
        let kept: Vec<_> = stream::iter(keeps).buffered(PACKS_AT_ONCE).try_collect().await?;
        let mut effects: Vec<Effect> = kept.into_iter().flatten().collect();
        // Last: until then, whoever finds them set apart concludes their runs once more.
        effects.push(Effect::EndCompaction(Box::new(seen)));
        Ok(effects)
    }

    /// Keeps how events of one pack have ended; what follows when they are of a run.
    async fn keep_ends(
        &self,
        seen: &SlotGroup,
        number: (u32, u64),
        pack_number: u32,
        ends: &[Ended],
    ) -> Result<Option<Effect>, EngineError> {
        let Some(pack) = seen.pack(pack_number) else {
            error!(group = ?seen.key, pack_number, "outcomes name a pack that their group does not know");
            return Ok(None);
        };
        let client = &seen.key.client;
        let of = HistoryOf::pack(&seen.key.policy, pack);
        self.store.keep_outcomes(client, &of, number, ends, self.clock.now()).await?;
        // Of single events nobody counts more.
        let PackId::Run(run) = pack else { return Ok(None) };
        let tally = Tally::of(ends.iter().map(|ended| ended.outcome));
        let added = self.store.add_outcomes(client, run, number, tally, self.clock.now()).await?;
        Ok(added.row.map(|row| Effect::Conclude(client.clone(), Box::new(row))))
    }

    /// Forgets the outcomes that were compacted.
    pub(crate) async fn end_compaction(&self, seen: &SlotGroup) -> Result<Vec<Effect>, EngineError> {
        self.store.perform(&seen.key, &Transition::end_compaction(seen)).await?;
        Ok(Vec::new())
    }
}
