//! Clients: registered, changed and listed by the admin only; each replaces its own webhook secret.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use chrono::DateTime;
use http::StatusCode;
use tidegate_domain::change::What;
use tidegate_domain::ids::ClientId;
use tidegate_domain::key::Scopes;
use tidegate_domain::limits::{FORMER_SECRETS, WRITE_ROUNDS};
use tidegate_domain::quota::Quotas;
use tidegate_domain::secret::KeptSeconds;
use tidegate_engine::author;
use tidegate_protocol::{ClientList, ClientView, RegisteredClient, WebhookSecret};
use tidegate_store::clients::{Client, FormerSecret};
use tidegate_store::keys::ApiKey;
use tidegate_store::made::MadeKind;
use tidegate_store::{Create, KeyHash, Write};

use super::keys::shown_again;
use super::{replayed, with_revision, wrong_revision};
use crate::ApiState;
use crate::auth::{Admin, Caller, not_registered, present, registered};
use crate::body::{Body, Cursor, Expected, ListQuery, Paged, id_to_find};
use crate::new_secrets::{Once, OnceBody, new_api_key, new_webhook_secret};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::client::{
    CheckedClient, CheckedClientPatch, ClientBody, ClientPatch, RotateBody, SuspendBody, view,
};
use crate::wire::sideline::DrainBody;
use crate::wire::{instant, spoiled};

/// Registers a client. The answer shows its API key and its webhook secret, once. A name is registered once, so that repeating the call
/// is refused; with an `Idempotency-Key` it is safe to repeat: the same call within 24 hours is answered with what the first one made,
/// and `Idempotent-Replayed: true`.
#[utoipa::path(post, path = "/v1/clients", tag = "clients", request_body = ClientBody,
    params(("idempotency-key" = Option<String>, Header,
        description = "1 to 255 printable characters without spaces, such as a UUID")),
    security(("admin_key" = [])), responses(
    (status = 201, description = "The client, with its secrets", body = RegisteredClient),
    (status = 200, description = "The client that an earlier call registered with this Idempotency-Key, as it is now, with its secrets",
        body = RegisteredClient),
))]
pub(crate) async fn register_client(
    State(state): State<ApiState>,
    _: Admin,
    OnceBody(body, once): OnceBody<ClientBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(CheckedClient { id, allowed_targets, defaults, quotas, alerts }) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a client"));
    };
    if let Some(again) = registered_before(&state, &id, once.as_ref()).await? {
        return Ok(again);
    }
    let webhook_secret = new_webhook_secret()?;
    let created_at = state.engine.clock().now();
    let (api_key, made) = new_api_key(once.as_ref(), &id, MadeKind::Client, created_at)?;
    let key = ApiKey {
        client: id.clone(),
        hash: KeyHash::of(&api_key),
        scopes: Scopes::all(),
        note: String::new(),
        expires_at: None,
        created_at,
    };
    let former_secrets = Vec::new();
    let client = Client {
        id,
        allowed_targets: allowed_targets.unwrap_or_else(|| state.targets_unless_said()),
        webhook_secret,
        former_secrets,
        defaults,
        quotas: quotas.in_place_of(&Quotas::default(), created_at),
        alerts,
        suspended: None,
        deleting: None,
        revision: 1,
        created_at,
    };
    let change = author::change(What::Created, created_at);
    let store = state.engine.store();
    let created = match &made {
        Some(made) => store.create_client_once(&client, &key, made, &change).await,
        None => store.create_client(&client, &key, &change).await.map(|created| match created {
            Create::Done => Write::Done,
            Create::Exists => Write::Refused,
        }),
    };
    match created.map_err(|e| Problem::of_store("register a client", &e))? {
        Write::Done => Ok(with_secrets(StatusCode::CREATED, client, api_key)),
        Write::Refused => {
            let id = &client.id;
            // The same call may have been made at the same time.
            if let Some(again) = registered_before(&state, id, once.as_ref()).await? {
                return Ok(again);
            }
            let known = state.engine.store().client_as_it_is(id).await;
            let known = known.map_err(|e| Problem::of_store("read a client", &e))?;
            let message = match known.and_then(|known| known.deleting) {
                Some(_) => format!(
                    "client '{id}' is still being deleted; GET /v1/clients/{id} says how far that is, and 404 once the name is free"
                ),
                None => format!("client '{id}' is registered already; choose another client_id"),
            };
            Err(Problem::of_field(Kind::IdTaken, "client_id", client.id.as_str(), message))
        }
    }
}

