//! Where the deployment is, from the environment that `cargo xtask e2e` sets.

use std::env;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use reqwest::Url;

/// A deployed Tidegate.
#[derive(Debug, Clone)]
pub struct Deployed {
    api_url: Url,
    connect_to: Option<SocketAddr>,
    admin_key: String,
}

impl Deployed {
    /// Reads `AWS_ENDPOINT_URL`, `TIDEGATE_E2E_API_URL` and `TIDEGATE_E2E_ADMIN_KEY`.
    ///
    /// # Errors
    /// When one of them is not set or does not read: these tests never pass by not running.
    pub fn from_environment() -> Result<Self> {
        let endpoint = Url::parse(&variable("AWS_ENDPOINT_URL")?).context("AWS_ENDPOINT_URL is not a URL")?;
        let api_url =
            Url::parse(&variable("TIDEGATE_E2E_API_URL")?).context("TIDEGATE_E2E_API_URL is not a URL")?;
        let admin_key = variable("TIDEGATE_E2E_ADMIN_KEY")?;
        // An emulator hands out the names of AWS, which lead to AWS: the name is kept, the connection is its own.
        match loopback(&endpoint) {
            Some(address) => {
                let host = api_url.host_str().context("the API has no host")?;
                let emulated = Url::parse(&format!("http://{host}:{}/", address.port()))?;
                Ok(Self { api_url: emulated, connect_to: Some(address), admin_key })
            }
            None => Ok(Self { api_url, connect_to: None, admin_key }),
        }
    }

    /// The base address of the API.
    pub fn api_url(&self) -> &Url {
        &self.api_url
    }

    /// Where to connect to instead of what the API's name resolves to.
    pub fn connect_to(&self) -> Option<SocketAddr> {
        self.connect_to
    }

    /// The key that registers clients.
    pub fn admin_key(&self) -> &str {
        &self.admin_key
    }
}

fn variable(name: &str) -> Result<String> {
    env::var(name).with_context(|| format!("{name} is not set; run these tests with `cargo xtask e2e`"))
}

fn loopback(endpoint: &Url) -> Option<SocketAddr> {
    let addresses = endpoint.socket_addrs(|| None).ok()?;
    addresses.into_iter().find(|address| address.ip().is_loopback())
}
