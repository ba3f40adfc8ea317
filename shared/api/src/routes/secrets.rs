//! Secrets: put, listed and deleted by the client whose they are. No answer has a value.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use tidegate_domain::ids::SecretId;
use tidegate_domain::limits::SECRETS;
use tidegate_engine::{SecretDelete, SecretPut, Written};
use tidegate_protocol::{SecretList, SecretView};
use tidegate_store::client_secrets::ClientSecret;

use super::{exists_already, not_found, nothing_to_match, with_revision, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, Cursor, Expected, ListQuery, Paged, Precondition, id_to_find, id_to_write};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::secret::{SecretBody, view};
use crate::wire::spoiled;

/// Lists the client's secrets: their names and when they changed, never their values.
#[utoipa::path(get, path = "/v1/secrets", tag = "secrets", params(ListQuery), responses(
    (status = 200, description = "A page of secrets", body = SecretList),
))]
pub(crate) async fn list_secrets(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Paged(asked): Paged,
) -> Result<Json<SecretList>, Problem> {
    let given = asked.after.is_some();
    let page = state.engine.store().client_secrets(&client.id, asked).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list secrets", &e))?;
    let secrets = page.rows.iter().map(view).collect();
    Ok(Json(SecretList {
        secrets,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Creates a secret or gives it another value, which is stored encrypted and never shown. Headers of HTTP targets name it as
/// `{{secret:<secret_id>}}`. Another value is sent within seconds, by every job that names it.
#[utoipa::path(put, path = "/v1/secrets/{secret_id}", tag = "secrets", request_body = SecretBody,
    params(("secret_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected"),
        ("if-none-match" = Option<String>, Header, description = "`*`: create it, and answer 412 when it exists already")),
    responses(
        (status = 200, description = "The secret, without its value", body = SecretView, headers(("etag" = String))),
        (status = 201, description = "It did not exist before", body = SecretView),
))]
pub(crate) async fn put_secret(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Precondition(expected): Precondition,
    Body(body): Body<SecretBody>,
) -> Result<Response, Problem> {
    let id: SecretId = id_to_write("secret_id", &id)?;
    let mut errors = FieldErrors::default();
    let value = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(value) = value else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a secret"));
    };
    let written = state.engine.secrets().put(&client.id, id.clone(), value, expected).await;
    let shown = |status, secret: &ClientSecret| with_revision(status, secret.revision, view(secret));
    let written = match written.map_err(|e| Problem::of_engine("write a secret", &e))? {
        SecretPut::Written(written) => written,
        SecretPut::Full => {
            let detail = format!(
                "client '{}' has {SECRETS} secrets, which is the most; delete one that no job names",
                client.id
            );
            return Err(Problem::new(Kind::TooMany, detail));
        }
    };
    match written {
        Written::Created(secret) => Ok(shown(StatusCode::CREATED, &secret)),
        Written::Replaced(secret) | Written::Unchanged(secret) => Ok(shown(StatusCode::OK, &secret)),
        Written::RevisionIs(current) => Err(wrong_revision("secret", id.as_str(), current)),
        Written::Taken(_) => Err(exists_already("secret", id.as_str())),
        Written::Absent => Err(nothing_to_match("secret", id.as_str())),
    }
}

/// Deletes a secret, whoever names it: within seconds, calls of jobs that do are not made. They fail with this reason, and are
/// tried again as their jobs say, until a secret of this name is there.
#[utoipa::path(delete, path = "/v1/secrets/{secret_id}", tag = "secrets",
    params(("secret_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 204, description = "It is gone"),
))]
pub(crate) async fn delete_secret(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<StatusCode, Problem> {
    let id: SecretId = id_to_find("secret", &id)?;
    let deleted = state.engine.secrets().delete(&client.id, &id, expected).await;
    match deleted.map_err(|e| Problem::of_engine("delete a secret", &e))? {
        SecretDelete::Done => Ok(StatusCode::NO_CONTENT),
        SecretDelete::Absent => Err(not_found("secret", id.as_str())),
        SecretDelete::RevisionIs(current) => Err(wrong_revision("secret", id.as_str(), current)),
    }
}
