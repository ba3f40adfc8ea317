//! Whether a client may write now, by its quotas, and what it has taken of them. A client without quotas costs nothing more.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::JobId;
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::quota::{Ask, Counted, OverQuota, Quota};
use tidegate_engine::{Expect, Written};
use tidegate_protocol::ClientUsage;
use tidegate_store::clients::Client;

use crate::ApiState;
use crate::auth::{Admin, Caller, registered};
use crate::problem::{Kind, Problem};
use crate::wire::quota::usage_view;

/// Says how much the client that asks has of what its quotas bound, and what was emitted for it by day.
#[utoipa::path(get, path = "/v1/usage", tag = "clients", responses(
    (status = 200, description = "What is used", body = ClientUsage),
))]
pub(crate) async fn read_own_usage(
    State(state): State<ApiState>,
    Caller(client): Caller,
) -> Result<Json<ClientUsage>, Problem> {
    usage(&state, &client).await
}

/// Says how much a client has of what its quotas bound, and what was emitted for it by day.
#[utoipa::path(get, path = "/v1/clients/{client_id}/usage", tag = "clients", params(("client_id" = String, Path)),
    security(("admin_key" = [])), responses(
    (status = 200, description = "What is used", body = ClientUsage),
))]
pub(crate) async fn read_usage(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
) -> Result<Json<ClientUsage>, Problem> {
    let client = registered(&state, &id).await?;
    usage(&state, &client).await
}

async fn usage(state: &ApiState, client: &Client) -> Result<Json<ClientUsage>, Problem> {
    let usage = state.engine.quotas().usage(client).await;
    let usage = usage.map_err(|e| Problem::of_engine("read what is used of quotas", &e))?;
    let days = state.engine.quotas().days(&client.id).await;
    let days = days.map_err(|e| Problem::of_engine("read what was used", &e))?;
    Ok(Json(usage_view(&client.id, &usage, &days)))
}

/// The jobs that are there of some ids, where the quotas of the client ask for that; otherwise none.
pub(super) async fn stored_jobs(
    state: &ApiState,
    client: &Client,
    ids: &[&JobId],
) -> Result<HashMap<JobId, Job>, Problem> {
    if ids.is_empty() || !client.quotas.ask_what_is_stored() {
        return Ok(HashMap::new());
    }
    let found = state.engine.store().jobs_of(&client.id, ids).await;
    found.map_err(|e| Problem::of_store("read jobs", &e))
}

/// What a job takes that is posted or put in the place of what is `stored`. Without a name, a one-time job has no row among the jobs.
pub(super) fn ask_of_job(trigger: &Trigger, is_named: bool, stored: Option<&Job>) -> Ask {
    let launch_at = trigger.only_instant();
    let is_new = stored.is_none() && (is_named || launch_at.is_none());
    Ask { is_create: true, adds: is_new.then_some(Counted::Jobs), ..ask_of_change(trigger, stored) }
}

/// What a job takes that is changed.
pub(super) fn ask_of_change(trigger: &Trigger, stored: Option<&Job>) -> Ask {
    let held_until = stored.and_then(|job| job.trigger.only_instant());
    let zone = stored.and_then(|job| job.trigger.cron_zone());
    Ask {
        waits_until: trigger.only_instant().filter(|at| held_until.is_none_or(|held| held < *at)),
        zone: trigger.cron_zone().filter(|of| zone != Some(*of)),
        ..Ask::default()
    }
}

/// Takes of the quotas of a client what some writes ask for: for each why it must not be made, or `None`.
pub(super) async fn take_all(
    state: &ApiState,
    client: &Client,
    asks: &[Ask],
) -> Result<Vec<Option<Problem>>, Problem> {
    let refused = state.engine.quotas().take(client, asks).await;
    let refused = refused.map_err(|e| Problem::of_engine("take of a quota", &e))?;
    Ok(refused.into_iter().map(|refused| refused.map(|refused| over_quota(client, &refused))).collect())
}

/// The same for one write, which is refused when it must not be made.
pub(super) async fn take(state: &ApiState, client: &Client, ask: Ask) -> Result<(), Problem> {
    let refused = take_all(state, client, &[ask]).await?;
    refused.into_iter().flatten().next().map_or(Ok(()), Err)
}

/// Takes of a quota what is put under a name: nothing where there is something of revision `seen`. What the write must then expect,
/// which makes nothing that was not taken.
///
/// Where [`is_overtaken`] says so of its answer, it is looked for and taken anew.
pub(super) async fn take_if_new(
    state: &ApiState,
    client: &Client,
    adds: Counted,
    seen: Option<u32>,
    expected: Expect,
) -> Result<Expect, Problem> {
    if seen.is_none() && !matches!(expected, Expect::Revision(_)) {
        take(state, client, Ask { adds: Some(adds), ..Ask::default() }).await?;
    }
    Ok(only_over(seen, expected))
}

/// What a write expects that must make nothing where something was seen.
pub(super) fn only_over(seen: Option<u32>, expected: Expect) -> Expect {
    match (seen, expected) {
        (Some(revision), Expect::Anything) => Expect::Revision(revision),
        _ => expected,
    }
}

/// Whether a write found something else than was seen, though its caller expects nothing of it.
pub(super) fn is_overtaken<T>(written: &Written<T>, seen: Option<u32>, expected: Expect) -> bool {
    seen.is_some()
        && expected == Expect::Anything
        && matches!(written, Written::RevisionIs(_) | Written::Absent)
}

/// That what was created a moment ago, and is to be created again, is gone.
pub(super) fn gone_meanwhile(what: &str, id: &str) -> Problem {
    let detail = format!("{what} '{id}' was deleted by another call at the same time; send this one again");
    Problem::new(Kind::ChangedMeanwhile, detail)
}

/// That no more may be written now.
fn over_quota(client: &Client, over: &OverQuota) -> Problem {
    let OverQuota { quota, most, used, again_in } = *over;
    let id = &client.id;
    let Some(used) = used else {
        let detail = format!(
            "what client '{id}' has is being counted, since quotas of it are new; send this again in {again_in} seconds"
        );
        return Problem::new(Kind::OverQuota, detail).retried_after(again_in);
    };
    let or_more = format!("or let the admin allow more (PATCH /v1/clients/{id})");
    let detail = match quota {
        Quota::CreatesPerMinute => format!(
            "client '{id}' may write {most} jobs a minute (quotas.creates_per_minute), and has; send this again in {again_in} \
             seconds, write fewer, {or_more}"
        ),
        Quota::OneTimeJobs => format!(
            "client '{id}' may have {most} one-time jobs wait (quotas.one_time_jobs), and {used} do; send this again in {again_in} \
             seconds, when some are launched, {or_more}"
        ),
        Quota::Of(Counted::Zones) => format!(
            "the jobs of client '{id}' may have {most} zones (quotas.zones), and have {used}; use one of those, or delete the jobs \
             of one and send this again in {again_in} seconds, {or_more}"
        ),
        Quota::Of(of) => {
            let name = of.name();
            format!(
                "client '{id}' has up to {used} {name}, and quotas.{name} is {most}; delete some and send this again in {again_in} \
                 seconds, {or_more}"
            )
        }
    };
    Problem::new(Kind::OverQuota, detail).retried_after(again_in)
}
