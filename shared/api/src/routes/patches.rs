//! PATCH of jobs and policies: read, merged, checked like a PUT, and written only over the revision that was read.
//!
//! Without an expected revision a write that another overtook is merged anew into what is there then, a bounded number
//! of times.

use axum::extract::{Path, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use tidegate_domain::change::What;
use tidegate_domain::ids::{JobId, PolicyId};
use tidegate_domain::job::{Job, JobDefaults};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_engine::{Expect, Written};
use tidegate_protocol::PolicyView;
use tidegate_store::clients::Client;

use super::acceptance::{Accepted, Seen, accept};
use super::quotas::{ask_of_change, take};
use super::{contended, jobs, not_found, policies, same_id, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Expected, id_to_find};
use crate::form;
use crate::merge::Patch;
use crate::problem::{Kind, Problem};
use crate::wire::job::{self, JobBody, JobView};
use crate::wire::policy::{self, PolicyBody};
use crate::wire::read_only::expectation;

/// Changes some fields of a job, by a JSON merge patch (RFC 7396): null takes a field out, which brings back its default;
/// objects are merged. What comes of it is checked like a PUT. To change the kind of a trigger or target, name the members
/// that go as well: `{"trigger": {"cron": null, "zone": null, "rate": "1h"}}`. Without `If-Match` a patch is merged anew
/// when another write comes in between. A one-time job with a generated id cannot be changed.
#[utoipa::path(patch, path = "/v1/jobs/{job_id}", tag = "jobs",
    request_body(description = "What is to change",
        content((serde_json::Value = "application/merge-patch+json", example = json!({"count": 20, "window": null})),
            (serde_json::Value = "application/json"))),
    params(("job_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The job", body = JobView, headers(("etag" = String))),
))]
pub(crate) async fn patch_job(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(by_header): Expected,
    patch: Patch,
) -> Result<Response, Problem> {
    let id: JobId = id_to_find("job", &id)?;
    let change = |job: &Job| {
        if id.one_time_shard().is_some() {
            return Err(generated(&id));
        }
        let merged = patch.applied_to(job::as_sent(job)?)?;
        form::read(merged.get().as_bytes(), state.engine.clock().now())
    };
    change_job(&state, client, &id, by_header, What::Changed, change).await
}

/// Writes what `change` makes of a job over the revision that it was made of, checked like a PUT: anew while other writes come in
/// between, unless a revision is expected.
pub(super) async fn change_job(
    state: &ApiState,
    client: Client,
    id: &JobId,
    by_header: Option<u32>,
    what: What,
    change: impl Fn(&Job) -> Result<JobBody, Problem>,
) -> Result<Response, Problem> {
    let client = with_its_own(client);
    for _ in 0..WRITE_ROUNDS {
        let found = state.engine.jobs().get(&client.id, id).await;
        let found = found.map_err(|e| Problem::of_engine("read a job", &e))?;
        let Some(job) = found else { return Err(not_found("job", id.as_str())) };
        // Before anything else is found: what an earlier call of the same may have left is done, whatever becomes of this one.
        refuse_other(state, &job, by_header.into()).await?;
        let body = change(&job)?;
        let expected = expectation(by_header.into(), body.revision)?;
        refuse_other(state, &job, expected).await?;
        let accepted = accept(state, &client, Some(id), body, &mut Seen::default()).await?;
        let Accepted { draft, warnings, .. } = accepted;
        take(state, &client, ask_of_change(&draft.trigger, Some(&job))).await?;
        let seen = Expect::Revision(job.revision);
        let written = state.engine.jobs().replace_as(&client.id, id.clone(), draft, seen, what).await;
        match written.map_err(|e| Problem::of_engine("write a job", &e))? {
            Written::RevisionIs(_) | Written::Absent if expected == Expect::Anything => {}
            Written::Absent => return Err(not_found("job", id.as_str())),
            written => return jobs::answer(written, id.as_str(), warnings),
        }
    }
    Err(contended("job", id.as_str()))
}

/// Refuses a job that is not of the expected revision.
async fn refuse_other(state: &ApiState, job: &Job, expected: Expect) -> Result<(), Problem> {
    let other = state.engine.jobs().other_revision(job, expected).await;
    match other.map_err(|e| Problem::of_engine("finish a change of a job", &e))? {
        Some(current) => Err(wrong_revision("job", job.id.as_str(), current)),
        None => Ok(()),
    }
}

/// A client in whose jobs what they say holds, also where they say nothing. How long their history is kept, none of them says.
pub(super) fn with_its_own(client: Client) -> Client {
    let history_days = client.defaults.history_days;
    Client { defaults: JobDefaults { history_days, ..JobDefaults::default() }, ..client }
}

/// A job as the body that its client would send.
pub(super) fn body_of(job: &Job, now: DateTime<Utc>) -> Result<JobBody, Problem> {
    form::read(job::text_as_sent(job)?.get().as_bytes(), now)
}

/// Changes some fields of a policy, by a JSON merge patch (RFC 7396): null takes a field out, which brings back its
/// default; objects are merged, so `{"rate": {"events": 5}}` leaves the rest of the rate. What comes of it is checked like
/// a PUT. Without `If-Match` a patch is merged anew when another write comes in between.
#[utoipa::path(patch, path = "/v1/policies/{policy_id}", tag = "policies",
    request_body(description = "What is to change",
        content((serde_json::Value = "application/merge-patch+json", example = json!({"max_in_flight": 6})),
            (serde_json::Value = "application/json"))),
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The policy", body = PolicyView, headers(("etag" = String))),
))]
pub(crate) async fn patch_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(by_header): Expected,
    patch: Patch,
) -> Result<Response, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    for _ in 0..WRITE_ROUNDS {
        let found = state.engine.store().policy(&client.id, &id).await;
        let found = found.map_err(|e| Problem::of_store("read a policy", &e))?;
        let Some(policy) = found else { return Err(not_found("policy", id.as_str())) };
        let merged = patch.applied_to(policy::as_sent(&policy)?)?;
        let body: PolicyBody = form::read(merged.get().as_bytes(), state.engine.clock().now())?;
        let expected = expectation(by_header.into(), body.revision)?;
        if expected.is_other_than(policy.revision) {
            return Err(wrong_revision("policy", id.as_str(), policy.revision));
        }
        let checked = policies::check(&client, &body, &policies::policy_path(&id), policy.paused)?;
        same_id("policy_id", checked.id.as_ref().map(PolicyId::as_str), id.as_str())?;
        let seen = Some(policy.revision);
        let written = state.engine.policies().replace(&client.id, &id, checked.terms, seen).await;
        match written.map_err(|e| Problem::of_engine("write a policy", &e))? {
            Written::RevisionIs(_) | Written::Absent if expected == Expect::Anything => {}
            Written::Absent => return Err(not_found("policy", id.as_str())),
            written => return policies::answer(written, &id),
        }
    }
    Err(contended("policy", id.as_str()))
}

pub(super) fn generated(id: &JobId) -> Problem {
    let message = format!(
        "job '{id}' has a generated id and cannot be changed; delete it and create it anew, with a job_id if it may change"
    );
    Problem::of_field(Kind::InvalidBody, "job_id", id.as_str(), message)
}
