//! The tick: what the emitter does each minute. Move the watermark, read what is eligible, emit what is due.
//!
//! Whatever order things happen in, a launch belongs to somebody. A child says from which instant on the emitter emits
//! it (`emit_from`, ahead of any watermark that can be reached while the child is written); the master emits what lies
//! before, and leaves a row of what it owes until it has. A tick that dies is repeated from `scanned_to` by the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use futures::stream::{self, StreamExt};
use tidegate_domain::limits::{
    ACTIVE_SHARDS, CATCH_UP_SECONDS, CATCH_UP_STEP_SECONDS, LATE_SHARDS, LOOK_AHEAD_SECONDS,
};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::time::{Firing, LocalWindow, Window};
use tidegate_store::launch::{Child, EXPRESSION_SHARDS, Owed, Shard, Timing};
use tidegate_store::ticker::{Advance, Watermark};
use tracing::{error, info, warn};

use crate::emit::{Counts, Emission};
use crate::message::Message;
use crate::queue::Outgoing;
use crate::{Engine, EngineError};

/// How long a tick holds the watermark, in seconds. The emitter's function must time out before.
const TICK_LEASE_SECONDS: i64 = 57;
/// How long a tick begins new steps of a catch-up, in seconds.
const TICK_WORK_SECONDS: i64 = 40;
/// How long the master has to pay what it owes, in seconds, before the emitter does.
const OWED_GRACE_SECONDS: i64 = 60;
/// A step of a catch-up that took less is followed by a longer one: little was due.
const QUICK_STEP_SECONDS: i64 = 2;
/// The longest part of an outage that is planned in one step, in seconds.
const CATCH_UP_LONG_STEP_SECONDS: i64 = 6 * 3_600;
/// Shards read at once.
const READS_AT_ONCE: usize = 16;
/// By how much a read may lag behind the clock of whoever changed the row, in seconds.
const AS_OF_MARGIN_SECONDS: i64 = 10;

/// What a tick did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Whether the watermark was ours.
    pub won: bool,
    /// Occurrences that were emitted.
    pub occurrences: u64,
    /// Their events.
    pub events: u64,
    /// Dispatch messages with events.
    pub chunks: u64,
    /// Runs that were materialised.
    pub runs: u64,
    /// Rows of the index that were read.
    pub rows_read: u64,
    /// Rows of the index that could not be read; each is in the log.
    pub rows_corrupt: u64,
    /// Active policies that were woken.
    pub policies_woken: u64,
}

impl TickReport {
    fn add(&mut self, counts: Counts) {
        self.occurrences += counts.occurrences;
        self.events += counts.events;
        self.chunks += counts.chunks;
        self.runs += counts.runs;
    }
}

impl Engine {
    /// Plans from the watermark to now and the look-ahead, pays what dead masters owed, wakes the active policies.
    ///
    /// Repeating it, or running two at once, emits nothing twice: the one that does not win the watermark does nothing.
    ///
    /// # Errors
    /// When a store or queue does not answer; the next tick then goes on from where this one came.
    pub async fn tick(&self) -> Result<TickReport, EngineError> {
        let now = self.now();
        let minute = now - Duration::seconds(now.timestamp().rem_euclid(60)) - sub_second(now);
        let to = minute + Duration::seconds(LOOK_AHEAD_SECONDS.into());
        let lease_end = now + Duration::seconds(TICK_LEASE_SECONDS);
        let watermark = match self.store().advance_watermark(minute, to, now, lease_end).await? {
            Advance::Won(watermark) => watermark,
            Advance::Lost(_) => return Ok(TickReport::default()),
        };
        let mut report = TickReport { won: true, ..TickReport::default() };
        self.pay_owed(now, OWED_GRACE_SECONDS, &mut report).await?;
        self.wake_active(&mut report).await?;
        self.catch_up(now, watermark, &mut report).await?;
        info!(to = %to, ?report, "tick done");
        Ok(report)
    }

    async fn catch_up(
        &self,
        started_at: DateTime<Utc>,
        watermark: Watermark,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let mut from = watermark.scanned_to;
        let oldest = watermark.planned_to - Duration::seconds(CATCH_UP_SECONDS.into());
        if from < oldest {
            warn!(%from, to = %oldest, "an outage is longer than what is caught up: its oldest part is skipped");
            self.store().record_skipped_window(from, oldest, "outage longer than the catch-up bound").await?;
            from = oldest;
        }
        let mut step_seconds = i64::from(CATCH_UP_STEP_SECONDS);
        while from < watermark.planned_to {
            let step_began_at = self.now();
            if (self.now() - started_at).num_seconds() >= TICK_WORK_SECONDS {
                warn!(%from, to = %watermark.planned_to, "the rest of the window is left to the next tick");
                break;
            }
            let to = watermark.planned_to.min(from + Duration::seconds(step_seconds));
            let Ok(window) = Window::new(from, to) else { break };
            self.scan(window, watermark.taken_over_to, report).await?;
            self.store().finish_scan(watermark.fence, to).await?;
            from = to;
            step_seconds = match (self.now() - step_began_at).num_seconds() {
                ..QUICK_STEP_SECONDS => CATCH_UP_LONG_STEP_SECONDS.min(step_seconds * 4),
                _ => CATCH_UP_STEP_SECONDS.into(),
            };
        }
        Ok(())
    }

