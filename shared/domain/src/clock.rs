//! The one way time enters the engine and the embedded services: an argument, never a call to the system.
//!
//! Deliberately absent: the machine's clock. Its waits need a runtime, which the domain must not reach: it is the engine's
//! `SystemClock`.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

/// Tells what time it is. The only method that reads a clock; everything else takes an instant.
pub trait Clock: Send + Sync + 'static {
    /// The present instant, in UTC.
    fn now(&self) -> DateTime<Utc>;

    /// Waits until an instant. A clock that does not go on by itself answers at once, and `now` is then before it.
    fn wait_until(&self, _at: DateTime<Utc>) -> Waiting<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// What ends when a clock shows an instant.
pub type Waiting<'c> = Pin<Box<dyn Future<Output = ()> + Send + 'c>>;

/// A clock that stands still until it is moved: for tests, the simulator and dry runs.
#[derive(Debug)]
pub struct ManualClock {
    unix_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start`, to the millisecond.
    pub fn new(start: DateTime<Utc>) -> Self {
        Self { unix_ms: AtomicI64::new(start.timestamp_millis()) }
    }

    /// Moves the clock to `instant`, which may lie in its past.
    pub fn set(&self, instant: DateTime<Utc>) {
        self.unix_ms.store(instant.timestamp_millis(), Ordering::SeqCst);
    }

    /// Moves the clock on by `ms` milliseconds (back, when negative).
    pub fn advance_ms(&self, ms: i64) {
        self.unix_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.unix_ms.load(Ordering::SeqCst)).unwrap_or_default()
    }
}
