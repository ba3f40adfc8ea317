//! What is asked of what went on in some days that are over.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::limits::SAMPLE_WINDOW_DAYS;
use tidegate_domain::time::{Window, days};
use utoipa::IntoParams;

use crate::problem::{Kind, Problem};
use crate::wire::when::window_back;

/// Which stretch of time is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PastQuery {
    /// From this instant on, in ISO 8601 with its offset; a day before `until` when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<String>,
    /// Up to this instant; now when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
}

impl PastQuery {
    /// The stretch; refused when it is longer than 7 days.
    pub(crate) fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        let window = window_back(self.since.as_deref(), self.until.as_deref(), now)?;
        if window.to() - window.from() > days(SAMPLE_WINDOW_DAYS) {
            let detail = format!(
                "since and until are more than {SAMPLE_WINDOW_DAYS} days apart; ask for a shorter stretch of time"
            );
            return Err(Problem::of_field(
                Kind::MalformedRequest,
                "since",
                self.since.as_deref().unwrap_or_default(),
                detail,
            ));
        }
        Ok(window)
    }
}
