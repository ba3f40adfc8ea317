//! Delivery to HTTP endpoints: a signed call per event, one redirect on the same host at the most, and no way into the
//! deployment's own network.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration as StdDuration, Instant};

use chrono::{DateTime, Duration};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use reqwest::header::RETRY_AFTER;
use reqwest::{StatusCode, Url, redirect};
use tidegate_domain::http_call::{Answer, HttpCall};
use tidegate_domain::ids::{ClientId, RunId, SecretId};
use tidegate_domain::limits::{ANSWER_BYTES, DELIVERY_SECONDS, RETRY_AFTER_SECONDS};
use tidegate_domain::secret::SecretValues;
use tidegate_domain::target::Target;
use tidegate_domain::time::seconds;

use super::failures::{Answered, Seen};
use super::request::Request;
use super::{Delivery, EventToSend, Sent, signature};
use crate::EngineError;
use crate::outgoing::{CONNECT_TIMEOUT, causes, client_builder};
use crate::reach::{AllowedOnly, NoAllowedAddress, NotFound, PrivateTargets};
use crate::secrets::Opened;

/// Calls under way at once.
const CALLS_AT_ONCE: usize = 20;
/// How long one call may take at the most.
const CALL_TIMEOUT: StdDuration = StdDuration::from_secs(DELIVERY_SECONDS as u64);
/// How long a connection is kept that nobody uses: less than what load balancers allow.
const IDLE_TIMEOUT: StdDuration = StdDuration::from_secs(50);
/// How long a connection of HTTP/2 with calls under way may be silent before it is asked whether it is there, and how long it may
/// take to answer that: both fit into a call.
const PING_INTERVAL: StdDuration = StdDuration::from_secs(4);
const PING_TIMEOUT: StdDuration = StdDuration::from_secs(3);
/// Why an address of the deployment's own network is not called.
const PRIVATE: &str = "the address is private, loopback or link-local, which this deployment does not allow";

/// What is said of a connection that ends without an answer.
const CLOSED: &str = "the connection was closed before an answer came";

/// What calls of a client carry beside what their jobs say.
#[derive(Default)]
pub(super) struct Credentials {
    /// The webhook secrets that they are signed with.
    signed_with: Vec<String>,
    /// The secrets that their headers name.
    opened: Opened,
}

/// Answers calls to HTTP endpoints in the place of the network: for simulations, which have no sockets.
pub trait Callee: Send + Sync {
    /// What the endpoint at `url` answers to a call of this id and body; `None`: the connection ended without an answer, whether or
    /// not the call arrived.
    fn answer<'a>(&'a self, url: &'a str, id: &'a str, body: &'a str) -> BoxFuture<'a, Option<CalleeAnswer>>;
}

/// What an endpoint answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalleeAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The header `Retry-After`; `None`: there is none.
    pub retry_after: Option<String>,
}

/// The way to HTTP endpoints.
#[derive(Clone)]
pub(crate) struct HttpTarget {
    /// Made when the first call needs it: it reads every root certificate of the machine, and most processes call nobody.
    client: Arc<OnceLock<Result<reqwest::Client, String>>>,
    allowed: PrivateTargets,
    /// `None`: the network.
    callee: Option<Arc<dyn Callee>>,
}

impl HttpTarget {
    pub(crate) fn new(allowed: PrivateTargets) -> Self {
        Self { client: Arc::default(), allowed, callee: None }
    }

    /// The same, whose calls somebody answers in the place of the network.
    pub(crate) fn answered_by(self, callee: Option<Arc<dyn Callee>>) -> Self {
        Self { callee, ..self }
    }

    /// The same, on which calls are made otherwise.
    #[cfg(test)]
    pub(super) fn made_of(self, client: reqwest::ClientBuilder) -> Self {
        self.client.set(client.build().map_err(|e| e.to_string())).unwrap();
        self
    }

