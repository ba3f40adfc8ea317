//! Whether the API answers, whether launches are emitted in time, and what runs.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tidegate_domain::time::zone_database_version;
use tidegate_engine::{EmissionStatus, panics_contained};
use tidegate_protocol::{EmissionHealth, Health};

use crate::ApiState;
use crate::problem::Problem;
use crate::wire::instant;

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
    let health = Health {
        status: status.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        zone_database: zone_database_version().to_owned(),
        emission,
        panics: panics_contained(),
    };
    Ok((code, Json(health)).into_response())
}
