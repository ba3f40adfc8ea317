//! Parts of an emission, worked on by whoever gets the message of the scan queue: a few steps under a lease, each followed by
//! a move of the cursor, until the work is done or the time is over; then another call goes on.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::limits::{EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::Write;
use tidegate_store::launch::RowKey;
use tidegate_store::scans::{Cursor, Part, PartPlan, TakePart, Task};
use tracing::{info, warn};

use super::Emission;
use super::sink::{EmitSink, Flushed};
use crate::EngineError;
use crate::scan::evaluate::Plan;
use crate::scan::{Rows, Scan};

/// How long a worker has a part after it last moved the cursor, in seconds. The function must time out before.
const PART_LEASE_SECONDS: i64 = 57;
/// How long a worker goes on with new steps, in seconds; then another one takes the rest.
const PART_WORK_SECONDS: i64 = 25;
/// Events of a run between two moves of its cursor.
const EVENTS_PER_STEP: u32 = 50_000;
/// Rows that could not be written and are left as parts of their own; with more, it is no matter of single rows.
const FAILED_ROWS: usize = 50;
/// Parts that are written down at once.
const PARTS_AT_ONCE: usize = 8;

// A run is cut at the same places, however its steps fall.
const _: () = assert!(
    EVENTS_PER_STEP.is_multiple_of(EVENTS_PER_CHUNK) && EVENTS_PER_STEP.is_multiple_of(HTTP_EVENTS_PER_CHUNK)
);

/// Whether a worker goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoOn {
    Yes,
    No,
}

/// Somebody who works on a part.
pub(crate) struct Worker {
    part: Part,
    until: DateTime<Utc>,
    /// Whether it tells the next worker when its time is over. Who may not send to the scan queue leaves that to the tick.
    hands_on: bool,
}

impl Worker {
    /// Keeps that everything up to a shard is emitted.
    pub(super) async fn came_to_shard(
        &mut self,
        emission: &Emission,
        shard: String,
    ) -> Result<GoOn, EngineError> {
        if let Task::Shards { after, .. } = &mut self.part.task {
            *after = Some(shard);
        }
        self.keep(emission).await
    }

    /// Keeps how far the part came, and says whether to go on.
    async fn keep(&mut self, emission: &Emission) -> Result<GoOn, EngineError> {
        let now = emission.clock.now();
        let is_over = now >= self.until;
        let lease_end = if is_over { now } else { lease_end(now) };
        if is_over && self.hands_on {
            self.part.told_at = now;
        }
        if emission.store.move_part(&self.part, lease_end).await? == Write::Refused {
            warn!(part = self.part.id, "a part of an emission was taken over");
            return Ok(GoOn::No);
        }
        if !is_over {
            return Ok(GoOn::Yes);
        }
        if self.hands_on {
            emission.queues.send_parts(std::slice::from_ref(&self.part.id)).await?;
        }
        Ok(GoOn::No)
    }
}

impl Emission {
    /// Works on a part, for a while.
    pub(crate) async fn work_on_part(&self, id: &str) -> Result<(), EngineError> {
        self.work_on(id, PART_WORK_SECONDS, true).await
    }

    /// Works on a part for some seconds.
    pub(crate) async fn work_on(
        &self,
        id: &str,
        work_seconds: i64,
        hands_on: bool,
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        let part = match self.store.take_part(id, now, lease_end(now)).await {
            Ok(TakePart::Taken(part)) => *part,
            Ok(TakePart::Busy | TakePart::Gone) => return Ok(()),
            Err(error) if error.is_of_one_row() => return self.set_part_aside(id, &error.into()).await,
            Err(error) => return Err(error.into()),
        };
        // Only the first worker knows that nobody emitted it before.
        let is_repeat = part.fence > 1;
        let task = part.task.clone();
        let mut worker = Worker { part, until: shifted(now, seconds(work_seconds)), hands_on };
        let plan = |of: PartPlan| Plan { repeat: of.repeat || is_repeat, ..Plan::of(of, now) };
        let end = match task {
            Task::Shards { plan: of, after, last } => {
                let between = (after.as_deref(), Some(&*last));
                let walked = self.walk(plan(of), between, Some(&mut worker)).await?;
                info!(part = id, scan = ?walked.scan, "shards were worked on");
                if walked.is_left { GoOn::No } else { GoOn::Yes }
            }
            Task::Rows { plan: of, partition, range, cursor } => {
                let rows = Rows::new(&self.store, partition, range, cursor);
                self.work_on_rows(plan(of), rows, &mut worker).await?
            }
            Task::Events { occurrence, as_of, next } => {
                let emission = EmitSink::new(self, as_of, is_repeat);
                self.work_on_events(&occurrence, next, emission, &mut worker).await?
            }
        };
        if end == GoOn::Yes && self.store.finish_part(&worker.part).await? == Write::Refused {
            warn!(part = id, "a part of an emission was taken over");
        }
        Ok(())
    }

