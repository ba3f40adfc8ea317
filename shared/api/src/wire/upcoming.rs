//! The upcoming firings of a job, as they travel.

use serde::Deserialize;
use tidegate_domain::bounded::Bounded;
use tidegate_domain::job::Job;
use tidegate_domain::time::{FiringCount, zone_database_version};
use tidegate_engine::Decision;
use tidegate_protocol::{Upcoming, UpcomingFiring};
use utoipa::IntoParams;

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
        errors.keep("count", &**text, FiringCount::read(text)).map(|count| count.get() as usize)
    }
}

/// What is to come of a job, as it is answered.
pub(crate) fn view(job: &Job, upcoming: &[Decision]) -> Upcoming {
    let zone = job.trigger.zone();
    let firing = |next: &Decision| UpcomingFiring {
        launch_at: instant(next.launch_at),
        local: local(next.launch_at, zone),
        dst: next.firing.label.as_str().to_owned(),
        scheduled_at: (next.firing.launch_at != next.launch_at).then(|| instant(next.firing.launch_at)),
        moved_from: next.firing.moved_from.map(instant),
        moved_to: next.moved_to.map(instant),
        skipped: next.skip_reason.map(|reason| reason.as_str().to_owned()),
    };
    Upcoming {
        zone: zone.name().to_owned(),
        zone_database: zone_database_version().to_owned(),
        upcoming: upcoming.iter().map(firing).collect(),
    }
}
