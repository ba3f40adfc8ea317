//! The walk through the shards of a window. It goes on until the emission is full, which is then written down, and how far
//! the walk came is kept before it goes on.
//!
//! A tick leaves what comes then to workers: the rest of the shard that it is in, and the other shards in a few parts. A
//! worker keeps a cursor. So whoever is killed loses no more than what the emission held.

use futures::stream::StreamExt;
use tidegate_domain::ids::ClientId;
use tidegate_store::launch::Shard;
use tidegate_store::scans::{Cursor, Part, Task};

use super::Emission;
use super::part::{GoOn, Worker};
use super::sink::{Counts, EmitSink};
use crate::scan::evaluate::Plan;
use crate::scan::{Scan, ScanReport, Sink as _, rows_of};
use crate::{EngineError, figures};

/// Parts in which a tick leaves the shards that it does not come to, at the most.
const PARTS_LEFT: usize = 8;

/// What a walk did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walked {
    pub(crate) counts: Counts,
    pub(crate) scan: ScanReport,
    /// Whether somebody else has the rest.
    pub(crate) is_left: bool,
    /// The clients that are being deleted.
    pub(crate) deleting: Vec<ClientId>,
    /// Whether there may be watches.
    pub(crate) watched: bool,
}

impl Emission {
    /// Emits the launches of a window: those of the shards after one name up to another. Without a worker it is a tick, which
    /// leaves to workers what it does not come to.
    pub(crate) async fn walk(
        &self,
        plan: Plan,
        (after, last): (Option<&str>, Option<&str>),
        mut worker: Option<&mut Worker>,
    ) -> Result<Walked, EngineError> {
        let mut scan = Scan::new(&self.store, &self.contents, plan);
        let mut emission = EmitSink::new(self, plan.as_of, plan.repeat);
        let mut shards = scan.shards(&emission).await?;
        self.queues.go_by_shares(&scan.shares);
        shards.retain(|shard| {
            let name = shard.name();
            after.is_none_or(|after| *name > *after) && last.is_none_or(|last| *name <= *last)
        });
        let mut walked = Walked::default();
        let mut pages = rows_of(&self.store, &shards);
        for (number, shard) in shards.iter().enumerate() {
            let Some(page) = pages.next().await else { break };
            let (is_done, cursor) = match page {
                Ok(mut rows) => (rows.feed(&mut scan, &mut emission).await?, rows.cursor),
                // One partition that does not answer keeps no other waiting.
                Err(error) if error.is_retryable() => (false, Cursor::default()),
                Err(error) => return Err(error),
            };
            if is_done && !emission.is_full() && !emission.is_late() {
                continue;
            }
            self.resolve_emission(&plan, &mut emission, None).await?;
            if !is_done {
                let (partition, range) = (shard.partition(), shard.range());
                let task = Task::Rows { plan: plan.to_part(), partition, range, cursor };
                self.leave_parts(vec![Part::new(task, self.clock.now())]).await?;
                scan.report.parts += 1;
            }
            let rest = shards.get(number + 1..).unwrap_or_default();
            let go_on = match &mut worker {
                Some(worker) => worker.came_to_shard(self, shard.name()).await?,
                None if rest.is_empty() => GoOn::Yes,
                None => {
                    scan.report.parts += self.leave_shards(&plan, shard, rest).await?;
                    GoOn::No
                }
            };
            if go_on == GoOn::No {
                walked.is_left = true;
                break;
            }
        }
        if !walked.is_left {
            self.resolve_emission(&plan, &mut emission, None).await?;
        }
        (walked.counts, walked.scan) = (emission.counts, scan.report);
        (walked.deleting, walked.watched) = (scan.deleting, scan.watched);
        if let Some(oldest) = walked.counts.oldest_launch {
            figures::lateness(self.clock.now() - oldest);
        }
        Ok(walked)
    }

    /// Leaves the shards behind one to workers, in a few parts.
    async fn leave_shards(&self, plan: &Plan, shard: &Shard, rest: &[Shard]) -> Result<u64, EngineError> {
        let mut after = shard.name();
        let mut parts = Vec::with_capacity(PARTS_LEFT);
        for some in rest.chunks(rest.len().div_ceil(PARTS_LEFT).max(1)) {
            let Some(last) = some.last().map(Shard::name) else { continue };
            let task = Task::Shards { plan: plan.to_part(), after: Some(after), last: last.clone() };
            parts.push(Part::new(task, self.clock.now()));
            after = last;
        }
        let count = parts.len() as u64;
        self.leave_parts(parts).await?;
        Ok(count)
    }
}
