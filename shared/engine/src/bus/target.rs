//! Where a bus is: nowhere, in the log, at an SQS queue or at an HTTP endpoint.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use reqwest::{Url, redirect};
use thiserror::Error;

use crate::outgoing::{causes, client_builder, sqs_text};
use crate::regions::Regions;

/// Where what runs and events came to is published.
///
/// ```
/// use tidegate_engine::BusTarget;
///
/// assert_eq!("off".parse(), Ok(BusTarget::Off));
/// assert!("sqs:https://sqs.eu-west-1.amazonaws.com/1/books".parse::<BusTarget>().is_ok());
/// assert!("kafka:9092".parse::<BusTarget>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub enum BusTarget {
    /// Nowhere: nothing is noted.
    #[default]
    Off,
    /// On stdout, a line each.
    Log,
    /// To a standard SQS queue, as many lines to a message as fit.
    Sqs {
        /// Its URL.
        queue_url: String,
    },
    /// To an endpoint, by a POST of as many lines as fit.
    Http {
        /// Its address, which may have a key in it.
        url: Url,
    },
}

/// A text that is no place for a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is none of off, log, sqs:<URL of a standard queue>, https://<endpoint> and http://<endpoint>")]
pub struct BusTargetError;

impl FromStr for BusTarget {
    type Err = BusTargetError;

    fn from_str(text: &str) -> Result<Self, BusTargetError> {
        match text {
            "off" => Ok(Self::Off),
            "log" => Ok(Self::Log),
            text => match text.strip_prefix("sqs:") {
                // A FIFO queue takes 300 calls a second, and each message would need a group.
                Some(queue) => match endpoint(queue) {
                    Some(_) if !queue.ends_with(".fifo") => Ok(Self::Sqs { queue_url: queue.to_owned() }),
                    _ => Err(BusTargetError),
                },
                None => endpoint(text).map(|url| Self::Http { url }).ok_or(BusTargetError),
            },
        }
    }
}

fn endpoint(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

impl fmt::Debug for BusTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("Off"),
            Self::Log => f.write_str("Log"),
            Self::Sqs { queue_url } => f.debug_tuple("Sqs").field(queue_url).finish(),
            Self::Http { url } => f.debug_tuple("Http").field(&url.host_str()).finish(),
        }
    }
}

/// What takes lines to a bus.
pub(super) enum Publisher {
    Log,
    Sqs { regions: Arc<Regions>, queue_url: String },
    Http { url: Url, client: OnceLock<Result<reqwest::Client, String>> },
}

impl Publisher {
    /// `None`: there is no bus.
    pub(super) fn to(target: &BusTarget, regions: Arc<Regions>) -> Option<Self> {
        match target.clone() {
            BusTarget::Off => None,
            BusTarget::Log => Some(Self::Log),
            BusTarget::Sqs { queue_url } => Some(Self::Sqs { regions, queue_url }),
            BusTarget::Http { url } => Some(Self::Http { url, client: OnceLock::new() }),
        }
    }

    /// Takes some lines there.
    ///
    /// # Errors
    /// With the reason, when it does not have them for all that is known. The address is not in it, which may have a key in it.
    pub(super) async fn send(&self, lines: String) -> Result<(), String> {
        match self {
            Self::Log => {
                let mut out = std::io::stdout().lock();
                out.write_all(lines.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
            }
            Self::Sqs { regions, queue_url } => {
                let send = regions
                    .client_of(queue_url)
                    .send_message()
                    .queue_url(queue_url)
                    .message_body(sqs_text(lines));
                let sent = send.send().await;
                sent.map(drop).map_err(|error| match error.as_service_error() {
                    Some(refused) => refused.to_string(),
                    None => "the queue did not answer".to_owned(),
                })
            }
            Self::Http { url, client } => {
                let client = client.get_or_init(build).as_ref().map_err(String::clone)?;
                let call =
                    client.post(url.clone()).header("content-type", "application/x-ndjson").body(lines);
                let answer = call.send().await.map_err(unanswered)?;
                let status = answer.status();
                status.is_success().then_some(()).ok_or_else(|| format!("it answered {status}"))
            }
        }
    }
}

/// Why no answer came, by its first cause.
fn unanswered(error: reqwest::Error) -> String {
    causes(&error.without_url()).last().map_or_else(String::new, ToString::to_string)
}

fn build() -> Result<reqwest::Client, String> {
    client_builder().redirect(redirect::Policy::none()).build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_is_one_of_a_few_places() {
        let queue_url = "https://sqs.eu-west-1.amazonaws.com/1/books".to_owned();
        assert_eq!(format!("sqs:{queue_url}").parse(), Ok(BusTarget::Sqs { queue_url }));
        assert_eq!("log".parse(), Ok(BusTarget::Log));
        let http: BusTarget = "https://books.example/in?key=secret".parse().unwrap();
        assert_eq!(format!("{http:?}"), r#"Http(Some("books.example"))"#);
        for text in
            ["", "on", "sqs:", "sqs:books", "ftp://books", "sqs:https://sqs/1/books.fifo", "s3://books"]
        {
            assert_eq!(text.parse::<BusTarget>(), Err(BusTargetError), "{text}");
        }
    }
}
