//! Sidelining: a client or a job is held, and later drains. A client does it to itself and its jobs, an admin to any client.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::sideline::{Sideline, SidelineOf};
use tidegate_engine::Sidelined;
use tidegate_protocol::{SidelineStatus, Sidelines};

use super::not_found;
use crate::ApiState;
use crate::auth::{Admin, Caller, is_suspended, present, registered};
use crate::body::{Body, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::sideline::{DrainBody, SidelineBody, view};

/// Shows what of the client is sidelined, or drains, and how much is set aside.
#[utoipa::path(get, path = "/v1/sideline", tag = "sidelining", responses(
    (status = 200, description = "What is sidelined", body = Sidelines),
))]
pub(crate) async fn read_sideline(
    State(state): State<ApiState>,
    Caller(client): Caller,
) -> Result<Json<Sidelines>, Problem> {
    shown(&state, &client.id).await
}

/// Sidelines the client: nothing of it is delivered until it is drained, and nothing is lost. What is in flight goes on. Repeating
/// it changes nothing but the reason.
#[utoipa::path(post, path = "/v1/sideline", tag = "sidelining", request_body = SidelineBody, responses(
    (status = 200, description = "What is sidelined", body = Sidelines),
))]
pub(crate) async fn sideline_caller(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<SidelineBody>,
) -> Result<Json<Sidelines>, Problem> {
    sideline(&state, &client.id, &SidelineOf::Client, &body).await
}

/// Drains the client: what was set aside is delivered at a pace, and so is what waits in each of its policies. Repeating it sets
/// the pace.
#[utoipa::path(post, path = "/v1/drain", tag = "sidelining", request_body = DrainBody, responses(
    (status = 200, description = "What drains", body = Sidelines),
))]
pub(crate) async fn drain_caller(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<DrainBody>,
) -> Result<Json<Sidelines>, Problem> {
    drain(&state, &client.id, &SidelineOf::Client, &body).await
}

/// Sidelines a job: nothing of it is delivered until it is drained, and nothing is lost. Other jobs under its policy go on.
/// Repeating it is safe.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/sideline", tag = "sidelining", params(("job_id" = String, Path)),
    request_body = SidelineBody, responses(
    (status = 200, description = "What is sidelined", body = Sidelines),
))]
pub(crate) async fn sideline_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Body(body): Body<SidelineBody>,
) -> Result<Json<Sidelines>, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    sideline(&state, &client.id, &SidelineOf::Job(id), &body).await
}

/// Drains a job at a pace. Repeating it sets the pace.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/drain", tag = "sidelining", params(("job_id" = String, Path)),
    request_body = DrainBody, responses(
    (status = 200, description = "What drains", body = Sidelines),
))]
pub(crate) async fn drain_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Body(body): Body<DrainBody>,
) -> Result<Json<Sidelines>, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    drain(&state, &client.id, &SidelineOf::Job(id), &body).await
}

/// Shows what of a client is sidelined, or drains.
#[utoipa::path(get, path = "/v1/clients/{client_id}/sideline", tag = "sidelining", params(("client_id" = String, Path)),
    security(("admin_key" = [])), responses(
    (status = 200, description = "What is sidelined", body = Sidelines),
))]
pub(crate) async fn read_sideline_of_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
) -> Result<Json<Sidelines>, Problem> {
    shown(&state, &registered(&state, &id).await?.id).await
}

/// Sidelines a client, as it could do itself. Repeating it changes nothing but the reason.
#[utoipa::path(post, path = "/v1/clients/{client_id}/sideline", tag = "sidelining", params(("client_id" = String, Path)),
    security(("admin_key" = [])), request_body = SidelineBody, responses(
    (status = 200, description = "What is sidelined", body = Sidelines),
))]
pub(crate) async fn sideline_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Body(body): Body<SidelineBody>,
) -> Result<Json<Sidelines>, Problem> {
    sideline(&state, &present(&state, &id).await?.id, &SidelineOf::Client, &body).await
}

/// Drains a client, as it could do itself. Repeating it sets the pace.
#[utoipa::path(post, path = "/v1/clients/{client_id}/drain", tag = "sidelining", params(("client_id" = String, Path)),
    security(("admin_key" = [])), request_body = DrainBody, responses(
    (status = 200, description = "What drains", body = Sidelines),
))]
pub(crate) async fn drain_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Body(body): Body<DrainBody>,
) -> Result<Json<Sidelines>, Problem> {
    drain(&state, &present(&state, &id).await?.id, &SidelineOf::Client, &body).await
}

async fn sideline(
    state: &ApiState,
    client: &ClientId,
    of: &SidelineOf,
    body: &SidelineBody,
) -> Result<Json<Sidelines>, Problem> {
    let mut errors = FieldErrors::default();
    let because = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let done = state.engine.sidelining().sideline(client, of, &because.unwrap_or_default()).await;
    let name = match of {
        SidelineOf::Client => String::new(),
        SidelineOf::Job(job) => job.to_string(),
    };
    match done.map_err(|e| Problem::of_engine("sideline a client or a job", &e))? {
        Sidelined::Done => shown(state, client).await,
        Sidelined::Absent => Err(not_found("job", &name)),
        Sidelined::TooMany => Err(Problem::new(
            Kind::InUse,
            "as many jobs are sidelined as may be; drain one of them, or sideline the client",
        )),
    }
}

async fn drain(
    state: &ApiState,
    client: &ClientId,
    of: &SidelineOf,
    body: &DrainBody,
) -> Result<Json<Sidelines>, Problem> {
    let mut errors = FieldErrors::default();
    let pace = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    if *of == SidelineOf::Client {
        // A key may be believed for some seconds more.
        let client = present(state, client.as_str()).await?;
        if let Some(suspended) = &client.suspended {
            return Err(is_suspended(&client, suspended));
        }
    }
    if let Some(pace) = pace {
        let done = state.engine.sidelining().drain(client, of, pace).await;
        done.map_err(|e| Problem::of_engine("drain a client or a job", &e))?;
    }
    shown(state, client).await
}

async fn shown(state: &ApiState, client: &ClientId) -> Result<Json<Sidelines>, Problem> {
    let found = state.engine.sidelining().find(client).await;
    let found = found.map_err(|e| Problem::of_engine("read what is sidelined", &e))?;
    let mut shown = Sidelines { client: None, jobs: Default::default() };
    if let Some(sideline) = &found.client {
        shown.client = Some(counted(state, client, (&SidelineOf::Client, sideline)).await?);
    }
    for (job, sideline) in &found.jobs {
        let of = SidelineOf::Job(job.clone());
        shown.jobs.insert(job.to_string(), counted(state, client, (&of, sideline)).await?);
    }
    Ok(Json(shown))
}

async fn counted(
    state: &ApiState,
    client: &ClientId,
    (of, sideline): (&SidelineOf, &Sideline),
) -> Result<SidelineStatus, Problem> {
    let count = state.engine.sidelining().count(client, of).await;
    let count = count.map_err(|e| Problem::of_engine("count what is set aside", &e))?;
    Ok(SidelineStatus { sideline: view(sideline), set_aside: count.events, has_more: count.has_more })
}
