//! Whether the API answers, whether launches are emitted in time, and what runs.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use tidegate_domain::time::zone_database_version;
use tidegate_engine::{EmissionStatus, panics_contained};
use utoipa::ToSchema;

use crate::ApiState;
use crate::problem::Problem;
use crate::wire::instant;

/// What is running, and how it gets on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`, or `late` when launches that are due have not been emitted.
    #[schema(value_type = String, example = "ok")]
    status: &'static str,
    /// The version of Tidegate.
    version: &'static str,
    /// The release of the IANA zone database that launches are computed with.
    #[schema(example = "2026e")]
    zone_database: &'static str,
    /// How emission gets on.
    emission: EmissionHealth,
    /// How many panics this process has contained: each is a fault of Tidegate, and in the log.
    panics: u64,
}

/// How emission gets on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmissionHealth {
    /// Every launch before it is planned; null before the first tick.
    #[schema(format = DateTime)]
    planned_to: Option<String>,
    /// Launches since then are late; null when none is.
    #[schema(format = DateTime)]
    late_since: Option<String>,
    /// How late the oldest of them is, in seconds; 0 when none is.
    late_seconds: i64,
}

/// Says that the API answers, and whether launches are emitted in time. Needs no key. What it says of emission is up to five
/// seconds old.
#[utoipa::path(get, path = "/v1/health", tag = "health", security(()), responses(
    (status = 200, description = "It answers, and launches are emitted in time", body = Health),
    (status = 503, description = "It answers, but launches are late: the body says since when", body = Health),
))]
pub(crate) async fn health(State(state): State<ApiState>) -> Result<Response, Problem> {
    let now = state.engine.clock().now();
    let EmissionStatus { scanned_to, late_since } = match state.known_emission.find(&(), now) {
        Some(known) => known,
        None => {
            let read = state.engine.queries().emission_status().await;
            let read = read.map_err(|e| Problem::of_engine("read how emission gets on", &e))?;
            state.known_emission.keep((), now, read);
            read
        }
    };
    let (status, code) = match late_since {
        None => ("ok", StatusCode::OK),
        Some(_) => ("late", StatusCode::SERVICE_UNAVAILABLE),
    };
    let emission = EmissionHealth {
        planned_to: scanned_to.map(instant),
        late_since: late_since.map(instant),
        late_seconds: late_since.map_or(0, |since| now.signed_duration_since(since).num_seconds()),
    };
    let version = env!("CARGO_PKG_VERSION");
    let zone_database = zone_database_version();
    let health = Health { status, version, zone_database, emission, panics: panics_contained() };
    Ok((code, Json(health)).into_response())
}
