//! The heartbeat of a deployment: each tick tells an address that it was there, so that somebody outside notices when none comes.
//!
//! Spoken as Healthchecks does: a call of the address says that all is well, one of `/fail` beneath it that the tick failed, with
//! the reason as its text. Nothing waits longer for the answer than a few seconds, and nothing depends on it.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::Url;
use thiserror::Error;
use tracing::warn;

use crate::EngineError;
use crate::outgoing::{causes, client_builder, step_beneath};

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An address that is told of each tick.
///
/// ```
/// use tidegate_engine::HeartbeatUrl;
///
/// let url: HeartbeatUrl = "https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278".parse()?;
/// assert!(!format!("{url:?}").contains("5bf66975"), "whoever knows the path can speak for the deployment");
/// assert!("hc-ping.com".parse::<HeartbeatUrl>().is_err());
/// # Ok::<(), tidegate_engine::HeartbeatUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HeartbeatUrl(Url);

/// A text that is no address of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is no URL that begins with https:// or http://; give one such as https://hc-ping.com/<uuid>")]
pub struct HeartbeatUrlError;

impl FromStr for HeartbeatUrl {
    type Err = HeartbeatUrlError;

    fn from_str(text: &str) -> Result<Self, HeartbeatUrlError> {
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Self(url)),
            _ => Err(HeartbeatUrlError),
        }
    }
}

impl fmt::Debug for HeartbeatUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeartbeatUrl").field(&self.0.host_str()).finish()
    }
}

/// What tells an address of the ticks.
pub(crate) struct Heartbeat {
    url: Url,
    timeout: Duration,
    client: OnceLock<Result<reqwest::Client, String>>,
    /// The minute of the last call, and whether all was well: a tick that fails is repeated at once, and told of once.
    told: Mutex<Option<(i64, bool)>>,
}

impl Heartbeat {
    pub(crate) fn new(HeartbeatUrl(url): HeartbeatUrl) -> Self {
        Self { url, timeout: TIMEOUT, client: OnceLock::new(), told: Mutex::default() }
    }

    /// Tells how a tick ended.
    pub(crate) async fn tell(&self, failed: Option<&EngineError>, now: DateTime<Utc>) {
        let telling = Some((now.timestamp().div_euclid(60), failed.is_none()));
        let told = std::mem::replace(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner), telling);
        if told == telling {
            return;
        }
        if let Err(reason) = self.call(failed).await {
            warn!(reason, "the heartbeat's address was not told of a tick");
        }
    }

    async fn call(&self, failed: Option<&EngineError>) -> Result<(), String> {
        let client = self.client.get_or_init(build).as_ref().map_err(String::clone)?;
        let call = match failed {
            None => client.get(self.url.clone()),
            Some(error) => client.post(step_beneath(&self.url, "fail")).body(error.to_string()),
        };
        let answer = call.timeout(self.timeout).send().await.map_err(unanswered)?;
        answer.status().is_success().then_some(()).ok_or_else(|| format!("it answered {}", answer.status()))
    }
}

/// Why no answer came, by its first cause. The address would be in the words, which is a secret.
fn unanswered(error: reqwest::Error) -> String {
    causes(&error.without_url()).last().map_or_else(String::new, ToString::to_string)
}

/// A tick comes once a minute, and a function is frozen in between: no connection outlives its call.
fn build() -> Result<reqwest::Client, String> {
    client_builder().pool_max_idle_per_host(0).build().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// An address on loopback that notes what it is told, and answers so; nothing when that is empty.
    async fn listening(answer: &'static str) -> (Heartbeat, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ping/secret?from=test", listener.local_addr().unwrap());
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = Arc::clone(&heard);
        tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut text = vec![0; 4_096];
                let length = connection.read(&mut text).await.unwrap();
                hears.lock().unwrap().push(String::from_utf8_lossy(&text[..length]).into_owned());
                connection.write_all(answer.as_bytes()).await.unwrap();
                if answer.is_empty() {
                    open.push(connection);
                }
            }
        });
        (Heartbeat::new(url.parse().unwrap()), heard)
    }

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(minute * 60, 0).unwrap()
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const GONE: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn a_tick_tells_that_it_was_there_and_why_it_failed() {
        let (heartbeat, heard) = listening(OK).await;
        heartbeat.tell(None, at(1)).await;
        let failed = EngineError::Contended { what: "a tick", rounds: 3 };
        heartbeat.tell(Some(&failed), at(2)).await;
        let heard = heard.lock().unwrap();
        assert!(heard[0].starts_with("GET /ping/secret?from=test HTTP/1.1\r\n"), "{heard:?}");
        assert!(heard[1].starts_with("POST /ping/secret/fail?from=test HTTP/1.1\r\n"), "{heard:?}");
        assert!(heard[1].ends_with(&failed.to_string()), "{heard:?}");
        assert_eq!(heard.len(), 2);
    }

    #[tokio::test]
    async fn a_tick_that_is_repeated_within_its_minute_tells_nothing_new_once() {
        let (heartbeat, heard) = listening(OK).await;
        let failed = EngineError::Contended { what: "a tick", rounds: 3 };
        for (failed, minute) in
            [(Some(&failed), 1), (Some(&failed), 1), (None, 1), (None, 1), (None, 2), (Some(&failed), 2)]
        {
            heartbeat.tell(failed, at(minute)).await;
        }
        let heard = heard.lock().unwrap();
        let methods: Vec<&str> = heard.iter().map(|text| text.split(' ').next().unwrap()).collect();
        assert_eq!(methods, ["POST", "GET", "GET", "POST"]);
    }

    #[tokio::test]
    async fn an_address_that_is_wrong_or_silent_or_away_is_said_to_be_so_without_its_path() {
        let (gone, _) = listening(GONE).await;
        assert_eq!(gone.call(None).await.unwrap_err(), "it answered 404 Not Found");
        let (silent, _) = listening("").await;
        let silent = Heartbeat { timeout: Duration::from_millis(20), ..silent };
        let nobody = Heartbeat::new("http://127.0.0.1:1/ping/secret".parse().unwrap());
        assert_eq!(silent.call(None).await.unwrap_err(), "operation timed out");
        let refused = nobody.call(None).await.unwrap_err();
        assert!(refused.starts_with("Connection refused") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "hc-ping.com/x", "ftp://hc-ping.com/x", "https://"] {
            assert_eq!(text.parse::<HeartbeatUrl>(), Err(HeartbeatUrlError), "{text}");
        }
    }
}
