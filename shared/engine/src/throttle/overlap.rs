//! Overlap: what becomes of a run that is due while an earlier run of its job is not finished.
//!
//! It is decided when the run is due, not when it is planned: by the wake-up of its launch, by the tick, or by whoever
//! finds it at the head of the line.

use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::occurrence::NonRun;
use tidegate_store::line::{LineEntry, Pending};

use crate::{Engine, EngineError};

/// Entries of a line whose rule is looked at in one call.
const JUDGED: i32 = 100;

/// What an overlap rule says of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may go.
    Go,
    /// It waits for the runs before it.
    Wait,
    /// It was left out just now.
    LeftOut,
}

impl Engine {
    /// Decides about every run of the line that is due and whose rule has not spoken.
    pub(crate) async fn judge_overlaps(
        &self,
        client: &ClientId,
        policy: &PolicyId,
    ) -> Result<(), EngineError> {
        for entry in self.store().line_head(client, policy, self.now(), JUDGED).await? {
            if matches!(entry.overlap, Some(Pending::Skip | Pending::BufferOne)) {
                self.turn_of(client, policy, &entry).await?;
            }
        }
        Ok(())
    }

    /// Whether a run of the line may go, and notes it in the line.
    pub(crate) async fn turn_of(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        entry: &LineEntry,
    ) -> Result<Turn, EngineError> {
        let Some(pending) = entry.overlap else { return Ok(Turn::Go) };
        let open = self.store().unfinished_before(client, &entry.run).await?;
        let line = (client, policy);
        Ok(match pending {
            _ if open.is_empty() => {
                self.store().settle_overlap(line, entry, None).await?;
                Turn::Go
            }
            Pending::Buffered => Turn::Wait,
            // The first of them is the one at work; a second one waits already.
            Pending::BufferOne if open.len() == 1 => {
                self.store().settle_overlap(line, entry, Some(Pending::Buffered)).await?;
                Turn::Wait
            }
            Pending::BufferOne | Pending::Skip => {
                let place = (&entry.run, entry.priority());
                let reason = NonRun::OverlapSkipped.as_str();
                Box::pin(self.stop_rest(client, policy, place, reason)).await?;
                Turn::LeftOut
            }
        })
    }
}
