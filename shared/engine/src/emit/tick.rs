//! The tick: what the emitter does each minute. Move the watermark, read what is eligible, emit what is due.
//!
//! Whatever order things happen in, a launch belongs to somebody. A child says from which instant on the emitter emits
//! it (`emit_from`, ahead of any watermark that can be reached while the child is written); the master emits what lies
//! before, and keeps a row in the outbox until it has. A tick that dies is repeated from `scanned_to` by the next.
//!
//! A tick never has much to do by itself: it leaves parts as soon as its emission is full. Housekeeping comes after the
//! emission, and between the steps of a catch-up, so that neither keeps the other waiting.

use chrono::{DateTime, Utc};
use tidegate_domain::limits::{CATCH_UP_SECONDS, CATCH_UP_STEP_SECONDS, LOOK_AHEAD_SECONDS};
use tidegate_domain::time::{Window, seconds, shifted};
use tidegate_store::Write;
use tidegate_store::ticker::{Advance, Terms, Watermark};
use tracing::{info, warn};

use super::Emission;
use super::housekeeping::Waking;
use super::report::TickReport;
use crate::scan::evaluate::{Plan, missed_before};
use crate::{EngineError, contain, figures};

/// How long a tick holds the watermark, in seconds. The emitter's function must time out before.
const TICK_LEASE_SECONDS: i64 = 57;
/// How long a tick begins new steps of a catch-up, in seconds.
const TICK_WORK_SECONDS: i64 = 35;
/// How long a tick begins new work of any kind, in seconds.
const TICK_SECONDS: i64 = 45;
/// How long the master has to publish its outbox, in seconds, before the emitter does.
const OUTBOX_GRACE_SECONDS: i64 = 60;
/// A step of a catch-up that took less is followed by a longer one: little was due.
const QUICK_STEP_SECONDS: i64 = 2;
/// The longest part of an outage that is planned in one step, in seconds.
const CATCH_UP_LONG_STEP_SECONDS: i64 = 6 * 3_600;
/// The minute of the day in which the list of zones is swept: 03:17 UTC.
const SWEEP_MINUTE: i64 = 197;
/// By how much a read may lag behind the clock of whoever changed the row, in seconds.
const AS_OF_MARGIN_SECONDS: i64 = 10;
impl Emission {
    /// Plans from the watermark to now and the look-ahead, publishes the outbox of dead masters, wakes the active policies.
    ///
    /// Repeating it, or running two at once, emits nothing twice: the one that does not win the watermark does nothing.
    ///
    /// # Errors
    /// When a store or queue does not answer; the next tick then goes on from where this one came.
    pub(crate) async fn tick(&self) -> Result<TickReport, EngineError> {
        contain(|| "the tick".to_owned(), self.run_tick()).await?
    }

    async fn run_tick(&self) -> Result<TickReport, EngineError> {
        let now = self.clock.now();
        let minute = DateTime::from_timestamp(now.timestamp().div_euclid(60) * 60, 0).unwrap_or(now);
        let to = shifted(minute, seconds(LOOK_AHEAD_SECONDS.into()));
        let until = shifted(now, seconds(TICK_SECONDS));
        let terms =
            Terms { lease_end: shifted(now, seconds(TICK_LEASE_SECONDS)), missed_before: missed_before(now) };
        let advance = self.store.advance_watermark(minute, to, now, terms).await?;
        let (Advance::Won(seen) | Advance::Lost(seen)) = &advance;
        figures::watermark_lag(now - seen.scanned_to);
        let watermark = match advance {
            Advance::Won(watermark) => watermark,
            Advance::Lost(watermark) => {
                let mut report = TickReport::default();
                // By a clock that was ahead: until its time comes no tick wins, and this is all that there is to do.
                if watermark.planned_to > to {
                    let mut waking = Waking::of_all();
                    self.keep_house(&mut waking, OUTBOX_GRACE_SECONDS, until, &mut report).await?;
                }
                return Ok(report);
            }
        };
        let mut report = TickReport { won: true, ..TickReport::default() };
        let mut waking = Waking::from(watermark.woken_to.as_deref(), watermark.fence, now);
        let emitted = self.catch_up(now, &watermark, &mut waking, &mut report).await;
        // Whatever became of the emission: neither stops the other.
        let kept = self.keep_house(&mut waking, OUTBOX_GRACE_SECONDS, until, &mut report).await;
        emitted.and(kept)?;
        if is_sweep_minute(minute) {
            self.index.sweep_zones(now).await?;
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
            self.store.record_skipped_window(from, oldest, "outage longer than the catch-up bound").await?;
            from = oldest;
        }
        let mut step_seconds = i64::from(CATCH_UP_STEP_SECONDS);
        while from < watermark.planned_to {
            let step_began_at = self.clock.now();
            let plan = self.plan_step(watermark, from, step_seconds);
            let walked = self.walk(plan, (None, None), None).await?;
            (waking.deleting, waking.watched) = (walked.deleting, walked.watched);
            report.add(walked.counts);
            report.add_scan(walked.scan);
            let to = plan.window.to();
            if self.store.finish_scan(watermark.fence, to).await? == Write::Refused {
                warn!(%from, %to, "another tick has the watermark: the rest of the window is its own");
                break;
            }
            from = to;
            step_seconds = match (self.clock.now() - step_began_at).num_seconds() {
                ..QUICK_STEP_SECONDS => CATCH_UP_LONG_STEP_SECONDS.min(step_seconds * 4),
                _ => CATCH_UP_STEP_SECONDS.into(),
            };
            if from < watermark.planned_to {
                if (self.clock.now() - started_at).num_seconds() >= TICK_WORK_SECONDS {
                    warn!(%from, to = %watermark.planned_to, "the rest of the window is left to the next tick");
                    break;
                }
                // A page of each.
                self.keep_house(waking, OUTBOX_GRACE_SECONDS, self.clock.now(), report).await?;
            }
        }
        Ok(())
    }

    /// The next step of a catch-up. What a tick that died may have emitted is never planned together with what nobody has:
    /// it is evaluated, and cut into chunks, as it was then.
    fn plan_step(&self, watermark: &Watermark, from: DateTime<Utc>, step_seconds: i64) -> Plan {
        let now = self.clock.now();
        let repeat = from < watermark.taken_over_to;
        let (end, missed_before) = match repeat {
            true => (watermark.taken_over_to, watermark.taken_over_missed_before),
            false => (watermark.planned_to, watermark.missed_before),
        };
        let to = watermark.planned_to.min(end).min(shifted(from, seconds(step_seconds)));
        let window = Window::new(from, to).unwrap_or(Window::of_none(from));
        Plan { window, as_of: shifted(now, -seconds(AS_OF_MARGIN_SECONDS)), repeat, missed_before, now }
    }
}

/// Zones that no job is left in are looked for once a day.
fn is_sweep_minute(minute: DateTime<Utc>) -> bool {
    minute.timestamp().div_euclid(60).rem_euclid(1_440) == SWEEP_MINUTE
}
