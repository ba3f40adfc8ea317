//! Tokens: released when an event is finished, extended while it is worked on, freed by an operator when held.
//!
//! A call is answered per token, in its order: one that is unknown, malformed or another client's spoils no other.

use std::collections::{BTreeMap, HashMap};

use axum::Json;
use axum::extract::State;
use tidegate_domain::change::{Kind as KindOfThing, What};
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::{RESULT_BYTES, TOKENS_PER_CALL};
use tidegate_domain::token::Token;
use tidegate_engine::{Extended, Release, Released, read_token};
use tidegate_protocol::{
    self as protocol, ExtendResults, ExtendStatus, FreeResults, FreeStatus, ReleaseResults, ReleaseStatus,
};
use tidegate_store::clients::Client;

use super::changes::record;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::Body;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::instant;
use crate::wire::token::{ExtendBody, FreeBody, Refused, ReleaseBody, check_number_of_tokens, read_entry};

/// The body of a release: a hundred texts of 2 KiB, each character of which may be escaped.
const RELEASE_BODY_BYTES: usize = 2 * TOKENS_PER_CALL * (RESULT_BYTES + 512);

/// Releases tokens: their events are finished, and the next of each policy may go. Repeating a release does nothing.
/// Each entry is read and answered by itself: one that is malformed spoils no other.
#[utoipa::path(post, path = "/v1/tokens/release", tag = "tokens", request_body = ReleaseBody, responses(
    (status = 200, description = "What came of each token", body = ReleaseResults),
))]
pub(crate) async fn release_tokens(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<ReleaseBody, RELEASE_BODY_BYTES>,
) -> Result<Json<ReleaseResults>, Problem> {
    let mut errors = FieldErrors::default();
    check_number_of_tokens(&body.tokens, &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let now = state.engine.clock().now();
    let key = state.engine.tokens().key().await.map_err(|e| Problem::of_engine("verify tokens", &e))?;
    let entries: Vec<(String, Result<Release, Refused>)> =
        body.tokens.iter().map(|entry| read_entry(entry, &key, now)).collect();
    let releases = each_once(entries.iter().filter_map(|(_, release)| release.as_ref().ok()));
    let mut statuses = HashMap::new();
    if !releases.is_empty() {
        let released = state.engine.tokens().release(&client.id, releases).await;
        statuses.extend(released.map_err(|e| Problem::of_engine("release tokens", &e))?);
    }
    let results = entries.into_iter().map(|(text, entry)| match entry {
        Ok(Release { token, .. }) => {
            let status = release_status(statuses.get(&token));
            // Named again in this call, it was released before.
            statuses.entry(token).and_modify(|answer| {
                if *answer == Released::Released {
                    *answer = Released::AlreadyReleased;
                }
            });
            protocol::Released { token: text, status, detail: None }
        }
        Err(Refused::Malformed(detail)) => {
            protocol::Released { token: text, status: ReleaseStatus::Malformed, detail: Some(detail) }
        }
        Err(Refused::Unknown) => {
            protocol::Released { token: text, status: ReleaseStatus::Unknown, detail: None }
        }
    });
    Ok(Json(ReleaseResults { results: results.collect() }))
}

/// Each token once, with the outcome that was named first.
fn each_once<'r>(entries: impl Iterator<Item = &'r Release>) -> Vec<Release> {
    let mut releases: Vec<Release> = Vec::new();
    for entry in entries {
        if releases.iter().all(|release| release.token != entry.token) {
            releases.push(entry.clone());
        }
    }
    releases
}

fn release_status(released: Option<&Released>) -> ReleaseStatus {
    match released {
        Some(Released::Released) => ReleaseStatus::Released,
        Some(Released::AlreadyReleased) => ReleaseStatus::AlreadyReleased,
        Some(Released::Reclaimed) => ReleaseStatus::Reclaimed,
        Some(Released::Deferred) => ReleaseStatus::Accepted,
        Some(Released::NotYours) => ReleaseStatus::NotYours,
        Some(Released::Unknown) | None => ReleaseStatus::Unknown,
    }
}

