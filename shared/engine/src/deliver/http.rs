//! Delivery to HTTP endpoints: a signed call per event, one redirect on the same host at the most, and no way into the
//! deployment's own network.

use std::error::Error as StdError;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration as StdDuration;
use std::{io, iter};

use chrono::{DateTime, Duration};
use futures::stream::{self, StreamExt};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{StatusCode, Url, redirect};
use thiserror::Error;
use tidegate_domain::http_call::{Answer, HttpCall};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{DELIVERY_SECONDS, RETRY_AFTER_SECONDS};
use tidegate_domain::target::Target;
use tidegate_domain::time::seconds;

use super::request::Request;
use super::{Delivery, EventToSend, Sent, signature};
use crate::EngineError;

/// Calls under way at once.
const CALLS_AT_ONCE: usize = 20;
/// How long one call may take at the most.
const CALL_TIMEOUT: StdDuration = StdDuration::from_secs(DELIVERY_SECONDS as u64);
const CONNECT_TIMEOUT: StdDuration = StdDuration::from_secs(3);
/// Why an address of the deployment's own network is not called.
const PRIVATE: &str = "the address is private, loopback or link-local, which this deployment does not allow";

/// The way to HTTP endpoints.
#[derive(Clone)]
pub(crate) struct HttpTarget {
    /// Made when the first call needs it: it reads every root certificate of the machine, and most processes call nobody.
    client: Arc<OnceLock<Result<reqwest::Client, String>>>,
    allow_private: bool,
}

impl HttpTarget {
    pub(crate) fn new(allow_private: bool) -> Self {
        Self { client: Arc::default(), allow_private }
    }

    fn client(&self) -> Result<&reqwest::Client, &str> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(String::as_str)
    }

    fn build(&self) -> Result<reqwest::Client, String> {
        let client = client_builder()
            .redirect(redirect::Policy::custom(follow_one))
            .timeout(CALL_TIMEOUT)
            .dns_resolver(Arc::new(PublicOnly { allow_private: self.allow_private }))
            .build();
        client.map_err(|e| e.to_string())
    }

    async fn post_event(
        &self,
        index: usize,
        delivery: &EventToSend,
        secret: &str,
        now_s: i64,
    ) -> (usize, Sent) {
        let Target::Http { url, call } = &delivery.terms.terms.target else {
            return (index, Sent::Refused { reason: "the target is no endpoint".to_owned() });
        };
        let (id, request) = (delivery.event.to_string(), Request::of(delivery, call));
        let trace = Some(delivery.traceparent());
        (index, self.post(url, (&id, trace), (request, &**call), secret, now_s).await)
    }

    /// Sends a request under an id, signed with a client's secret; as part of a trace, where there is one. `call` says what the
    /// answer means.
    async fn post(
        &self,
        url: &str,
        (id, traceparent): (&str, Option<String>),
        (request, call): (Request, &HttpCall),
        secret: &str,
        now_s: i64,
    ) -> Sent {
        let refused = |reason: &str| Sent::Refused { reason: reason.to_owned() };
        let client = match self.client() {
            Ok(client) => client,
            Err(reason) => return Sent::Failed { reason: reason.to_owned(), retry_after: None },
        };
        let Ok(url) = Url::parse(url) else {
            return refused("the URL cannot be read");
        };
        if !self.allow_private && literal_address(&url).is_some_and(|ip| !is_public(ip)) {
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
        if let Some(signature) = signature::sign(secret, id, now_s, &body) {
            post = post.header("webhook-signature", signature);
        }
        if let Some(traceparent) = traceparent {
            post = post.header("traceparent", traceparent);
        }
        if has_body {
            post = post.body(body);
        }
        match post.send().await {
            Err(error) => unanswered(&error, timeout),
            Ok(answer) => {
                let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                evaluate(call, answer.status(), retry_after.and_then(|text| asked_wait(text, now_s)))
            }
        }
    }
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
    if chain().any(|cause| cause.is::<NoPublicAddress>()) {
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
        ) => "the connection was closed before an answer came".to_owned(),
        _ if error.is_connect() => format!("no connection: {}", deepest()),
        _ => format!("no answer that can be read: {}", deepest()),
    };
    Sent::Failed { reason, retry_after: None }
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
    match call.meaning(status.as_u16()) {
        Answer::Taken => Sent::Done,
        Answer::Retried => Sent::Failed { reason, retry_after },
        Answer::Final if status.is_redirection() => {
            let why = "one redirect is followed, with 307 or 308 and to the same host";
            Sent::Refused { reason: format!("{reason}; {why}") }
        }
        Answer::Final => Sent::Refused { reason },
    }
}

