//! Clients: registered and listed by the admin only.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::StatusCode;
use tidegate_domain::ids::ClientId;
use tidegate_protocol::RegisteredClient;
use tidegate_store::clients::Client;
use tidegate_store::{Create, KeyHash};

use crate::ApiState;
use crate::auth::Admin;
use crate::body::{Body, Cursor, ListQuery};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::client::{ClientBody, ClientList, view};
use crate::wire::spoiled;

/// Registers a client. The answer shows its API key and its webhook secret, once.
#[utoipa::path(post, path = "/v1/clients", tag = "clients", request_body = ClientBody, security(("admin_key" = [])), responses(
    (status = 201, description = "The client, with its secrets", body = RegisteredClient),
))]
pub(crate) async fn register_client(
    State(state): State<ApiState>,
    _: Admin,
    Body(body): Body<ClientBody>,
) -> Result<(StatusCode, Json<RegisteredClient>), Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some((id, allowed_targets)) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a client"));
    };
    let api_key = new_api_key(&id)?;
    let webhook_secret = format!("whsec_{}", STANDARD.encode(random()?));
    let created_at = state.engine.clock().now();
    let client = Client { id, allowed_targets, webhook_secret, created_at };
    let created = state.engine.store().create_client(&client, &KeyHash::of(&api_key)).await;
    match created.map_err(|e| Problem::of_store("register a client", &e))? {
        Create::Done => {
            let shown = view(&client);
            let webhook_secret = client.webhook_secret;
            Ok((StatusCode::CREATED, Json(RegisteredClient { client: shown, api_key, webhook_secret })))
        }
        Create::Exists => {
            let message = format!("client '{}' is registered already; choose another client_id", client.id);
            Err(Problem::of_field(Kind::IdTaken, "client_id", client.id.as_str(), message))
        }
    }
}

fn new_api_key(id: &ClientId) -> Result<String, Problem> {
    Ok(format!("tg_{id}_{}", URL_SAFE_NO_PAD.encode(random()?)))
}

fn random() -> Result<[u8; 32], Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| Problem::internal("make a secret", &e))?;
    Ok(bytes)
}

/// Lists all clients, without their secrets.
#[utoipa::path(get, path = "/v1/clients", tag = "clients", params(ListQuery), security(("admin_key" = [])), responses(
    (status = 200, description = "A page of clients", body = ClientList),
))]
pub(crate) async fn list_clients(
    State(state): State<ApiState>,
    _: Admin,
    Cursor(cursor): Cursor,
) -> Result<Json<ClientList>, Problem> {
    let given = cursor.is_some();
    let page = state.engine.store().clients(cursor).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list clients", &e))?;
    let clients = page.rows.iter().map(view).collect();
    Ok(Json(ClientList {
        clients,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
