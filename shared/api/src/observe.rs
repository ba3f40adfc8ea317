//! One span and one line per request, and the id that ties an answer to its log.
//!
//! Deliberately absent: bodies, keys and tokens. They are never logged.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue};
use tidegate_engine::author::called_from;
use tidegate_engine::contain;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::problem::Problem;

/// The header that names a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Says where a request came from, for a place that knows it otherwise than by a connection of its own. What a client says of that
/// itself, as in `X-Forwarded-For`, is not looked at.
pub fn came_from<B>(request: &mut http::Request<B>, address: IpAddr) {
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(address, 0)));
}

fn address_of(request: &Request) -> Option<IpAddr> {
    let from: &ConnectInfo<SocketAddr> = request.extensions().get()?;
    Some(from.0.ip().to_canonical())
}

/// Runs a request inside its span and names it in the answer. What it changes is recorded with where it came from.
pub(crate) async fn observe(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id();
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let span =
        tracing::info_span!("request", request_id = %id, method = %request.method(), route, client = Empty);
    let from = address_of(&request);
    async move {
        // What one request does to the process ends with it.
        let answered = called_from(from, contain(|| format!("route {route}"), next.run(request))).await;
        let mut response =
            answered.unwrap_or_else(|panicked| Problem::internal("answer", &panicked).into_response());
        let latency_ms = started.elapsed().as_secs_f64() * 1e3;
        tracing::info!(status = response.status().as_u16(), latency_ms, "answered");
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    }
    .instrument(span)
    .await
}

fn request_id() -> String {
    let mut bytes = [0u8; 12];
    // Without random bytes the id is all zeros: a log that is harder to read is no reason to refuse the call.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::from("req_"), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}
