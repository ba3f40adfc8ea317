//! A share of a processor: all requests of an environment pass it, one after the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::limits::{MEMORY_OF_A_PROCESSOR, PROCESSOR_PER_REQUEST};

/// The processor of an environment.
pub(crate) struct Processor {
    per_request: Duration,
    busy_until: Mutex<Instant>,
    /// Requests until the invocation is killed.
    left: AtomicU64,
    kill: Notify,
}

impl Processor {
    /// The share that comes with this memory.
    pub(crate) fn of(memory_mb: u32) -> Self {
        let share = (f64::from(memory_mb) / MEMORY_OF_A_PROCESSOR).min(1.0);
        Self {
            per_request: PROCESSOR_PER_REQUEST.div_f64(share),
            busy_until: Mutex::new(Instant::now()),
            left: AtomicU64::new(u64::MAX),
            kill: Notify::new(),
        }
    }

    /// An invocation begins; it is killed after so many requests, when it is.
    pub(crate) fn begin(&self, killed_after: Option<u64>) {
        self.left.store(killed_after.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Ends when the invocation is killed.
    pub(crate) async fn killed(&self) {
        self.kill.notified().await;
    }

    /// A request is made: it waits for the processor. Never ends when the invocation is killed at it.
    pub(crate) async fn request(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.kill.notify_one();
            std::future::pending::<()>().await;
        }
        let until = {
            let mut busy_until = self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
            *busy_until = (*busy_until).max(Instant::now()) + self.per_request;
            *busy_until
        };
        sleep_until(until).await;
    }
}
