//! Leaving out a launch of a job.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use tidegate_domain::ids::JobId;
use tidegate_domain::limits::SKIPPED_LAUNCHES;
use tidegate_engine::LeftOut;
use tidegate_protocol::SkippedLaunch;

use super::{not_found, with_revision, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Expected, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::instant;
use crate::wire::skip::SkipBody;

/// Leaves out a launch of a job: the next, or the one that is named. It delivers nothing and is recorded as a run with the
/// reason `skipped_on_request`; the launches after it are made. Naming it makes the call safe to repeat; without a name each
/// call leaves out another. To make it after all, take it out of the job's `skip`.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/skip", tag = "jobs", request_body = SkipBody,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The launch that is left out", body = SkippedLaunch, headers(("etag" = String))),
))]
pub(crate) async fn skip_launch(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    Body(body): Body<SkipBody>,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let mut errors = FieldErrors::default();
    let launch_at = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let launch_at = launch_at.flatten();
    let left_out = state.engine.jobs().skip(&client.id, &id, launch_at, expected).await;
    match left_out.map_err(|e| Problem::of_engine("leave out a launch", &e))? {
        LeftOut::Launch { revision, launch_at } => {
            let told = SkippedLaunch { job_id: id.to_string(), revision, launch_at: instant(launch_at) };
            Ok(with_revision(StatusCode::OK, revision, told))
        }
        LeftOut::RevisionIs(current) => Err(wrong_revision("job", id.as_str(), current)),
        LeftOut::Absent => Err(not_found("job", id.as_str())),
        LeftOut::OneTime => {
            let detail = format!("job '{id}' launches once; delete it to leave that out");
            Err(Problem::new(Kind::NotSkipped, detail))
        }
        LeftOut::NoLaunch => Err(no_launch(&id, body.launch_at.as_deref())),
        LeftOut::TooMany => {
            let detail = format!(
                "job '{id}' leaves out {SKIPPED_LAUNCHES} launches that are to come, and no more can be; pause it, give it a later \
                 start_at, or name a calendar"
            );
            Err(Problem::new(Kind::TooMany, detail))
        }
    }
}

fn no_launch(id: &JobId, named: Option<&str>) -> Problem {
    match named {
        Some(named) => {
            let message = format!(
                "job '{id}' has no launch to come at '{named}'; GET /v1/jobs/{id}/upcoming lists its launches"
            );
            Problem::of_field(Kind::InvalidBody, "launch_at", named, message)
        }
        None => Problem::new(
            Kind::NotSkipped,
            format!(
                "job '{id}' makes no launch that could be left out: it is paused, or its trigger is over"
            ),
        ),
    }
}
