//! A consumer's HTTP endpoint on loopback, which checks each signature as Standard Webhooks lays it down.

use std::env;
use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::inbox::{Event, Inbox};

/// Under which name functions reach this machine, where they run in containers. They run beside the tests unless it is set.
const HOST: &str = "TIDEGATE_E2E_HOOK_HOST";

/// A listening endpoint, closed when dropped.
#[derive(Debug)]
pub struct Hook {
    url: String,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct Receiver {
    inbox: Inbox,
    secret: String,
}

impl Hook {
    /// Listens on a free port: of loopback, or of every address when `TIDEGATE_E2E_HOOK_HOST` says under which name functions
    /// find this machine.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn listen(inbox: Inbox, webhook_secret: &str) -> Result<Self> {
        let (address, host) = match env::var(HOST) {
            Ok(host) => (Ipv4Addr::UNSPECIFIED, host),
            Err(_) => (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST.to_string()),
        };
        let listener = TcpListener::bind((address, 0)).await?;
        let url = format!("http://{host}:{}/hook", listener.local_addr()?.port());
        let receiver = Receiver { inbox, secret: webhook_secret.to_owned() };
        let routes = Router::new().route("/hook", post(receive)).with_state(receiver);
        let server = tokio::spawn(async move {
            // It ends only by being aborted.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { url, server })
    }

    /// Its URL, as a job's target names it.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: String) -> StatusCode {
    let arrival = verify(&receiver.secret, &headers, &body).and_then(|()| Event::read(&body));
    let status = if arrival.is_ok() { StatusCode::NO_CONTENT } else { StatusCode::BAD_REQUEST };
    receiver.inbox.deliver(arrival);
    status
}

fn verify(secret: &str, headers: &HeaderMap, body: &str) -> Result<()> {
    let header = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).with_context(|| format!("no header {name}"))
    };
    let (id, timestamp, signatures) =
        (header("webhook-id")?, header("webhook-timestamp")?, header("webhook-signature")?);
    let key = secret.strip_prefix("whsec_").context("the webhook secret does not begin with whsec_")?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key)?)?;
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    ensure!(
        signatures.split(' ').any(|signature| signature == expected),
        "no signature of {signatures:?} fits the body {body}"
    );
    Ok(())
}