    fn client(&self) -> Result<&reqwest::Client, &str> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(String::as_str)
    }

    fn build(&self) -> Result<reqwest::Client, String> {
        endpoints(self.allowed.clone()).build().map_err(|e| e.to_string())
    }

    async fn post_event(
        &self,
        index: usize,
        delivery: &EventToSend,
        credentials: &Credentials,
        now_s: i64,
    ) -> (usize, Answered) {
        let Target::Http { url, call } = &delivery.terms.terms.target else {
            return (index, Sent::Refused { reason: "the target is no endpoint".to_owned() }.into());
        };
        let request = match Request::of(delivery, call, &credentials.opened.values) {
            Ok(request) => request,
            Err(missing) => return (index, Sent::failed(credentials.opened.reason(&missing)).into()),
        };
        let (id, trace) = (delivery.event.to_string(), Some(delivery.traceparent()));
        (index, self.post(url, (&id, trace), (request, &**call), credentials, now_s).await)
    }

    /// Sends a request under an id, signed with its client's webhook secrets; as part of a trace, where there is one. `call` says what the
    /// answer means.
    pub(super) async fn post(
        &self,
        url: &str,
        (id, traceparent): (&str, Option<String>),
        (request, call): (Request, &HttpCall),
        credentials: &Credentials,
        now_s: i64,
    ) -> Answered {
        let refused = |reason: &str| Sent::Refused { reason: reason.to_owned() }.into();
        let Ok(url) = Url::parse(url) else {
            return refused("the URL cannot be read");
        };
        if literal_address(&url).is_some_and(|ip| !self.allowed.allow(ip)) {
            return refused(PRIVATE);
        }
        if let Some(callee) = &self.callee {
            let answer = callee.answer(url.as_str(), id, &request.body).await;
            return answered_by_callee(call, answer, now_s).into();
        }
        let client = match self.client() {
            Ok(client) => client,
            Err(reason) => return Sent::failed(reason.to_owned()).into(),
        };
        let Request { method, headers, body, timeout } = request;
        let has_body = call.method.has_body();
        let mut post = client
            .request(method, url)
            .timeout(timeout)
            .headers(headers)
            .header("webhook-id", id)
            .header("webhook-timestamp", now_s.to_string());
        if let Some(signature) = signature::sign_all(&credentials.signed_with, id, now_s, &body) {
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
                let text = match sent {
                    Sent::Done => None,
                    _ => beginning(answer, &credentials.opened.values).await,
                };
                (sent, Some(status.as_u16()), text)
            }
        };
        let took_ms = u32::try_from(began.elapsed().as_millis()).ok();
        Answered { sent, seen: Seen { status, took_ms, text } }
    }
}

