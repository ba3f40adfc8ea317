//! The tick: what the emitter does each minute. Move the watermark, read what is eligible, emit what is due.
//!
//! Whatever order things happen in, a launch belongs to somebody. A child says from which instant on the emitter emits
//! it (`emit_from`, ahead of any watermark that can be reached while the child is written); the master emits what lies
//! before, and leaves a row of what it owes until it has. A tick that dies is repeated from `scanned_to` by the next.

use chrono::{DateTime, Utc};
use tidegate_domain::limits::{
    ACTIVE_SHARDS, CATCH_UP_SECONDS, CATCH_UP_STEP_SECONDS, LATE_SHARDS, LOOK_AHEAD_SECONDS,
};
use tidegate_domain::time::{Window, seconds, shifted};
use tidegate_store::Write;
use tidegate_store::launch::Owed;
use tidegate_store::ticker::{Advance, Terms, Watermark};
use tracing::{error, info, warn};

use crate::emit::{Counts, Emission};
use crate::message::Message;
use crate::queue::Outgoing;
use crate::scan::judge::{Plan, missed_before};
use crate::scan::{Reach, Scan, ScanReport, plan_at_once};
use crate::{Engine, EngineError, contain};

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
/// Pages that a tick reads beside the first of each shard; what is left then is worked on in parallel.
const INLINE_PAGES: u32 = 32;
/// The minute of the day in which the list of zones is swept: 03:17 UTC.
const SWEEP_MINUTE: i64 = 197;
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
    /// Occurrences that were left out, each recorded with its reason.
    pub left_out: u64,
    /// Parts of the scan that were left to others.
    pub parts: u64,
    /// Rows of the index that were read.
    pub rows_read: u64,
    /// Rows of the index that could not be read; each is in the log.
    pub rows_corrupt: u64,
    /// Launches that were set aside, since they cannot be emitted; each is in the log, and in its job's runs.
    pub set_aside: u64,
    /// Active policies that were woken.
    pub policies_woken: u64,
}

impl TickReport {
    fn add(&mut self, counts: Counts) {
        self.occurrences += counts.occurrences;
        self.events += counts.events;
        self.chunks += counts.chunks;
        self.runs += counts.runs;
        self.left_out += counts.left_out;
        self.set_aside += counts.set_aside;
    }

    fn add_scan(&mut self, scan: ScanReport) {
        self.rows_read += scan.rows_read;
        self.rows_corrupt += scan.rows_corrupt;
        self.set_aside += scan.set_aside;
        self.parts += scan.parts;
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
        contain(|| "the tick".to_owned(), self.run_tick()).await?
    }

    async fn run_tick(&self) -> Result<TickReport, EngineError> {
        let now = self.now();
        let minute = DateTime::from_timestamp(now.timestamp().div_euclid(60) * 60, 0).unwrap_or(now);
        let to = shifted(minute, seconds(LOOK_AHEAD_SECONDS.into()));
        let terms =
            Terms { lease_end: shifted(now, seconds(TICK_LEASE_SECONDS)), missed_before: missed_before(now) };
        let watermark = match self.store().advance_watermark(minute, to, now, terms).await? {
            Advance::Won(watermark) => watermark,
            Advance::Lost(watermark) => {
                let mut report = TickReport::default();
                // By a clock that was ahead: until its time comes no tick wins, and this is all that there is to do.
                if watermark.planned_to > to {
                    self.look_after(now, &mut report).await?;
                }
                return Ok(report);
            }
        };
        let mut report = TickReport { won: true, ..TickReport::default() };
        self.look_after(now, &mut report).await?;
        self.catch_up(now, watermark, &mut report).await?;
        if is_sweep_minute(minute) {
            self.sweep_zones(now).await?;
        }
        info!(to = %to, ?report, "tick done");
        Ok(report)
    }

    /// What is done in each tick, whatever is due: it may be done twice.
    async fn look_after(&self, now: DateTime<Utc>, report: &mut TickReport) -> Result<(), EngineError> {
        self.pay_owed(now, OWED_GRACE_SECONDS, report).await?;
        self.wake_parts(now).await?;
        self.wake_active(report).await
    }

    async fn catch_up(
        &self,
        started_at: DateTime<Utc>,
        watermark: Watermark,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let mut from = watermark.scanned_to;
        let oldest = shifted(watermark.planned_to, -seconds(CATCH_UP_SECONDS.into()));
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
            let mut to = watermark.planned_to.min(shifted(from, seconds(step_seconds)));
            // What a dead tick planned is repeated before anything new is judged: whoever takes over from here knows by
            // `scanned_to` which of the two judgements holds.
            if from < watermark.taken_over_to {
                to = to.min(watermark.taken_over_to);
            }
            let Ok(window) = Window::new(from, to) else { break };
            self.emit_window(window, &watermark, report).await?;
            if self.store().finish_scan(watermark.fence, to).await? == Write::Refused {
                warn!(%from, %to, "another tick has taken over");
                break;
            }
            from = to;
            step_seconds = match (self.now() - step_began_at).num_seconds() {
                ..QUICK_STEP_SECONDS => CATCH_UP_LONG_STEP_SECONDS.min(step_seconds * 4),
                _ => CATCH_UP_STEP_SECONDS.into(),
            };
        }
        Ok(())
    }

    /// Emits all launches of a window, or leaves what is too much as parts.
    async fn emit_window(
        &self,
        window: Window,
        watermark: &Watermark,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let now = self.now();
        let plan = Plan {
            window,
            as_of: shifted(now, -seconds(AS_OF_MARGIN_SECONDS)),
            repeat_before: watermark.taken_over_to,
            missed_before: watermark.missed_before,
            repeat_missed_before: watermark.taken_over_missed_before,
            now,
        };
        let mut emission = Emission::new(self, plan.as_of);
        let read = self.scan(plan, Reach::Pages(INLINE_PAGES), &mut emission).await?;
        report.add(emission.finish().await?);
        report.add_scan(read);
        Ok(())
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
        let counts = self.emit_launches(owed, repeat).await?;
        self.store().strike_owed(&owed.child).await?;
        Ok(counts)
    }

    /// Emits launches of one job, whatever their age: nobody was late for them.
    pub(crate) async fn emit_launches(&self, owed: &Owed, repeat: bool) -> Result<Counts, EngineError> {
        let mut emission = Emission::new(self, owed.written_at);
        let mut scan = Scan::new(self, plan_at_once(self.now()));
        scan.launches(&owed.child, owed.window, repeat, &mut emission).await?;
        emission.finish().await
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
                        Outgoing::now(&active.client, Message::Wake { client, policy, due_s: None })
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

/// Zones that no job is left in are looked for once a day.
fn is_sweep_minute(minute: DateTime<Utc>) -> bool {
    minute.timestamp().div_euclid(60).rem_euclid(1_440) == SWEEP_MINUTE
}
