//! What jobs are going to do, as it travels.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::bounded::Bounded;
use tidegate_domain::demand::{HeldMs, StepSeconds};
use tidegate_domain::limits::{
    AHEAD_DAYS, AHEAD_STEPS, JOB_ID_BYTES, NAME_BYTES, TAG_BYTES, TARGET_URL_BYTES,
};
use tidegate_domain::time::{days, shifted, whole_second};
use tidegate_engine::{Ahead, AheadWanted, Due, JobAhead, PolicyAhead, PolicyStrain};
use tidegate_protocol as protocol;
use utoipa::IntoParams;

use crate::body::Cursor;
use crate::problem::{Kind, Problem};
use crate::sentences;
use crate::wire::bounds::Text;
use crate::wire::number::{Number, PageLimit};
use crate::wire::selection::{Said, Selection};
use crate::wire::when::{read_of_query, window_of_query};
use crate::wire::{instant, spoiled};

/// What the parameters are described as. Aliases, because utoipa asks each type argument that it sees for a schema.
type StepNumber = Number<StepSeconds>;
type HeldNumber = Number<HeldMs>;

/// The query of what jobs are going to do.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AheadQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most jobs of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Launches at this instant or later, in ISO 8601 with its offset; now when left out. Give it to all pages.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<String>,
    /// Launches before this instant; a day after `since` when left out, 31 days at the most.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
    /// The length of the steps that are counted, in seconds; 3,600 when left out. There may be 1,500 of them.
    #[param(inline, value_type = Option<StepNumber>)]
    step_seconds: Option<String>,
    /// How long an event holds its token, in milliseconds: then policies are asked whether their tokens suffice. Left out, only
    /// their rates are.
    #[param(inline, value_type = Option<HeldNumber>)]
    held_ms: Option<String>,
    /// What the ids of the jobs begin with; no others are read. Left out: any.
    #[param(value_type = Option<String>, example = "nightly-", max_length = 200)]
    prefix: Option<Text<JOB_ID_BYTES>>,
    /// The policy that they are under.
    #[param(value_type = Option<String>, max_length = 32)]
    policy_id: Option<Text<NAME_BYTES>>,
    /// Whether they are paused.
    paused: Option<bool>,
    /// Where they send their events: a URL or an ARN, in which one '*' stands for any run of characters.
    #[param(value_type = Option<String>, example = "https://hooks.acme.example/*", max_length = 512)]
    target: Option<Text<TARGET_URL_BYTES>>,
    /// A tag that they have.
    #[param(value_type = Option<String>, example = "team:books", max_length = 64)]
    tag: Option<Text<TAG_BYTES>>,
}

impl AheadQuery {
    /// What the jobs have in common that are asked for.
    pub(crate) fn selection(&self) -> Result<Selection, Problem> {
        let Self { policy_id, target, tag, paused, .. } = self;
        let said = Said::of(policy_id.as_ref(), target.as_ref(), tag.as_ref(), *paused);
        Selection::of_query(self.prefix.as_ref(), said)
    }

    /// What is looked at.
    pub(crate) fn wanted(&self, now: DateTime<Utc>) -> Result<AheadWanted, Problem> {
        let since = read_of_query("since", self.since.as_deref())?.unwrap_or(whole_second(now));
        let until = read_of_query("until", self.until.as_deref())?.unwrap_or(shifted(since, days(1)));
        let window = window_of_query(since, until)?;
        let given = self.until.as_deref().unwrap_or_default();
        let refused = |field: &'static str, text: &str, detail: String| {
            Err(Problem::of_field(Kind::MalformedRequest, field, text, detail))
        };
        if until > shifted(since, days(AHEAD_DAYS)) {
            let detail = format!(
                "until '{given}' is more than {AHEAD_DAYS} days after since; give an earlier instant"
            );
            return refused("until", given, detail);
        }
        let step = number::<StepSeconds>(self.step_seconds.as_deref())?.unwrap_or_default();
        let steps = (until - since).num_seconds() / i64::from(step.get());
        if steps > AHEAD_STEPS as i64 {
            let detail = format!(
                "step_seconds is {}: the time asked for has {steps} of them, and {AHEAD_STEPS} is the most; give longer steps",
                step.get()
            );
            return refused("step_seconds", &step.get().to_string(), detail);
        }
        Ok(AheadWanted { window, step, held: number::<HeldMs>(self.held_ms.as_deref())? })
    }
}

fn number<L: Bounded>(text: Option<&str>) -> Result<Option<L>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let read = L::read(text).map(Some);
    read.map_err(|refused| Problem::of_field(Kind::MalformedRequest, L::NAME, text, refused.to_string()))
}

/// What jobs are going to do, as it is answered.
pub(crate) fn view(ahead: Ahead, wanted: AheadWanted) -> protocol::Ahead {
    let Ahead { jobs, steps, policies, unreadable, next } = ahead;
    let step = |(at, Due { launches, events })| protocol::StepAhead { at: instant(at), launches, events };
    protocol::Ahead {
        since: instant(wanted.window.from()),
        until: instant(wanted.window.to()),
        step_seconds: wanted.step.get(),
        jobs: jobs.into_iter().map(job_view).collect(),
        steps: steps.into_iter().map(step).collect(),
        policies: policies.into_iter().map(|policy| policy_view(policy, wanted)).collect(),
        unreadable: spoiled::views(unreadable, ""),
        next_cursor: Cursor::next_of(next),
    }
}

fn job_view(job: JobAhead) -> protocol::JobAhead {
    protocol::JobAhead {
        job_id: job.job.to_string(),
        policy_id: job.policy.map(|policy| policy.to_string()),
        launches: job.due.launches,
        events: job.due.events,
        skipped: job.skipped,
        first_launch_at: instant(job.first_at),
        last_launch_at: instant(job.last_at),
        has_more: job.has_more,
    }
}

fn policy_view(policy: PolicyAhead, wanted: AheadWanted) -> protocol::PolicyAhead {
    protocol::PolicyAhead {
        policy_id: policy.policy.to_string(),
        launches: policy.due.launches,
        events: policy.due.events,
        most_at: instant(policy.most_at),
        most_events: policy.most_events,
        strain: policy.strain.map(|strain| strain_view(&strain, wanted)),
    }
}

fn strain_view(strain: &PolicyStrain, wanted: AheadWanted) -> protocol::StrainAhead {
    let limited_by =
        if strain.by_rate { protocol::LimitedBy::Rate } else { protocol::LimitedBy::MaxInFlight };
    protocol::StrainAhead {
        limited_by,
        events_per_step: strain.per_step,
        begins_at: instant(strain.begins_at),
        most_waiting: strain.most_waiting,
        most_at: instant(strain.most_at),
        ends_at: strain.ends_at.map(instant),
        warning: sentences::strain(strain, wanted),
    }
}
