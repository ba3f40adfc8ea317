//! Delivery to HTTP endpoints: a signed call per event, one redirect on the same host at the most, and no way into the
//! deployment's own network.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration as StdDuration, Instant};
use std::{io, iter};

use chrono::{DateTime, Duration};
use futures::stream::{self, StreamExt};
use reqwest::header::RETRY_AFTER;
use reqwest::{StatusCode, Url, redirect};
use tidegate_domain::http_call::{Answer, HttpCall};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{ANSWER_BYTES, DELIVERY_SECONDS, RETRY_AFTER_SECONDS};
use tidegate_domain::target::Target;
use tidegate_domain::time::seconds;

use super::failures::{Answered, Seen};
use super::request::Request;
use super::{Delivery, EventToSend, Sent, signature};
use crate::EngineError;
use crate::reach::{AllowedOnly, NoAllowedAddress, NotFound, PrivateTargets};

/// Calls under way at once.
const CALLS_AT_ONCE: usize = 20;
/// How long one call may take at the most.
const CALL_TIMEOUT: StdDuration = StdDuration::from_secs(DELIVERY_SECONDS as u64);
const CONNECT_TIMEOUT: StdDuration = StdDuration::from_secs(3);
/// Why an address of the deployment's own network is not called.
const PRIVATE: &str = "the address is private, loopback or link-local, which this deployment does not allow";

/// What is said of a connection that ends without an answer.
const CLOSED: &str = "the connection was closed before an answer came";

/// The way to HTTP endpoints.
#[derive(Clone)]
pub(crate) struct HttpTarget {
    /// Made when the first call needs it: it reads every root certificate of the machine, and most processes call nobody.
    client: Arc<OnceLock<Result<reqwest::Client, String>>>,
    allowed: PrivateTargets,
}

impl HttpTarget {
    pub(crate) fn new(allowed: PrivateTargets) -> Self {
        Self { client: Arc::default(), allowed }
    }

    fn client(&self) -> Result<&reqwest::Client, &str> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(String::as_str)
    }

    fn build(&self) -> Result<reqwest::Client, String> {
        let client = client_builder()
            .redirect(redirect::Policy::custom(follow_one))
            .timeout(CALL_TIMEOUT)
            .dns_resolver(Arc::new(AllowedOnly::new(self.allowed.clone())))
            .build();
        client.map_err(|e| e.to_string())
    }

    async fn post_event(
        &self,
        index: usize,
        delivery: &EventToSend,
        secrets: &[String],
        now_s: i64,
    ) -> (usize, Answered) {
        let Target::Http { url, call } = &delivery.terms.terms.target else {
            return (index, Sent::Refused { reason: "the target is no endpoint".to_owned() }.into());
        };
        let (id, request) = (delivery.event.to_string(), Request::of(delivery, call));
        let trace = Some(delivery.traceparent());
        (index, self.post(url, (&id, trace), (request, &**call), secrets, now_s).await)
    }

    /// Sends a request under an id, signed with a client's secrets; as part of a trace, where there is one. `call` says what the
    /// answer means.
    async fn post(
        &self,
        url: &str,
        (id, traceparent): (&str, Option<String>),
        (request, call): (Request, &HttpCall),
        secrets: &[String],
        now_s: i64,
    ) -> Answered {
        let refused = |reason: &str| Sent::Refused { reason: reason.to_owned() }.into();
        let client = match self.client() {
            Ok(client) => client,
            Err(reason) => return Sent::failed(reason.to_owned()).into(),
        };
        let Ok(url) = Url::parse(url) else {
            return refused("the URL cannot be read");
        };
        if literal_address(&url).is_some_and(|ip| !self.allowed.allow(ip)) {
            return refused(PRIVATE);
        }
        let Request { method, headers, body, timeout } = request;
        let has_body = call.method.has_body();
        let mut post = client
            .request(method, url)
            .timeout(timeout)
            .headers(headers)
            .header("webhook-id", id)
            .header("webhook-timestamp", now_s.to_string());
        if let Some(signature) = signature::sign_all(secrets, id, now_s, &body) {
            post = post.header("webhook-signature", signature);
        }
        if let Some(traceparent) = traceparent {
            post = post.header("traceparent", traceparent);
        }
        if has_body {
            post = post.body(body);
        }
        let began = Instant::now();
        let (sent, status, text) = match post.send().await {
            Err(error) => (unanswered(&error, timeout), None, None),
            Ok(answer) => {
                let status = answer.status();
                let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let sent = evaluate(call, status, retry_after.and_then(|text| asked_wait(text, now_s)));
                let text = if sent == Sent::Done { None } else { beginning(answer).await };
                (sent, Some(status.as_u16()), text)
            }
        };
        let took_ms = u32::try_from(began.elapsed().as_millis()).ok();
        Answered { sent, seen: Seen { status, took_ms, text } }
    }
}

