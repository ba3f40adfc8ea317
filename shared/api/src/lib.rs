//! The REST API of Tidegate: routes under `/v1`, their wire types, and the OpenAPI document that is generated from
//! them. The same router serves behind Lambda (it takes requests with any body) and in `tidegate local`.
//!
//! A request passes four gates, and nothing is written before the last: its key (`auth`), its form (`body`, `form`), its
//! fields (`wire`), what it refers to (`routes`). Whatever is refused is answered as a `problem`.
//!
//! Deliberately absent: rules of scheduling and throttling (the engine's), sessions, cookies and CORS (no browser
//! calls this yet), and rate limits per client.

// Values from outside come here: nothing may panic on them.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod auth;
mod body;
pub mod documents;
mod form;
mod memory;
mod merge;
mod new_secrets;
mod observe;
mod openapi;
mod path;
mod problem;
mod reference;
mod routes;
pub mod sentences;
mod state;
mod webhooks;
mod wire;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;

pub use observe::came_from;
pub use openapi::openapi_json;
pub use state::{ApiState, QueueHint};

use problem::{Kind, Problem};

/// All routes, as a tower service for requests with any body.
pub fn router(state: ApiState) -> Router {
    openapi::routes()
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn(path::must_be_text))
        .layer(from_fn_with_state(state.clone(), publish))
        .layer(from_fn(observe::observe))
        .with_state(state)
}

/// What a request did to runs and events is published before it is answered, where the deployment has a bus.
async fn publish(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    state.engine.publish().await;
    answer
}

async fn unknown_route(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new(
        Kind::UnknownRoute,
        format!("there is no route {method} {path}; GET /v1/docs lists them all"),
    )
}

async fn method_not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    let detail = format!("{path} takes no {method}; the header Allow names what it takes");
    Problem::new(Kind::MethodNotAllowed, detail)
}
