//! The machine's clock.

use chrono::{DateTime, Utc};
use tidegate_domain::clock::{Clock, Waiting};

/// The machine's clock. Its waits need a Tokio runtime.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn wait_until(&self, at: DateTime<Utc>) -> Waiting<'_> {
        let left = (at - self.now()).to_std().unwrap_or_default();
        Box::pin(tokio::time::sleep(left))
    }
}
