//! Virtual time: Tokio's, paused. It stands still while anything can run and jumps to the next timer when nothing can, so
//! an hour of waiting costs nothing, and what is computed takes no time at all unless the model says so.

use chrono::{DateTime, Utc};
use tidegate_domain::clock::{Clock, Waiting};
use tokio::time::Instant;

/// What processes and services of a region go by. Only within a runtime whose time is paused.
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    began: Instant,
    began_at: DateTime<Utc>,
}

impl VirtualClock {
    /// A clock that shows `began_at` now.
    pub fn at(began_at: DateTime<Utc>) -> Self {
        Self { began: Instant::now(), began_at }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        self.began_at + self.began.elapsed()
    }

    fn wait_until(&self, at: DateTime<Utc>) -> Waiting<'_> {
        let left = (at - self.now()).to_std().unwrap_or_default();
        Box::pin(tokio::time::sleep(left))
    }
}
