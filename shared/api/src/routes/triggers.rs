//! Triggering a job: a run of it at once, beside its schedule.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use tidegate_domain::change::{Kind as KindOfThing, What};
use tidegate_domain::ids::{JobId, RunId};
use tidegate_engine::Triggered;
use tidegate_protocol::TriggeredRun;

use super::changes::record;
use super::{job_path, located, not_found, path_segment, replayed};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{IdempotencyKey, id_to_find};
use crate::problem::{Kind, Problem};
use crate::wire::instant;

/// Triggers a job: a run of it at once, beside its schedule, also when it is paused. Its policy, its retries and its rule
/// for runs that overlap count as for every run. With an `Idempotency-Key`, the same call within 24 hours is answered with
/// the run that the first one made, and `Idempotent-Replayed: true`: so it is safe to repeat. Without one each call makes a run.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/trigger", tag = "jobs",
    params(("job_id" = String, Path), ("idempotency-key" = Option<String>, Header,
        description = "Names the call, in 1 to 255 visible ASCII characters: made again, it triggers nothing twice")),
    responses(
        (status = 202, description = "The run, which is stored and under way", body = TriggeredRun, headers(("location" = String))),
))]
pub(crate) async fn trigger_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let triggered = state.engine.jobs().trigger(&client.id, &id, key.as_deref()).await;
    match triggered.map_err(|e| Problem::of_engine("trigger a job", &e))? {
        Triggered::Run(run) => {
            let done = (KindOfThing::Job, id.as_str(), run.to_string());
            record(&state, &client, done, What::Triggered).await;
            Ok(answer(&run))
        }
        Triggered::Before(run) => Ok(replayed(answer(&run))),
        Triggered::Absent => Err(not_found("job", id.as_str())),
        Triggered::OneTime => Err(Problem::new(
            Kind::NotTriggered,
            format!(
                "job '{id}' is a one-time job with a generated id, which has one run; post another one to run it again"
            ),
        )),
        Triggered::Excluded => Err(Problem::new(
            Kind::NotTriggered,
            format!(
                "the calendars of job '{id}' leave this instant out, so its run would not be delivered; change the calendar, or the job's 'calendars' and 'only_on'"
            ),
        )),
    }
}

fn answer(run: &RunId) -> Response {
    let run_id = run.to_string();
    let path = format!("{}/runs/{}", job_path(run.job().as_str()), path_segment(&run_id));
    let launch_at = instant(run.launch_at());
    let view = TriggeredRun { job_id: run.job().to_string(), run_id, launch_at };
    located((StatusCode::ACCEPTED, axum::Json(view)).into_response(), &path)
}
