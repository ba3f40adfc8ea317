//! Policies: created, read, listed, replaced and deleted by the client whose they are.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::policy::{Policy, PolicyTerms};
use tidegate_domain::quota::{Counted, EventsPerMinute, MostTokens, MostWaiting};
use tidegate_engine::{Expect, PolicyDelete, Written};
use tidegate_protocol::{HolderList, PolicyList, PolicyStatus, PolicyView};
use tidegate_store::clients::Client;

use super::quotas::{is_overtaken, take_if_new};
use super::{
    contended, exists_already, id_taken, located, not_found, nothing_to_match, same_id, with_revision,
    wrong_revision,
};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Cursor, Expected, ListQuery, Paged, Precondition, id_to_find, id_to_write};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::holder;
use crate::wire::policy::{self, CheckedPolicy, CloseBody, PolicyBody};
use crate::wire::read_only::{check_paused, expectation};
use crate::wire::spoiled;

/// The path of a policy.
pub(super) fn policy_path(id: &PolicyId) -> String {
    format!("/v1/policies/{id}")
}

/// Checks a policy of the path `path`, which is paused at present or not.
pub(super) fn check(
    client: &Client,
    body: &PolicyBody,
    path: &str,
    is_paused: bool,
) -> Result<CheckedPolicy, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    check_paused(body.paused, is_paused, path, &mut errors);
    if let Some(checked) = &checked {
        check_quotas(client, &checked.terms, &mut errors);
    }
    errors.into_result(Kind::InvalidBody)?;
    checked.ok_or_else(|| Problem::new(Kind::InvalidBody, "the body is not that of a policy"))
}

/// Checks a policy against its client's quotas.
fn check_quotas(client: &Client, terms: &PolicyTerms, errors: &mut FieldErrors) {
    let (id, quotas) = (&client.id, &client.quotas);
    let or_more = format!("or let the admin allow more (PATCH /v1/clients/{id})");
    let limit = terms.max_in_flight();
    if let Some(most) = quotas.tokens.map(MostTokens::get).filter(|most| limit > *most) {
        let message = format!(
            "max_in_flight is {limit}; a policy of client '{id}' may have {most} (quotas.tokens): lower it, {or_more}"
        );
        errors.add("max_in_flight", limit, message);
    }
    if let Some(most) = quotas.events_per_minute.map(EventsPerMinute::get) {
        let rate = terms.rate();
        if rate.is_none_or(|rate| rate.per_second() * 60.0 > f64::from(most)) {
            let message = format!(
                "rate is missing or more than {most} events a minute, which is what a policy of client '{id}' may have \
                 (quotas.events_per_minute): give it a rate of that or less, {or_more}"
            );
            errors.add("rate", rate.map(|rate| rate.events()), message);
        }
    }
    if let Some(most) = quotas.waiting.map(MostWaiting::get) {
        let waiting = terms.max_waiting_runs();
        if waiting.is_none_or(|waiting| waiting > most) {
            let message = format!(
                "max_waiting_runs is missing or more than {most}, which is what a policy of client '{id}' may have waiting \
                 (quotas.waiting): write {most} or less, {or_more}"
            );
            errors.add("max_waiting_runs", waiting, message);
        }
    }
}