/// The beginning of the body of an answer, as far as it can be read, without the secrets that calls carried: it is kept and shown.
/// `None`: it has none.
async fn beginning(answer: reqwest::Response, secrets: &SecretValues) -> Option<String> {
    let longest = secrets.values().map(|value| value.expose().len()).max().unwrap_or_default();
    let (text, _) = body_upto(answer, ANSWER_BYTES.saturating_add(longest)).await;
    let text = without(&text, ANSWER_BYTES, secrets);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What begins within so many bytes of a text, with the names of secrets in the place of their values.
fn without(text: &str, most: usize, secrets: &SecretValues) -> String {
    let (mut kept, mut at) = (String::new(), 0_usize);
    while at < most
        && let Some(rest) = text.get(at..)
        && let Some(next) = rest.chars().next()
    {
        let found = secrets.iter().filter(|(_, value)| rest.starts_with(value.expose()));
        let taken = match found.max_by_key(|(_, value)| value.expose().len()) {
            Some((id, value)) => {
                kept.push_str(&format!("[secret {id}]"));
                value.expose().len()
            }
            None => {
                kept.push(next);
                next.len_utf8()
            }
        };
        at = at.saturating_add(taken);
    }
    kept.get(..kept.floor_char_boundary(most)).unwrap_or_default().to_owned()
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

/// How endpoints are called: over HTTP/2 where they speak it (ALPN), over HTTP/1.1 otherwise; over a connection that is there, if
/// it was not idle for long.
pub(super) fn endpoints(allowed: PrivateTargets) -> reqwest::ClientBuilder {
    client_builder()
        .redirect(redirect::Policy::custom(follow_one))
        .timeout(CALL_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        // A call that times out leaves its connection to others: one that is dead must be noticed.
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .dns_resolver(Arc::new(AllowedOnly::new(allowed)))
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

fn answered_by_callee(call: &HttpCall, answer: Option<CalleeAnswer>, now_s: i64) -> Sent {
    let Some(CalleeAnswer { status, retry_after }) = answer else { return Sent::failed(CLOSED.to_owned()) };
    match StatusCode::from_u16(status) {
        Ok(status) => evaluate(call, status, retry_after.and_then(|text| asked_wait(&text, now_s))),
        Err(error) => Sent::failed(error.to_string()),
    }
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
        (client, run): (&ClientId, &RunId),
        (url, call): (&str, &HttpCall),
        (id, body): (&str, String),
    ) -> Result<Sent, EngineError> {
        let now = self.clock.now();
        let credentials = self.credentials(client, call.headers.secrets()).await?;
        let request = match Request::of_completion(run, body, call, &credentials.opened.values) {
            Ok(request) => request,
            Err(missing) => return Ok(Sent::failed(credentials.opened.reason(&missing))),
        };
        Ok(self.http.post(url, (id, None), (request, call), &credentials, now.timestamp()).await.sent)
    }

    /// Posts the chosen events to their endpoints.
    pub(super) async fn send_to_endpoints(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Answered)> {
        let events = || chosen.iter().filter_map(|index| Some((*index, deliveries.get(*index)?)));
        let Some((_, first)) = events().next() else { return Vec::new() };
        let named = events().flat_map(|(_, event)| match &event.terms.terms.target {
            Target::Http { call, .. } => call.headers.secrets(),
            _ => BTreeSet::new(),
        });
        // All events of one call to `send` are of one client.
        let credentials = match self.credentials(&first.client, named.collect()).await {
            Ok(credentials) => credentials,
            Err(e) => {
                let failed = Answered::from(Sent::failed(e.to_string()));
                return chosen.iter().map(|index| (*index, failed.clone())).collect();
            }
        };
        let (credentials, now_s) = (&credentials, self.clock.now().timestamp());
        let posts: Vec<_> = events()
            .map(|(index, delivery)| self.http.post_event(index, delivery, credentials, now_s))
            .collect();
        stream::iter(posts).buffer_unordered(CALLS_AT_ONCE).collect().await
    }

    /// What calls of a client need to know that name these secrets.
    async fn credentials(
        &self,
        client: &ClientId,
        named: BTreeSet<SecretId>,
    ) -> Result<Credentials, EngineError> {
        let (found, opened) = tokio::join!(self.store.client(client), self.secrets.open(client, named));
        let signed_with = found?.map(|client| client.live_secrets(self.clock.now())).unwrap_or_default();
        Ok(Credentials { signed_with, opened })
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::secret::SecretValue;

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
    fn what_an_endpoint_says_is_kept_without_secrets() {
        let value = |id: &str, text: &str| (id.parse().unwrap(), SecretValue::new(text).unwrap());
        let secrets = SecretValues::from([value("short", "k-4711"), value("long", "k-4711-b")]);
        for (text, most, kept) in [
            ("got Bearer k-4711, k-4711-b", 100, "got Bearer [secret short], [secret long]"),
            // One that begins within the bound, and one that does not.
            ("0123k-4711k-4711", 10, "0123[secre"),
            ("0123456789k-4711", 10, "0123456789"),
            ("é€k-471", 4, "é"),
            ("", 10, ""),
        ] {
            assert_eq!(without(text, most, &secrets), kept, "{text}");
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