/// A name has none but addresses of the deployment's own network: what is behind them will not change by waiting.
#[derive(Debug, Error)]
#[error("the name leads to no public address")]
struct NoPublicAddress;

/// Nobody knows a name. That may change.
#[derive(Debug, Error)]
#[error("the name leads nowhere")]
struct NotFound;

/// Resolves names, and refuses those that lead to addresses of the deployment's own network.
struct PublicOnly {
    allow_private: bool,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(|_| NotFound)?;
            let found: Vec<SocketAddr> = found.collect();
            let usable: Vec<SocketAddr> =
                found.into_iter().filter(|a| allow_private || is_public(a.ip())).collect();
            match usable.is_empty() {
                true => Err(NoPublicAddress.into()),
                false => Ok(Box::new(usable.into_iter()) as Addrs),
            }
        })
    }
}

fn literal_address(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0)
                || (a == 192 && b == 88 && c == 99)
                || (a == 198 && (18..20).contains(&b)))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            None => {
                // Only global unicast, less 6to4 and the translation and documentation ranges that can embed any IPv4.
                let [first, second, ..] = v6.segments();
                (first & 0xe000) == 0x2000
                    && first != 0x2002
                    && !(first == 0x2001 && second < 0x0200)
                    && !(first == 0x2001 && second == 0x0db8)
                    && !(first == 0x3fff && second < 0x1000)
            }
        },
    }
}

impl Delivery {
    /// Posts a completion to its endpoint.
    pub(super) async fn post_completion(
        &self,
        client: &ClientId,
        url: &str,
        (id, body): (&str, String),
    ) -> Result<Sent, EngineError> {
        let secret = self.store.client(client).await?.map(|client| client.webhook_secret);
        let now_s = self.clock.now().timestamp();
        let request = (Request::post(body), &HttpCall::default());
        Ok(self.http.post(url, (id, None), request, &secret.unwrap_or_default(), now_s).await)
    }

    /// Posts the chosen events to their endpoints.
    pub(super) async fn send_to_endpoints(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let events = || chosen.iter().filter_map(|index| Some((*index, deliveries.get(*index)?)));
        let Some((_, first)) = events().next() else { return Vec::new() };
        // All events of one call to `send` are of one client.
        let secret = match self.store.client(&first.client).await {
            Ok(client) => client.map(|c| c.webhook_secret).unwrap_or_default(),
            Err(e) => {
                let failed = Sent::Failed { reason: e.to_string(), retry_after: None };
                return chosen.iter().map(|index| (*index, failed.clone())).collect();
            }
        };
        let now_s = self.clock.now().timestamp();
        let secret = secret.as_str();
        let posts: Vec<_> =
            events().map(|(index, delivery)| self.http.post_event(index, delivery, secret, now_s)).collect();
        stream::iter(posts).buffer_unordered(CALLS_AT_ONCE).collect().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for private in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.5.4",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:db8::1",
            "192.88.99.1",
            "3fff::1",
            "3fff:fff::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "192.88.98.1", "2606:4700::1111", "::ffff:8.8.8.8", "3fff:1000::1"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

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
        assert!(matches!(decided(404, None), Sent::Refused { .. }));
        assert!(matches!(decided(302, None), Sent::Refused { reason } if reason.contains("one redirect")));
    }
}
