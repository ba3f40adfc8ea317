//! The walk through the shards of a window. It goes on until the emission is full, which is then written down, and how far
//! the walk came is kept before it goes on.
//!
//! A tick leaves what comes then to workers: the rest of the shard that it is in, and the other shards in a few parts. A
//! worker keeps a cursor. So whoever is killed loses no more than what the emission held.

use std::vec;

use futures::stream::{self, StreamExt};
use tidegate_store::Page;
use tidegate_store::launch::{IndexRow, Shard};
use tidegate_store::scans::{Part, Place, Task};

use super::judge::Plan;
use super::part::{GoOn, Worker};
use super::{RowEnd, Scan, ScanReport, Sink};
use crate::emit::{Counts, Emission};
use crate::{Engine, EngineError};

/// Shards read at once.
const READS_AT_ONCE: usize = 16;
/// Parts in which a tick leaves the shards that it does not come to, at the most.
const PARTS_LEFT: usize = 8;

/// What a walk did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Walked {
    pub(crate) counts: Counts,
    pub(crate) scan: ScanReport,
    /// Whether somebody else has the rest.
    pub(crate) is_left: bool,
}

/// The rows of a shard from a place on, page by page.
pub(super) struct Rows<'e> {
    engine: &'e Engine,
    partition: String,
    range: Option<(String, String)>,
    pub(super) place: Place,
    page: vec::IntoIter<IndexRow>,
    next: Next,
}

/// Where the next page begins.
enum Next {
    After(Option<String>),
    None,
}

impl<'e> Rows<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        partition: String,
        range: Option<(String, String)>,
        place: Place,
    ) -> Self {
        let next = Next::After(place.after.clone());
        Self { engine, partition, range, place, page: Vec::new().into_iter(), next }
    }

    fn turn_to(&mut self, page: Page<IndexRow>) {
        self.page = page.rows.into_iter();
        self.next = page.next.map_or(Next::None, |after| Next::After(Some(after)));
    }

    async fn next_row(&mut self) -> Result<Option<IndexRow>, EngineError> {
        loop {
            if let Some(row) = self.page.next() {
                return Ok(Some(row));
            }
            let Next::After(after) = std::mem::replace(&mut self.next, Next::None) else { return Ok(None) };
            let (partition, range) = (self.partition.clone(), self.range.clone());
            let page = self.engine.store().children_between(partition, range, after).await?;
            self.turn_to(page);
        }
    }

    fn is_at_its_end(&self) -> bool {
        self.page.as_slice().is_empty() && matches!(self.next, Next::None)
    }

    /// Emits rows until the emission is full. Whether none is left.
    pub(super) async fn emit(
        &mut self,
        scan: &mut Scan<'_>,
        emission: &mut Emission<'_>,
    ) -> Result<bool, EngineError> {
        emission.enter(&self.partition);
        while let Some(row) = self.next_row().await? {
            let sort_key = row.sort_key.clone();
            let within = self.place.within.take().filter(|(row, _)| *row == sort_key);
            match scan.row(row, within.map(|(_, to)| to), emission).await? {
                RowEnd::Done => self.place.after = Some(sort_key),
                RowEnd::Cut(to) => {
                    self.place.within = Some((sort_key, to));
                    // The row comes again, for its other launches.
                    self.page = Vec::new().into_iter();
                    self.next = Next::After(self.place.after.clone());
                    return Ok(false);
                }
            }
            if emission.is_full() {
                return Ok(self.is_at_its_end());
            }
        }
        Ok(true)
    }
}

impl Engine {
    /// Hands all launches of the plan's window to somebody who only looks.
    pub(super) async fn look_over(
        &self,
        plan: Plan,
        sink: &mut impl Sink,
    ) -> Result<ScanReport, EngineError> {
        let mut scan = Scan::new(self, plan);
        let shards = scan.shards(sink).await?;
        let reads: Vec<_> = shards.iter().map(|shard| self.first_rows(shard)).collect();
        let mut shards = stream::iter(reads).buffered(READS_AT_ONCE);
        while let Some(rows) = shards.next().await {
            let mut rows = rows?;
            while let Some(row) = rows.next_row().await? {
                scan.row(row, None, sink).await?;
            }
        }
        Ok(scan.report)
    }

    /// The rows of a shard, of which the first page is read.
    async fn first_rows(&self, shard: &Shard) -> Result<Rows<'_>, EngineError> {
        let mut rows = Rows::new(self, shard.partition(), shard.range(), Place::default());
        rows.turn_to(self.store().children(shard, None).await?);
        Ok(rows)
    }

    /// Emits the launches of a window: those of the shards after one name up to another. Without a worker it is a tick, which
    /// leaves to workers what it does not come to.
    pub(crate) async fn walk(
        &self,
        plan: Plan,
        (after, last): (Option<&str>, Option<&str>),
        mut worker: Option<&mut Worker>,
    ) -> Result<Walked, EngineError> {
        let mut scan = Scan::new(self, plan);
        let mut emission = Emission::new(self, plan.as_of, plan.repeat);
        let mut shards = scan.shards(&emission).await?;
        shards.retain(|shard| {
            let name = shard.name();
            after.is_none_or(|after| *name > *after) && last.is_none_or(|last| *name <= *last)
        });
        let mut walked = Walked::default();
        let reads: Vec<_> = shards.iter().map(|shard| self.first_rows(shard)).collect();
        let mut pages = stream::iter(reads).buffered(READS_AT_ONCE);
        for (number, shard) in shards.iter().enumerate() {
            let Some(page) = pages.next().await else { break };
            let (is_done, place) = match page {
                Ok(mut rows) => (rows.emit(&mut scan, &mut emission).await?, rows.place),
                // One partition that does not answer keeps no other waiting.
                Err(error) if error.may_pass() => (false, Place::default()),
                Err(error) => return Err(error),
            };
            if is_done && !emission.is_full() {
                continue;
            }
            self.settle_emission(&plan, &mut emission, None).await?;
            if !is_done {
                let (partition, range) = (shard.partition(), shard.range());
                let task = Task::Rows { plan: plan.to_part(), partition, range, place };
                self.leave_parts(vec![Part::new(task, self.now())]).await?;
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
            self.settle_emission(&plan, &mut emission, None).await?;
        }
        (walked.counts, walked.scan) = (emission.counts, scan.report);
        Ok(walked)
    }

    /// Leaves the shards behind one to workers, in a few parts.
    async fn leave_shards(&self, plan: &Plan, shard: &Shard, rest: &[Shard]) -> Result<u64, EngineError> {
        let mut after = shard.name();
        let mut parts = Vec::with_capacity(PARTS_LEFT);
        for some in rest.chunks(rest.len().div_ceil(PARTS_LEFT).max(1)) {
            let Some(last) = some.last().map(Shard::name) else { continue };
            let task = Task::Shards { plan: plan.to_part(), after: Some(after), last: last.clone() };
            parts.push(Part::new(task, self.now()));
            after = last;
        }
        let count = parts.len() as u64;
        self.leave_parts(parts).await?;
        Ok(count)
    }
}
