//! ScheduleJobs: created, read, listed, replaced and deleted by the client whose they are.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use tidegate_domain::change::What;
use tidegate_domain::ids::JobId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::quota::Ask;
use tidegate_domain::time::{seconds, shifted};
use tidegate_engine::{EngineError, Expect, JobDelete, JobDraft, Written};
use tidegate_store::clients::Client;
use tidegate_store::{KeyHash, Page, PageOf};

use super::acceptance::{Accepted, Seen, accept};
use super::filling::Filling;
use super::quotas::{ask_of_job, gone_meanwhile, is_overtaken, only_over, stored_jobs, take};
use super::{
    contended, exists_already, id_taken, job_path, located, not_found, nothing_to_match, replayed,
    with_revision, wrong_revision,
};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{
    Asked, Body, Cursor, Expected, IdempotencyKey, MaybeBody, Paged, Precondition, id_to_find,
};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::job::{JobBody, JobList, JobView, check_job_id, view};
use crate::wire::job_calls::PauseBody;
use crate::wire::read_only::expectation;
use crate::wire::selection::{JobsQuery, Selection};
use crate::wire::spoiled;

/// Firings of a job among which its next launch is looked for: those before may be left out.
const FIRINGS_LOOKED_AT: usize = 20;

/// Creates a job. The same job posted again under the same id, or without one under the same `Idempotency-Key`, is answered with
/// 200: so it is safe to repeat. With neither of them each call creates another job.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", request_body = JobBody,
    params(("idempotency-key" = Option<String>, Header,
        description = "Gives a job without a `job_id` an id that follows from it, in 1 to 255 visible ASCII characters")),
    responses(
    (status = 201, description = "The job", body = JobView, headers(("etag" = String), ("location" = String))),
    (status = 200, description = "It existed already and says the same", body = JobView),
))]
pub(crate) async fn create_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<JobBody>,
) -> Result<Response, Problem> {
    let by_key = key.filter(|_| !body.has_id()).map(|key| id_by_key(&key));
    let accepted = accept(&state, &client, by_key.as_ref(), body, &mut Seen::default()).await?;
    let Accepted { id, draft, warnings } = accepted;
    let id = by_key.clone().or(id);
    let stored = stored_jobs(&state, &client, id.as_ref().as_slice()).await?;
    let stored = id.as_ref().and_then(|id| stored.get(id));
    take(&state, &client, ask_of_job(&draft.trigger, id.is_some(), stored)).await?;
    let written = match (stored, &id) {
        (Some(_), Some(id)) => state.engine.jobs().create_again(&client.id, id, draft).await,
        _ => state.engine.jobs().create(&client.id, id.clone(), draft).await,
    };
    let written = written.map_err(|e| Problem::of_engine("create a job", &e))?;
    if let (Written::Absent, Some(id)) = (&written, &id) {
        return Err(gone_meanwhile("job", id.as_str()));
    }
    let is_replayed = by_key.is_some() && matches!(written, Written::Unchanged(_));
    answer(written, "", warnings).map(|response| if is_replayed { replayed(response) } else { response })
}

/// The id of a job that was created without one under an idempotency key: a call that is made again finds the job by it.
pub(super) fn id_by_key(key: &str) -> JobId {
    let number = KeyHash::of(key).as_str().get(..32).and_then(|hex| u128::from_str_radix(hex, 16).ok());
    JobId::generated(number.unwrap_or_default())
}