/// Extends the leases of tokens that are still held: the heartbeat of a consumer that takes long. Repeating it is
/// safe: each lease goes on from the last call.
#[utoipa::path(post, path = "/v1/tokens/extend", tag = "tokens", request_body = ExtendBody, responses(
    (status = 200, description = "What came of each token", body = ExtendResults),
))]
pub(crate) async fn extend_tokens(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<ExtendBody>,
) -> Result<Json<ExtendResults>, Problem> {
    let mut errors = FieldErrors::default();
    let lease_seconds = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let read = read_tokens(&state, body.tokens.0).await?;
    let tokens = each_token_once(&read);
    let mut statuses = HashMap::new();
    if !tokens.is_empty() {
        let extended = state.engine.tokens().extend(&client.id, tokens, lease_seconds).await;
        statuses.extend(extended.map_err(|e| Problem::of_engine("extend leases", &e))?);
    }
    let results = read.into_iter().map(|(token, read)| {
        let (status, lease_expires_at) = match read.map(|read| statuses.get(&read)) {
            Ok(Some(Extended::Extended { lease_end })) => (ExtendStatus::Extended, Some(instant(*lease_end))),
            Ok(Some(Extended::Expired)) => (ExtendStatus::Expired, None),
            Ok(Some(Extended::NotYours)) => (ExtendStatus::NotYours, None),
            Ok(Some(Extended::Unknown) | None) | Err(Refused::Unknown) => (ExtendStatus::Unknown, None),
            Err(Refused::Malformed(_)) => (ExtendStatus::Malformed, None),
        };
        protocol::Extended { token, status, lease_expires_at }
    });
    Ok(Json(ExtendResults { results: results.collect() }))
}

/// Ends leases, whether they ran out or not: an operator found out that their consumers are gone. It is what ends a lease
/// that ran out under `on_expiry: hold`. A consumer that is at work after all goes on beside the next; its release comes late. Repeating it
/// does nothing.
#[utoipa::path(post, path = "/v1/tokens/free", tag = "tokens", request_body = FreeBody, responses(
    (status = 200, description = "What came of each token", body = FreeResults),
))]
pub(crate) async fn free_tokens(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<FreeBody>,
) -> Result<Json<FreeResults>, Problem> {
    let mut errors = FieldErrors::default();
    check_number_of_tokens(&body.tokens, &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let read = read_tokens(&state, body.tokens.0).await?;
    let tokens = each_token_once(&read);
    let mut statuses = HashMap::new();
    if !tokens.is_empty() {
        let freed = state.engine.tokens().free_held(&client.id, tokens, body.redeliver).await;
        statuses.extend(freed.map_err(|e| Problem::of_engine("free tokens", &e))?);
        record_freed(&state, &client, &statuses).await;
    }
    let results = read.into_iter().map(|(token, read)| {
        let status = match read {
            Ok(read) => free_status(statuses.get(&read)),
            Err(Refused::Unknown) => FreeStatus::Unknown,
            Err(Refused::Malformed(_)) => FreeStatus::Malformed,
        };
        protocol::Freed { token, status }
    });
    Ok(Json(FreeResults { results: results.collect() }))
}

/// Records how many tokens of which policies were freed.
async fn record_freed(state: &ApiState, client: &Client, statuses: &HashMap<Token, Released>) {
    let is_freed = |freed: &Released| matches!(freed, Released::Released | Released::Deferred);
    let freed = statuses.iter().filter(|(_, freed)| is_freed(freed)).map(|(token, _)| &token.group.policy);
    let mut by_policy: BTreeMap<&PolicyId, u32> = BTreeMap::new();
    freed.for_each(|policy| *by_policy.entry(policy).or_default() += 1);
    for (policy, tokens) in by_policy {
        let of = format!("{tokens} {}", if tokens == 1 { "token" } else { "tokens" });
        record(state, client, (KindOfThing::Policy, policy.as_str(), of), What::Freed).await;
    }
}

fn free_status(freed: Option<&Released>) -> FreeStatus {
    match freed {
        Some(Released::Released | Released::Deferred) => FreeStatus::Freed,
        Some(Released::AlreadyReleased) => FreeStatus::AlreadyReleased,
        Some(Released::Reclaimed) => FreeStatus::Reclaimed,
        Some(Released::NotYours) => FreeStatus::NotYours,
        Some(Released::Unknown) | None => FreeStatus::Unknown,
    }
}

type ReadTokens = Vec<(String, Result<Token, Refused>)>;

/// Reads the tokens of a call, each by itself.
async fn read_tokens(state: &ApiState, texts: Vec<String>) -> Result<ReadTokens, Problem> {
    let key = state.engine.tokens().key().await.map_err(|e| Problem::of_engine("verify tokens", &e))?;
    let read = |text: String| {
        let token = read_token(&text, &key).map_err(Refused::from);
        (text, token)
    };
    Ok(texts.into_iter().map(read).collect())
}

/// The tokens that this deployment gave, each once.
fn each_token_once(read: &ReadTokens) -> Vec<Token> {
    let mut tokens: Vec<Token> = read.iter().filter_map(|(_, token)| token.as_ref().ok().cloned()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}