/// Creates a policy. The same policy posted again gets the same answer: it is safe to repeat.
#[utoipa::path(post, path = "/v1/policies", tag = "policies", request_body = PolicyBody, responses(
    (status = 201, description = "The policy", body = PolicyView, headers(("etag" = String), ("location" = String))),
    (status = 200, description = "It existed already and says the same", body = PolicyView, headers(("etag" = String))),
))]
pub(crate) async fn create_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<PolicyBody>,
) -> Result<Response, Problem> {
    let CheckedPolicy { id, terms } = check(&client, &body, "/v1/policies/<policy_id>", false)?;
    let Some(id) = id else {
        let message = "policy_id is missing; give the policy a name that jobs refer to";
        return Err(Problem::of_field(Kind::InvalidBody, "policy_id", (), message));
    };
    let written = match counted(&state, &client, &id).await? {
        // As where it is found there by the write, which might make it anew.
        Some(there) if there.terms == terms => Written::Unchanged(there),
        Some(there) => Written::Taken(there),
        None => {
            take_if_new(&state, &client, Counted::Policies, None, Expect::Nothing).await?;
            let written = state.engine.policies().create(&client.id, id.clone(), terms).await;
            written.map_err(|e| Problem::of_engine("create a policy", &e))?
        }
    };
    match written {
        Written::Created(policy) => {
            let response = with_revision(StatusCode::CREATED, policy.revision, policy::view(&policy));
            Ok(located(response, &policy_path(&policy.id)))
        }
        Written::Replaced(policy) | Written::Unchanged(policy) => {
            Ok(with_revision(StatusCode::OK, policy.revision, policy::view(&policy)))
        }
        Written::Taken(_) => Err(id_taken("policy", "policy_id", id.as_str())),
        Written::RevisionIs(current) => Err(wrong_revision("policy", id.as_str(), current)),
        Written::Absent => Err(not_found("policy", id.as_str())),
    }
}

/// The policy of a name, where the policies of the client are counted.
async fn counted(state: &ApiState, client: &Client, id: &PolicyId) -> Result<Option<Policy>, Problem> {
    if client.quotas.policies.is_none() {
        return Ok(None);
    }
    let there = state.engine.store().policy(&client.id, id).await;
    there.map_err(|e| Problem::of_store("read a policy", &e))
}

/// Lists the client's policies.
#[utoipa::path(get, path = "/v1/policies", tag = "policies", params(ListQuery), responses(
    (status = 200, description = "A page of policies", body = PolicyList),
))]
pub(crate) async fn list_policies(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Paged(asked): Paged,
) -> Result<Json<PolicyList>, Problem> {
    let given = asked.after.is_some();
    let page = state.engine.store().policies(&client.id, asked).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list policies", &e))?;
    let now = state.engine.clock().now();
    let policies = page.rows.into_iter().map(|policy| policy::view(&policy.at(now))).collect();
    Ok(Json(PolicyList {
        policies,
        unreadable: spoiled::views(page.unreadable, "policy|"),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Shows a policy with what it holds at present.
#[utoipa::path(get, path = "/v1/policies/{policy_id}", tag = "policies", params(("policy_id" = String, Path)), responses(
    (status = 200, description = "The policy", body = PolicyStatus, headers(("etag" = String))),
))]
pub(crate) async fn read_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    let found = state.engine.queries().policy(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("read a policy", &e))?;
    let Some(status) = found else { return Err(not_found("policy", id.as_str())) };
    let set_aside = state.engine.store().entries_set_aside(&client.id, &id).await;
    let set_aside = set_aside.map_err(|e| Problem::of_store("read what was set aside", &e))?;
    let view = PolicyStatus { set_aside: spoiled::views(set_aside, ""), ..policy::status_view(&status) };
    Ok(with_revision(StatusCode::OK, status.policy.revision, view))
}