/// Lists the client's jobs, by id: all of them, or those that fit all that is given. Of a `prefix` no other jobs are read; by policy,
/// target, state and next launch up to 1,000 jobs are looked at for each page, which may show few of them, or none, and have a `next_cursor`: the
/// list ends where that is null. One-time jobs with a generated id are not among them: they are
/// listed by their minutes, by `GET /v1/one-time-jobs`, and read by their id.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(JobsQuery), responses(
    (status = 200, description = "A page of jobs", body = JobList),
))]
pub(crate) async fn list_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<JobsQuery>,
) -> Result<Json<JobList>, Problem> {
    let asked = Paged::read(query.cursor.clone(), query.limit.as_deref())?;
    let given = asked.after.is_some();
    let selected = selected(&state, &client, (&query.check()?, query.next_before()?), asked).await;
    let page = selected.map_err(|e| Cursor::refusal_of_engine(given, "list jobs", &e))?;
    let jobs = page.rows.iter().map(|job| view(job, Vec::new())).collect();
    Ok(Json(JobList {
        jobs,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// A page of the jobs that are asked for, of the next few whose ids begin so.
async fn selected(
    state: &ApiState,
    client: &Client,
    (selection, next_before): (&Selection, Option<DateTime<Utc>>),
    asked: PageOf,
) -> Result<Page<Job>, EngineError> {
    // Of all jobs none but those that were deleted is left out.
    let mut filling = Filling::ascending(asked, selection.has_all() && next_before.is_none());
    loop {
        let page = state.engine.store().jobs(&client.id, &selection.prefix, filling.next()).await?;
        let mut fitting = Page { rows: Vec::new(), ..page };
        for job in page.rows.into_iter().filter(|job| selection.has(job)) {
            if launches_before(state, &job, next_before).await? {
                fitting.rows.push(job);
            }
        }
        if filling.is_done_with(fitting, |job| job.id.to_string()) {
            return Ok(filling.into_page());
        }
    }
}

/// Whether the next launch of a job that will be made, of the next few, is due before an instant, if one is given.
async fn launches_before(
    state: &ApiState,
    job: &Job,
    next_before: Option<DateTime<Utc>>,
) -> Result<bool, EngineError> {
    let Some(before) = next_before else { return Ok(true) };
    let now = state.engine.clock().now();
    // What its trigger says needs no calendar: jitter makes it later, and the others leave launches out, or move them to the
    // same time of another day.
    let since = shifted(now, -seconds(job.rules.jitter.seconds().into()));
    let next = job.trigger.cadence().candidates(job.rules.on_closed_day).upcoming(since, 1);
    if job.paused || next.first().is_none_or(|firing| firing.launch_at >= before) {
        return Ok(false);
    }
    let next = state.engine.queries().upcoming(job, now, FIRINGS_LOOKED_AT).await?;
    Ok(next.iter().any(|launch| launch.skip_reason.is_none() && launch.launch_at < before))
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
    let found = state.engine.jobs().get(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("read a job", &e))?;
    let Some(job) = found else { return Err(not_found("job", id.as_str())) };
    Ok(with_revision(StatusCode::OK, job.revision, view(&job, Vec::new())))
}

/// Creates or replaces a job. What GET answers can be put back: `revision` is then the one that is expected, and what
/// follows from the rest is not looked at. A job that says the same already is left as it is.
#[utoipa::path(put, path = "/v1/jobs/{job_id}", tag = "jobs", request_body = JobBody,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected"),
        ("if-none-match" = Option<String>, Header, description = "`*`: create it, and answer 412 when it exists already")),
    responses(
        (status = 200, description = "The job", body = JobView, headers(("etag" = String))),
        (status = 201, description = "It did not exist before", body = JobView),
))]
pub(crate) async fn put_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Precondition(by_header): Precondition,
    Body(body): Body<JobBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let in_path = check_job_id(&id, &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(id) = in_path else { return Err(not_found("job", &id)) };
    let expected = expectation(by_header, body.revision)?;
    let accepted = accept(&state, &client, Some(&id), body, &mut Seen::default()).await?;
    let Accepted { draft, warnings, .. } = accepted;
    let written = put(&state, &client, &id, draft, expected, What::Changed).await?;
    answer(written, id.as_str(), warnings)
}

/// Writes a job under its id, within the quotas of its client: anew while other writes come in between, unless a revision is
/// expected.
pub(super) async fn put(
    state: &ApiState,
    client: &Client,
    id: &JobId,
    draft: JobDraft,
    expected: Expect,
    what: What,
) -> Result<Written<Job>, Problem> {
    let mut is_create = true;
    for _ in 0..WRITE_ROUNDS {
        let stored = stored_jobs(state, client, &[id]).await?.remove(id);
        let seen = stored.as_ref().map(|job| job.revision);
        if seen.is_some() && expected == Expect::Nothing {
            return Err(exists_already("job", id.as_str()));
        }
        let ask = ask_of_job(&draft.trigger, true, stored.as_ref());
        // A job that is expected to be there is not made where there is none.
        let adds = ask.adds.filter(|_| !matches!(expected, Expect::Revision(_)));
        take(state, client, Ask { is_create, adds, ..ask }).await?;
        is_create = false;
        let over = only_over(seen, expected);
        let written = state.engine.jobs().replace_as(&client.id, id.clone(), draft.clone(), over, what).await;
        let written = written.map_err(|e| Problem::of_engine("write a job", &e))?;
        if is_overtaken(&written, seen, expected) {
            continue;
        }
        if expected == Expect::Nothing && !matches!(written, Written::Created(_)) {
            return Err(exists_already("job", id.as_str()));
        }
        return Ok(written);
    }
    Err(contended("job", id.as_str()))
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
    let deleted = state.engine.jobs().delete(&client.id, &id, expected).await;
    match deleted.map_err(|e| Problem::of_engine("delete a job", &e))? {
        JobDelete::Done => Ok(StatusCode::NO_CONTENT),
        JobDelete::Absent => Err(not_found("job", id.as_str())),
        JobDelete::RevisionIs(current) => Err(wrong_revision("job", id.as_str(), current)),
    }
}

/// Pauses a job. A launch that falls due while it is paused delivers nothing and is recorded as a run with the reason
/// `paused`; runs that were launched before go on. The body may say why, and may be left out: GET shows it as `paused_because`
/// while the job is paused. Repeating it is safe: pausing it again for another reason replaces the reason.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/pause", tag = "jobs", request_body = Option<PauseBody>,
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The job, paused", body = JobView, headers(("etag" = String))),
))]
pub(crate) async fn pause_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    MaybeBody(body): MaybeBody<PauseBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let because = body.unwrap_or_default().check(&mut errors).flatten();
    errors.into_result(Kind::InvalidBody)?;
    let id: JobId = id_to_find("job", &id)?;
    let jobs = state.engine.jobs();
    let written = match &because {
        Some(because) => jobs.pause_because(&client.id, &id, because, expected).await,
        None => jobs.pause(&client.id, &id, true, expected).await,
    };
    answer_paused(written, &id)
}

