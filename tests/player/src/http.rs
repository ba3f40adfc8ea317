//! Calls over loopback: connections that are kept, and one request on each at a time.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

type Connection = SendRequest<Full<Bytes>>;

/// A server, and its connections that nobody uses now.
pub struct Server {
    address: SocketAddr,
    idle: Mutex<Vec<Connection>>,
}

/// A header's name and its value.
pub type Header<'a> = (&'a str, &'a str);

impl Server {
    /// At an address such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// When it is no address of that form.
    pub fn new(url: &str) -> Result<Self> {
        let address = url.strip_prefix("http://").and_then(|rest| rest.trim_end_matches('/').parse().ok());
        let address = address.with_context(|| format!("{url} is no http address of a number and a port"))?;
        Ok(Self { address, idle: Mutex::default() })
    }

    /// Posts `body` and answers what came back. A call that is dropped closes its connection.
    ///
    /// # Errors
    /// When the server cannot be reached, or answers with anything but success.
    pub async fn post(
        &self,
        path: &str,
        content_type: &str,
        header: Header<'_>,
        body: Vec<u8>,
    ) -> Result<Bytes> {
        let mut connection = self.connection().await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(CONTENT_TYPE, content_type)
            .header(header.0, header.1)
            .body(Full::from(body))?;
        let response =
            connection.send_request(request).await.with_context(|| format!("failed to call {path}"))?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        ensure!(
            status.is_success(),
            "{path} was answered with {status}: {}",
            String::from_utf8_lossy(&answer)
        );
        self.idle().push(connection);
        Ok(answer)
    }

    async fn connection(&self) -> Result<Connection> {
        // Not in the condition of the loop: the lock would be held while the body of it waits.
        let kept = || self.idle().pop();
        while let Some(mut connection) = kept() {
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let stream = TcpStream::connect(self.address)
            .await
            .with_context(|| format!("failed to reach {}", self.address))?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        // Ends with the connection; who uses it learns of a failure.
        tokio::spawn(driver);
        Ok(connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