    async fn work_on_rows(
        &self,
        plan: Plan,
        mut rows: Rows<'_>,
        worker: &mut Worker,
    ) -> Result<GoOn, EngineError> {
        let mut scan = Scan::new(&self.store, &self.contents, plan);
        let mut emission = EmitSink::new(self, plan.as_of, plan.repeat);
        loop {
            let is_done = rows.feed(&mut scan, &mut emission).await?;
            self.resolve_emission(&plan, &mut emission, Some(&worker.part.id)).await?;
            if is_done {
                info!(part = worker.part.id, report = ?scan.report, "rows were worked on");
                return Ok(GoOn::Yes);
            }
            if let Task::Rows { cursor, .. } = &mut worker.part.task {
                cursor.clone_from(&rows.cursor);
            }
            if worker.keep(self).await? == GoOn::No {
                return Ok(GoOn::No);
            }
        }
    }

    async fn work_on_events(
        &self,
        run: &Occurrence,
        from: u32,
        mut emission: EmitSink<'_>,
        worker: &mut Worker,
    ) -> Result<GoOn, EngineError> {
        let count = run.terms.count.get();
        let mut from = from;
        while from < count {
            let to = count.min(from.saturating_add(EVENTS_PER_STEP));
            emission.send_events(run, from..to).await?;
            emission.flush().await?;
            from = to;
            if let Task::Events { next, .. } = &mut worker.part.task {
                *next = to;
            }
            if from < count && worker.keep(self).await? == GoOn::No {
                return Ok(GoOn::No);
            }
        }
        Ok(GoOn::Yes)
    }

    /// Writes down what an emission took. Rows that could not be written for a reason that may pass are left as parts, which
    /// the next tick looks after, and keep no others waiting. `own`: the part that is being worked on.
    pub(super) async fn resolve_emission(
        &self,
        plan: &Plan,
        emission: &mut EmitSink<'_>,
        own: Option<&str>,
    ) -> Result<(), EngineError> {
        let Flushed { failed, failed_with, parts } = emission.flush().await?;
        self.queues.send_parts(&parts).await?;
        let mut first_error = None;
        let mut rows: BTreeSet<RowKey> = failed_with.into_iter().flatten().collect();
        for (row, error) in failed {
            warn!(%error, ?row, "a row of the time index is left for later");
            rows.extend(row);
            first_error = first_error.or(Some(error));
        }
        let Some(error) = first_error else { return Ok(()) };
        let left: Vec<Part> =
            rows.iter().map(|row| Part::new(task_of(plan, row), self.clock.now())).collect();
        if left.is_empty() || left.len() > FAILED_ROWS || left.iter().any(|part| Some(&*part.id) == own) {
            return Err(error);
        }
        self.put_parts(&left).await
    }

    /// Writes parts down and tells workers of them. The rows come first: when a message is lost, the next tick sends another.
    pub(super) async fn leave_parts(&self, parts: Vec<Part>) -> Result<(), EngineError> {
        self.put_parts(&parts).await?;
        let ids: Vec<String> = parts.into_iter().map(|part| part.id).collect();
        self.queues.send_parts(&ids).await
    }

    async fn put_parts(&self, parts: &[Part]) -> Result<(), EngineError> {
        let puts: Vec<_> = parts.iter().map(|part| self.store.put_part(part)).collect();
        let put: Vec<_> = stream::iter(puts).buffer_unordered(PARTS_AT_ONCE).try_collect().await?;
        drop(put);
        Ok(())
    }
}

/// The part that is one row, of which something could not be written. Nobody knows what took cursor all the same, so it is a
/// repetition: who finds a run that was created sends its events, or says that they are too old.
fn task_of(plan: &Plan, row: &RowKey) -> Task {
    let sort_key = row.sort_key.to_string();
    Task::Rows {
        plan: PartPlan { repeat: true, ..plan.to_part() },
        partition: row.partition.to_string(),
        range: Some((sort_key.clone(), sort_key)),
        cursor: Cursor::default(),
    }
}

fn lease_end(now: DateTime<Utc>) -> DateTime<Utc> {
    shifted(now, seconds(PART_LEASE_SECONDS))
}