/// The beginning of the body of an answer, as far as it can be read; `None`: it has none.
async fn beginning(answer: reqwest::Response) -> Option<String> {
    let (text, _) = body_upto(answer, ANSWER_BYTES).await;
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// So many bytes of the body of an answer as text, or fewer where it ends before, and whether it could be read so far. The rest is
/// not waited for.
pub(super) async fn body_upto(
    mut answer: reqwest::Response,
    most: usize,
) -> (String, Result<(), reqwest::Error>) {
    let (mut bytes, mut ended) = (Vec::new(), Ok(()));
    while bytes.len() < most {
        match answer.chunk().await {
            Ok(Some(some)) => bytes.extend(some.iter().take(most.saturating_sub(bytes.len()))),
            Ok(None) => break,
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), ended)
}

/// What all calls out of the deployment have in common.
pub(super) fn client_builder() -> reqwest::ClientBuilder {
    // A second call in one process finds the provider in place, which is as good.
    let _already_there = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
}

/// Follows one redirect that keeps the call as it is and stays with the same host: an endpoint that moved within itself. Any
/// other answer of that kind is the answer.
fn follow_one(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_the_call =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    match attempt.previous() {
        [first] if keeps_the_call && first.origin() == attempt.url().origin() => attempt.follow(),
        _ => attempt.stop(),
    }
}

/// What became of a call that got no answer, in words that say what happened and not which library says so.
pub(super) fn unanswered(error: &reqwest::Error, timeout: StdDuration) -> Sent {
    let chain = || causes(error);
    if chain().any(|cause| cause.is::<NoAllowedAddress>()) {
        return Sent::Refused { reason: PRIVATE.to_owned() };
    }
    let io = chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let deepest = || chain().last().map(ToString::to_string).unwrap_or_default();
    let reason = match io {
        _ if error.is_timeout() && error.is_connect() => {
            format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())
        }
        _ if error.is_timeout() => format!("no answer within {} s", timeout.as_secs()),
        _ if chain().any(|cause| cause.is::<NotFound>()) => "the host name was not found".to_owned(),
        Some(io::ErrorKind::ConnectionRefused) => {
            "connection refused: nothing listens at the address".to_owned()
        }
        Some(
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe,
        ) => CLOSED.to_owned(),
        _ if chain().any(|cause| cause.downcast_ref().is_some_and(hyper::Error::is_incomplete_message)) => {
            CLOSED.to_owned()
        }
        _ if error.is_connect() => format!("no connection: {}", deepest()),
        _ => format!("no answer that can be read: {}", deepest()),
    };
    Sent::Failed { reason, retry_after: None, overloaded: error.is_timeout() }
}

/// An error and what caused it, down to the first cause.
fn causes<'e>(error: &'e reqwest::Error) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    let mut next: Option<&'e (dyn StdError + 'static)> = Some(error);
    iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// How long an endpoint asks to be left alone: seconds or a date, at most a day. `None` for anything else.
pub(super) fn asked_wait(text: &str, now_s: i64) -> Option<Duration> {
    let text = text.trim();
    let asked_s = match text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds ask for longer than anybody waits.
        true if !text.is_empty() => text.parse().unwrap_or(i64::MAX),
        _ => DateTime::parse_from_rfc2822(text).ok()?.timestamp().saturating_sub(now_s),
    };
    Some(seconds(asked_s.clamp(0, RETRY_AFTER_SECONDS.into())))
}

