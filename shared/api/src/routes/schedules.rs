//! What is to come: the upcoming firings of a job, and previews of triggers that need no job.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::JobId;
use tidegate_domain::job::Job;
use tidegate_protocol::{Ahead, Preview, Upcoming};
use tidegate_store::PageOf;

use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Body, Cursor, Paged, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::ahead::{self, AheadQuery};
use crate::wire::preview::{self, PreviewBody};
use crate::wire::trigger::Findings;
use crate::wire::upcoming::{self, UpcomingQuery};

/// Lists the next firings of a job in UTC and local time, those that will not be made as things stand among them.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/upcoming", tag = "jobs", params(("job_id" = String, Path), UpcomingQuery), responses(
    (status = 200, description = "The next firings", body = Upcoming),
))]
pub(crate) async fn list_upcoming(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Asked(query): Asked<UpcomingQuery>,
) -> Result<Json<Upcoming>, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let mut errors = FieldErrors::default();
    let count = query.check(&mut errors);
    errors.into_result(Kind::MalformedRequest)?;
    let found = state.engine.jobs().get(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("read a job", &e))?;
    let Some(job) = found else { return Err(not_found("job", id.as_str())) };
    let now = state.engine.clock().now();
    let firings = state.engine.queries().upcoming(&job, now, count.unwrap_or_default()).await;
    let firings = firings.map_err(|e| Problem::of_engine("look ahead", &e))?;
    Ok(Json(upcoming::view(&job, &firings)))
}

/// What a client's jobs are going to do: how many launches and events of each are due, how many in each step of time, and how many
/// under each policy, with a warning where its rate, or its tokens, cannot keep up with what is due.
///
/// Up to 100 jobs that have launches then are on a page, of up to 1,000 that are looked at: a page may have few, or none, and be
/// followed by others, whose launches come on top. One-time jobs with a generated id come last, by their minutes.
#[utoipa::path(get, path = "/v1/upcoming", tag = "schedules", params(AheadQuery), responses(
    (status = 200, description = "What is due", body = Ahead),
))]
pub(crate) async fn look_ahead(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<AheadQuery>,
) -> Result<Json<Ahead>, Problem> {
    let PageOf { after, rows } = Paged::read(query.cursor.clone(), query.limit.as_deref())?;
    let after = after.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
    let (given, asked) = (after.is_some(), PageOf { after, rows });
    let wanted = query.wanted(state.engine.clock().now())?;
    let selection = query.selection()?;
    let is_meant = |job: &Job| selection.has(job);
    let found = state.engine.queries().ahead(&client.id, selection.jobs(&is_meant), wanted, asked).await;
    let found = found.map_err(|e| Cursor::refusal_of_engine(given, "look ahead", &e))?;
    Ok(Json(ahead::view(found, wanted)))
}

/// Says what a trigger means, when it fires, and what may not be as meant. Nothing is stored; an expression that never
/// fires is answered too, with a warning. Repeating it is safe.
#[utoipa::path(post, path = "/v1/schedules/preview", tag = "schedules", request_body = PreviewBody, responses(
    (status = 200, description = "What it means and when it fires", body = Preview),
))]
pub(crate) async fn preview_schedule(
    State(state): State<ApiState>,
    _: Caller,
    Body(body): Body<PreviewBody>,
) -> Result<Json<Preview>, Problem> {
    let now = state.engine.clock().now();
    let mut findings = Findings::default();
    let checked = body.check(now, &mut findings);
    std::mem::take(&mut findings.errors).into_result(Kind::InvalidBody)?;
    let Some(checked) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a preview"));
    };
    Ok(Json(preview::view(checked, findings, now)))
}