/// Creates or replaces a policy. What GET answers can be put back: `revision` is then the one that is expected, and what
/// follows from the rest is not looked at. A new limit acts on the next grant; what is in flight beyond a lowered one drains.
#[utoipa::path(put, path = "/v1/policies/{policy_id}", tag = "policies", request_body = PolicyBody,
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected"),
        ("if-none-match" = Option<String>, Header, description = "`*`: create it, and answer 412 when it exists already")),
    responses(
        (status = 200, description = "The policy", body = PolicyView, headers(("etag" = String))),
        (status = 201, description = "It did not exist before", body = PolicyView),
))]
pub(crate) async fn put_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Precondition(by_header): Precondition,
    Body(body): Body<PolicyBody>,
) -> Result<Response, Problem> {
    let id: PolicyId = id_to_write("policy_id", &id)?;
    // Only who says whether it is paused needs to know whether it is.
    let there = match body.paused {
        Some(_) => state.engine.store().policy(&client.id, &id).await,
        None => Ok(None),
    };
    let there = there.map_err(|e| Problem::of_store("read a policy", &e))?;
    let CheckedPolicy { id: in_body, terms } =
        check(&client, &body, &policy_path(&id), there.is_some_and(|policy| policy.paused))?;
    same_id("policy_id", in_body.as_ref().map(PolicyId::as_str), id.as_str())?;
    let expected = expectation(by_header, body.revision)?;
    for _ in 0..WRITE_ROUNDS {
        let seen = counted(&state, &client, &id).await?.map(|policy| policy.revision);
        if seen.is_some() && expected == Expect::Nothing {
            return Err(exists_already("policy", id.as_str()));
        }
        let over = take_if_new(&state, &client, Counted::Policies, seen, expected).await?;
        let put = state.engine.policies().put(&client.id, &id, terms, over).await;
        let put = put.map_err(|e| Problem::of_engine("write a policy", &e))?;
        if !is_overtaken(&put, seen, expected) {
            return answer_put(put, &id, expected);
        }
    }
    Err(contended("policy", id.as_str()))
}

fn answer_put(written: Written<Policy>, id: &PolicyId, expected: Expect) -> Result<Response, Problem> {
    match written {
        Written::Taken(_) | Written::Unchanged(_) if expected == Expect::Nothing => {
            Err(exists_already("policy", id.as_str()))
        }
        Written::Created(policy) => {
            Ok(with_revision(StatusCode::CREATED, policy.revision, policy::view(&policy)))
        }
        written => answer(written, id),
    }
}

/// The answer to a policy that was written.
pub(super) fn answer(written: Written<Policy>, id: &PolicyId) -> Result<Response, Problem> {
    match written {
        Written::Created(policy) | Written::Replaced(policy) | Written::Unchanged(policy) => {
            Ok(with_revision(StatusCode::OK, policy.revision, policy::view(&policy)))
        }
        Written::Taken(_) => Err(Problem::new(
            Kind::ChangedMeanwhile,
            format!("policy '{id}' was created by another call at the same time; send this one again"),
        )),
        Written::RevisionIs(current) => Err(wrong_revision("policy", id.as_str(), current)),
        Written::Absent => Err(nothing_to_match("policy", id.as_str())),
    }
}

/// Pauses a policy: nothing more is admitted. What is in flight goes on and ends as it would. Repeating it is safe.
#[utoipa::path(post, path = "/v1/policies/{policy_id}/pause", tag = "policies",
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The policy, paused", body = PolicyView, headers(("etag" = String))),
))]
pub(crate) async fn pause_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<Response, Problem> {
    set_paused(&state, &client, &id, true, expected).await
}

/// Resumes a policy: its line goes on where it stood. Repeating it is safe.
#[utoipa::path(post, path = "/v1/policies/{policy_id}/resume", tag = "policies",
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The policy, no longer paused", body = PolicyView, headers(("etag" = String))),
))]
pub(crate) async fn resume_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<Response, Problem> {
    set_paused(&state, &client, &id, false, expected).await
}

async fn set_paused(
    state: &ApiState,
    client: &Client,
    id: &str,
    paused: bool,
    expected: Option<u32>,
) -> Result<Response, Problem> {
    let id: PolicyId = id_to_find("policy", id)?;
    let written = state.engine.policies().pause(&client.id, &id, paused, expected).await;
    changed(written.map_err(|e| Problem::of_engine("pause or resume a policy", &e))?, &id)
}