fn evaluate(call: &HttpCall, status: StatusCode, retry_after: Option<Duration>) -> Sent {
    let reason = format!("the endpoint answered {status}");
    let overloaded = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    );
    match call.meaning(status.as_u16()) {
        Answer::Taken => Sent::Done,
        Answer::Retried => Sent::Failed { reason, retry_after, overloaded },
        Answer::Final if status.is_redirection() => {
            let why = "one redirect is followed, with 307 or 308 and to the same host";
            Sent::Refused { reason: format!("{reason}; {why}") }
        }
        Answer::Final => Sent::Refused { reason },
    }
}

fn literal_address(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

impl Delivery {
    /// Posts a completion to its endpoint.
    pub(super) async fn post_completion(
        &self,
        client: &ClientId,
        url: &str,
        (id, body): (&str, String),
    ) -> Result<Sent, EngineError> {
        let now = self.clock.now();
        let secrets = self.store.client(client).await?.map(|client| client.live_secrets(now));
        let (secrets, request) = (secrets.unwrap_or_default(), (Request::post(body), &HttpCall::default()));
        Ok(self.http.post(url, (id, None), request, &secrets, now.timestamp()).await.sent)
    }

    /// Posts the chosen events to their endpoints.
    pub(super) async fn send_to_endpoints(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Answered)> {
        let events = || chosen.iter().filter_map(|index| Some((*index, deliveries.get(*index)?)));
        let Some((_, first)) = events().next() else { return Vec::new() };
        // All events of one call to `send` are of one client.
        let now = self.clock.now();
        let secrets = match self.store.client(&first.client).await {
            Ok(client) => client.map(|client| client.live_secrets(now)).unwrap_or_default(),
            Err(e) => {
                let failed = Answered::from(Sent::failed(e.to_string()));
                return chosen.iter().map(|index| (*index, failed.clone())).collect();
            }
        };
        let (secrets, now_s) = (&secrets, now.timestamp());
        let posts: Vec<_> =
            events().map(|(index, delivery)| self.http.post_event(index, delivery, secrets, now_s)).collect();
        stream::iter(posts).buffer_unordered(CALLS_AT_ONCE).collect().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C1: the first of these stopped the whole process.
    #[test]
    fn whatever_an_endpoint_asks_for_is_bounded() {
        let now_s = 1_445_412_480; // 21 October 2015, 07:28 UTC
        for (text, waits_s) in [
            ("9223372036854775807", Some(86_400)),
            ("99999999999999999999999999", Some(86_400)),
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("-1", None),
            ("", None),
            ("soon", None),
            ("1.5", None),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400)),
            ("Fri, 31 Dec 999999999 23:59:59 GMT", None),
        ] {
            assert_eq!(asked_wait(text, now_s).map(|wait| wait.num_seconds()), waits_s, "{text}");
        }
    }

    #[test]
    fn an_answer_decides_whether_to_try_again() {
        let call = HttpCall::default();
        let decided = |code, after| evaluate(&call, StatusCode::from_u16(code).unwrap(), after);
        assert_eq!(decided(204, None), Sent::Done);
        let seven = seconds(7);
        assert!(matches!(decided(503, Some(seven)), Sent::Failed { retry_after: Some(d), .. } if d == seven));
        assert!(matches!(decided(429, None), Sent::Failed { retry_after: None, .. }));
        let is_sign = |code, after| decided(code, after).sign().is_some();
        assert!([429, 503, 504].iter().all(|code| is_sign(*code, None)) && is_sign(500, Some(seven)));
        assert!([200, 404, 408, 500, 502].iter().all(|code| !is_sign(*code, None)));
        assert!(matches!(decided(404, None), Sent::Refused { .. }));
        assert!(matches!(decided(302, None), Sent::Refused { reason } if reason.contains("one redirect")));
    }
}
