//! Launches that are expected to be over in time, as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::job::{ExpectedSeconds, History, Terms};
use tidegate_domain::time::Window;
use tidegate_protocol::{Expected, OverdueLaunch, OverdueState};
use tidegate_store::overdue::{self, Overdue};
use utoipa::{IntoParams, ToSchema};

use crate::problem::{FieldErrors, Problem};
use crate::wire::bounds::bounded_fields;
use crate::wire::instant;
use crate::wire::number::{Number, PageLimit};
use crate::wire::when::window_back;

/// When each launch of a job is expected to be over. One that is not is recorded, counted, and told to the client's `alerts`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExpectedBody, example = json!({"within_seconds": 900}))]
pub(crate) struct ExpectBody {
    /// So many seconds after its instant: all its events have come to their end by then.
    #[schema(value_type = u32)]
    within_seconds: Number<ExpectedSeconds>,
}

bounded_fields!(ExpectBody: within_seconds);

impl ExpectBody {
    /// The time that is given; `None` when it is wrong, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<ExpectedSeconds> {
        self.within_seconds.check(errors)
    }
}

/// Notes that nobody could tell whether the launches of a job are over: what it delivers leaves no record.
pub(crate) fn check_is_recorded(terms: &Terms, errors: &mut FieldErrors) {
    if terms.policy.is_none() && terms.history != History::All {
        let message = "expect needs a record of each event, and a job without a policy_id keeps one of those that were delivered with \
            history 'all' only: set history to 'all', or give the job a policy_id";
        errors.add("expect", (), message);
    }
}

/// What is expected of a job, as it is answered.
pub(crate) fn expected_view(within: ExpectedSeconds) -> Expected {
    Expected { within_seconds: within.get() }
}

/// Which launches are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OverdueQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Those that were due at this instant or later, in ISO 8601 with its offset; a day before `until` when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<String>,
    /// Those that were due before this instant; now when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
}

impl OverdueQuery {
    /// When they were due.
    pub(crate) fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        window_back(self.since.as_deref(), self.until.as_deref(), now)
    }
}

/// A launch that was not over in time, as it is answered.
pub(crate) fn view(overdue: Overdue) -> OverdueLaunch {
    let Overdue { run, within_seconds, state, reason, seen_at, told } = overdue;
    OverdueLaunch {
        job_id: run.job().to_string(),
        run_id: run.to_string(),
        launch_at: instant(run.launch_at()),
        within_seconds,
        state: match state {
            overdue::OverdueState::Unrecorded => OverdueState::Unrecorded,
            overdue::OverdueState::Skipped => OverdueState::Skipped,
            overdue::OverdueState::Waiting => OverdueState::Waiting,
            overdue::OverdueState::Running => OverdueState::Running,
            overdue::OverdueState::Stopped => OverdueState::Stopped,
        },
        reason,
        seen_at: instant(seen_at),
        told_at: told.as_ref().map(|told| instant(told.at)),
        told_failure: told.and_then(|told| told.failure),
    }
}
