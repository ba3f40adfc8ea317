//! The first launches of a job, and the last ones of a revision: those that the emitter cannot be relied on for.

use chrono::{DateTime, Utc};
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::pack::SinglesKind;
use tidegate_domain::rules::Rules;
use tidegate_domain::time::{Cadence, Instants, Window, seconds, shifted};
use tidegate_store::launch::{Child, OutboxEntry};
use tidegate_store::ticker::Watermark;
use tracing::warn;

use super::Jobs;
use crate::EngineError;
use crate::emit::Emitter;

/// How long a call that repeats another is expected, in hours: longer than two clocks differ that are both wrong. Within it
/// the first launches are emitted once more, whatever became of them; their marks keep them from being delivered twice.
const REPEATED_HOURS: i64 = 3;
/// How long before its launch the event of a job is sent before the job is stored, at the least, in seconds.
const AHEAD_SECONDS: i64 = 3;
/// A launch further away than this cannot lie behind any watermark, in seconds.
const WATERMARK_REACH_SECONDS: i64 = 7_200;

impl Jobs {
    /// When the event of a new one-time job is due that is sent before the job is stored; `None`: it is emitted as any other.
    /// It must be the master's to emit, and far enough away for the job to be there first.
    pub(super) fn goes_ahead(&self, job: &Job) -> Option<DateTime<Utc>> {
        let Trigger::At(instants) = &job.trigger else { return None };
        let launch_at = instants.only()?;
        let is_near =
            launch_at < job.emit_from && launch_at >= shifted(self.clock.now(), seconds(AHEAD_SECONDS));
        let is_single = match &job.terms.policy {
            Some(_) => SinglesKind::fits(&job.terms),
            None => job.terms.count.get() == 1,
        };
        (is_near && is_single && job.rules == Rules::default()).then_some(launch_at)
    }

    /// Emits the launches that are too near for the emitter, and whatever its watermark has passed while we wrote.
    pub(super) async fn emit_first(
        &self,
        job: &Job,
        outbox: Option<&OutboxEntry>,
    ) -> Result<(), EngineError> {
        if let Some(outbox) = outbox {
            self.emission.publish(outbox, false, Emitter::Master).await?;
        }
        if is_out_of_reach(job, outbox) {
            return Ok(());
        }
        // Written before the watermark is read: either the emitter sees the row, or we see that it has passed.
        let Some(watermark) = self.watermark_or_first().await? else { return Ok(()) };
        self.emit_passed(job, &watermark).await
    }

    /// Does what a call may have left undone that died, or lost its answer, after it had written a job, and that is made
    /// again now: what waits of the revision before is stopped, and the first launches are emitted.
    pub(super) async fn finish_change(&self, job: &Job) -> Result<(), EngineError> {
        let is_recent = (self.clock.now() - job.changed_at).abs() < seconds(REPEATED_HOURS * 3_600);
        if is_recent && job.revision > 1 {
            self.stop_waiting_runs(job, &job.id, Some(job)).await?;
        }
        self.publish_outbox_of(job).await?;
        let watermark = self.watermark_or_first().await?;
        match watermark.filter(|_| is_recent) {
            Some(watermark) => self.emit_passed(job, &watermark).await,
            None => Ok(()),
        }
    }

    /// Emits the launches of a new job that the watermark has passed.
    pub(super) async fn emit_passed(&self, job: &Job, watermark: &Watermark) -> Result<(), EngineError> {
        if watermark.planned_to <= job.emit_from {
            return Ok(());
        }
        let Ok(window) = Window::new(job.emit_from, watermark.planned_to) else { return Ok(()) };
        warn!(job = %job.id, from = %window.from(), to = %window.to(), "the watermark passed a job while it was written");
        let behind = OutboxEntry { child: Child::of(job), window, written_at: self.clock.now() };
        match launches_in(&behind) {
            true => self.emission.publish(&behind, true, Emitter::Master).await.map(drop),
            false => Ok(()),
        }
    }

    pub(super) async fn publish_outbox_of(&self, job: &Job) -> Result<(), EngineError> {
        match self.store.outbox_of(&job.client, &job.id).await? {
            Some(outbox) => self.emission.publish(&outbox, true, Emitter::Master).await.map(drop),
            None => Ok(()),
        }
    }