/// The answer of the same call, when it was made before, and what it made is there. Its key may be revoked by now, and the admin may
/// call with another one: then the name is taken, as it is for everyone.
async fn registered_before(
    state: &ApiState,
    id: &ClientId,
    once: Option<&Once>,
) -> Result<Option<Response>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let Some(made) = once.before(state, id, MadeKind::Client).await? else { return Ok(None) };
    let api_key = once.api_key_again(&made);
    if shown_again(state, &made, &api_key).await?.is_none() {
        return Ok(None);
    }
    let found = state.engine.store().client_as_it_is(id).await;
    let found = found.map_err(|e| Problem::of_store("read a client", &e))?;
    let client = found.filter(|client| client.deleting.is_none());
    Ok(client.map(|client| replayed(with_secrets(StatusCode::OK, client, api_key))))
}

fn with_secrets(status: StatusCode, client: Client, api_key: String) -> Response {
    let shown = view(&client);
    let webhook_secret = client.webhook_secret;
    (status, Json(RegisteredClient { client: shown, api_key, webhook_secret })).into_response()
}

/// Shows a client, without its secrets.
#[utoipa::path(get, path = "/v1/clients/{client_id}", tag = "clients", params(("client_id" = String, Path)),
    security(("admin_key" = [])), responses(
    (status = 200, description = "The client", body = ClientView, headers(("etag" = String))),
))]
pub(crate) async fn read_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let client = registered(&state, &id).await?;
    Ok(with_revision(StatusCode::OK, client.revision, view(&client)))
}

/// Shows the client that asks, without its secrets.
#[utoipa::path(get, path = "/v1/client", tag = "clients", responses(
    (status = 200, description = "The client", body = ClientView, headers(("etag" = String))),
))]
pub(crate) async fn read_own_client(Caller(client): Caller) -> Response {
    with_revision(StatusCode::OK, client.revision, view(&client))
}

/// Changes what a client may name, its defaults, its quotas, and whom its alerts go to. Jobs that are there stay as they are. It holds within 10 seconds.
#[utoipa::path(patch, path = "/v1/clients/{client_id}", tag = "clients", request_body = ClientPatch,
    params(("client_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    security(("admin_key" = [])), responses(
    (status = 200, description = "The client", body = ClientView, headers(("etag" = String))),
))]
pub(crate) async fn patch_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Expected(expected): Expected,
    Body(body): Body<ClientPatch>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(CheckedClientPatch { allowed_targets, defaults, quotas, alerts }) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not what may change of a client"));
    };
    let now = state.engine.clock().now();
    for _ in 0..WRITE_ROUNDS {
        let seen = present(&state, &id).await?;
        if expected.is_some_and(|expected| expected != seen.revision) {
            return Err(wrong_revision("client", seen.id.as_str(), seen.revision));
        }
        let changed = Client {
            allowed_targets: allowed_targets.clone().unwrap_or_else(|| seen.allowed_targets.clone()),
            defaults: defaults.clone().unwrap_or_else(|| seen.defaults.clone()),
            quotas: quotas.map_or(seen.quotas, |quotas| quotas.in_place_of(&seen.quotas, now)),
            alerts: alerts.clone().unwrap_or_else(|| seen.alerts.clone()),
            ..seen.clone()
        };
        if changed == seen {
            return Ok(with_revision(StatusCode::OK, seen.revision, view(&seen)));
        }
        let changed = Client { revision: seen.revision.saturating_add(1), ..changed };
        let change = author::change(What::Changed, state.engine.clock().now());
        let written = state.engine.store().replace_client(&changed, &seen, &change).await;
        if written.map_err(|e| Problem::of_store("change a client", &e))? == Write::Done {
            if changed.quotas.counted_since != seen.quotas.counted_since {
                state.engine.quotas().count_all(&changed).await;
            }
            return Ok(with_revision(StatusCode::OK, changed.revision, view(&changed)));
        }
    }
    let detail = format!("client '{id}' was changed by other calls at the same time; send this one again");
    Err(Problem::new(Kind::ChangedMeanwhile, detail))
}

