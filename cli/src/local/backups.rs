//! The route by which `tidegate backup` has this process copy its data folder: nobody else can read it while it runs.
//!
//! It is no part of the API: a deployment on AWS has no such folder. Only the owner of the folder may ask.

use std::path::PathBuf;

use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Json, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};
use tidegate_embedded::{Backup, BackupError, Embedded};
use tidegate_store::KeyHash;
use tracing::{error, info};

use super::servers::problem;

/// Where the route is.
pub(crate) const PATH: &str = "/local/backup";

/// What is asked for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The folder that becomes the copy; this process may stand in another one than who asks, so it is absolute.
    pub(crate) folder: PathBuf,
}

/// What was made.
#[derive(Serialize, Deserialize)]
pub(crate) struct Made {
    /// The instant that the copy is of, RFC 3339.
    pub(crate) as_of: String,
    /// How large its tables and queues are together.
    pub(crate) bytes: u64,
}

impl From<Backup> for Made {
    fn from(Backup { as_of, bytes }: Backup) -> Self {
        Self { as_of: as_of.to_rfc3339_opts(SecondsFormat::Millis, true), bytes }
    }
}

#[derive(Clone)]
struct Backups {
    embedded: Embedded,
    owner_key: KeyHash,
}

/// The route, for who has the owner's key.
pub(super) fn router(embedded: Embedded, owner_key: &str) -> Router {
    let backups = Backups { embedded, owner_key: KeyHash::of(owner_key) };
    Router::new().route(PATH, post(back_up)).with_state(backups)
}

async fn back_up(
    State(backups): State<Backups>,
    headers: HeaderMap,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Response {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if given.map(KeyHash::of) != Some(backups.owner_key) {
        return refused(
            StatusCode::UNAUTHORIZED,
            "the owner's key is missing, or is that of a process that has ended",
        );
    }
    let folder = match asked {
        Ok(Json(asked)) => asked.folder,
        Err(rejection) => return refused(rejection.status(), &rejection.body_text()),
    };
    let told = folder.display().to_string();
    let copied = tokio::task::spawn_blocking(move || backups.embedded.back_up(&folder)).await;
    match copied {
        Ok(Ok(backup)) => {
            info!(folder = told, as_of = %backup.as_of, bytes = backup.bytes, "made a backup");
            Json(Made::from(backup)).into_response()
        }
        Ok(Err(error @ (BackupError::InMemory | BackupError::Taken(_) | BackupError::Within(_)))) => {
            refused(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string())
        }
        Ok(Err(error)) => failed(&told, &error.to_string()),
        Err(error) => failed(&told, &error.to_string()),
    }
}

fn failed(folder: &str, error: &str) -> Response {
    error!(folder, error, "failed to make a backup");
    refused(StatusCode::INTERNAL_SERVER_ERROR, error)
}

fn refused(status: StatusCode, detail: &str) -> Response {
    problem(status, ("no-backup", "There is no backup"), detail)
}
