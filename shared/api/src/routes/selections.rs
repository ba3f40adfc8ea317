//! Jobs that are paused, resumed or deleted by what they have in common: a page of them with each call.

use axum::Json;
use axum::extract::State;
use futures::stream::{self, StreamExt as _};
use tidegate_domain::job::Job;
use tidegate_engine::{EngineError, JobDelete, Written};
use tidegate_protocol::{BulkResult, SelectedJobs};
use tidegate_store::clients::Client;

use super::{not_found, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Cursor};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::bulk::{refused, stored};
use crate::wire::selection::SelectionBody;
use crate::wire::spoiled;

/// Jobs that are changed at once.
const AT_ONCE: usize = 8;

/// What is done to the jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    /// For a reason, if one is given.
    Pause(Option<String>),
    Resume,
    Delete,
}

/// Pauses the jobs that fit all that is given, of the next 100 whose ids begin so: call it again with `next_cursor` until that is
/// null. Each job is answered as it would be alone. With `dry_run` nothing is changed, and the answer is the same. Repeating it is safe.
#[utoipa::path(post, path = "/v1/jobs/bulk/pause", tag = "jobs", request_body = SelectionBody, responses(
    (status = 200, description = "The jobs, and what came of each", body = SelectedJobs),
))]
pub(crate) async fn pause_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<SelectionBody>,
) -> Result<Json<SelectedJobs>, Problem> {
    let mut errors = FieldErrors::default();
    let because = body.because(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    act_on(&state, &client, &body, Act::Pause(because.flatten())).await
}

/// Resumes the jobs that fit all that is given, as `/v1/jobs/bulk/pause` pauses them. Repeating it is safe.
#[utoipa::path(post, path = "/v1/jobs/bulk/resume", tag = "jobs", request_body = SelectionBody, responses(
    (status = 200, description = "The jobs, and what came of each", body = SelectedJobs),
))]
pub(crate) async fn resume_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<SelectionBody>,
) -> Result<Json<SelectedJobs>, Problem> {
    act_on(&state, &client, &body, Act::Resume).await
}

/// Deletes the jobs that fit all that is given, as `/v1/jobs/bulk/pause` pauses them. What a job has waiting is cancelled with it.
/// Repeating it is safe.
#[utoipa::path(post, path = "/v1/jobs/bulk/delete", tag = "jobs", request_body = SelectionBody, responses(
    (status = 200, description = "The jobs, and what came of each", body = SelectedJobs),
))]
pub(crate) async fn delete_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<SelectionBody>,
) -> Result<Json<SelectedJobs>, Problem> {
    act_on(&state, &client, &body, Act::Delete).await
}

async fn act_on(
    state: &ApiState,
    client: &Client,
    body: &SelectionBody,
    act: Act,
) -> Result<Json<SelectedJobs>, Problem> {
    let mut errors = FieldErrors::default();
    let selection = body.check(&mut errors);
    if let (Act::Resume | Act::Delete, Some(Some(because))) = (&act, body.because(&mut errors)) {
        let message = "because goes with the call to pause jobs; leave it out";
        errors.add("because", because, message);
    }
    errors.into_result(Kind::InvalidBody)?;
    let Some(selection) = selection else {
        return Err(Problem::new(Kind::InvalidBody, "the body says no jobs"));
    };
    let cursor = Cursor::read(body.cursor.clone())?;
    let given = cursor.is_some();
    let page = state.engine.store().jobs(&client.id, &selection.prefix, cursor).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list jobs", &e))?;
    let chosen = page.rows.iter().filter(|job| selection.has(job));
    let act = &act;
    let results = chosen.map(|job| async move {
        let done = if body.dry_run { Ok(told(act, job)) } else { done(state, client, job, act).await };
        let result = done.unwrap_or_else(refused);
        BulkResult { job_id: Some(job.id.to_string()), ..result }
    });
    let results: Vec<_> = results.collect();
    Ok(Json(SelectedJobs {
        dry_run: body.dry_run,
        results: stream::iter(results).buffered(AT_ONCE).collect().await,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

async fn done(state: &ApiState, client: &Client, job: &Job, act: &Act) -> Result<BulkResult, Problem> {
    let jobs = state.engine.jobs();
    let failed = |e: EngineError| Problem::of_engine("change one of several jobs", &e);
    if *act == Act::Delete {
        return match jobs.delete(&client.id, &job.id, None).await.map_err(failed)? {
            // It is gone, whoever deleted it.
            JobDelete::Done | JobDelete::Absent => Ok(told(act, job)),
            JobDelete::RevisionIs(current) => Err(wrong_revision("job", job.id.as_str(), current)),
        };
    }
    let written = match act {
        Act::Pause(Some(because)) => jobs.pause_because(&client.id, &job.id, because, None).await,
        _ => jobs.pause(&client.id, &job.id, *act != Act::Resume, None).await,
    };
    match written.map_err(failed)? {
        Written::Created(job) | Written::Replaced(job) | Written::Unchanged(job) | Written::Taken(job) => {
            Ok(told(act, &job))
        }
        Written::RevisionIs(current) => Err(wrong_revision("job", job.id.as_str(), current)),
        Written::Absent => Err(not_found("job", job.id.as_str())),
    }
}

/// What is answered of a job to which it was done.
fn told(act: &Act, job: &Job) -> BulkResult {
    match act {
        Act::Pause(_) | Act::Resume => stored(200, job, Vec::new()),
        Act::Delete => BulkResult { revision: None, ..stored(204, job, Vec::new()) },
    }
}
