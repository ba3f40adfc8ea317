//! The upcoming firings of a job, as they travel.

use serde::{Deserialize, Serialize};
use tidegate_domain::bounded::Bounded;
use tidegate_domain::job::Job;
use tidegate_domain::time::{FiringCount, zone_database_version};
use tidegate_engine::Decision;
use utoipa::{IntoParams, ToSchema};

use crate::problem::FieldErrors;
use crate::wire::instant;
use crate::wire::number::Number;
use crate::wire::when::local;

/// What the parameter is described as. An alias, because utoipa asks each type argument that it sees for a schema.
type FiringNumber = Number<FiringCount>;

/// The query of what is to come.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UpcomingQuery {
    /// How many firings, 1 to 1,000; 10 when left out.
    #[param(inline, value_type = Option<FiringNumber>)]
    count: Option<String>,
}

impl UpcomingQuery {
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<usize> {
        let Some(text) = &self.count else { return Some(FiringCount::DEFAULT.get() as usize) };
        let count = text.parse().ok().and_then(|count| FiringCount::checked(count).ok());
        let count = count.ok_or_else(|| FiringCount::refused(text));
        errors.keep("count", &**text, count).map(|count| count.get() as usize)
    }
}

/// What is to come of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UpcomingList {
    /// The zone of the local times.
    zone: &'static str,
    /// The release of the IANA zone database that they are computed with.
    #[schema(example = "2026e")]
    zone_database: &'static str,
    /// The next firings in order of time, those that will not be made among them.
    upcoming: Vec<UpcomingView>,
}

/// One firing that is to come.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Upcoming)]
pub(crate) struct UpcomingView {
    /// When it is due, in UTC, to the second.
    #[schema(format = DateTime)]
    launch_at: String,
    /// The same as the zone's wall clock shows it, with its offset.
    #[schema(format = DateTime)]
    local: String,
    /// `gap` when its local time is skipped by the clocks and it was moved to the first instant after, `overlap` when its
    /// local time happens twice, else empty.
    #[schema(value_type = String)]
    dst: &'static str,
    /// What the trigger says, in UTC; only when the job's jitter moves the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    scheduled_at: Option<String>,
    /// Why it will not be made, as things stand: `paused` or `excluded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    skipped: Option<&'static str>,
}

impl UpcomingList {
    pub(crate) fn new(job: &Job, upcoming: &[Decision]) -> Self {
        let zone = job.trigger.zone();
        let view = |next: &Decision| UpcomingView {
            launch_at: instant(next.launch_at),
            local: local(next.launch_at, zone),
            dst: next.firing.label.as_str(),
            scheduled_at: (next.firing.launch_at != next.launch_at).then(|| instant(next.firing.launch_at)),
            skipped: next.skip_reason.map(|reason| reason.as_str()),
        };
        let upcoming = upcoming.iter().map(view).collect();
        Self { zone: zone.name(), zone_database: zone_database_version(), upcoming }
    }
}
