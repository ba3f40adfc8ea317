//! What went on in a policy, minute by minute.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::PolicyId;
use tidegate_protocol::{Percentiles, PolicySample, PolicySamples};
use tidegate_store::samples::Sample;

use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, id_to_find};
use crate::problem::Problem;
use crate::wire::past::PastQuery;
use crate::wire::{instant, spoiled};

/// Shows what went on in a policy, minute by minute: tokens in use, events that waited, and for how long the oldest had. Without a
/// stretch of time, in the last 24 hours; at most 7 days. They are kept for 14 days.
///
/// A policy is looked at once a minute while anything is in flight or waits in it. Redriving, rates and pauses show as they are then.
#[utoipa::path(get, path = "/v1/policies/{policy_id}/samples", tag = "policies", params(("policy_id" = String, Path), PastQuery),
    responses(
    (status = 200, description = "What went on", body = PolicySamples),
))]
pub(crate) async fn read_samples(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Asked(query): Asked<PastQuery>,
) -> Result<Json<PolicySamples>, Problem> {
    let id: PolicyId = id_to_find("policy", &id)?;
    let window = query.window(state.engine.clock().now())?;
    let store = state.engine.store();
    let page = store.samples(&client.id, &id, window).await;
    let page = page.map_err(|e| Problem::of_store("read what went on in a policy", &e))?;
    if page.rows.is_empty() {
        let policy = store.policy(&client.id, &id).await;
        if policy.map_err(|e| Problem::of_store("read a policy", &e))?.is_none() {
            return Err(not_found("policy", id.as_str()));
        }
    }
    let spread = |number: fn(&Sample) -> u32| Percentiles::of(page.rows.iter().map(number).collect());
    Ok(Json(PolicySamples {
        policy_id: id.to_string(),
        oldest_seconds: spread(|sample| sample.oldest_seconds),
        in_flight: spread(|sample| sample.in_flight),
        waiting: spread(|sample| sample.waiting),
        samples: page.rows.iter().map(view).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
    }))
}

fn view(sample: &Sample) -> PolicySample {
    let Sample { at, in_flight, max_in_flight, waiting, oldest_seconds } = *sample;
    PolicySample { at: instant(at), in_flight, max_in_flight, waiting, oldest_seconds }
}
