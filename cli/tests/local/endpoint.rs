//! An HTTP endpoint of a test's own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a call may take to come, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An endpoint that answers every call with one text and closes, for as long as the process lives.
pub struct Endpoint {
    pub url: String,
    calls: Arc<AtomicU32>,
}

impl Endpoint {
    pub fn that_answers(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                let mut request = [0; 16 * 1024];
                let _ = connection.read(&mut request);
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        Self { url, calls }
    }

    /// Waits until it was called.
    pub fn wait_for_a_call(&self) {
        let started = Instant::now();
        while self.calls.load(Ordering::Relaxed) == 0 {
            assert!(started.elapsed() < PATIENCE, "{} was never called", self.url);
            thread::sleep(Duration::from_millis(20));
        }
    }
}
