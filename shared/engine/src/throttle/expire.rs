//! Leases that end without a release: their events get new ones, or have expired.
//!
//! Nobody can tell whether what was granted was sent too: whoever granted it may have been stopped in between. So an event has
//! expired only when its last delivery was noted as sent (`deliver/granted.rs`). Until then it is delivered once more than that.

use chrono::Duration;
use tidegate_domain::job::Terms;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::Policy;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{Lease, LeaseEnd, NewLease, Outcome, SlotGroup, Transition};
use tidegate_domain::time::shifted;
use tidegate_store::slots::Written;
use tracing::{info, warn};

use super::Throttle;
use super::shares::lease_of;
use crate::effect::Granted;
use crate::error::readable;
use crate::{EngineError, deadline};

impl Throttle {
    /// Ends the leases that ran out: the event gets a new one, which must be sent, or its end if it had enough.
    pub(super) async fn reclaim(
        &self,
        policy: &Policy,
        mut seen: SlotGroup,
    ) -> Result<(SlotGroup, Vec<Granted>), EngineError> {
        let now = self.clock.now();
        let expired: Vec<Lease> =
            seen.leases.values().filter(|lease| lease.ends_at <= now).copied().collect();
        let mut granted = Vec::new();
        for lease in expired {
            if deadline::is_over(&*self.clock) {
                break;
            }
            match self.reclaim_one(policy, &seen, &lease).await {
                Ok((now_seen, more)) => {
                    seen = now_seen;
                    granted.extend(more);
                }
                Err(error) if granted.is_empty() => return Err(error),
                Err(error) => {
                    // What has new leases must be sent. The others are as they were, and found again.
                    warn!(%error, group = ?seen.key, "leases that ran out are left to the next look");
                    break;
                }
            }
        }
        Ok((seen, granted))
    }

    async fn reclaim_one(
        &self,
        policy: &Policy,
        seen: &SlotGroup,
        lease: &Lease,
    ) -> Result<(SlotGroup, Vec<Granted>), EngineError> {
        let Some(pack) = seen.pack(lease.id.pack_number) else { return Ok((seen.clone(), Vec::new())) };
        let (made, failed) =
            (seen.delivery_at(lease), seen.tries_before(&lease.id).map_or(0, |tries| tries.failed));
        let is_last = |terms: &Terms| terms.is_last_hand_over(made, failed);
        let was_its_last = self.ask_terms(&PolicyRef::of(seen), pack, lease.id.index, is_last).await?;
        let redeliver = is_delivered_again((lease, made), was_its_last);
        info!(%pack, index = lease.id.index, attempt = made, redeliver, "a lease ran out");
        self.end_lease(seen.clone(), lease, redeliver.then(|| lease_of(policy))).await
    }

    /// Asks the terms of an event; `None` when it is not wanted any more, or nobody can tell.
    async fn ask_terms(
        &self,
        policy: &PolicyRef,
        pack: &PackId,
        index: u32,
        ask: impl Fn(&Terms) -> bool,
    ) -> Result<Option<bool>, EngineError> {
        Ok(match pack {
            PackId::Run(run) => {
                let terms = readable(self.contents.run_terms(&policy.client, run).await)?;
                terms.map(|terms| ask(&terms.terms))
            }
            PackId::Singles(id) => {
                let pack = readable(self.contents.pack(policy, *id).await)?;
                let member = pack.as_ref().and_then(|pack| pack.member(index));
                member.map(|member| ask(&member.terms))
            }
        })
    }

    /// Ends a lease as it was seen. With a new lease's length its event gets one and must be sent; without, it has expired.
    pub(crate) async fn end_lease(
        &self,
        seen: SlotGroup,
        lease: &Lease,
        redelivered_for: Option<Duration>,
    ) -> Result<(SlotGroup, Vec<Granted>), EngineError> {
        let (transition, new) = match redelivered_for {
            Some(lasts) => {
                let new = self.new_lease(lasts);
                (Transition::renew(&seen, lease, new), Some(new))
            }
            None => {
                let end = LeaseEnd { lease: lease.id, attempt: lease.attempt, outcome: Outcome::Expired };
                (Transition::expire(&seen, lease, end), None)
            }
        };
        let slots = |group: &SlotGroup| new.map(|new| group.given_by(new.write_id)).unwrap_or_default();
        Ok(match self.store.perform(&seen.key, &transition).await? {
            // Refused by our own write, when its reply was lost and the client library repeated it: then it is ours.
            Written::Done(now_seen) | Written::Refused(Some(now_seen)) => {
                let granted = Granted::all_in(&now_seen, slots(&now_seen));
                (now_seen, granted)
            }
            Written::Refused(None) => (seen, Vec::new()),
        })
    }

    pub(crate) fn new_lease(&self, lasts: Duration) -> NewLease {
        NewLease { ends_at: shifted(self.clock.now(), lasts), write_id: self.random.next_u64() >> 32 }
    }
}

/// Whether the event of a lease that ran out gets another one. An event that nothing can send, since whoever tries is stopped
/// each time, has expired when its deliveries cannot be counted any more.
fn is_delivered_again((lease, made): (&Lease, u8), was_its_last: Option<bool>) -> bool {
    let has_had_its_last = was_its_last.is_none_or(|was_its_last| was_its_last && lease.sent);
    !has_had_its_last && made < u8::MAX
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use tidegate_domain::slots::LeaseId;

    use super::*;

    #[test]
    fn an_event_has_expired_when_its_last_delivery_is_known_to_have_been_sent() {
        let id = LeaseId { slot: 0, fence: 1, pack_number: 1, index: 0, cost: 1 };
        let again = |made, sent, was_its_last| {
            let lease = Lease { id, ends_at: DateTime::UNIX_EPOCH, write_id: 1, attempt: 1, sent };
            is_delivered_again((&lease, made), was_its_last)
        };
        assert!(again(1, false, Some(false)) && again(1, true, Some(false)) && again(2, false, Some(true)));
        assert!(!again(2, true, Some(true)));
        assert!(again(254, false, Some(true)) && !again(255, false, Some(false)));
        // It is not wanted any more.
        assert!(!again(1, false, None));
    }
}
