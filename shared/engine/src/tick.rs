//! The tick: what the emitter does each minute. Move the watermark, read what is eligible, emit what is due.
//!
//! Whatever order things happen in, a launch belongs to somebody. A child says from which instant on the emitter emits
//! it (`emit_from`, ahead of any watermark that can be reached while the child is written); the master emits what lies
//! before, and leaves a row of what it owes until it has. A tick that dies is repeated from `scanned_to` by the next.
//!
//! A tick never has much to do by itself: it leaves parts as soon as its emission is full. Housekeeping comes after the
//! emission, and between the steps of a catch-up, so that neither keeps the other waiting.

use chrono::{DateTime, Utc};
use tidegate_domain::limits::{CATCH_UP_SECONDS, CATCH_UP_STEP_SECONDS, LOOK_AHEAD_SECONDS};
use tidegate_domain::time::{Window, seconds, shifted};
use tidegate_store::Write;
use tidegate_store::launch::Owed;
use tidegate_store::ticker::{Advance, Terms, Watermark};
use tracing::{info, warn};

use crate::emit::{Counts, Emission, Flushed};
use crate::housekeeping::Waking;
use crate::scan::judge::{Plan, missed_before};
use crate::scan::{Scan, ScanReport, plan_at_once};
use crate::{Engine, EngineError, contain};

/// How long a tick holds the watermark, in seconds. The emitter's function must time out before.
const TICK_LEASE_SECONDS: i64 = 57;
/// How long a tick begins new steps of a catch-up, in seconds.
const TICK_WORK_SECONDS: i64 = 35;
/// How long a tick begins new work of any kind, in seconds.
const TICK_SECONDS: i64 = 45;
/// How long the master has to pay what it owes, in seconds, before the emitter does.
const OWED_GRACE_SECONDS: i64 = 60;
/// A step of a catch-up that took less is followed by a longer one: little was due.
const QUICK_STEP_SECONDS: i64 = 2;
/// The longest part of an outage that is planned in one step, in seconds.
const CATCH_UP_LONG_STEP_SECONDS: i64 = 6 * 3_600;
/// The minute of the day in which the list of zones is swept: 03:17 UTC.
const SWEEP_MINUTE: i64 = 197;
/// By how much a read may lag behind the clock of whoever changed the row, in seconds.
const AS_OF_MARGIN_SECONDS: i64 = 10;
/// How long the master works on the events of a run that it emits itself, in seconds; then workers take the rest.
const OWN_WORK_SECONDS: i64 = 10;

/// Who emits launches outside of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emitter {
    /// A tick: it tells workers of the parts that it leaves.
    Tick,
    /// The master, which may not send to the scan queue: it works on them itself, and the next tick looks after the rest.
    Master,
}

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
    /// Rows of the index that could not be read; each is in the log, and in its job's runs.
    pub rows_corrupt: u64,
    /// Launches that were set aside, since they cannot be emitted; each is in the log, and in its job's runs.
    pub set_aside: u64,
    /// Active policies that were woken.
    pub policies_woken: u64,
}

impl TickReport {
    pub(crate) fn add(&mut self, counts: Counts) {
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
        let until = shifted(now, seconds(TICK_SECONDS));
        let terms =
            Terms { lease_end: shifted(now, seconds(TICK_LEASE_SECONDS)), missed_before: missed_before(now) };
        let watermark = match self.store().advance_watermark(minute, to, now, terms).await? {
            Advance::Won(watermark) => watermark,
            Advance::Lost(watermark) => {
                let mut report = TickReport::default();
                // By a clock that was ahead: until its time comes no tick wins, and this is all that there is to do.
                if watermark.planned_to > to {
                    let mut waking = Waking::of_all();
                    self.keep_house(&mut waking, OWED_GRACE_SECONDS, until, &mut report).await?;
                }
                return Ok(report);
            }
        };
        let mut report = TickReport { won: true, ..TickReport::default() };
        let mut waking = Waking::from(watermark.woken_to.as_deref(), watermark.fence, now);
        let emitted = self.catch_up(now, &watermark, &mut waking, &mut report).await;
        // Whatever became of the emission: neither stops the other.
        let kept = self.keep_house(&mut waking, OWED_GRACE_SECONDS, until, &mut report).await;
        emitted.and(kept)?;
        if is_sweep_minute(minute) {
            self.sweep_zones(now).await?;
        }
        info!(to = %to, ?report, "tick done");
        Ok(report)
    }

