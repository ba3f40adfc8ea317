//! Making launches of a job after all that are over.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use tidegate_domain::ids::JobId;
use tidegate_engine::Backfilled;
use tidegate_protocol::LaunchBackfill;

use super::{not_found, replayed, with_revision, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Expected, id_to_find};
use crate::new_secrets::{OnceBody, came_with_another_body};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::backfill::{BackfillBody, view};

/// Makes launches of a job after all that were due in a window: those of its trigger as it is now, but for those that its calendars
/// leave out, or only those of them that were missed. They are launches of a new revision that says the same, so events of the same
/// launch that were delivered before have other ids, and what is recorded stays. They go through the job's policy as all its runs
/// do, also while it is paused; its relevancy window, the window of its runs and its rule for runs that overlap do not count for
/// them. A call makes up to 480 launches: go on at `next_since`. With an `Idempotency-Key`, the same call within 24 hours is answered with
/// what the first one made, and `Idempotent-Replayed: true`, whatever the job's revision is by then: so it is safe to repeat. It is also
/// with `If-Match`: the second call is refused. Without both, each call makes launches of its own, but for `only_missed`, which makes
/// nothing twice.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/backfill", tag = "jobs", request_body = BackfillBody,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected"),
        ("idempotency-key" = Option<String>, Header,
            description = "Names the call, in 1 to 255 visible ASCII characters: made again, it makes nothing twice")),
    responses(
        (status = 200, description = "The launches that would be made, or that none is", body = LaunchBackfill, headers(("etag" = String))),
        (status = 202, description = "The launches, which are stored and under way", body = LaunchBackfill, headers(("etag" = String))),
))]
pub(crate) async fn backfill_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    OnceBody(body, once): OnceBody<BackfillBody>,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let mut errors = FieldErrors::default();
    let backfill = body.check(state.engine.clock().now(), &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(backfill) = backfill else {
        return Err(Problem::new(Kind::InvalidBody, "the body says no launches"));
    };
    let jobs = state.engine.jobs();
    let done = match once.map(|once| once.call()) {
        Some(call) => jobs.backfill_once(&client.id, &id, backfill, expected, &call).await,
        None => jobs.backfill(&client.id, &id, backfill, expected).await,
    };
    match done.map_err(|e| Problem::of_engine("make launches after all", &e))? {
        Backfilled::Launches { revision, launches, next_from } => {
            let nothing = backfill.dry_run || launches.is_empty();
            let status = if nothing { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok(with_revision(status, revision, view(&id, backfill, (revision, launches), next_from)))
        }
        Backfilled::Before { revision, launches, next_from } => {
            let told = view(&id, backfill, (revision, launches), next_from);
            Ok(replayed(with_revision(StatusCode::ACCEPTED, revision, told)))
        }
        Backfilled::OtherBody(at) => Err(came_with_another_body(at)),
        Backfilled::RevisionIs(current) => Err(wrong_revision("job", id.as_str(), current)),
        Backfilled::Absent => Err(not_found("job", id.as_str())),
        Backfilled::OneTime => {
            let detail = format!(
                "job '{id}' is a one-time job with a generated id, which has one run; post another one to run it again"
            );
            Err(Problem::new(Kind::NotTriggered, detail))
        }
    }
}
