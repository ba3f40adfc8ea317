//! Where events are delivered, and what a client may name as such a place.

use thiserror::Error;

use crate::http_call::HttpCall;
use crate::limits::{EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK, TARGET_URL_BYTES};

/// A consumer's address: where events and completions are sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A standard or FIFO queue, by its URL. A FIFO queue gets the job's id as group and the event id for deduplication.
    Sqs {
        /// `https://sqs.<region>.amazonaws.com/<account>/<name>`, or an emulator's form of it.
        queue_url: String,
    },
    /// An HTTP endpoint that is called once per event.
    Http {
        /// `http://` or `https://`, with a host, at most [`TARGET_URL_BYTES`].
        url: String,
        /// How it is called.
        call: HttpCall,
    },
}

/// How events reach targets of a kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Transport {
    /// The kind, as logs name it, such as `sqs`.
    pub name: &'static str,
    /// The field of a job that names a target of the kind, such as `queue_url`.
    pub url_field: &'static str,
    /// Events that one message of the dispatch queue holds, so that its handling fits into a call of the handler.
    pub events_per_chunk: u32,
    /// Whether an event is sent where it was given its token. What takes time travels through the dispatch queue first, so that
    /// nobody who hands tokens on waits for it.
    pub is_inline: bool,
}

/// Queues take ten events to a call, at once.
const QUEUE: Transport =
    Transport { name: "sqs", url_field: "queue_url", events_per_chunk: EVENTS_PER_CHUNK, is_inline: true };
/// Endpoints take one event to a call, for as long as they like.
const ENDPOINT: Transport =
    Transport { name: "http", url_field: "url", events_per_chunk: HTTP_EVENTS_PER_CHUNK, is_inline: false };

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Longer than [`TARGET_URL_BYTES`].
    #[error("{field} is {bytes} bytes long; {TARGET_URL_BYTES} is the most")]
    TooLong {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
        /// Its size, in bytes.
        bytes: usize,
    },
    /// Not an http or https URL with a host.
    #[error("{field} '{value}' is not a URL; give one that begins with https:// or http:// and names a host")]
    NotAUrl {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
        /// What was given.
        value: String,
    },
    /// A user name or password in the URL: it would be shown wherever the job is. The value is not repeated.
    #[error("{field} carries a user name or password before its host; remove it, signatures prove who calls")]
    Credentials {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
    },
    /// A backslash, which some programs read as a slash: what the URL names would depend on its reader.
    #[error("{field} '{value}' has a backslash; write it with '/'")]
    Backslash {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
        /// What was given.
        value: String,
    },
    /// A queue URL whose path is not exactly `/<account>/<name>`.
    #[error(
        "queue_url '{value}' names no queue; after its host it must be exactly /<account>/<queue name>, with an account \
         of up to 12 digits and a name of up to 80 letters, digits, '-' and '_', with '.fifo' behind it for a FIFO queue"
    )]
    NoQueue {
        /// What was given.
        value: String,
    },
}

impl Target {
    /// A queue by its URL.
    ///
    /// ```
    /// use tidegate_domain::target::Target;
    ///
    /// let queue = Target::sqs("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs")?;
    /// assert!(queue.transport().is_inline);
    /// assert!(queue.is_covered_by("https://sqs.eu-west-1.amazonaws.com/123456789012/*"));
    /// assert!(Target::sqs("https://sqs.eu-west-1.amazonaws.com/jobs").is_err(), "it names no account");
    /// # Ok::<(), tidegate_domain::target::TargetError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Target::http`], and [`TargetError::NoQueue`] when the path is not `/<account>/<name>`.
    pub fn sqs(queue_url: &str) -> Result<Self, TargetError> {
        check_url("queue_url", queue_url)?;
        match queue_name(queue_url) {
            Some(_) => Ok(Self::Sqs { queue_url: queue_url.to_owned() }),
            None => Err(TargetError::NoQueue { value: queue_url.to_owned() }),
        }
    }

    /// An HTTP endpoint by its URL, which gets a POST of each event.
    ///
    /// # Errors
    /// [`TargetError::TooLong`], [`TargetError::NotAUrl`], [`TargetError::Credentials`] or [`TargetError::Backslash`],
    /// for an address that each of them describes.
    pub fn http(url: &str) -> Result<Self, TargetError> {
        check_url("url", url)?;
        Ok(Self::Http { url: url.to_owned(), call: HttpCall::default() })
    }

    /// The same target, called in another way; any other kind as it is.
    #[must_use]
    pub fn called(self, call: HttpCall) -> Self {
        match self {
            Self::Http { url, .. } => Self::Http { url, call },
            other => other,
        }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        match self {
            Self::Sqs { queue_url } => queue_url,
            Self::Http { url, .. } => url,
        }
    }

