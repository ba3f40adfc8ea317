//! What came of a job: its runs, the events of each, and what is left of a run cancelled.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, State};
use futures::stream::{self, StreamExt as _};
use http::StatusCode;
use tidegate_domain::change::{Kind as KindOfThing, What};
use tidegate_domain::ids::{JobId, RunId};
use tidegate_domain::job::Job;
use tidegate_engine::{RunCancel, RunState, RunSummary, RunsWanted};
use tidegate_protocol::{CancelledRun, CancelledRuns, EventList, RunCounts, RunDetail, RunList};
use tidegate_store::clients::Client;
use tidegate_store::{Page, PageOf};

use super::changes::record;
use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Body, Cursor, ListQuery, Paged, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::run::{self, CancelBody, EventsQuery, RunsQuery};
use crate::wire::selection::Selection;
use crate::wire::spoiled;

/// Runs that are cancelled at once.
const CANCELLED_AT_ONCE: usize = 8;
/// Pages of runs that one call counts.
const PAGES_COUNTED: usize = 10;

/// Lists a job's runs, the latest first. They outlive their job.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs", tag = "runs", params(("job_id" = String, Path), ListQuery), responses(
    (status = 200, description = "A page of runs", body = RunList),
))]
pub(crate) async fn list_runs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(job): Path<String>,
    Paged(asked): Paged,
) -> Result<Json<RunList>, Problem> {
    let job: JobId = id_to_find("job", &job)?;
    let given = asked.after.is_some();
    let page = state.engine.queries().runs(&client.id, &job, asked).await;
    let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list runs", &e))?;
    if page.rows.is_empty() && page.unreadable.is_empty() && !given {
        let found = state.engine.jobs().get(&client.id, &job).await;
        if found.map_err(|e| Problem::of_engine("read a job", &e))?.is_none() {
            return Err(not_found("job", job.as_str()));
        }
    }
    let runs = page.rows.into_iter().map(run::view);
    Ok(Json(RunList {
        runs: runs.collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Lists the runs of all jobs, or of those that have something in common, that were due in a stretch of time: by the ids of their
/// jobs, of each job the latest first. Without a stretch, those of the last 24 hours.
///
/// Up to 1,000 jobs are looked at for a page: it may show few runs, or none, and have a `next_cursor`; the list ends where that is
/// null. Those of one-time jobs with a generated id come last, by the minutes of their jobs. Runs of jobs that were deleted are not
/// among them: they are found by their job.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(RunsQuery), responses(
    (status = 200, description = "A page of runs", body = RunList),
))]
pub(crate) async fn list_all_runs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<RunsQuery>,
) -> Result<Json<RunList>, Problem> {
    let window = query.window(state.engine.clock().now())?;
    let (selection, states) = (query.selection()?, query.states()?);
    let page = Paged::read(query.cursor, query.limit.as_deref())?;
    let page =
        across(&state, &client, &selection, RunsWanted { window, states: states.as_ref() }, page).await?;
    Ok(Json(RunList {
        runs: page.rows.into_iter().map(run::view).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Counts the runs of all jobs, or of those that have something in common, that were due in a stretch of time, as they are listed by
/// `GET /v1/runs`, and their events by what became of them. Without a stretch, those of the last 24 hours.
///
/// A call counts up to 1,000 runs, of up to 1,000 jobs that are looked at, and costs what listing them costs. Where there are more it
/// has a `next_cursor`: what is counted from there comes on top.
#[utoipa::path(get, path = "/v1/runs/count", tag = "runs", params(RunsQuery), responses(
    (status = 200, description = "How many there are", body = RunCounts),
))]
pub(crate) async fn count_runs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<RunsQuery>,
) -> Result<Json<RunCounts>, Problem> {
    let window = query.window(state.engine.clock().now())?;
    let (selection, states) = (query.selection()?, query.states()?);
    let wanted = RunsWanted { window, states: states.as_ref() };
    let mut page = Paged::read(query.cursor, query.limit.as_deref())?;
    let mut counts = RunCounts::default();
    for _ in 0..PAGES_COUNTED {
        let PageOf { after, rows } = page;
        let found = across(&state, &client, &selection, wanted, PageOf { after, rows }).await?;
        found.rows.iter().for_each(|found| run::count(&mut counts, found));
        counts.unreadable = counts.unreadable.saturating_add(found.unreadable.len() as u64);
        let is_full = found.rows.len() >= usize::from(rows.get());
        page = PageOf { after: found.next, rows };
        // One that is not full has looked at as many jobs as a call may.
        if page.after.is_none() || !is_full {
            break;
        }
    }
    counts.next_cursor = Cursor::next_of(page.after);
    Ok(Json(counts))
}

