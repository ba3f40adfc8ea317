//! Which events of all jobs are asked for.

use chrono::DateTime;
use serde::Deserialize;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::INSTANTS_S;
use tidegate_domain::time::Window;
use tidegate_engine::{DeadLetterFilter, EventStatus, EventsWanted, Standing};
use utoipa::IntoParams;

use crate::problem::{ECHOED_CHARACTERS, Kind, Problem, cut};
use crate::wire::number::PageLimit;
use crate::wire::when::{read_of_query, window_of_query};

/// Which events of all jobs are asked for: those that fit all that is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Where they stand: `waiting`, `in_flight`, `failed`, `expired` or `dead`.
    #[param(example = "in_flight")]
    status: String,
    /// The policy that they are under. Needed for `waiting` and `in_flight`.
    #[param(example = "reports")]
    policy_id: Option<String>,
    /// Those that are due, or ended when they did not succeed, at this instant or later, in ISO 8601 with its offset.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<String>,
    /// Those of before this instant.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
}

/// Where they are looked for.
pub(crate) enum Sought {
    /// In the slot groups and the line of a policy.
    Under(PolicyId, EventsWanted),
    /// Among dead letters.
    DeadLetters(DeadLetterFilter),
}

impl EventsQuery {
    /// Where the events are looked for that are asked for.
    pub(crate) fn sought(&self) -> Result<Sought, Problem> {
        let policy = self.policy_id.as_deref().map(|text| {
            text.parse::<PolicyId>()
                .map_err(|e| Problem::of_field(Kind::MalformedRequest, "policy_id", text, e.to_string()))
        });
        let policy = policy.transpose()?;
        let since = read_of_query("since", self.since.as_deref())?;
        let until = read_of_query("until", self.until.as_deref())?;
        let window = self.window(since, until)?;
        let under = |standing| match &policy {
            Some(policy) => Ok(Sought::Under(policy.clone(), EventsWanted { standing, window })),
            None => {
                let status = &self.status;
                let message = format!(
                    "events that are {status} are listed by policy; name one as policy_id, or look at the runs of all jobs with GET \
                     /v1/runs?state=waiting,running"
                );
                Err(Problem::of_field(Kind::MalformedRequest, "policy_id", (), message))
            }
        };
        match EventStatus::named(&self.status) {
            Some(EventStatus::Waiting) => under(Standing::Waiting),
            Some(EventStatus::InFlight) => under(Standing::InFlight),
            Some(status @ (EventStatus::Failed | EventStatus::Expired | EventStatus::Dead)) => {
                let filter =
                    DeadLetterFilter { policy, status: Some(status), since, until, ..Default::default() };
                Ok(Sought::DeadLetters(filter))
            }
            Some(EventStatus::Delivered | EventStatus::Succeeded | EventStatus::Stopped) => {
                let status = &self.status;
                let message = format!(
                    "events that are {status} are kept by run, not across jobs; find the runs with GET /v1/runs, and list their events with \
                     GET /v1/jobs/{{job_id}}/runs/{{run_id}}/events?status={status}"
                );
                Err(self.refused(message))
            }
            None => Err(self.refused(format!(
                "status '{}' is none; give waiting, in_flight, failed, expired or dead",
                cut(&self.status, ECHOED_CHARACTERS)
            ))),
        }
    }

    fn window(
        &self,
        since: Option<DateTime<chrono::Utc>>,
        until: Option<DateTime<chrono::Utc>>,
    ) -> Result<Window, Problem> {
        let bound = |second: i64| DateTime::from_timestamp(second, 0).unwrap_or_default();
        let since = since.unwrap_or_else(|| bound(*INSTANTS_S.start()));
        window_of_query(since, until.unwrap_or_else(|| bound(*INSTANTS_S.end())))
    }

    fn refused(&self, message: String) -> Problem {
        Problem::of_field(Kind::MalformedRequest, "status", &*cut(&self.status, ECHOED_CHARACTERS), message)
    }
}
