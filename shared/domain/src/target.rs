//! Where events are delivered, and what a client may name as such a place.

use thiserror::Error;

use crate::limits::TARGET_URL_BYTES;

/// A consumer's address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A standard or FIFO queue, by its URL. A FIFO queue gets the job's id as group and the event id for deduplication.
    Sqs {
        /// `https://sqs.<region>.amazonaws.com/<account>/<name>`, or an emulator's form of it.
        queue_url: String,
    },
    /// An HTTP endpoint that takes a POST per event.
    Http {
        /// `http://` or `https://`.
        url: String,
    },
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Longer than allowed.
    #[error("{field} is {bytes} bytes long; {TARGET_URL_BYTES} is the most")]
    TooLong {
        /// The field that carries it.
        field: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// Not an http or https URL with a host.
    #[error("{field} '{value}' is not a URL; give one that begins with https:// or http:// and names a host")]
    NotAUrl {
        /// The field that carries it.
        field: &'static str,
        /// What was given.
        value: String,
    },
    /// A user name or password in the URL.
    #[error("{field} carries a user name or password before its host; remove it, signatures prove who calls")]
    Credentials {
        /// The field that carries it.
        field: &'static str,
    },
    /// A queue URL that does not end in `/<account>/<name>`.
    #[error("queue_url '{value}' names no queue; it must end in /<account>/<queue name>")]
    NoQueue {
        /// What was given.
        value: String,
    },
}

impl Target {
    /// A queue by its URL.
    ///
    /// # Errors
    /// When the text is not a queue's URL.
    pub fn sqs(queue_url: &str) -> Result<Self, TargetError> {
        check_url("queue_url", queue_url)?;
        let path = queue_url.split_once("://").map_or("", |(_, rest)| rest);
        let mut segments = path.split('/').skip(1).filter(|s| !s.is_empty());
        if segments.next().is_none() || segments.next().is_none() {
            return Err(TargetError::NoQueue { value: queue_url.to_owned() });
        }
        Ok(Self::Sqs { queue_url: queue_url.to_owned() })
    }

    /// An HTTP endpoint by its URL.
    ///
    /// # Errors
    /// When the text is not an http or https URL.
    pub fn http(url: &str) -> Result<Self, TargetError> {
        check_url("url", url)?;
        Ok(Self::Http { url: url.to_owned() })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        match self {
            Self::Sqs { queue_url } => queue_url,
            Self::Http { url } => url,
        }
    }

    /// Whether each event takes a call of its own.
    pub fn is_http(&self) -> bool {
        matches!(self, Self::Http { .. })
    }

    /// Whether a pattern of a client's allow-list covers it: the URL itself, or a text whose single `*` stands for
    /// any run of characters. The scheme is part of the text, so a queue and an endpoint are told apart by it.
    pub fn is_covered_by(&self, pattern: &str) -> bool {
        match pattern.split_once('*') {
            None => self.url() == pattern,
            Some((head, tail)) => {
                let url = self.url();
                url.len() >= head.len() + tail.len() && url.starts_with(head) && url.ends_with(tail)
            }
        }
    }
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
        assert!(matches!(Target::sqs("http://localhost:9324/jobs"), Err(TargetError::NoQueue { .. })));
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
}
