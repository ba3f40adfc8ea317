//! Leases that end without a release: their events get new ones, or have expired.

use chrono::Duration;
use tidegate_domain::policy::Policy;
use tidegate_domain::time::shifted;
use tidegate_store::slots::{Change, Held, NewLease, Outcome, SlotGroup, SlotRelease};
use tracing::info;

use super::shares::lease_of;
use crate::deliver::granted::{Granted, granted_in};
use crate::{Engine, EngineError};

impl Engine {
    /// Ends the leases that ran out: the event gets a new one, or its end if it had enough.
    pub(super) async fn take_back(
        &self,
        policy: &Policy,
        mut seen: SlotGroup,
    ) -> Result<(SlotGroup, Vec<Granted>), EngineError> {
        let now = self.now();
        let expired: Vec<(u32, Held)> =
            seen.slots.iter().filter(|(_, held)| held.lease_end <= now).map(|(s, h)| (*s, *h)).collect();
        let mut granted = Vec::new();
        for (slot, held) in expired {
            let Some(run) = seen.run(held.run_number).cloned() else { continue };
            let terms = self.run_terms(&policy.client, &run).await?;
            let max_attempts = terms.map_or(0, |terms| terms.terms.max_attempts.get());
            let again = held.attempt < max_attempts;
            info!(event = %run.event(held.index), attempt = held.attempt, again, "a lease ran out");
            let (now_seen, more) = self.end_lease(seen, (slot, held), again, lease_of(policy)).await?;
            seen = now_seen;
            granted.extend(more);
        }
        Ok((seen, granted))
    }

    /// Ends a lease as it was seen: `again`, its event gets a new one, which must be sent; otherwise the event has expired.
    pub(super) async fn end_lease(
        &self,
        seen: SlotGroup,
        (slot, held): (u32, Held),
        again: bool,
        lease: Duration,
    ) -> Result<(SlotGroup, Vec<Granted>), EngineError> {
        let release = SlotRelease {
            slot,
            fence: held.fence,
            run_number: held.run_number,
            index: held.index,
            cost: held.cost,
            attempt: held.attempt,
            outcome: Outcome::Expired,
        };
        let new = self.new_lease(lease);
        let change = match again {
            true => {
                let attempt = held.attempt.saturating_add(1);
                self.store().renew_expired(&seen, &release, held.lease_end, attempt, new).await?
            }
            false => self.store().free_expired(&seen, &release, held.lease_end).await?,
        };
        Ok(match change {
            Change::Done(now_seen) => {
                let granted = if again { granted_in(&now_seen, [slot]) } else { Vec::new() };
                (now_seen, granted)
            }
            Change::Refused(Some(now_seen)) => {
                // The reply to our own write can be lost, and the client library repeat it.
                let is_ours = again && now_seen.slots.get(&slot).is_some_and(|held| held.mark == new.mark);
                let granted = if is_ours { granted_in(&now_seen, [slot]) } else { Vec::new() };
                (now_seen, granted)
            }
            Change::Refused(None) => (seen, Vec::new()),
        })
    }

    pub(super) fn new_lease(&self, lasts: Duration) -> NewLease {
        NewLease { end: shifted(self.now(), lasts), mark: self.random().next_u64() >> 32 }
    }
}
