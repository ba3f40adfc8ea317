//! Letting a job fire at other times. Everything else of it stays.

use axum::extract::{Path, State};
use axum::response::Response;
use tidegate_domain::change::What;
use tidegate_domain::ids::JobId;
use tidegate_domain::job::{Job, Trigger};

use super::patches::{body_of, change_job};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Expected, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::job::JobView;
use crate::wire::job_calls::{Reschedule, RescheduleBody, delayed};
use crate::wire::trigger::TriggerBody;

/// Reschedules a job: it has another `trigger`, whole and not merged as by a PATCH, or its instants that are to come are moved by
/// `delay_seconds`. Everything else of it stays, and so does what was due before the call. What comes of it is checked like a PUT.
/// To move by seconds is not safe to repeat without `If-Match`. A one-time job with a generated id, which says where it lies, cannot
/// be moved: it is deleted and created anew.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/reschedule", tag = "jobs", request_body = RescheduleBody,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The job", body = JobView, headers(("etag" = String))),
))]
pub(crate) async fn reschedule_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    Body(body): Body<RescheduleBody>,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let mut errors = FieldErrors::default();
    let asked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(asked) = asked else {
        return Err(Problem::new(Kind::InvalidBody, "the body says no other times"));
    };
    let now = state.engine.clock().now();
    let change = |job: &Job| match &asked {
        _ if id.one_time_shard().is_some() => Err(generated(&id)),
        Reschedule::Trigger(trigger) => Ok(body_of(job, now)?.with_trigger(TriggerBody::clone(trigger))),
        Reschedule::Delay(delay) => match delayed(&job.trigger, *delay, now) {
            Some(trigger) => body_of(&Job { trigger, ..job.clone() }, now),
            None => Err(not_delayed(job)),
        },
    };
    change_job(&state, client, &id, expected, What::Rescheduled, change).await
}

fn generated(id: &JobId) -> Problem {
    let detail = format!(
        "job '{id}' has a generated id, which says where it lies, and cannot be moved; delete it and create it anew, with a job_id \
         if it may change"
    );
    Problem::new(Kind::NotRescheduled, detail)
}

fn not_delayed(job: &Job) -> Problem {
    let (id, why) = (
        &job.id,
        match &job.trigger {
            Trigger::Cron { .. } => "launches by a cron expression",
            Trigger::Rate { .. } => "launches at a rate",
            Trigger::At(_) => "has no instant that is to come",
        },
    );
    let detail = format!("job '{id}' {why}, and delay_seconds moves instants; give it another trigger");
    Problem::new(Kind::NotRescheduled, detail)
}