/// Suspends a client: within 10 seconds its keys are refused with the reason, but for releases and extensions, and nothing of it is
/// delivered until it is resumed. What is launched meanwhile waits. Repeating it changes the reason.
#[utoipa::path(post, path = "/v1/clients/{client_id}/suspend", tag = "clients", params(("client_id" = String, Path)),
    security(("admin_key" = [])), request_body = SuspendBody, responses(
    (status = 200, description = "The client", body = ClientView, headers(("etag" = String))),
))]
pub(crate) async fn suspend_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Body(body): Body<SuspendBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let because = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let id: ClientId = id_to_find("client", &id)?;
    let done = state.engine.suspensions().suspend(&id, &because.unwrap_or_default()).await;
    shown(&id, done.map_err(|e| Problem::of_engine("suspend a client", &e))?)
}

/// Lets a client go on that was suspended: what waited is delivered at a pace. One that was sidelined before stays so.
/// Repeating it sets the pace.
#[utoipa::path(post, path = "/v1/clients/{client_id}/resume", tag = "clients", params(("client_id" = String, Path)),
    security(("admin_key" = [])), request_body = DrainBody, responses(
    (status = 200, description = "The client", body = ClientView, headers(("etag" = String))),
))]
pub(crate) async fn resume_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Body(body): Body<DrainBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let pace = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(pace) = pace else {
        return Err(Problem::new(Kind::InvalidBody, "the body says no pace"));
    };
    let id: ClientId = id_to_find("client", &id)?;
    let done = state.engine.suspensions().resume(&id, pace).await;
    shown(&id, done.map_err(|e| Problem::of_engine("resume a client", &e))?)
}

/// Deletes a client with all that is its own, in the background: its keys are refused within 10 seconds, nothing of it is delivered any
/// more, and its name is free once `GET /v1/clients/{client_id}` answers 404. Repeating it is safe.
#[utoipa::path(delete, path = "/v1/clients/{client_id}", tag = "clients", params(("client_id" = String, Path)),
    security(("admin_key" = [])), responses(
    (status = 202, description = "The client, which says how far its deletion came", body = ClientView),
))]
pub(crate) async fn delete_client(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<ClientView>), Problem> {
    let id: ClientId = id_to_find("client", &id)?;
    let begun = state.engine.deletions().begin(&id).await;
    let begun = begun.map_err(|e| Problem::of_engine("delete a client", &e))?;
    let client = begun.ok_or_else(|| not_registered(&id))?;
    Ok((StatusCode::ACCEPTED, Json(view(&client))))
}

fn shown(id: &ClientId, client: Option<Client>) -> Result<Response, Problem> {
    let client = client.ok_or_else(|| not_registered(id))?;
    Ok(with_revision(StatusCode::OK, client.revision, view(&client)))
}

