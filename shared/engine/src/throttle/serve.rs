//! Serving a slot group: its free slots go to the events of its range, and to what waits in the line behind.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::{SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_store::Write;
use tidegate_store::slots::{Change, GroupKey, SlotGroup};
use tracing::warn;

use super::shares::Facts;
use super::stop::DEADLINE;
use crate::deliver::granted::{Granted, granted_in};
use crate::message::Message;
use crate::queue::Outgoing;
use crate::{Engine, EngineError};

/// How often a slot group may go round within one call: each round writes, and a group has few slots.
const SERVE_ROUNDS: u32 = WRITE_ROUNDS * SLOTS_PER_GROUP;

/// What a slot group found in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its slots are full, or it was left after many rounds: there may be more.
    More,
    /// Nothing that it may grant now.
    Nothing,
}

/// What came of serving a slot group.
pub(crate) struct Served {
    pub(crate) group: SlotGroup,
    /// What must be sent.
    pub(crate) granted: Vec<Granted>,
    pub(crate) line: Line,
}

impl Engine {
    /// Grants free slots of a group until there is no room or nothing waits. What it returns must be sent.
    pub(crate) async fn serve(&self, mut seen: SlotGroup, mut facts: Facts) -> Result<Served, EngineError> {
        let mut granted = Vec::new();
        let done = |group, granted, line| Ok(Served { group, granted, line });
        for _ in 0..SERVE_ROUNDS {
            if seen.wanted.is_some() {
                seen = self.finish_refill(seen).await?;
                continue;
            }
            if seen.range.left == 0 {
                if seen.room() == 0 || seen.free_slots().next().is_none() {
                    return done(seen, granted, Line::More);
                }
                match self.begin_refill(&seen).await? {
                    Some(now_seen) => seen = now_seen,
                    None => return done(seen, granted, Line::Nothing),
                }
                continue;
            }
            if seen.range.deadline.is_some_and(|deadline| deadline <= self.now()) {
                seen = self.expire_range(seen).await?;
                continue;
            }
            let mut take = seen.grantable();
            if take == 0 {
                return done(seen, granted, Line::More);
            }
            if seen.rated {
                if facts.plan < seen.plan {
                    let known = self.facts(&seen.key.client, &seen.key.policy, seen.plan).await?;
                    facts = known.unwrap_or(facts);
                }
                take = self.take_rate(&seen.key, facts, take).await?;
                if take == 0 {
                    return done(seen, granted, Line::Nothing);
                }
            }
            let slots: Vec<u32> = seen.free_slots().take(take as usize).collect();
            let new = self.new_lease(facts.lease);
            match self.store().grant(&seen, &slots, new, self.now()).await? {
                Change::Done(now_seen) => {
                    granted.extend(granted_in(&now_seen, slots));
                    seen = now_seen;
                }
                Change::Refused(Some(now_seen)) => {
                    granted.extend(granted_in(&now_seen, marked(&now_seen, new.mark)));
                    seen = now_seen;
                }
                Change::Refused(None) => return done(seen, granted, Line::Nothing),
            }
        }
        // The next release, wake-up or tick goes on from here.
        warn!(group = ?seen.key, "a slot group is left after many rounds");
        done(seen, granted, Line::More)
    }

    /// How many of `wanted` events may begin now under the policy's rate. When it is none, somebody comes back in time.
    async fn take_rate(&self, key: &GroupKey, facts: Facts, wanted: u32) -> Result<u32, EngineError> {
        let Some(rate) = facts.rate else { return Ok(wanted) };
        let (client, policy) = (&key.client, &key.policy);
        let allowed = self.store().take_rate((client, policy), rate, wanted, self.now()).await?;
        if allowed.events < wanted {
            let next_at = DateTime::from_timestamp_micros(allowed.next_us).unwrap_or_default();
            self.wake_at(client, policy, next_at).await?;
        }
        Ok(allowed.events)
    }

    /// Sees to it that a policy is looked after at an instant. One message at a time is under way; when it is lost, the
    /// tick does the same.
    pub(crate) async fn wake_at(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        due_at: DateTime<Utc>,
    ) -> Result<(), EngineError> {
        let now = self.now();
        // Messages come by the second.
        let second = due_at.timestamp() + i64::from(due_at.timestamp_subsec_nanos() > 0);
        let due_at = DateTime::from_timestamp(second, 0).unwrap_or(due_at).max(now);
        if self.memory().woken_by(client, policy).is_some_and(|by| now < by && by <= due_at) {
            return Ok(());
        }
        let claimed = self.store().claim_wake(client, policy, due_at, now).await?;
        self.memory().keep_wake(client, policy, due_at);
        if claimed == Write::Refused {
            return Ok(());
        }
        let (client_text, policy) = (client.to_string(), policy.to_string());
        let wake = Message::Wake { client: client_text, policy, due_s: Some(second) };
        self.dispatch(&[Outgoing::at(client, wake, due_at)]).await
    }

    /// The window of the run that a group serves is over.
    async fn expire_range(&self, seen: SlotGroup) -> Result<SlotGroup, EngineError> {
        let GroupKey { client, policy, .. } = &seen.key;
        let Some(run) = seen.run(seen.range.run_number) else { return Ok(seen) };
        let priority = self.run_terms(client, run).await?.map(|terms| terms.terms.flow.priority.get());
        match priority {
            Some(priority) => Box::pin(self.stop_rest(client, policy, (run, priority), DEADLINE)).await?,
            None => drop(self.drop_range(&seen, run).await?),
        }
        Ok(self.store().slot_group(&seen.key).await?.unwrap_or(seen))
    }
}

/// The slots that a write gave their leases. The reply to our own write can be lost and the client library repeat it: the
/// second is refused by the first.
pub(crate) fn marked(group: &SlotGroup, mark: u64) -> Vec<u32> {
    group.slots.iter().filter(|(_, held)| held.mark == mark).map(|(slot, _)| *slot).collect()
}
