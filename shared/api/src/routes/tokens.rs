//! Tokens: released when an event is finished, extended while it is worked on.
//!
//! A call is answered per token, in its order: one that is unknown, malformed or another client's spoils no other.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use tidegate_domain::limits::LEASE_SECONDS;
use tidegate_domain::token::Token;
use tidegate_engine::{Extended, Outcome, Release, Released};

use crate::ApiState;
use crate::auth::Caller;
use crate::body::Body;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::instant;
use crate::wire::token::{
    ExtendBody, ExtendResult, ExtendResults, ExtendStatus, OutcomeWord, ReleaseBody, ReleaseEntry,
    ReleaseResult, ReleaseResults, ReleaseStatus, check_number_of_tokens,
};

/// Releases tokens: their events are finished, and the next of each policy may go. Repeating a release does nothing.
#[utoipa::path(post, path = "/v1/tokens/release", tag = "tokens", request_body = ReleaseBody, responses(
    (status = 200, description = "What came of each token", body = ReleaseResults),
))]
pub(crate) async fn release_tokens(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<ReleaseBody>,
) -> Result<Json<ReleaseResults>, Problem> {
    let mut errors = FieldErrors::default();
    check_number_of_tokens(body.tokens.len(), &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let entries: Vec<(String, OutcomeWord)> = body.tokens.into_iter().map(ReleaseEntry::into_parts).collect();
    let releases = releases(&entries);
    let mut statuses = HashMap::new();
    if !releases.is_empty() {
        let released = state.engine.release(&client.id, releases).await;
        statuses.extend(released.map_err(|e| Problem::of_engine("release tokens", &e))?);
    }
    let results = entries.into_iter().map(|(token, _)| {
        let status = match token.parse::<Token>() {
            Ok(parsed) => release_status(statuses.get(&parsed)),
            Err(_) => ReleaseStatus::Malformed,
        };
        ReleaseResult { token, status }
    });
    Ok(Json(ReleaseResults { results: results.collect() }))
}

/// The tokens that read as such, each once, with the outcome that was named first.
fn releases(entries: &[(String, OutcomeWord)]) -> Vec<Release> {
    let mut releases: Vec<Release> = Vec::with_capacity(entries.len());
    for (text, outcome) in entries {
        let Ok(token) = text.parse::<Token>() else { continue };
        if releases.iter().all(|release| release.token != token) {
            let outcome = match outcome {
                OutcomeWord::Succeeded => Outcome::Succeeded,
                OutcomeWord::Failed => Outcome::Failed,
            };
            releases.push(Release { token, outcome });
        }
    }
    releases
}

fn release_status(released: Option<&Released>) -> ReleaseStatus {
    match released {
        Some(Released::Released) => ReleaseStatus::Released,
        Some(Released::AlreadyReleased) => ReleaseStatus::AlreadyReleased,
        Some(Released::Deferred) => ReleaseStatus::Accepted,
        Some(Released::NotYours) => ReleaseStatus::NotYours,
        Some(Released::Unknown) | None => ReleaseStatus::Unknown,
    }
}

/// Extends the leases of tokens that are still held: the heartbeat of a consumer that takes long.
#[utoipa::path(post, path = "/v1/tokens/extend", tag = "tokens", request_body = ExtendBody, responses(
    (status = 200, description = "What came of each token", body = ExtendResults),
))]
pub(crate) async fn extend_tokens(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<ExtendBody>,
) -> Result<Json<ExtendResults>, Problem> {
    let mut errors = FieldErrors::default();
    check_number_of_tokens(body.tokens.len(), &mut errors);
    let lease_seconds =
        body.lease_seconds.and_then(|given| given.within("lease_seconds", LEASE_SECONDS, &mut errors));
    errors.into_result(Kind::InvalidBody)?;
    let mut tokens: Vec<Token> = body.tokens.iter().filter_map(|text| text.parse().ok()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let mut statuses = HashMap::new();
    if !tokens.is_empty() {
        let extended = state.engine.extend(&client.id, tokens, lease_seconds).await;
        statuses.extend(extended.map_err(|e| Problem::of_engine("extend leases", &e))?);
    }
    let results = body.tokens.into_iter().map(|token| {
        let (status, lease_expires_at) = match token.parse::<Token>().map(|parsed| statuses.get(&parsed)) {
            Ok(Some(Extended::Extended { lease_end })) => (ExtendStatus::Extended, Some(instant(*lease_end))),
            Ok(Some(Extended::Expired)) => (ExtendStatus::Expired, None),
            Ok(Some(Extended::NotYours)) => (ExtendStatus::NotYours, None),
            Ok(Some(Extended::Unknown) | None) => (ExtendStatus::Unknown, None),
            Err(_) => (ExtendStatus::Malformed, None),
        };
        ExtendResult { token, status, lease_expires_at }
    });
    Ok(Json(ExtendResults { results: results.collect() }))
}