    /// Emits all launches of a window. Those before `repeat_before` may have been emitted by a tick that died.
    async fn scan(
        &self,
        window: Window,
        repeat_before: DateTime<Utc>,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let as_of = self.now() - Duration::seconds(AS_OF_MARGIN_SECONDS);
        let mut locals: BTreeMap<&'static str, Arc<LocalWindow>> = BTreeMap::new();
        let mut shards = Vec::new();
        for zone in self.store().zones().await? {
            let local = LocalWindow::new(zone, window);
            shards.extend(expression_shards(zone, &local));
            locals.insert(zone.name(), Arc::new(local));
        }
        shards.extend(Shard::instants(window));
        let mut emission = Emission::new(self, as_of);
        // In order: a scan that is repeated cuts the same chunks, whose marks are then found.
        let reads: Vec<_> = shards.into_iter().map(|shard| self.first_page(shard)).collect();
        let mut pages = stream::iter(reads).buffered(READS_AT_ONCE);
        let mut firings = Vec::new();
        while let Some(read) = pages.next().await {
            let (shard, mut page) = read?;
            loop {
                for row in page.rows {
                    report.rows_read += 1;
                    match row {
                        Ok(child) => {
                            due(&child, window, &locals, &mut firings);
                            for firing in firings.drain(..) {
                                let repeat = firing.launch_at < repeat_before;
                                emission.push(occurrence(&child, firing.launch_at), repeat).await?;
                            }
                        }
                        Err(corrupt) => {
                            report.rows_corrupt += 1;
                            error!(error = %corrupt, "a row of the time index is skipped");
                        }
                    }
                }
                let Some(next) = page.next else { break };
                page = self.store().children(&shard, Some(next)).await?;
            }
        }
        report.add(emission.finish().await?);
        Ok(())
    }

    async fn first_page(&self, shard: Shard) -> Result<(Shard, ChildPage), EngineError> {
        let page = self.store().children(&shard, None).await?;
        Ok((shard, page))
    }

    /// Emits what masters owed and did not pay in time: they died between a job's write and its first launches.
    pub(crate) async fn pay_owed(
        &self,
        now: DateTime<Utc>,
        grace_seconds: i64,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        for shard in 0..LATE_SHARDS {
            let mut after = None;
            loop {
                let page = self.store().owed(shard, after).await?;
                for row in page.rows {
                    match row {
                        Ok(owed) if (now - owed.written_at).num_seconds() < grace_seconds => {}
                        Ok(owed) => report.add(self.pay(&owed, true).await?),
                        Err(corrupt) => {
                            report.rows_corrupt += 1;
                            error!(error = %corrupt, "a row of owed launches is skipped");
                        }
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Emits what is owed, then strikes it.
    pub(crate) async fn pay(&self, owed: &Owed, repeat: bool) -> Result<Counts, EngineError> {
        let mut emission = Emission::new(self, owed.written_at);
        for launch_at in owed_launches(owed) {
            emission.push(occurrence(&owed.child, launch_at), repeat).await?;
        }
        let counts = emission.finish().await?;
        self.store().strike_owed(&owed.child).await?;
        Ok(counts)
    }

    pub(crate) async fn wake_active(&self, report: &mut TickReport) -> Result<(), EngineError> {
        for shard in 0..ACTIVE_SHARDS {
            let mut after = None;
            loop {
                let page = self.store().active_policies(shard, after).await?;
                let wakes: Vec<Outgoing> = page
                    .rows
                    .iter()
                    .map(|active| {
                        let (client, policy) = (active.client.to_string(), active.policy.to_string());
                        Outgoing::now(&active.client, Message::Wake { client, policy })
                    })
                    .collect();
                report.policies_woken += wakes.len() as u64;
                self.dispatch(&wakes).await?;
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

type ChildPage = tidegate_store::Page<tidegate_store::Result<Child>>;

fn sub_second(instant: DateTime<Utc>) -> Duration {
    Duration::nanoseconds(instant.timestamp_subsec_nanos().into())
}

fn expression_shards(zone: Tz, local: &LocalWindow) -> Vec<Shard> {
    let ranges = local.eligible().into_iter();
    ranges
        .flat_map(|range| {
            (0..EXPRESSION_SHARDS).map(move |shard| Shard::Expression { zone, range: range.clone(), shard })
        })
        .collect()
}

/// The launches of a row that lie in the window and are the emitter's.
fn due(
    child: &Child,
    window: Window,
    locals: &BTreeMap<&'static str, Arc<LocalWindow>>,
    out: &mut Vec<Firing>,
) {
    match &child.timing {
        Timing::Cron { cron, zone, key: Some(key) } => {
            if let Some(local) = locals.get(zone.name()) {
                cron.owned_firings_in(key, local, out);
            }
        }
        Timing::Cron { cron, zone, key: None } => out.extend(cron.firings(*zone, window)),
        Timing::At { launch_at } => {
            if window.contains(*launch_at) {
                out.push(Firing { launch_at: *launch_at, label: tidegate_domain::time::Dst::Plain });
            }
        }
    }
    out.retain(|firing| firing.launch_at >= child.emit_from);
}

/// The launches that the master owes: those of its window.
pub(crate) fn owed_launches(owed: &Owed) -> Vec<DateTime<Utc>> {
    match &owed.child.timing {
        Timing::Cron { cron, zone, .. } => {
            cron.firings(*zone, owed.window).into_iter().map(|firing| firing.launch_at).collect()
        }
        Timing::At { launch_at } => vec![*launch_at],
    }
}

pub(crate) fn occurrence(child: &Child, launch_at: DateTime<Utc>) -> Occurrence {
    Occurrence {
        client: child.client.clone(),
        job: child.job.clone(),
        revision: child.revision,
        launch_at,
        terms: child.terms.clone(),
    }
}
