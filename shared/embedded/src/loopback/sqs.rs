//! The queues over HTTP on loopback, for programs in other processes and other languages.
//!
//! The JSON protocol of SQS only: current SDKs of AWS speak it, the older Query protocol is answered with an error that
//! says so. No TLS and no signature check: whoever reaches it may use the queues, except those of Tidegate itself.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Limits, Refusal};
use crate::connector::Services;
use crate::reply::{QUERY_ERROR_HEADER, Reply};

/// Room for a full batch whose every byte needs an escape.
const BODY_BYTES: usize = 8 * 1024 * 1024;

/// What every request needs.
#[derive(Clone)]
struct Server {
    services: Arc<Services>,
    /// Becomes true when the server is to end: long polls then end empty-handed.
    closing: watch::Receiver<bool>,
}

/// Serves until `shutdown`, then ends the requests that are under way.
pub(crate) async fn serve_sqs(
    services: Arc<Services>,
    listener: TcpListener,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (close, closing) = watch::channel(false);
    let router = Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(Server { services, closing });
    let closed = async move {
        shutdown.await;
        close.send_replace(true);
    };
    super::serve(listener, router, limits, refuse, closed).await
}

fn refuse(refusal: &Refusal) -> Response<Body> {
    let mut reply = Reply::error(
        refusal.status().as_u16(),
        "com.amazon.coral.service#AccessDeniedException",
        &refusal.to_string(),
    );
    reply.query_error = Some("AccessDenied;Sender".to_owned());
    into_response(reply)
}

/// Any path: SDKs send requests to the origin, to the queue's URL, or to either with a slash at the end.
async fn answer(State(mut server): State<Server>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let target =
        headers.get("x-amz-target").and_then(|target| target.to_str().ok()?.strip_prefix("AmazonSQS."));
    let reply = match target {
        // While a long poll waits it has taken no message.
        Some(operation @ "ReceiveMessage") => tokio::select! {
            biased;
            reply = server.services.sqs.call_from_outside(operation, &body) => reply,
            _ = server.closing.wait_for(|closing| *closing) => Reply::ok(b"{}".to_vec()),
        },
        Some(operation) => server.services.sqs.call_from_outside(operation, &body).await,
        None => {
            let message = "Only the JSON protocol of SQS is served here: the request has no x-amz-target header that \
                           begins with AmazonSQS. Use a current AWS SDK.";
            Reply::error(400, "com.amazon.coral.service#UnknownOperationException", message)
        }
    };
    into_response(reply)
}

fn into_response(reply: Reply) -> Response<Body> {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    if let Some(code) = reply.query_error.and_then(|code| HeaderValue::from_str(&code).ok()) {
        response.headers_mut().insert(QUERY_ERROR_HEADER, code);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::sync::RwLock;

    use chrono::DateTime;
    use serde_json::{Value, json};
    use tidegate_domain::clock::ManualClock;

    use super::*;
    use crate::dynamodb::DynamoDb;
    use crate::meter::Meter;
    use crate::sqs::Sqs;

    /// What is answered to a request of a server that is about to end.
    async fn answered_at_the_end(server: &Server, operation: &'static str, body: Value) -> Value {
        let target = HeaderValue::from_str(&format!("AmazonSQS.{operation}")).unwrap();
        let headers = HeaderMap::from_iter([("x-amz-target".parse().unwrap(), target)]);
        let answer = answer(State(server.clone()), headers, body.to_string().into()).await;
        let body = axum::body::to_bytes(answer.into_body(), BODY_BYTES).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn what_is_sent_is_answered_though_the_server_ends_and_a_long_poll_ends_empty_handed() {
        let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap()));
        let services = Services {
            dynamodb: DynamoDb::in_memory(clock.clone()).unwrap(),
            sqs: Sqs::open(None, clock, 0).unwrap(),
            meter: Meter::default(),
            faults: RwLock::default(),
            folder: None,
        };
        let (_close, closing) = watch::channel(true);
        let server = Server { services: Arc::new(services), closing };
        answered_at_the_end(&server, "CreateQueue", json!({"QueueName": "q"})).await;
        let poll = json!({"QueueUrl": "q", "WaitTimeSeconds": 20});
        assert_eq!(answered_at_the_end(&server, "ReceiveMessage", poll).await, json!({}));
        let sent =
            answered_at_the_end(&server, "SendMessage", json!({"QueueUrl": "q", "MessageBody": "x"})).await;
        assert!(sent["MessageId"].is_string(), "{sent}");
    }
}