    /// Emits the launches of a job that are due and that nobody may have emitted yet, before its rows change: those that
    /// a master left behind, and those that an emitter which lags has still to scan. It takes the instant that the change
    /// goes by: a clock that jumps meanwhile would leave a gap between the revisions.
    pub(super) async fn emit_what_is_behind(
        &self,
        job: &Job,
        changed_at: DateTime<Utc>,
    ) -> Result<(), EngineError> {
        self.publish_outbox_of(job).await?;
        let scanned_to = self.store.watermark().await?.map(|watermark| watermark.scanned_to);
        // What lies before `scanned_to` may still be in a part of a large scan that nobody has done.
        let part_from = self.store.oldest_window_part().await?;
        let emitted_to = scanned_to.into_iter().chain(part_from).min();
        let from = job.emit_from.max(emitted_to.unwrap_or(job.emit_from));
        // What is due up to the change is the old revision's.
        let Ok(window) = Window::new(from, next_second(changed_at)) else { return Ok(()) };
        let behind = OutboxEntry { child: Child::of(job), window, written_at: self.clock.now() };
        self.emission.emit_launches(&behind, true, Emitter::Master).await.map(drop)
    }

    /// The watermark, as a look shows it that begins after this call and is shared with the calls beside it. `None` when there
    /// was none: then it begins now, or a first tick that comes late would skip what is due before it.
    pub(super) async fn watermark_or_first(&self) -> Result<Option<Watermark>, EngineError> {
        let shared = self.looks.with_others((), |_| self.store.watermark()).await?;
        let found = match shared {
            Some(found) => found,
            None => self.store.watermark().await?,
        };
        if found.is_none() {
            let minute_s = self.clock.now().timestamp().div_euclid(60) * 60;
            self.store.begin_watermark(DateTime::from_timestamp(minute_s, 0).unwrap_or_default()).await?;
        }
        Ok(found)
    }
}

/// Whether no watermark can have passed the launches of a job that are the emitter's.
pub(super) fn is_out_of_reach(job: &Job, outbox: Option<&OutboxEntry>) -> bool {
    let reach = shifted(job.emit_from, seconds(WATERMARK_REACH_SECONDS));
    match &job.trigger {
        Trigger::At(instants) => instants.iter().all(|at| match outbox {
            Some(outbox) => outbox.window.contains(at) || at > reach,
            // What is due before `emit_from` is the master's, unless it is moved.
            None => at > reach || (at < job.emit_from && job.rules == Rules::default()),
        }),
        _ => false,
    }
}

/// The outbox row of a job: its launches before `emit_from`, which the master emits. `None` when there are none. What was
/// due up to a change is the old revision's, of instants those that it had: an instant may lie a little in the past when its
/// job arrives.
pub(super) fn outbox_of(job: &Job, old: Option<&Job>) -> Option<OutboxEntry> {
    let mut child = Child::of(job);
    let mut from = match old {
        Some(_) => next_second(job.changed_at),
        None => job.changed_at,
    };
    if let Trigger::At(instants) = &job.trigger {
        let had = |at: DateTime<Utc>| match old.map(|old| &old.trigger) {
            Some(Trigger::At(old)) => at <= job.changed_at && old.contains(at),
            _ => false,
        };
        let left = Instants::new(instants.iter().filter(|at| !had(*at))).ok()?;
        from = from.min(left.first());
        child.cadence = Cadence::At(left);
    }
    let from = DateTime::from_timestamp(from.timestamp(), 0)?;
    let window = Window::new(from, job.emit_from).ok()?;
    let outbox = OutboxEntry { child, window, written_at: job.changed_at };
    launches_in(&outbox).then_some(outbox)
}

/// The first whole second after an instant.
fn next_second(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp() + 1, 0).unwrap_or(at)
}

/// Whether a job may launch there: what is moved, its calendars say.
fn launches_in(outbox: &OutboxEntry) -> bool {
    let rules = &outbox.child.rules;
    outbox.child.candidates().firings(outbox.window).iter().any(|firing| rules.is_within(firing.launch_at))
}
