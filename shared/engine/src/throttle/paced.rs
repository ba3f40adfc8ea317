//! Rates that are finer than wake-ups: a bucket of less than a second's worth of events.
//!
//! Wake-ups are SQS messages and come by the second. A policy whose bucket holds less than its rate allows in a second
//! would lose the rest, so whoever is woken for it stays for up to a second and lets each event begin when its time
//! comes. Policies without a rate, or with a burst of a second's worth or more, are never waited for.

use chrono::{DateTime, TimeDelta};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::rate_limit::RateLimit;
use tidegate_domain::time::{milliseconds, shifted};

use crate::{Engine, EngineError};

/// How long whoever is woken stays: the next wake-up comes after it.
const STAY: TimeDelta = milliseconds(1_000);
/// The shortest wait: each look reads and writes rows.
const SHORTEST_WAIT: TimeDelta = milliseconds(10);

impl Engine {
    /// Looks for free slots as [`Self::admission`] does, and once more at each instant of the next second at which the
    /// rate lets another event begin.
    pub(crate) async fn admit_paced(&self, client: &ClientId, policy: &PolicyId) -> Result<(), EngineError> {
        let leave_at = shifted(self.now(), STAY);
        loop {
            let effects = self.admission(client, policy).await?;
            let granted = self.carry_out(effects).await?;
            let snapshot = self.snapshot(client, policy, 0).await?;
            let rate =
                snapshot.and_then(|snapshot| snapshot.rate).filter(|rate| RateLimit::needs_pacing(*rate));
            let Some(rate) = rate else { return Ok(()) };
            let allowed = self.store().rate_allows((client, policy), rate, self.now()).await?;
            let next_at = DateTime::from_timestamp_micros(allowed.next_us).unwrap_or_default();
            if granted == 0 && next_at <= self.now() {
                // The rate would let one begin: nothing waits, or no slot is free.
                return Ok(());
            }
            let next_at = next_at.max(shifted(self.now(), SHORTEST_WAIT));
            if next_at >= leave_at {
                return Ok(());
            }
            self.clock().wait_until(next_at).await;
            if self.now() < next_at {
                return Ok(());
            }
        }
    }
}
