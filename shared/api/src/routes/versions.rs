//! The versions of a job, and going back to one.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::value::RawValue;
use tidegate_domain::change::What;
use tidegate_domain::ids::JobId;
use tidegate_domain::limits::{CHANGE_DAYS, VERSIONS_SEARCHED};
use tidegate_engine::JobVersion as Version;
use tidegate_protocol::{JobVersion, JobVersionList};
use tidegate_store::clients::Client;

use super::acceptance::{Accepted, Seen, accept};
use super::patches::{body_of, generated, with_its_own};
use super::{job_path, jobs, not_found};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Cursor, Expected, ListQuery, Paged, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::change::version_view;
use crate::wire::job::JobView;
use crate::wire::job_calls::RollbackBody;

/// Lists the versions of a job, the latest first: each as GET showed the job then, with what was done to make it, by which key and
/// from where. Its deletion is a version as well. Up to 25 are on a page, as far back as changes are kept: for 90 days, or for the
/// client's `history_days` when these are more.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/versions", tag = "changes", params(("job_id" = String, Path), ListQuery), responses(
    (status = 200, description = "A page of versions", body = JobVersionList),
))]
pub(crate) async fn list_versions(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Paged(asked): Paged,
) -> Result<Json<JobVersionList<Box<RawValue>>>, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let given = asked.after.is_some();
    if asked.after.as_ref().is_some_and(|after| !after.contains(&format!("|job|{id}|"))) {
        return Err(Cursor::unknown());
    }
    let page = state.engine.queries().versions(&client.id, &id, asked).await;
    let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list versions", &e))?;
    let Some(page) = page else { return Err(not_found("job", id.as_str())) };
    Ok(Json(JobVersionList {
        versions: page.rows.iter().map(version_view).collect(),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Shows a version of a job.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/versions/{revision}", tag = "changes",
    params(("job_id" = String, Path), ("revision" = String, Path, description = "The revision of the version")),
    responses(
        (status = 200, description = "The version", body = JobVersion),
))]
pub(crate) async fn read_version(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((id, revision)): Path<(String, String)>,
) -> Result<Json<JobVersion<Box<RawValue>>>, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let version = kept(&state, &client, &id, &revision).await?;
    Ok(Json(version_view(&version)))
}

/// Makes a job say again what it said at a revision, under a new revision; one that is paused stays so. What it says is checked
/// like a PUT: its policy and its calendars may be gone by now, and its instants past. A job that was deleted comes back by it, for
/// as long as its deletion and its versions are kept. When it says the same already, nothing changes: so
/// it is safe to repeat.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/rollback", tag = "changes", request_body = RollbackBody,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The job", body = JobView, headers(("etag" = String))),
        (status = 201, description = "It was deleted before", body = JobView, headers(("etag" = String), ("location" = String))),
))]
pub(crate) async fn roll_back(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    Body(body): Body<RollbackBody>,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let mut errors = FieldErrors::default();
    let revision = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    if id.one_time_shard().is_some() {
        return Err(generated(&id));
    }
    let version = kept(&state, &client, &id, &revision.unwrap_or_default().to_string()).await?;
    let Some(job) = version.job else {
        let detail = format!(
            "revision {} of job '{id}' is its deletion; choose an earlier one, or delete the job",
            version.revision
        );
        return Err(Problem::new(Kind::NotFound, detail));
    };
    let client = with_its_own(client);
    let body = body_of(&job, state.engine.clock().now())?;
    let Accepted { draft, warnings, .. } =
        accept(&state, &client, Some(&id), body, &mut Seen::default()).await?;
    let written = jobs::put(&state, &client, &id, draft, expected.into(), What::RolledBack).await?;
    jobs::answer(written, id.as_str(), warnings)
}

/// A version that is kept, by its revision as it was given.
async fn kept(state: &ApiState, client: &Client, id: &JobId, revision: &str) -> Result<Version, Problem> {
    let found = match revision.parse() {
        Ok(number) => state.engine.queries().version(&client.id, id, number).await,
        Err(_) => Ok(None),
    };
    found.map_err(|e| Problem::of_engine("read a version", &e))?.ok_or_else(|| {
        let path = job_path(id.as_str());
        let detail = format!(
            "no revision {revision} of job '{id}' is kept: versions are for {CHANGE_DAYS} days, or the client's history_days, and \
             the latest {VERSIONS_SEARCHED} are found; GET {path}/versions lists them"
        );
        Problem::new(Kind::NotFound, detail)
    })
}