    async fn catch_up(
        &self,
        started_at: DateTime<Utc>,
        watermark: &Watermark,
        waking: &mut Waking,
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
            let plan = self.plan_step(watermark, from, step_seconds);
            let walked = self.walk(plan, (None, None), None).await?;
            report.add(walked.counts);
            report.add_scan(walked.scan);
            let to = plan.window.to();
            if self.store().finish_scan(watermark.fence, to).await? == Write::Refused {
                warn!(%from, %to, "another tick has the watermark: the rest of the window is its own");
                break;
            }
            from = to;
            step_seconds = match (self.now() - step_began_at).num_seconds() {
                ..QUICK_STEP_SECONDS => CATCH_UP_LONG_STEP_SECONDS.min(step_seconds * 4),
                _ => CATCH_UP_STEP_SECONDS.into(),
            };
            if from < watermark.planned_to {
                if (self.now() - started_at).num_seconds() >= TICK_WORK_SECONDS {
                    warn!(%from, to = %watermark.planned_to, "the rest of the window is left to the next tick");
                    break;
                }
                // A page of each.
                self.keep_house(waking, OWED_GRACE_SECONDS, self.now(), report).await?;
            }
        }
        Ok(())
    }

    /// The next step of a catch-up. What a tick that died may have emitted is never planned together with what nobody has:
    /// it is judged, and cut into chunks, as it was then.
    fn plan_step(&self, watermark: &Watermark, from: DateTime<Utc>, step_seconds: i64) -> Plan {
        let now = self.now();
        let repeat = from < watermark.taken_over_to;
        let (end, missed_before) = match repeat {
            true => (watermark.taken_over_to, watermark.taken_over_missed_before),
            false => (watermark.planned_to, watermark.missed_before),
        };
        let to = watermark.planned_to.min(end).min(shifted(from, seconds(step_seconds)));
        let window = Window::new(from, to).unwrap_or(Window::of_none(from));
        Plan { window, as_of: shifted(now, -seconds(AS_OF_MARGIN_SECONDS)), repeat, missed_before, now }
    }

    /// Emits what is owed, then strikes it.
    pub(crate) async fn pay(
        &self,
        owed: &Owed,
        repeat: bool,
        emitter: Emitter,
    ) -> Result<Counts, EngineError> {
        let counts = self.emit_launches(owed, repeat, emitter).await?;
        self.store().strike_owed(&owed.child).await?;
        Ok(counts)
    }

    /// Emits launches of one job, whatever their age: nobody was late for them.
    pub(crate) async fn emit_launches(
        &self,
        owed: &Owed,
        repeat: bool,
        emitter: Emitter,
    ) -> Result<Counts, EngineError> {
        let mut emission = Emission::new(self, owed.written_at, repeat);
        let mut scan = Scan::new(self, plan_at_once(self.now(), repeat));
        let mut after = None;
        loop {
            after = scan.launches(&owed.child, owed.window, after, &mut emission).await?;
            let Flushed { failed, parts, .. } = emission.flush().await?;
            if let Some((_, error)) = failed.into_iter().next() {
                return Err(error);
            }
            match emitter {
                Emitter::Tick => self.send_parts(&parts).await?,
                Emitter::Master => {
                    for part in parts {
                        self.work_on(&part, OWN_WORK_SECONDS, false).await?;
                    }
                }
            }
            if after.is_none() {
                return Ok(emission.counts);
            }
        }
    }
}

/// Zones that no job is left in are looked for once a day.
fn is_sweep_minute(minute: DateTime<Utc>) -> bool {
    minute.timestamp().div_euclid(60).rem_euclid(1_440) == SWEEP_MINUTE
}