/// Resumes a job. Launches that fell due in the meantime are not delivered later. Repeating it is safe.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/resume", tag = "jobs",
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The job, no longer paused", body = JobView, headers(("etag" = String))),
))]
pub(crate) async fn resume_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let written = state.engine.jobs().pause(&client.id, &id, false, expected).await;
    answer_paused(written, &id)
}

fn answer_paused(written: Result<Written<Job>, EngineError>, id: &JobId) -> Result<Response, Problem> {
    match written.map_err(|e| Problem::of_engine("pause or resume a job", &e))? {
        Written::Absent => Err(not_found("job", id.as_str())),
        written => answer(written, id.as_str(), Vec::new()),
    }
}

/// The answer to a job that was written.
pub(super) fn answer(written: Written<Job>, id: &str, warnings: Vec<String>) -> Result<Response, Problem> {
    match written {
        Written::Created(job) => {
            let response = with_revision(StatusCode::CREATED, job.revision, view(&job, warnings));
            Ok(located(response, &job_path(job.id.as_str())))
        }
        Written::Replaced(job) | Written::Unchanged(job) => {
            Ok(with_revision(StatusCode::OK, job.revision, view(&job, warnings)))
        }
        Written::RevisionIs(current) => Err(wrong_revision("job", id, current)),
        Written::Absent => Err(nothing_to_match("job", id)),
        Written::Taken(job) => Err(id_taken("job", "job_id", job.id.as_str())),
    }
}
