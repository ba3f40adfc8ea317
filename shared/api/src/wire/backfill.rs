//! Which launches of a job are made after all, as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::ids::{JobId, RunId};
use tidegate_domain::limits::BACKFILL_DAYS;
use tidegate_domain::time::{Window, days, shifted};
use tidegate_engine::{Backfill, PastLaunch};
use tidegate_protocol::{BackfilledLaunch, LaunchBackfill};
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::instant;
use crate::wire::when::read_window;

/// Launches that are to be made after all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"since": "2026-12-24T00:00:00Z", "until": "2026-12-25T00:00:00Z", "only_missed": true, "dry_run": true}))]
pub(crate) struct BackfillBody {
    /// Those that were due at this instant or later, in ISO 8601 with its offset; at most 366 days ago.
    #[schema(format = DateTime)]
    since: String,
    /// Those that were due before this instant, which is not ahead.
    #[schema(format = DateTime)]
    until: String,
    /// Only those that are recorded as missed (`paused`, `misfire_skipped`, `expired`, `overlap_skipped`, `line_full`, `over_quota`,
    /// `not_emittable`) and were not made since.
    #[serde(default)]
    only_missed: bool,
    /// Only tells which launches are meant.
    #[serde(default)]
    dry_run: bool,
}

impl Form for BackfillBody {
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(now, errors);
    }
}

impl BackfillBody {
    /// The launches that are meant; `None` when a field is wrong, and then `errors` says which.
    pub(crate) fn check(&self, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<Backfill> {
        let (since, until) = (&*self.since, &*self.until);
        let window = read_window((since, until), errors)?;
        let from = errors.keep("since", since, is_recent(since, window, now));
        let to = errors.keep("until", until, is_over(until, window, now));
        from.and(to)?;
        Some(Backfill { window, only_missed: self.only_missed, dry_run: self.dry_run })
    }
}

fn is_recent(text: &str, window: Window, now: DateTime<Utc>) -> Result<(), String> {
    if window.from() >= shifted(now, -days(BACKFILL_DAYS)) {
        return Ok(());
    }
    Err(format!("since '{text}' is more than {BACKFILL_DAYS} days ago; give a later instant"))
}

fn is_over(text: &str, window: Window, now: DateTime<Utc>) -> Result<(), String> {
    if window.to() <= now {
        return Ok(());
    }
    let time = instant(now);
    Err(format!("until '{text}' is ahead (it is {time} now); launches that are to come are made in time"))
}

/// What came of a backfill, as clients see it.
pub(crate) fn view(
    job: &JobId,
    backfill: Backfill,
    (revision, launches): (u32, Vec<PastLaunch>),
    next_from: Option<DateTime<Utc>>,
) -> LaunchBackfill {
    let launch = |launch: PastLaunch| BackfilledLaunch {
        run_id: RunId::new(job.clone(), revision, launch.launch_at).to_string(),
        launch_at: instant(launch.launch_at),
        missed: launch.missed,
    };
    LaunchBackfill {
        job_id: job.to_string(),
        revision,
        dry_run: backfill.dry_run,
        launches: launches.into_iter().map(launch).collect(),
        next_since: next_from.map(instant),
    }
}