    /// How events reach it.
    pub fn transport(&self) -> &'static Transport {
        match self {
            Self::Sqs { .. } => &QUEUE,
            Self::Http { .. } => &ENDPOINT,
        }
    }

    /// Whether a pattern of a client's allow-list covers it: the URL itself, or a text whose single `*` stands for
    /// any run of characters. The scheme is part of the text, so a queue and an endpoint are told apart by it.
    ///
    /// Invariant: a star in the host with text behind it covers names of hosts only. It crosses none of the characters
    /// that end a host, so `https://*.acme.example/hook` covers nothing of `https://evil.example/.acme.example/hook`.
    pub fn is_covered_by(&self, pattern: &str) -> bool {
        let url = self.url();
        let Some((head, tail)) = pattern.split_once('*') else { return url == pattern };
        let Some(run) = url.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail)) else { return false };
        let is_in_host = head.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        !(is_in_host && !tail.is_empty() && run.contains(['/', '?', '#', '\\', '@']))
    }
}

/// The name of the queue that a URL stands for; `None` when its path is not exactly `/<account>/<name>`.
///
/// One reading for acceptance and delivery: whoever compares two queues compares these.
pub fn queue_name(queue_url: &str) -> Option<&str> {
    let (_, rest) = queue_url.split_once("://")?;
    let mut segments = rest.split('/');
    let (Some(_host), Some(account), Some(name), None) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return None;
    };
    let is_account = matches!(account.len(), 1..=12) && account.bytes().all(|b| b.is_ascii_digit());
    let base = name.strip_suffix(".fifo").unwrap_or(name);
    let is_name = matches!(name.len(), 1..=80)
        && !base.is_empty()
        && base.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (is_account && is_name).then_some(name)
}

fn check_url(field: &'static str, text: &str) -> Result<(), TargetError> {
    if text.len() > TARGET_URL_BYTES {
        return Err(TargetError::TooLong { field, bytes: text.len() });
    }
    let bad = || TargetError::NotAUrl { field, value: text.to_owned() };
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or_else(bad)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(TargetError::Credentials { field });
    }
    if text.contains('\\') {
        return Err(TargetError::Backslash { field, value: text.to_owned() });
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(bad());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_queues_and_endpoints_are_targets() {
        assert!(Target::sqs("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs").is_ok());
        assert!(Target::http("http://127.0.0.1:8000/hook").is_ok());
        for bad in ["jobs", "ftp://x/1/2", "https://", "https:///a/b", "http://a b/c/d"] {
            assert!(matches!(Target::sqs(bad), Err(TargetError::NotAUrl { .. })), "{bad}");
        }
        for no_queue in [
            "http://localhost:9324/jobs",
            "http://localhost:9324/000000000000/x/tidegate-dispatch",
            "http://localhost:9324//tidegate-dispatch",
            "http://localhost:9324//0/tidegate-dispatch",
            "http://localhost:9324/000000000000/jobs/",
            "http://localhost:9324/000000000000/jobs?x",
            "http://localhost:9324/000000000000/jobs#x",
            "http://localhost:9324/000000000000/%6aobs",
            "http://localhost:9324/0000000000000/jobs",
            "http://localhost:9324/me/jobs",
            "http://localhost:9324/000000000000/.fifo",
            "http://localhost:9324/000000000000/jobs.fifo.fifo",
        ] {
            assert!(matches!(Target::sqs(no_queue), Err(TargetError::NoQueue { .. })), "{no_queue}");
        }
        assert!(Target::sqs("http://localhost:9324/000000000000/jobs-1_X.fifo").is_ok());
        let backslash = "https://evil.example\\.acme.example/hook";
        assert!(matches!(Target::http(backslash), Err(TargetError::Backslash { .. })));
        assert!(matches!(Target::http("https://me:secret@x/"), Err(TargetError::Credentials { .. })));
        assert!(matches!(
            Target::http(&format!("https://x/{}", "y".repeat(600))),
            Err(TargetError::TooLong { .. })
        ));
    }

    #[test]
    fn an_allow_list_covers_by_text_with_one_star() {
        let target = Target::http("https://hooks.acme.example/a").unwrap();
        for (pattern, covers) in [
            ("*", true),
            ("https://hooks.acme.example/a", true),
            ("https://hooks.acme.example/*", true),
            ("https://*/a", true),
            ("https://hooks.acme.example/b", false),
            ("https://acme.example/*", false),
            ("https://hooks.acme.example/a*a", false),
        ] {
            assert_eq!(target.is_covered_by(pattern), covers, "{pattern}");
        }
    }

    #[test]
    fn a_star_in_the_host_stays_in_the_host() {
        let pattern = "https://*.acme.example/hook";
        for (url, covered) in [
            ("https://a.acme.example/hook", true),
            ("https://a.b.acme.example/hook", true),
            ("https://evil.example/.acme.example/hook", false),
            ("https://evil.example?.acme.example/hook", false),
            ("https://evil.example#.acme.example/hook", false),
        ] {
            assert_eq!(Target::http(url).unwrap().is_covered_by(pattern), covered, "{url}");
        }
        let deep = Target::http("https://hooks.acme.example/a/b?c").unwrap();
        assert!(deep.is_covered_by("https://*") && deep.is_covered_by("https://hooks.acme.example/*"));
        let queue = Target::sqs("https://sqs.eu-west-1.amazonaws.com/123456789012/gamma-x").unwrap();
        assert!(queue.is_covered_by("https://sqs.eu-west-1.amazonaws.com/123456789012/gamma-*"));
    }
}