/// Cancels runs that wait or are under way, of all jobs or of those that have something in common, that were due in a stretch of
/// time: a page of them with each call, so call it again with `next_cursor` until that is null. Each run is answered as it would be
/// alone. With `dry_run` nothing is cancelled. Repeating it is safe.
#[utoipa::path(post, path = "/v1/runs/cancel", tag = "runs", request_body = CancelBody, responses(
    (status = 200, description = "The runs, and what came of each", body = CancelledRuns),
))]
pub(crate) async fn cancel_runs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<CancelBody>,
) -> Result<Json<CancelledRuns>, Problem> {
    let mut errors = FieldErrors::default();
    let meant = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some((selection, window)) = meant else {
        return Err(Problem::new(Kind::InvalidBody, "the body says no runs"));
    };
    let states = BTreeSet::from([RunState::Waiting, RunState::Running]);
    let page = Paged::read(body.cursor.clone(), None)?;
    let page =
        across(&state, &client, &selection, RunsWanted { window, states: Some(&states) }, page).await?;
    let results = page.rows.iter().map(|run| async {
        let done = if body.dry_run { Ok(None) } else { cancel(&state, &client, &run.id).await };
        let (status, detail) = match done {
            Ok(_) => (StatusCode::OK, None),
            Err(problem) => {
                let (status, detail, _) = problem.into_parts();
                (status, Some(detail))
            }
        };
        CancelledRun { run_id: run.id.to_string(), status: status.as_u16(), detail }
    });
    let results: Vec<_> = results.collect();
    Ok(Json(CancelledRuns {
        dry_run: body.dry_run,
        results: stream::iter(results).buffered(CANCELLED_AT_ONCE).collect().await,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// A page of the runs of jobs that have something in common.
async fn across(
    state: &ApiState,
    client: &Client,
    selection: &Selection,
    wanted: RunsWanted<'_>,
    page: PageOf,
) -> Result<Page<RunSummary>, Problem> {
    let PageOf { after, rows } = page;
    let after = after.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
    let given = after.is_some();
    let is_meant = |job: &Job| selection.has(job);
    let jobs = selection.jobs(&is_meant);
    let page = state.engine.queries().runs_across(&client.id, jobs, wanted, PageOf { after, rows }).await;
    page.map_err(|e| Cursor::refusal_of_engine(given, "list runs", &e))
}

/// Shows a run: how far it has come, how fast it goes, and when it is expected to end.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs/{run_id}", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The run", body = RunDetail),
))]
pub(crate) async fn read_run(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
) -> Result<Json<RunDetail>, Problem> {
    let run = run_of(&job, &run)?;
    detail(&state, &client, &run).await
}

/// Cancels what is left of a run: no further event of it is admitted. Events that are with their consumers end as they
/// would. Repeating it is safe: a run that was cancelled already is answered as it is.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/runs/{run_id}/cancel", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The run, cancelled", body = RunDetail),
))]
pub(crate) async fn cancel_run(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
) -> Result<Json<RunDetail>, Problem> {
    let run = run_of(&job, &run)?;
    match cancel(&state, &client, &run).await? {
        Some(seen) => Ok(seen),
        None => detail(&state, &client, &run).await,
    }
}

/// Cancels a run. Of one that was cancelled before, the answer is how it was seen.
async fn cancel(state: &ApiState, client: &Client, run: &RunId) -> Result<Option<Json<RunDetail>>, Problem> {
    let cancelled = state.engine.jobs().cancel_run(&client.id, run).await;
    match cancelled.map_err(|e| Problem::of_engine("cancel a run", &e))? {
        RunCancel::Done => {
            let done = (KindOfThing::Job, run.job().as_str(), run.to_string());
            record(state, client, done, What::Cancelled).await;
            Ok(None)
        }
        RunCancel::Absent => Err(not_found("run", &run.to_string())),
        RunCancel::Over => {
            let view = detail(state, client, run).await?;
            let Some(refusal) = run::why_not_cancelled(&view.0.run) else { return Ok(Some(view)) };
            let detail = format!("run '{run}' {refusal}; there is nothing left to cancel");
            Err(Problem::new(Kind::RunOver, detail))
        }
    }
}

async fn detail(state: &ApiState, client: &Client, run: &RunId) -> Result<Json<RunDetail>, Problem> {
    let found = state.engine.queries().run_detail(&client.id, run).await;
    let found = found.map_err(|e| Problem::of_engine("read a run", &e))?;
    found.map(|detail| Json(run::detail_view(detail))).ok_or_else(|| not_found("run", &run.to_string()))
}

/// The run of a path, which must be one of the job that the path names.
fn run_of(job: &str, run: &str) -> Result<RunId, Problem> {
    let job: JobId = id_to_find("job", job)?;
    let run: RunId = id_to_find("run", run)?;
    if *run.job() == job { Ok(run) } else { Err(not_found("run", &run.to_string())) }
}

/// Lists the events of a run, by index: all of them, or those of some statuses. A page costs what it shows, however large the
/// run is.
///
/// Events that are `failed`, `expired`, `dead` or `in_flight` are found without reading what succeeded. For other statuses up to
/// 4,096 events are looked at for each page. A page of some statuses may show few events, or none, and have a `next_cursor`: the
/// list ends where that is null.
///
/// Without a policy and with history `failures`, events that were delivered are listed without `attempts` and `at`.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs/{run_id}/events", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path), EventsQuery), responses(
    (status = 200, description = "A page of events", body = EventList),
))]
pub(crate) async fn list_events(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
    Asked(query): Asked<EventsQuery>,
) -> Result<Json<EventList>, Problem> {
    let run = run_of(&job, &run)?;
    let statuses = query.statuses()?;
    let PageOf { after, rows } = Paged::read(query.cursor, query.limit.as_deref())?;
    let after = after.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
    let asked = PageOf { after, rows };
    let queries = state.engine.queries();
    let page = match &statuses {
        Some(statuses) => queries.events_that_are(&client.id, &run, statuses, asked).await,
        None => queries.events(&client.id, &run, asked).await,
    };
    let page = page.map_err(|e| Problem::of_engine("list events", &e))?;
    let Some(page) = page else { return Err(not_found("run", &run.to_string())) };
    let events = page.rows.into_iter().map(run::event_view);
    Ok(Json(EventList {
        events: events.collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
