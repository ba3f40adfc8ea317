//! What becomes of the launches of one row of the index: made, or skipped with a reason.

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use tidegate_domain::calendar::OpenDays;
use tidegate_domain::limits::MISFIRE_THRESHOLD_SECONDS;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::time::{Cadence, Firing, LocalWindow, Window, seconds, shifted};
use tidegate_store::launch::{Child, Part};
use tidegate_store::scans::PartPlan;

/// What a scan goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Which launches, before jitter.
    pub(crate) window: Window,
    /// When the first row may have been read.
    pub(crate) as_of: DateTime<Utc>,
    /// They may have been emitted before, by somebody who died.
    pub(crate) repeat: bool,
    /// Launches before it were missed by an outage: for a repetition, what they were evaluated by the first time.
    pub(crate) missed_before: DateTime<Utc>,
    /// What time it is.
    pub(crate) now: DateTime<Utc>,
}

/// What becomes of one launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The launch by its trigger alone.
    pub firing: Firing,
    /// The launch with the job's jitter: that of its occurrence, in whole seconds.
    pub launch_at: DateTime<Utc>,
    /// Why it is skipped; `None`: it is made.
    pub skip_reason: Option<SkipReason>,
    /// Where it is moved to off its closed day, with the job's jitter. Looked for only where a client asks what is to come.
    pub moved_to: Option<DateTime<Utc>>,
}

/// Launches before it were missed by an outage, for somebody who plans at `now`.
pub(crate) fn missed_before(now: DateTime<Utc>) -> DateTime<Utc> {
    shifted(now, -seconds(MISFIRE_THRESHOLD_SECONDS))
}

impl Plan {
    /// The plan that a part was left with.
    pub(crate) fn of(part: PartPlan, now: DateTime<Utc>) -> Self {
        let PartPlan { window, repeat, missed_before, as_of } = part;
        Self { window, as_of, repeat, missed_before, now }
    }

    /// What a part of it is left with.
    pub(crate) fn to_part(self) -> PartPlan {
        let Self { window, as_of, repeat, missed_before, .. } = self;
        PartPlan { window, repeat, missed_before, as_of }
    }
}

/// The launches of a row in the plan's window, before jitter and whoever is to emit them, appended to `out`; of a job that moves
/// launches its candidates, of which [`OpenDays::settle`] says what they are. `local` shows the window in the zone of the row; a
/// row without one needs none.
pub(crate) fn firings(child: &Child, local: Option<&LocalWindow>, window: Window, out: &mut Vec<Firing>) {
    let candidates = child.candidates();
    match (&child.part, &*candidates, local) {
        (Part::Key(key), cadence, Some(local)) => cadence.owned_firings_in(key, local, out),
        (Part::Minute(minute), Cadence::At(instants), _) => {
            let own = |firing: &Firing| tidegate_domain::time::AtMinute::of(firing.launch_at) == *minute;
            out.extend(instants.firings(window).filter(own));
        }
        (_, candidates, _) => out.extend(candidates.firings(window)),
    }
}

/// Decides about launches of a row, once they are settled; those outside of the job's start and end are no launches at all.
pub(crate) fn evaluate(
    child: &Child,
    firings: &[Firing],
    days: &OpenDays,
    plan: &Plan,
    out: &mut Vec<Decision>,
) {
    let offset = match child.rules.jitter.seconds() {
        0 => Duration::zero(),
        _ => child.rules.jitter.offset(&child.client, &child.job),
    };
    let mut cutoff = Cutoff { child, days, from: plan.window.from(), offset, known: None };
    for firing in firings.iter().filter(|firing| child.rules.is_within(firing.launch_at)) {
        let launch_at = shifted(firing.launch_at, offset);
        let missed_before = plan.missed_before;
        let skip_reason = if child.paused {
            Some(SkipReason::Paused)
        } else if let Some(refused) = days.refuses(firing.launch_at, zone_of(child)) {
            Some(refused)
        } else if launch_at < missed_before && firing.launch_at < cutoff.before(missed_before) {
            Some(SkipReason::MisfireSkipped)
        } else if child.terms.is_too_old(launch_at, plan.now) {
            Some(SkipReason::Expired)
        } else {
            None
        };
        out.push(Decision { firing: *firing, launch_at, skip_reason, moved_to: None });
    }
}

/// The zone whose days a row's job goes by.
fn zone_of(child: &Child) -> Tz {
    child.cadence.index_zone().unwrap_or(Tz::UTC)
}

/// From which missed launch on the misfire rule makes up for them: found once for all launches of a row.
struct Cutoff<'a> {
    child: &'a Child,
    days: &'a OpenDays,
    from: DateTime<Utc>,
    offset: Duration,
    known: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Cutoff<'_> {
    /// The first launch, before jitter, that is made of those before `missed_before`.
    fn before(&mut self, missed_before: DateTime<Utc>) -> DateTime<Utc> {
        match self.known {
            Some((of, cutoff)) if of == missed_before => cutoff,
            _ => {
                let cutoff = self.find(missed_before);
                self.known = Some((missed_before, cutoff));
                cutoff
            }
        }
    }

    fn find(&self, missed_before: DateTime<Utc>) -> DateTime<Utc> {
        let rules = &self.child.rules;
        let kept = rules.misfire.kept();
        if kept == 0 {
            return DateTime::<Utc>::MAX_UTC;
        }
        // What lies before the window is settled: it can only make the rest fewer than are kept.
        let from = rules.start_at.map_or(self.from, |start_at| start_at.max(self.from));
        let to = shifted(missed_before, -self.offset);
        let to = rules.end_at.map_or(to, |end_at| end_at.min(to));
        let Ok(window) = Window::new(from, to) else { return from };
        let latest = self.days.latest(&self.child.cadence, window, kept);
        match latest.first() {
            Some(first) if latest.len() == kept => first.launch_at,
            _ => from,
        }
    }
}

#[cfg(test)]
mod tests;
