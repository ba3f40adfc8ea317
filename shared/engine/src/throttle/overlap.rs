//! Overlap: what becomes of a run that is due while an earlier run of its job is not finished.
//!
//! It is decided when the run is due, not when it is planned: by the wake-up of its launch, by the tick, or by whoever
//! finds it at the head of the line.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{JobId, RunId};
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::policy::PolicyRef;
use tidegate_store::line::{LineEntry, Pending};

use super::Throttle;
use crate::effect::{Effect, WaitingRun};
use crate::{EngineError, deadline};

/// Entries of a line whose rule is looked at in one call.
const DECIDED: i32 = 100;
/// Jobs whose runs are decided about at once.
const JOBS_AT_ONCE: usize = 16;

/// What an overlap rule says of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may go.
    Go,
    /// It waits for the runs before it.
    Wait,
    /// It is skipped.
    Skipped,
}

impl Throttle {
    /// Decides about every run of the line that is due and whose rule has not spoken. Returns what follows, and the head of
    /// the line as it was. Runs that there is no time for stay undecided: nobody serves them, and who comes next decides.
    pub(crate) async fn decide_overlaps(
        &self,
        policy: &PolicyRef,
    ) -> Result<(Vec<Effect>, Vec<LineEntry>), EngineError> {
        let head = self.line_head(policy, DECIDED).await?;
        let mut jobs = BTreeMap::<&JobId, Vec<(&LineEntry, &RunId)>>::new();
        for entry in &head {
            if matches!(entry.overlap, Some(Pending::Skip | Pending::BufferOne))
                && let Some(run) = entry.run()
            {
                jobs.entry(run.job()).or_default().push((entry, run));
            }
        }
        let jobs: Vec<_> = jobs.into_values().map(|runs| self.decide_overlaps_of(policy, runs)).collect();
        let effects: Vec<Vec<Effect>> = stream::iter(jobs).buffered(JOBS_AT_ONCE).try_collect().await?;
        Ok((effects.into_iter().flatten().collect(), head))
    }

    /// Decides about runs of one job, one after the other: what is decided about the first is seen by the next.
    async fn decide_overlaps_of(
        &self,
        policy: &PolicyRef,
        runs: Vec<(&LineEntry, &RunId)>,
    ) -> Result<Vec<Effect>, EngineError> {
        let mut effects = Vec::new();
        for (entry, run) in runs {
            if deadline::is_over(&*self.clock) {
                break;
            }
            effects.extend(self.turn_of(policy, entry, run).await?.1);
        }
        Ok(effects)
    }

    /// Whether a run of the line may go, noted in the line; and how it is stopped when it is skipped. Until it is, its
    /// rule stands in the line, and nobody serves it.
    pub(super) async fn turn_of(
        &self,
        policy: &PolicyRef,
        entry: &LineEntry,
        run: &RunId,
    ) -> Result<(Turn, Option<Effect>), EngineError> {
        let Some(pending) = entry.overlap else { return Ok((Turn::Go, None)) };
        let open = self.store.unfinished_before(&policy.client, run).await?;
        let line = (&policy.client, &policy.policy);
        Ok(match pending {
            _ if open.is_empty() => {
                self.store.decide_overlap(line, entry, None).await?;
                (Turn::Go, None)
            }
            Pending::Buffered => (Turn::Wait, None),
            // The first of them is the one at work; a second one waits already.
            Pending::BufferOne if open.len() == 1 => {
                self.store.decide_overlap(line, entry, Some(Pending::Buffered)).await?;
                (Turn::Wait, None)
            }
            Pending::BufferOne | Pending::Skip => {
                let (run, rank) = (run.clone(), entry.rank());
                let waiting = WaitingRun { policy: policy.clone(), run, rank };
                (Turn::Skipped, Some(Effect::Stop(waiting, SkipReason::OverlapSkipped.as_str())))
            }
        })
    }
}
