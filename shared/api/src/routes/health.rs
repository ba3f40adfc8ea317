//! Whether the API answers, and what it runs.

use axum::Json;
use serde::Serialize;
use tidegate_domain::time::zone_database_version;
use utoipa::ToSchema;

/// What is running.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` whenever there is an answer.
    status: &'static str,
    /// The version of Tidegate.
    version: &'static str,
    /// The release of the IANA zone database that launches are computed with.
    #[schema(example = "2026e")]
    zone_database: &'static str,
}

/// Says that the API answers. Needs no key and reads no store.
#[utoipa::path(get, path = "/v1/health", tag = "health", security(()), responses(
    (status = 200, description = "It answers", body = Health),
))]
pub(crate) async fn health() -> Json<Health> {
    let version = env!("CARGO_PKG_VERSION");
    Json(Health { status: "ok", version, zone_database: zone_database_version() })
}
