//! API keys: made, listed and revoked by the client itself, with a key of scope `admin`, or by the admin for any client.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use tidegate_domain::change::What;
use tidegate_domain::limits::CLIENT_KEYS;
use tidegate_engine::author;
use tidegate_protocol::{KeyList, NewKey};
use tidegate_store::clients::Client;
use tidegate_store::keys::ApiKey;
use tidegate_store::{KeyHash, Write};

use super::clients::new_api_key;
use super::not_found;
use crate::ApiState;
use crate::auth::{Admin, Caller, present};
use crate::body::Body;
use crate::problem::{ECHOED_CHARACTERS, FieldErrors, Kind, Problem, cut};
use crate::wire::key::{CheckedKey, KeyBody, view};
use crate::wire::spoiled;

/// Makes another key for the client. The answer shows it, once. To rotate a key make another one, give it out, and revoke the
/// former.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = KeyBody, responses(
    (status = 201, description = "The key", body = NewKey),
))]
pub(crate) async fn create_key(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<KeyBody>,
) -> Result<(StatusCode, Json<NewKey>), Problem> {
    create(&state, &client, body).await
}

/// Makes another key for a client. The answer shows it, once.
#[utoipa::path(post, path = "/v1/clients/{client_id}/keys", tag = "keys", request_body = KeyBody,
    params(("client_id" = String, Path)), security(("admin_key" = [])), responses(
    (status = 201, description = "The key", body = NewKey),
))]
pub(crate) async fn create_key_for(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Body(body): Body<KeyBody>,
) -> Result<(StatusCode, Json<NewKey>), Problem> {
    create(&state, &present(&state, &id).await?, body).await
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
) -> Result<(StatusCode, Json<NewKey>), Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(state.engine.clock().now(), &mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(CheckedKey { scopes, note, expires_at }) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a key"));
    };
    let api_key = new_api_key(&client.id)?;
    let key = ApiKey {
        client: client.id.clone(),
        hash: KeyHash::of(&api_key),
        scopes,
        note,
        expires_at,
        created_at: state.engine.clock().now(),
    };
    let change = author::change(What::Created, key.created_at);
    let created = state.engine.store().create_key(&key, &change).await;
    match created.map_err(|e| Problem::of_store("make a key", &e))? {
        Write::Done => Ok((StatusCode::CREATED, Json(NewKey { key: view(&key), api_key }))),
        Write::Refused => {
            let detail = format!(
                "client '{}' has {CLIENT_KEYS} keys, the most; revoke one that is not needed",
                client.id
            );
            Err(Problem::new(Kind::TooMany, detail))
        }
    }
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
