//! API keys: made, listed and revoked by the client itself, with a key of scope `admin`, or by the admin for any client.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use tidegate_domain::change::What;
use tidegate_domain::limits::CLIENT_KEYS;
use tidegate_engine::author;
use tidegate_protocol::{KeyList, NewKey};
use tidegate_store::clients::Client;
use tidegate_store::keys::ApiKey;
use tidegate_store::made::{Made, MadeKind};
use tidegate_store::{KeyHash, Write};

use super::{not_found, replayed};
use crate::ApiState;
use crate::auth::{Admin, Caller, present};
use crate::new_secrets::{Once, OnceBody, new_api_key};
use crate::problem::{ECHOED_CHARACTERS, FieldErrors, Kind, Problem, cut};
use crate::wire::key::{CheckedKey, KeyBody, view};
use crate::wire::{instant, spoiled};

/// Makes another key for the client. The answer shows it, once. To rotate a key make another one, give it out, and revoke the
/// former. Each call makes another key, but with an `Idempotency-Key` the same call with the same key within 24 hours is answered with
/// the key that the first one made, and `Idempotent-Replayed: true`: so it is safe to repeat.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = KeyBody,
    params(("idempotency-key" = Option<String>, Header,
        description = "1 to 255 printable characters without spaces, such as a UUID")), responses(
    (status = 201, description = "The key", body = NewKey),
    (status = 200, description = "The key that an earlier call made with this Idempotency-Key", body = NewKey),
))]
pub(crate) async fn create_key(
    State(state): State<ApiState>,
    Caller(client): Caller,
    OnceBody(body, once): OnceBody<KeyBody>,
) -> Result<Response, Problem> {
    create(&state, &client, body, once.as_ref()).await
}

/// Makes another key for a client. The answer shows it, once. With an `Idempotency-Key` it is safe to repeat, as `POST /v1/keys` is.
#[utoipa::path(post, path = "/v1/clients/{client_id}/keys", tag = "keys", request_body = KeyBody,
    params(("client_id" = String, Path), ("idempotency-key" = Option<String>, Header,
        description = "1 to 255 printable characters without spaces, such as a UUID")),
    security(("admin_key" = [])), responses(
    (status = 201, description = "The key", body = NewKey),
    (status = 200, description = "The key that an earlier call made with this Idempotency-Key", body = NewKey),
))]
pub(crate) async fn create_key_for(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    OnceBody(body, once): OnceBody<KeyBody>,
) -> Result<Response, Problem> {
    create(&state, &present(&state, &id).await?, body, once.as_ref()).await
}

/// Lists the keys of the client, without the keys themselves.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", responses(
    (status = 200, description = "All keys, 20 at the most", body = KeyList),
))]
pub(crate) async fn list_keys(
    State(state): State<ApiState>,
    Caller(client): Caller,
) -> Result<Json<KeyList>, Problem> {
    list(&state, &client).await
}

/// Lists the keys of a client, without the keys themselves.
#[utoipa::path(get, path = "/v1/clients/{client_id}/keys", tag = "keys", params(("client_id" = String, Path)),
    security(("admin_key" = [])), responses(
    (status = 200, description = "All keys, 20 at the most", body = KeyList),
))]
pub(crate) async fn list_keys_of(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
) -> Result<Json<KeyList>, Problem> {
    list(&state, &present(&state, &id).await?).await
}

/// Revokes a key of the client. It opens nothing any more, everywhere within 10 seconds.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "keys", params(("key_id" = String, Path)), responses(
    (status = 204, description = "It is revoked"),
))]
pub(crate) async fn revoke_key(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    revoke(&state, &client, &id).await
}

