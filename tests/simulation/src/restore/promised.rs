//! What was accepted before the first snapshot, and must come true.

use chrono::{DateTime, Utc};
use tidegate_domain::job::Job;
use tidegate_domain::time::Window;

/// Policies, their limits and their leases in seconds.
pub(super) const POLICIES: [(&str, u32, u32); 3] = [("small", 3, 30), ("wide", 14, 20), ("single", 2, 15)];
/// A job that was accepted before the first snapshot, and not changed since.
pub(super) struct Promised {
    pub(super) job: Job,
    /// Launches before it are none.
    pub(super) from: DateTime<Utc>,
    /// Launches from then on may be recorded as those of a deleted job.
    pub(super) to: DateTime<Utc>,
}

impl Promised {
    /// The launches that must have come true.
    pub(super) fn launches(&self) -> Vec<DateTime<Utc>> {
        let Ok(window) = Window::new(self.from, self.to.max(self.from)) else { return Vec::new() };
        let firings = self.job.trigger.cadence().firings(window);
        firings.into_iter().map(|firing| firing.launch_at).collect()
    }
}
