//! ScheduleJobs: created, read, listed, replaced and deleted by the client whose they are.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use tidegate_domain::ids::JobId;
use tidegate_domain::job::Terms;
use tidegate_domain::target::Target;
use tidegate_engine::{JobDelete, JobWrite, QueueCheck};
use tidegate_store::clients::Client;

use super::{id_taken, located, not_found, nothing_to_match, same_id, with_revision, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Cursor, Expected, ListQuery, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::job::{CheckedJob, JobBody, JobList, JobView, check_job_id, url_field};

/// Creates a job. The same job posted again under the same id is answered with 200.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", request_body = JobBody, responses(
    (status = 201, description = "The job", body = JobView, headers(("etag" = String), ("location" = String))),
    (status = 200, description = "It existed already and says the same", body = JobView),
))]
pub(crate) async fn create_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<JobBody>,
) -> Result<Response, Problem> {
    let CheckedJob { id, trigger, terms } = check(&state, body)?;
    let warnings = check_surroundings(&state, &client, &terms).await?;
    let written = state.engine.create_job(&client.id, id, trigger, terms).await;
    answer(written.map_err(|e| Problem::of_engine("create a job", &e))?, "", warnings)
}

/// Lists the client's jobs. One-time jobs with a generated id are not among them: read them by their id.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(ListQuery), responses(
    (status = 200, description = "A page of jobs", body = JobList),
))]
pub(crate) async fn list_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Cursor(cursor): Cursor,
) -> Result<Json<JobList>, Problem> {
    let given = cursor.is_some();
    let page = state.engine.store().jobs(&client.id, cursor).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list jobs", &e))?;
    let jobs = page.rows.iter().map(|job| JobView::new(job, Vec::new())).collect();
    Ok(Json(JobList { jobs, next_cursor: Cursor::next_of(page.next) }))
}

/// Shows a job.
#[utoipa::path(get, path = "/v1/jobs/{job_id}", tag = "jobs", params(("job_id" = String, Path)), responses(
    (status = 200, description = "The job", body = JobView, headers(("etag" = String))),
))]
pub(crate) async fn read_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let found = state.engine.job(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("read a job", &e))?;
    let Some(job) = found else { return Err(not_found("job", id.as_str())) };
    Ok(with_revision(StatusCode::OK, job.revision, JobView::new(&job, Vec::new())))
}

/// Creates or replaces a job. A job that says the same already is left as it is.
#[utoipa::path(put, path = "/v1/jobs/{job_id}", tag = "jobs", request_body = JobBody,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The job", body = JobView, headers(("etag" = String))),
        (status = 201, description = "It did not exist before", body = JobView),
))]
pub(crate) async fn put_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    Body(body): Body<JobBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let in_path = check_job_id(&id, &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(id) = in_path else { return Err(not_found("job", &id)) };
    let CheckedJob { id: in_body, trigger, terms } = check(&state, body)?;
    same_id("job_id", in_body.as_ref().map(JobId::as_str), id.as_str())?;
    let warnings = check_surroundings(&state, &client, &terms).await?;
    let written = state.engine.replace_job(&client.id, id.clone(), trigger, terms, expected).await;
    answer(written.map_err(|e| Problem::of_engine("write a job", &e))?, id.as_str(), warnings)
}

/// Deletes a job. Nothing of it is delivered from then on; its history stays for as long as it would have.
#[utoipa::path(delete, path = "/v1/jobs/{job_id}", tag = "jobs",
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 204, description = "It is gone"),
))]
pub(crate) async fn delete_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<StatusCode, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let deleted = state.engine.delete_job(&client.id, &id, expected).await;
    match deleted.map_err(|e| Problem::of_engine("delete a job", &e))? {
        JobDelete::Done => Ok(StatusCode::NO_CONTENT),
        JobDelete::Absent => Err(not_found("job", id.as_str())),
        JobDelete::RevisionIs(current) => Err(wrong_revision("job", id.as_str(), current)),
    }
}

fn check(state: &ApiState, body: JobBody) -> Result<CheckedJob, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(state.engine.clock().now(), &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    checked.ok_or_else(|| Problem::new(Kind::InvalidBody, "the body is not that of a job"))
}

/// Checks what a job refers to: the client's allow-list, the policy, the queue. Answers with warnings.
async fn check_surroundings(
    state: &ApiState,
    client: &Client,
    terms: &Terms,
) -> Result<Vec<String>, Problem> {
    let target = &terms.target;
    if !client.allowed_targets.iter().any(|pattern| target.is_covered_by(pattern)) {
        let message = format!(
            "client '{}' may not target '{}'; its allowed_targets are {}: ask the admin to allow it",
            client.id,
            target.url(),
            client.allowed_targets.join(", ")
        );
        return Err(Problem::of_field(Kind::TargetNotAllowed, url_field(target), target.url(), message));
    }
    let mut errors = FieldErrors::default();
    let mut warnings = Vec::new();
    if let Some(id) = &terms.policy {
        let found = state.engine.store().policy(&client.id, id).await;
        if found.map_err(|e| Problem::of_store("read a policy", &e))?.is_none() {
            let message = format!(
                "client '{}' has no policy '{id}'; create it first, or leave policy_id out",
                client.id
            );
            errors.add("policy_id", id.as_str(), message);
        }
    }
    if let Target::Sqs { queue_url } = target {
        match look_up_queue(state, queue_url).await {
            QueueCheck::Exists { .. } => {}
            QueueCheck::Missing => {
                let message =
                    format!("no queue has the URL '{queue_url}'; create it, or check its account and region");
                errors.add(url_field(target), &**queue_url, message);
            }
            QueueCheck::Ours => {
                let message =
                    format!("'{queue_url}' is a queue of Tidegate itself; name a queue of your consumer");
                errors.add(url_field(target), &**queue_url, message);
            }
            QueueCheck::Unknown(reason) => {
                warnings.push(format!("queue '{queue_url}' could not be looked up: {reason}"));
            }
        }
    }
    errors.into_result(Kind::InvalidBody).map(|()| warnings)
}

async fn look_up_queue(state: &ApiState, queue_url: &str) -> QueueCheck {
    let (key, now) = (queue_url.to_owned(), state.engine.clock().now());
    if state.known_queues.find(&key, now).is_some() {
        return QueueCheck::Exists { fifo: queue_url.ends_with(".fifo") };
    }
    let found = state.engine.check_queue(queue_url).await;
    if matches!(found, QueueCheck::Exists { .. }) {
        state.known_queues.keep(key, now, ());
    }
    found
}

fn answer(written: JobWrite, id: &str, warnings: Vec<String>) -> Result<Response, Problem> {
    match written {
        JobWrite::Created(job) => {
            let response = with_revision(StatusCode::CREATED, job.revision, JobView::new(&job, warnings));
            Ok(located(response, &format!("/v1/jobs/{}", job.id)))
        }
        JobWrite::Replaced(job) | JobWrite::Unchanged(job) => {
            Ok(with_revision(StatusCode::OK, job.revision, JobView::new(&job, warnings)))
        }
        JobWrite::RevisionIs(current) => Err(wrong_revision("job", id, current)),
        JobWrite::Absent => Err(nothing_to_match("job", id)),
        JobWrite::Taken(job) => Err(id_taken("job", "job_id", job.id.as_str())),
    }
}
