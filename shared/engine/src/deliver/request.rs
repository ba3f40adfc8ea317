//! What an endpoint is sent: method, headers and body, as the job says; the signature and the trace come with the call.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;
use tidegate_domain::http_call::{self, Body, HttpCall};
use tidegate_domain::ids::RunId;
use tidegate_domain::secret::{NoSuchSecret, SecretValues};
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
    /// A POST of the JSON text that tells of the end of a run, with the headers of its job.
    pub(super) fn of_completion(
        run: &RunId,
        body: String,
        call: &HttpCall,
        secrets: &SecretValues,
    ) -> Result<Self, NoSuchSecret> {
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, JSON)]);
        // No placeholder of them is of an event.
        set_given(&mut headers, call.headers.render(&run.event(0), 1, secrets)?);
        Ok(Self { method: Method::POST, headers, body, timeout: timeout(call) })
    }

    /// The call that takes an event to its endpoint, with the values of the secrets that its headers name.
    pub(super) fn of(
        delivery: &EventToSend,
        call: &HttpCall,
        secrets: &SecretValues,
    ) -> Result<Self, NoSuchSecret> {
        let event = delivery.event();
        let (has_body, mut headers) = (call.method.has_body(), HeaderMap::new());
        if has_body {
            headers.insert(CONTENT_TYPE, JSON);
        }
        set_given(&mut headers, call.headers.render(&delivery.event, event.count, secrets)?);
        if call.tells_in_headers() {
            tell(&mut headers, &event);
        }
        let body = match call.body {
            _ if !has_body => String::new(),
            Body::Event => text(&event),
            Body::Payload => event.payload.get().to_owned(),
        };
        Ok(Self { method: method(call.method), headers, body, timeout: timeout(call) })
    }
}

/// What a job gives may be secret: no `Debug` shows it, and no table of HTTP/2 keeps it.
fn set_given(headers: &mut HeaderMap, given: Vec<(&str, String)>) {
    for (name, value) in given {
        set(headers, name, &value);
        if let Some(value) = headers.get_mut(name) {
            value.set_sensitive(true);
        }
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
