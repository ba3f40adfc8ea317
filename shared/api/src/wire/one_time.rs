//! Which one-time jobs are asked for.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::limits::ONE_TIMES_LISTED_DAYS;
use tidegate_domain::time::{Window, days, shifted, whole_second};
use utoipa::IntoParams;

use crate::problem::{Kind, Problem};
use crate::wire::instant;
use crate::wire::number::PageLimit;
use crate::wire::when::{read_of_query, window_of_query};

/// Which one-time jobs are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OneTimesQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Those that are due at this instant or later, in ISO 8601 with its offset; now when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<String>,
    /// Those that are due before this instant, at most 31 days after `since`; 24 hours after it when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
}

impl OneTimesQuery {
    /// When they are due.
    pub(crate) fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        let since = read_of_query("since", self.since.as_deref())?.unwrap_or(whole_second(now));
        let until = read_of_query("until", self.until.as_deref())?.unwrap_or(shifted(since, days(1)));
        if until > shifted(since, days(ONE_TIMES_LISTED_DAYS)) {
            let message = format!(
                "until is {}, more than {ONE_TIMES_LISTED_DAYS} days after since; ask for fewer at a time",
                instant(until)
            );
            return Err(Problem::of_field(Kind::MalformedRequest, "until", instant(until), message));
        }
        window_of_query(since, until)
    }
}
