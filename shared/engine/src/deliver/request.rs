//! What an endpoint is sent: method, headers and body, as the job says; the signature and the trace come with the call.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;
use tidegate_domain::http_call::{self, Body, HttpCall};
use tidegate_protocol::Event;

use super::EventToSend;
use super::event::text;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A call to an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    /// What is sent and signed; empty where the method has no body.
    pub(super) body: String,
    pub(super) timeout: Duration,
}

impl Request {
    /// A POST of a JSON text.
    pub(super) fn post(body: String) -> Self {
        let timeout = timeout(&HttpCall::default());
        Self { method: Method::POST, headers: HeaderMap::from_iter([(CONTENT_TYPE, JSON)]), body, timeout }
    }

    /// The call that takes an event to its endpoint.
    pub(super) fn of(delivery: &EventToSend, call: &HttpCall) -> Self {
        let event = delivery.event();
        let (has_body, mut headers) = (call.method.has_body(), HeaderMap::new());
        if has_body {
            headers.insert(CONTENT_TYPE, JSON);
        }
        for (name, value) in call.headers.render(&delivery.event, event.count) {
            set(&mut headers, name, &value);
        }
        if call.tells_in_headers() {
            tell(&mut headers, &event);
        }
        let body = match call.body {
            _ if !has_body => String::new(),
            Body::Event => text(&event),
            Body::Payload => event.payload.get().to_owned(),
        };
        Self { method: method(call.method), headers, body, timeout: timeout(call) }
    }
}

/// Says in headers what the event says beside its payload.
fn tell(headers: &mut HeaderMap, event: &Event<Box<RawValue>>) {
    set(headers, "tidegate-event-id", &event.event_id);
    set(headers, "tidegate-job-id", &event.job_id);
    set(headers, "tidegate-client-id", &event.client_id);
    set(headers, "tidegate-run-id", &event.run_id);
    set(headers, "tidegate-index", &event.index.to_string());
    set(headers, "tidegate-count", &event.count.to_string());
    set(headers, "tidegate-launch-at", &event.launch_at);
    set(headers, "tidegate-attempt", &event.attempt.to_string());
    if let Some(token) = &event.token {
        set(headers, "tidegate-token", token);
    }
    if let Some(end) = &event.lease_expires_at {
        set(headers, "tidegate-lease-expires-at", end);
    }
}

/// Ids, numbers and what a job may write are visible ASCII: what is not is left out.
fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}

fn method(method: http_call::Method) -> Method {
    match method {
        http_call::Method::Post => Method::POST,
        http_call::Method::Put => Method::PUT,
        http_call::Method::Patch => Method::PATCH,
        http_call::Method::Get => Method::GET,
        http_call::Method::Delete => Method::DELETE,
    }
}

fn timeout(call: &HttpCall) -> Duration {
    Duration::from_secs(call.timeout.get().into())
}
