//! Which requests are served at all: those that name a loopback host, and come from no web page of another server.
//!
//! A web page may send requests to any address of this machine. It cannot choose the Host header, which carries the
//! page's own host name even where that name leads to 127.0.0.1, and it cannot leave out the Origin header where its
//! browser sends one.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::middleware::Next;

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It names another host, or none.
    #[error(
        "the Host header is {0}; this server answers only to 127.0.0.1, localhost and [::1], so that no web page reaches \
         it under another name"
    )]
    WrongHost(String),
    /// A web page of another server sent it.
    #[error(
        "the Origin header is {0}; only pages of this server may call it, and other programs send no Origin"
    )]
    ForeignOrigin(String),
}

impl Refusal {
    /// The status that says so.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::WrongHost(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignOrigin(_) => StatusCode::FORBIDDEN,
        }
    }
}

/// How a server answers a request that it does not serve.
pub(super) type Refuse = fn(&Refusal) -> Response<Body>;

/// Passes on what may be served, and answers the rest.
pub(super) async fn guard(refuse: Refuse, request: Request, next: Next) -> Response<Body> {
    match check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            tracing::warn!(%refusal, "a request is refused");
            refuse(&refusal)
        }
    }
}

fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host,
        (None, _) => return Err(Refusal::WrongHost("missing".to_owned())),
        (Some(_), Some(_)) => return Err(Refusal::WrongHost("there more than once".to_owned())),
    };
    let quoted = |value: &header::HeaderValue| format!("'{}'", String::from_utf8_lossy(value.as_bytes()));
    let name = host.to_str().unwrap_or_default();
    if !is_loopback(name) {
        return Err(Refusal::WrongHost(quoted(host)));
    }
    let own = format!("http://{name}");
    let is_foreign = |origin: &&header::HeaderValue| !origin.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    match headers.get_all(header::ORIGIN).iter().find(is_foreign) {
        Some(origin) => Err(Refusal::ForeignOrigin(quoted(origin))),
        None => Ok(()),
    }
}

/// Whether a Host header is a loopback name, with a port or without.
fn is_loopback(host: &str) -> bool {
    let names = ["127.0.0.1", "localhost", "[::1]"];
    let port_of = |name: &str| {
        let (start, rest) = host.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some(rest)
    };
    names.into_iter().filter_map(port_of).any(|port| match port.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok(),
        None => port.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn checked(host: &[&str], origin: &[&str]) -> Result<(), StatusCode> {
        let mut headers = HeaderMap::new();
        for host in host {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        for origin in origin {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&headers).map_err(|refusal| refusal.status())
    }

    #[test]
    fn only_loopback_hosts_are_served() {
        for good in ["127.0.0.1", "127.0.0.1:8080", "localhost", "LocalHost:9324", "[::1]", "[::1]:80"] {
            assert_eq!(checked(&[good], &[]), Ok(()), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost:evil",
            "localhost:",
            "localhost:99999",
            "127.0.0.2",
            "0.0.0.0:8080",
            "::1",
            "user@localhost",
        ] {
            assert_eq!(checked(&[bad], &[]), Err(StatusCode::MISDIRECTED_REQUEST), "{bad}");
        }
        assert_eq!(checked(&[], &[]), Err(StatusCode::MISDIRECTED_REQUEST));
        assert_eq!(checked(&["localhost", "localhost"], &[]), Err(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn only_pages_of_the_server_itself_may_call_it() {
        assert_eq!(checked(&["127.0.0.1:8080"], &["http://127.0.0.1:8080"]), Ok(()));
        for foreign in [
            "null",
            "",
            "http://evil.example",
            "https://127.0.0.1:8080",
            "http://127.0.0.1:3000",
            "http://localhost:8080",
        ] {
            assert_eq!(checked(&["127.0.0.1:8080"], &[foreign]), Err(StatusCode::FORBIDDEN), "{foreign}");
        }
        let both = ["http://127.0.0.1:8080", "http://evil.example"];
        assert_eq!(checked(&["127.0.0.1:8080"], &both), Err(StatusCode::FORBIDDEN));
    }
}
