//! An HTTP endpoint on a loopback socket that answers as a script says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Answer, Ending};

/// An endpoint. It stops when it is dropped.
pub struct Endpoint {
    /// Where it is, without a path: `http://127.0.0.1:<port>`.
    pub url: String,
    script: Arc<Mutex<Script>>,
    server: JoinHandle<()>,
}

/// What is answered where.
struct Script {
    by_path: BTreeMap<String, Answer>,
    otherwise: Answer,
}

impl Script {
    fn answer(&self, path: &str) -> Answer {
        self.by_path.get(path).unwrap_or(&self.otherwise).clone()
    }
}

impl Endpoint {
    /// Opens one on a port that is free.
    ///
    /// # Errors
    /// When the machine has none.
    pub async fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let script = Arc::new(Mutex::new(Script { by_path: BTreeMap::new(), otherwise: Answer::plain() }));
        let server = tokio::spawn(serve(listener, Arc::clone(&script)));
        Ok(Self { url, script, server })
    }

    /// From now on answers requests for `path` like this, and those for paths that nothing was said about.
    pub fn answer(&self, path: &str, answer: &Answer) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.by_path.insert(path.to_owned(), answer.clone());
        script.otherwise = answer.clone();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, Arc::clone(&script)));
    }
}

/// Answers requests until one is answered by closing, or the caller leaves. A connection that breaks is the caller's affair.
async fn converse(mut stream: TcpStream, script: Arc<Mutex<Script>>) {
    let mut received = Vec::new();
    loop {
        let Some(path) = next_path(&mut stream, &mut received).await else { return };
        let answer = script.lock().unwrap_or_else(PoisonError::into_inner).answer(&path);
        if stream.write_all(&answer.bytes()).await.is_err() || answer.ending != Ending::Open {
            return;
        }
    }
}

/// Reads one request whole; its path. `None` when the caller is gone.
async fn next_path(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some((path, length)) = request(received) {
            received.drain(..length);
            return Some(path);
        }
        if stream.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}

/// The path and the length of the first request, when it is there whole.
fn request(received: &[u8]) -> Option<(String, usize)> {
    let head_bytes = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..head_bytes]).into_owned();
    let path = head.split(' ').nth(1)?.to_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let whole = head_bytes + length.unwrap_or(0_usize);
    (received.len() >= whole).then_some((path, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_when_it_is_there_whole() {
        let whole = b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET";
        assert_eq!(request(&whole[..40]), None);
        assert_eq!(request(whole), Some(("/a".to_owned(), whole.len() - 3)));
    }
}
