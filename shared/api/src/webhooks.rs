//! What Tidegate sends to endpoints, for the OpenAPI document: no routes of its own.

use tidegate_protocol::{Completion, Event, LaunchOverdue};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

#[derive(OpenApi)]
#[openapi(paths(event, completion, overdue), components(schemas(Event, Completion, LaunchOverdue)))]
struct Webhooks;

/// An event of a job whose target is an endpoint. The same body is the text of a message where the target is a queue.
#[utoipa::path(post, path = "event", tag = "webhooks", security(()), request_body = Event,
    params(
        ("webhook-id" = String, Header, description = "The id of the event, the idempotency key: the same for every delivery of it"),
        ("webhook-timestamp" = i64, Header, description = "When it is sent, in seconds since the epoch: refuse what is older than five minutes"),
        ("webhook-signature" = String, Header, description = "`v1,` and the base64 of the HMAC-SHA256 of `<id>.<timestamp>.<body>` under the \
            client's webhook secret (Standard Webhooks); several, with a space between them, while the secret is replaced"),
        ("traceparent" = String, Header, description = "The trace of the run, and a span for the delivery (W3C Trace Context)"),
    ),
    responses(
        (status = "2XX", description = "It is taken. Where the target has `\"release\": \"on_response\"`, the token is released as succeeded"),
        (status = "4XX", description = "It is `dead`; after 408, 425 and 429 it is sent again, as the job's `retry` says"),
        (status = "5XX", description = "It is sent again, as the job's `retry` says"),
))]
#[expect(dead_code, reason = "it stands for its description")]
fn event() {}

/// The completion of a run, to the endpoint that its job names in `on_completion`.
#[utoipa::path(post, path = "completion", tag = "webhooks", security(()), request_body = Completion,
    params(
        ("webhook-id" = String, Header, description = "The id of the completion, the idempotency key"),
        ("webhook-timestamp" = i64, Header, description = "When it is sent, in seconds since the epoch"),
        ("webhook-signature" = String, Header, description = "As that of an event"),
    ),
    responses(
        (status = "2XX", description = "It is taken"),
        (status = "4XX", description = "It is not sent again, but after 408, 425 and 429"),
        (status = "5XX", description = "It is sent again"),
))]
#[expect(dead_code, reason = "it stands for its description")]
fn completion() {}

/// A launch that was not over when its job expects it, to the endpoint that the client's `alerts` name.
#[utoipa::path(post, path = "overdue", tag = "webhooks", security(()), request_body = LaunchOverdue,
    params(
        ("webhook-id" = String, Header, description = "The id of the alert, the idempotency key"),
        ("webhook-timestamp" = i64, Header, description = "When it is sent, in seconds since the epoch"),
        ("webhook-signature" = String, Header, description = "As that of an event"),
    ),
    responses(
        (status = "2XX", description = "It is taken"),
        (status = "4XX", description = "It is not sent again, but after 408, 425 and 429"),
        (status = "5XX", description = "It is sent again"),
))]
#[expect(dead_code, reason = "it stands for its description")]
fn overdue() {}

/// Adds them to a document, with what their bodies are.
pub(crate) fn add_to(document: &mut Document) {
    let webhooks = Webhooks::openapi();
    document.webhooks = Some(webhooks.paths);
    let schemas = webhooks.components.map(|components| components.schemas).unwrap_or_default();
    document.components.get_or_insert_default().schemas.extend(schemas);
}