/// Closes a policy until an instant: nothing is admitted before it, and its line goes on then by itself. What is in flight goes
/// on and ends as it would. Repeating it is safe: a policy that is closed already gets the new instant and reason.
#[utoipa::path(post, path = "/v1/policies/{policy_id}/close", tag = "policies", request_body = CloseBody,
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The policy, closed", body = PolicyView, headers(("etag" = String))),
))]
pub(crate) async fn close_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
    Body(body): Body<CloseBody>,
) -> Result<Response, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    let mut errors = FieldErrors::default();
    let checked = body.check(state.engine.clock().now(), &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let closed = checked.as_ref().map(|(until, because)| (*until, &**because));
    set_closed(&state, &client, &id, closed, expected).await
}

/// Opens a policy at once, whoever closed it, and takes back what its limit was lowered by since its consumer could not keep up.
/// Repeating it is safe.
#[utoipa::path(post, path = "/v1/policies/{policy_id}/open", tag = "policies",
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 200, description = "The policy, open", body = PolicyView, headers(("etag" = String))),
))]
pub(crate) async fn open_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<Response, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    set_closed(&state, &client, &id, None, expected).await
}

async fn set_closed(
    state: &ApiState,
    client: &Client,
    id: &PolicyId,
    closed: Option<(DateTime<Utc>, &str)>,
    expected: Option<u32>,
) -> Result<Response, Problem> {
    let written = state.engine.policies().close(&client.id, id, closed, expected).await;
    let written = written.map_err(|e| Problem::of_engine("close or open a policy", &e))?;
    changed(written, id)
}

/// The answer to a policy that exists and was to be changed.
fn changed(written: Written<Policy>, id: &PolicyId) -> Result<Response, Problem> {
    match written {
        Written::Created(policy)
        | Written::Replaced(policy)
        | Written::Unchanged(policy)
        | Written::Taken(policy) => Ok(with_revision(StatusCode::OK, policy.revision, policy::view(&policy))),
        Written::RevisionIs(current) => Err(wrong_revision("policy", id.as_str(), current)),
        Written::Absent => Err(not_found("policy", id.as_str())),
    }
}

/// Lists who holds the tokens of a policy, those whose lease ends first in front.
#[utoipa::path(get, path = "/v1/policies/{policy_id}/holders", tag = "policies", params(("policy_id" = String, Path)), responses(
    (status = 200, description = "All who hold a token now", body = HolderList),
))]
pub(crate) async fn list_holders(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Json<HolderList>, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    let found = state.engine.queries().holders(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("list the holders of a policy", &e))?;
    let key = state.engine.tokens().key().await.map_err(|e| Problem::of_engine("sign tokens", &e))?;
    found.map(|holders| Json(holder::list(&holders, &key))).ok_or_else(|| not_found("policy", id.as_str()))
}

/// Deletes a policy that no job names and that holds nothing.
#[utoipa::path(delete, path = "/v1/policies/{policy_id}", tag = "policies",
    params(("policy_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 204, description = "It is gone"),
))]
pub(crate) async fn delete_policy(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<StatusCode, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    let deleted = state.engine.policies().delete(&client.id, &id, expected).await;
    match deleted.map_err(|e| Problem::of_engine("delete a policy", &e))? {
        PolicyDelete::Done => Ok(StatusCode::NO_CONTENT),
        PolicyDelete::Absent => Err(not_found("policy", id.as_str())),
        PolicyDelete::RevisionIs(current) => Err(wrong_revision("policy", id.as_str(), current)),
        PolicyDelete::UsedBy(jobs) => {
            let named = jobs.iter().map(|job| format!("'{job}'")).collect::<Vec<_>>().join(", ");
            let detail = format!(
                "policy '{id}' is named by the jobs {named}; delete them or give them another policy"
            );
            Err(Problem::new(Kind::InUse, detail))
        }
        PolicyDelete::Busy(load) => Err(Problem::new(
            Kind::InUse,
            format!(
                "policy '{id}' has {} in flight and {} runs in its line; delete it when they have ended",
                load.in_flight, load.waiting_runs
            ),
        )),
    }
}