/// Replaces the webhook secret of the client. The answer shows the new one, once. Calls are signed with both for a while, so that
/// endpoints can change over. Each call makes another secret, but with an `Idempotency-Key` the same call within 24 hours is answered
/// with the secret that the first one made, and `Idempotent-Replayed: true`: so it is safe to repeat.
#[utoipa::path(post, path = "/v1/webhook-secret/rotate", tag = "clients", request_body = RotateBody,
    params(("idempotency-key" = Option<String>, Header,
        description = "1 to 255 printable characters without spaces, such as a UUID")), responses(
    (status = 201, description = "The new secret", body = WebhookSecret),
    (status = 200, description = "The secret that an earlier call made with this Idempotency-Key", body = WebhookSecret),
))]
pub(crate) async fn rotate_webhook_secret(
    State(state): State<ApiState>,
    Caller(caller): Caller,
    OnceBody(body, once): OnceBody<RotateBody>,
) -> Result<Response, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let kept = checked.unwrap_or(KeptSeconds::DEFAULT);
    let webhook_secret = new_webhook_secret()?;
    for _ in 0..WRITE_ROUNDS {
        let found = state.engine.store().client(&caller.id).await;
        let found = found.map_err(|e| Problem::of_store("read a client", &e))?;
        let Some(client) = found else { return Err(super::not_found("client", caller.id.as_str())) };
        if let Some(again) = replaced_before(&state, &caller.id, once.as_ref()).await? {
            return Ok(again);
        }
        let (now, seen) = (state.engine.clock().now(), client.webhook_secret.clone());
        let changed = client.with_webhook_secret(webhook_secret.clone(), kept, now);
        let changed = changed.map_err(|oldest| too_many_secrets(&oldest))?;
        let change = author::change(What::Changed, now);
        let store = state.engine.store();
        let written = match &once {
            Some(once) => {
                let id = KeyHash::of(&webhook_secret).id().to_owned();
                let made = once.made(&caller.id, MadeKind::WebhookSecret, id, now);
                store.replace_webhook_secrets_once(&changed, &seen, &made, &change).await
            }
            None => store.replace_webhook_secrets(&changed, &seen, &change).await,
        };
        if written.map_err(|e| Problem::of_store("replace a webhook secret", &e))? == Write::Done {
            return Ok((StatusCode::CREATED, Json(shown_secret(&changed))).into_response());
        }
    }
    let detail = "the webhook secret was replaced by another call at the same time; send this one again";
    Err(Problem::new(Kind::ChangedMeanwhile, detail))
}

fn too_many_secrets(oldest: &FormerSecret) -> Problem {
    let until = DateTime::from_timestamp(oldest.until_s, 0).map(instant).unwrap_or_default();
    let detail = format!(
        "calls are signed with {FORMER_SECRETS} former secrets already, with the oldest until {until}; wait until then, or end \
         all of them at once with \"keep_seconds\": 0"
    );
    Problem::new(Kind::ChangedMeanwhile, detail)
}

/// The webhook secret of a client, and until when its calls are signed with the one before.
fn shown_secret(client: &Client) -> WebhookSecret {
    let former = client.former_secrets.first();
    let former_until = former.and_then(|former| DateTime::from_timestamp(former.until_s, 0)).map(instant);
    WebhookSecret { webhook_secret: client.webhook_secret.clone(), former_until }
}

/// The answer of the same call, when it was made before.
async fn replaced_before(
    state: &ApiState,
    id: &ClientId,
    once: Option<&Once>,
) -> Result<Option<Response>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let Some(made) = once.before(state, id, MadeKind::WebhookSecret).await? else { return Ok(None) };
    let found = state.engine.store().client_as_it_is(id).await;
    let found = found.map_err(|e| Problem::of_store("read a client", &e))?;
    let is_made = |client: &Client| KeyHash::of(&client.webhook_secret).id() == made.id;
    let Some(client) = found.filter(is_made) else {
        let detail = format!(
            "this Idempotency-Key made a webhook secret at {}, which another call replaced since; send another Idempotency-Key to make \
             one more",
            instant(made.at)
        );
        return Err(Problem::new(Kind::AlreadyMade, detail));
    };
    Ok(Some(replayed((StatusCode::OK, Json(shown_secret(&client))).into_response())))
}

/// Lists all clients, without their secrets.
#[utoipa::path(get, path = "/v1/clients", tag = "clients", params(ListQuery), security(("admin_key" = [])), responses(
    (status = 200, description = "A page of clients", body = ClientList),
))]
pub(crate) async fn list_clients(
    State(state): State<ApiState>,
    _: Admin,
    Paged(asked): Paged,
) -> Result<Json<ClientList>, Problem> {
    let given = asked.after.is_some();
    let page = state.engine.store().clients(asked).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list clients", &e))?;
    let clients = page.rows.iter().map(view).collect();
    Ok(Json(ClientList {
        clients,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