/// Revokes a key of a client. It opens nothing any more, everywhere within 10 seconds.
#[utoipa::path(delete, path = "/v1/clients/{client_id}/keys/{key_id}", tag = "keys",
    params(("client_id" = String, Path), ("key_id" = String, Path)), security(("admin_key" = [])), responses(
    (status = 204, description = "It is revoked"),
))]
pub(crate) async fn revoke_key_of(
    State(state): State<ApiState>,
    _: Admin,
    Path((client, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    revoke(&state, &present(&state, &client).await?, &id).await
}

async fn create(
    state: &ApiState,
    client: &Client,
    body: KeyBody,
    once: Option<&Once>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(state.engine.clock().now(), &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(CheckedKey { scopes, note, expires_at }) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a key"));
    };
    if let Some(again) = made_before(state, client, once).await? {
        return Ok(again);
    }
    let created_at = state.engine.clock().now();
    let (api_key, made) = new_api_key(once, &client.id, MadeKind::Key, created_at)?;
    let key = ApiKey {
        client: client.id.clone(),
        hash: KeyHash::of(&api_key),
        scopes,
        note,
        expires_at,
        created_at,
    };
    let change = author::change(What::Created, created_at);
    let store = state.engine.store();
    let created = match &made {
        Some(made) => store.create_key_once(&key, made, &change).await,
        None => store.create_key(&key, &change).await,
    };
    match created.map_err(|e| Problem::of_store("make a key", &e))? {
        Write::Done => Ok((StatusCode::CREATED, Json(NewKey { key: view(&key), api_key })).into_response()),
        Write::Refused => {
            // The same call may have been made at the same time.
            if let Some(again) = made_before(state, client, once).await? {
                return Ok(again);
            }
            let detail = format!(
                "client '{}' has {CLIENT_KEYS} keys, the most; revoke one that is not needed",
                client.id
            );
            Err(Problem::new(Kind::TooMany, detail))
        }
    }
}

/// The answer of the same call, when it was made before.
async fn made_before(
    state: &ApiState,
    client: &Client,
    once: Option<&Once>,
) -> Result<Option<Response>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let Some(made) = once.before(state, &client.id, MadeKind::Key).await? else { return Ok(None) };
    let api_key = once.api_key_again(&made);
    let Some(key) = shown_again(state, &made, &api_key).await? else {
        let Made { id, at, .. } = &made;
        let detail = format!(
            "this Idempotency-Key made key {id} at {}, which is shown again to the key that asked for it then, and to no other, until it \
             is revoked; revoke it by DELETE where GET lists it, and send another Idempotency-Key",
            instant(*at)
        );
        return Err(Problem::new(Kind::AlreadyMade, detail));
    };
    let shown = (StatusCode::OK, Json(NewKey { key: view(&key), api_key }));
    Ok(Some(replayed(shown.into_response())))
}

/// The key that a call made, when `api_key` is that one, and it is there.
pub(super) async fn shown_again(
    state: &ApiState,
    made: &Made,
    api_key: &str,
) -> Result<Option<ApiKey>, Problem> {
    let hash = KeyHash::of(api_key);
    if hash.id() != made.id {
        return Ok(None);
    }
    state.engine.store().key(&hash).await.map_err(|e| Problem::of_store("look up a key", &e))
}

async fn list(state: &ApiState, client: &Client) -> Result<Json<KeyList>, Problem> {
    let page = state.engine.store().keys_of(&client.id).await;
    let page = page.map_err(|e| Problem::of_store("list keys", &e))?;
    let keys = page.rows.iter().map(view).collect();
    Ok(Json(KeyList { keys, unreadable: spoiled::views(page.unreadable, "") }))
}

async fn revoke(state: &ApiState, client: &Client, id: &str) -> Result<StatusCode, Problem> {
    if !KeyHash::is_id(id) {
        return Err(not_found("key", &cut(id, ECHOED_CHARACTERS)));
    }
    let change = author::change(What::Deleted, state.engine.clock().now());
    let revoked = state.engine.store().revoke_key(&client.id, id, &change).await;
    match revoked.map_err(|e| Problem::of_store("revoke a key", &e))? {
        Some(hash) => {
            state.known_keys.forget(&hash);
            Ok(StatusCode::NO_CONTENT)
        }
        None => Err(not_found("key", id)),
    }
}
