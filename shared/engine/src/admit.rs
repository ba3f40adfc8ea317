//! Admission: giving free slots of a policy to the events that wait in its line.
//!
//! Whoever frees a slot looks at the line *after* that write; whoever joins the line looks at the slots *after* that
//! write. So one of the two sees the other, and no slot stays idle beside a waiting event.

use chrono::{DateTime, Duration, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::{OUTCOMES_PER_FLUSH, SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::occurrence::NonRun;
use tidegate_domain::policy::Policy;
use tidegate_store::line::{LineEntry, Take};
use tidegate_store::policies::ActivePolicy;
use tidegate_store::slots::{Change, GroupKey, Held, Outcome, SlotGroup, SlotRelease};
use tracing::{info, warn};

use crate::deliver::granted::{Granted, granted_in};
use crate::engine::lease_of;
use crate::{Engine, EngineError};

/// Slot groups looked after at once.
const GROUPS_AT_ONCE: usize = 8;
/// Entries of the line that are looked at for one that has something left.
const LINE_LOOK: i32 = 8;
/// How long a policy stays on the list of active ones after something last joined its line, in seconds.
const RETIRE_AFTER_SECONDS: i64 = 120;
/// How often a slot group may go round within one call: each round writes, and a group has few slots.
const SERVE_ROUNDS: u32 = WRITE_ROUNDS * SLOTS_PER_GROUP;

impl Engine {
    /// Looks after a policy: repairs its shares, takes back what nobody released in time, grants what is free.
    ///
    /// Repeating it changes nothing that is in order.
    pub(crate) async fn attend(&self, client: &ClientId, policy: &PolicyId) -> Result<(), EngineError> {
        let Some(policy) = self.store().policy(client, policy).await? else {
            return self.abandon_line(client, policy).await;
        };
        // Those without a share first: what they give back to the line is for the others.
        let surplus = self.attend_groups(&policy, self.surplus_groups(&policy).await?).await?;
        let own = self.attend_groups(&policy, policy.terms.group_numbers().collect()).await?;
        if surplus && own {
            self.retire(&policy).await?;
        }
        Ok(())
    }

    /// Whether all of them are idle.
    async fn attend_groups(&self, policy: &Policy, numbers: Vec<u32>) -> Result<bool, EngineError> {
        let groups: Vec<_> = numbers.into_iter().map(|number| self.attend_group(policy, number)).collect();
        let idle: Vec<bool> = stream::iter(groups).buffer_unordered(GROUPS_AT_ONCE).try_collect().await?;
        Ok(idle.into_iter().all(|idle| idle))
    }

    /// Groups beyond those that the policy has now: a lowered limit leaves them to drain.
    pub(crate) async fn surplus_groups(&self, policy: &Policy) -> Result<Vec<u32>, EngineError> {
        let mut surplus = Vec::new();
        for group in policy.terms.groups().. {
            let key = group_key(policy, group);
            match self.store().slot_group(&key).await? {
                Some(found) if found.policy_revision > 0 => surplus.push(group),
                _ => break,
            }
        }
        Ok(surplus)
    }

    async fn attend_group(&self, policy: &Policy, group: u32) -> Result<bool, EngineError> {
        let seen = self.group_in_step(policy, group).await?;
        let (seen, mut granted) = self.take_back(policy, seen).await?;
        let (seen, more) = self.serve(seen, lease_of(policy)).await?;
        granted.extend(more);
        self.send_granted(granted).await?;
        if seen.cap == 0
            && seen.range.left > 0
            && let Some(run) = seen.run(seen.range.run_number)
        {
            // It will never grant them: the limit was lowered.
            self.store().return_range(&seen, run).await?;
        }
        let seen = self.flush(seen, 1).await?;
        Ok(seen.is_idle())
    }

    /// A slot group with the share that follows from the policy as it is now.
    pub(crate) async fn group_in_step(&self, policy: &Policy, group: u32) -> Result<SlotGroup, EngineError> {
        let key = group_key(policy, group);
        let share = policy.terms.share(group);
        for _ in 0..WRITE_ROUNDS {
            match self.store().slot_group(&key).await? {
                None => drop(self.store().create_slot_group(&key, share, policy.revision).await?),
                Some(seen) if seen.policy_revision >= policy.revision => return Ok(seen),
                Some(_) => match self.store().set_share(&key, share, policy.revision).await? {
                    Change::Done(seen) => return Ok(seen),
                    Change::Refused(_) => {}
                },
            }
        }
        Err(EngineError::Contended { what: "a slot group's share", rounds: WRITE_ROUNDS })
    }

    /// Ends the leases that ran out: the event gets a new one, or its end if it had enough.
    async fn take_back(
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
            let release = SlotRelease {
                slot,
                fence: held.fence,
                run_number: held.run_number,
                index: held.index,
                outcome: Outcome::Expired,
            };
            let again = held.attempt < max_attempts;
            info!(event = %run.event(held.index), attempt = held.attempt, again, "a lease ran out");
            let end = now + lease_of(policy);
            let end = DateTime::from_timestamp_millis(end.timestamp_millis()).unwrap_or(end);
            let fence = seen.next_fence;
            let change = match again {
                true => {
                    let renewed = self.store().renew_expired(
                        &seen.key,
                        &release,
                        held.lease_end,
                        held.attempt + 1,
                        end,
                    );
                    renewed.await?
                }
                false => self.store().free_expired(&seen.key, &release, held.lease_end).await?,
            };
            match change {
                Change::Done(now_seen) => {
                    seen = now_seen;
                    if again {
                        granted.extend(granted_in(&seen, [slot]));
                    }
                }
                Change::Refused(Some(now_seen)) => {
                    let ours = |held: &Held| held.fence == fence && held.lease_end == end;
                    if again && now_seen.slots.get(&slot).is_some_and(ours) {
                        granted.extend(granted_in(&now_seen, [slot]));
                    }
                    seen = now_seen;
                }
                Change::Refused(None) => break,
            }
        }
        Ok((seen, granted))
    }

    /// Grants free slots of a group until there is no room or nothing waits. What it returns must be sent.
    pub(crate) async fn serve(
        &self,
        mut seen: SlotGroup,
        lease: Duration,
    ) -> Result<(SlotGroup, Vec<Granted>), EngineError> {
        let mut granted = Vec::new();
        for _ in 0..SERVE_ROUNDS {
            if seen.wanted.is_some() {
                seen = self.finish_refill(seen).await?;
                continue;
            }
            let room = seen.room().min(seen.free_slots().count() as u32);
            if room == 0 {
                return Ok((seen, granted));
            }
            if seen.range.left == 0 {
                match self.begin_refill(&seen).await? {
                    Some(now_seen) => seen = now_seen,
                    None => return Ok((seen, granted)),
                }
                continue;
            }
            let take = room.min(seen.range.left) as usize;
            let slots: Vec<u32> = seen.free_slots().take(take).collect();
            let lease_end = self.now() + lease;
            match self.store().grant(&seen, &slots, lease_end).await? {
                Change::Done(now_seen) => {
                    granted.extend(granted_in(&now_seen, slots));
                    seen = now_seen;
                }
                Change::Refused(Some(now_seen)) => {
                    if granted_by_this_call(&seen, &now_seen, &slots, lease_end) {
                        granted.extend(granted_in(&now_seen, slots));
                    }
                    seen = now_seen;
                }
                Change::Refused(None) => return Ok((seen, granted)),
            }
        }
        // The next release, wake-up or tick goes on from here.
        warn!(group = ?seen.key, "a slot group is left after many rounds");
        Ok((seen, granted))
    }

    /// First step of a refill: choose the entry at the head of the line and write that down. `None`: nothing waits.
    async fn begin_refill(&self, seen: &SlotGroup) -> Result<Option<SlotGroup>, EngineError> {
        let GroupKey { client, policy, .. } = &seen.key;
        let head = self.store().line_head(client, policy, self.now(), LINE_LOOK).await?;
        let mut waiting = None;
        for entry in &head {
            if entry.is_exhausted() {
                self.remove_finished(client, policy, entry).await?;
                continue;
            }
            let reason = match self.run_terms(client, &entry.run).await? {
                // Stopped, or its payload is gone with its job; a first reason stays.
                None => "payload deleted with its job",
                Some(terms) if self.is_too_old(&entry.run, &terms) => NonRun::Expired.as_str(),
                Some(_) => {
                    waiting = Some(entry);
                    break;
                }
            };
            self.store().stop_run(client, &entry.run, reason).await?;
            self.forget_run(client, &entry.run);
            self.store().remove_from_line(client, policy, &entry.run).await?;
        }
        let Some(entry) = waiting else { return Ok(None) };
        Ok(match self.store().want_range(seen, &entry.place).await? {
            Change::Done(now_seen) | Change::Refused(Some(now_seen)) => Some(now_seen),
            Change::Refused(None) => None,
        })
    }

    /// Second and third step of a refill: take a range of the wanted entry, and put it in place.
    async fn finish_refill(&self, seen: SlotGroup) -> Result<SlotGroup, EngineError> {
        let Some(place) = seen.wanted.clone() else { return Ok(seen) };
        let GroupKey { client, policy, group } = seen.key.clone();
        let run = place.rsplit('|').next().unwrap_or_default().parse();
        let run = run.map_err(|e| EngineError::Message { reason: format!("line entry '{place}': {e}") })?;
        let group_key = (&client, &policy, group);
        let taken = self.store().take_range(group_key, &place, seen.grant, parts_of_line(&seen)).await?;
        let (start, end, last) = match taken {
            Take::Taken { start, end, last } => (start, end, last),
            Take::Empty => (0, 0, false),
        };
        let change = self.store().accept_range(&seen, &run, start, end - start).await?;
        let now_seen = match change {
            Change::Done(now_seen) | Change::Refused(Some(now_seen)) => now_seen,
            Change::Refused(None) => seen,
        };
        if last {
            let entry = LineEntry { run, place, count: end, cursor: end, groups: vec![group] };
            if let Some(found) = self.store().line_entry(&client, &policy, &entry.place).await? {
                self.remove_finished(&client, &policy, &found).await?;
            }
        }
        Ok(now_seen)
    }

    /// Removes an entry of which nothing is left, once every group that took of it has its range in place.
    async fn remove_finished(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        entry: &LineEntry,
    ) -> Result<(), EngineError> {
        for group in &entry.groups {
            let key = GroupKey { client: client.clone(), policy: policy.clone(), group: *group };
            let found = self.store().slot_group(&key).await?;
            if found.is_some_and(|g| g.wanted.as_deref() == Some(&*entry.place)) {
                return Ok(());
            }
        }
        self.store().remove_exhausted(client, policy, &entry.place).await?;
        Ok(())
    }

    /// Takes an idle policy off the list of active ones, unless something joins its line.
    async fn retire(&self, policy: &Policy) -> Result<(), EngineError> {
        let now = self.now();
        let Some(active) = self.store().active_policy(&policy.client, &policy.id).await? else {
            return Ok(());
        };
        if !is_retirable(&active, now) {
            return Ok(());
        }
        let line = self.store().line(&policy.client, &policy.id, None).await?;
        if line.rows.is_empty() {
            self.store().retire_active(&active).await?;
        }
        Ok(())
    }

    /// The policy is gone: what waits for it never gets a token, and that is recorded.
    async fn abandon_line(&self, client: &ClientId, policy: &PolicyId) -> Result<(), EngineError> {
        for entry in self.store().line(client, policy, None).await?.rows {
            self.store().stop_run(client, &entry.run, "policy deleted").await?;
            self.store().remove_from_line(client, policy, &entry.run).await?;
        }
        if let Some(active) = self.store().active_policy(client, policy).await?
            && is_retirable(&active, self.now())
        {
            self.store().retire_active(&active).await?;
        }
        Ok(())
    }

    /// Packs outcomes when they are many, or when nothing else will happen in the group.
    pub(crate) async fn flush_if_due(&self, seen: SlotGroup) -> Result<SlotGroup, EngineError> {
        let quiet = seen.held == 0 && seen.range.left == 0;
        self.flush(seen, if quiet { 1 } else { OUTCOMES_PER_FLUSH }).await
    }
}

/// The reply to our own write can be lost and the client library repeat it: the second is refused by the first.
fn granted_by_this_call(
    before: &SlotGroup,
    now_seen: &SlotGroup,
    slots: &[u32],
    lease_end: DateTime<Utc>,
) -> bool {
    let end = DateTime::from_timestamp_millis(lease_end.timestamp_millis()).unwrap_or(lease_end);
    (before.next_fence..).zip(slots).all(|(fence, slot)| {
        now_seen.slots.get(slot).is_some_and(|held| held.fence == fence && held.lease_end == end)
    })
}

/// Into how many parts a group divides what it finds in the line, to take one. A group that may have neighbours leaves
/// most of it to them: what one group alone has left at the end of a run, its neighbours' free slots cannot serve.
fn parts_of_line(group: &SlotGroup) -> u32 {
    // Groups are filled in order, so only a full first group can have neighbours.
    let alone = group.key.group == 0 && group.cap < SLOTS_PER_GROUP;
    if alone { 1 } else { 2 * (group.key.group + 1).max(2) }
}

fn is_retirable(active: &ActivePolicy, now: DateTime<Utc>) -> bool {
    (now - active.touched_at).num_seconds() > RETIRE_AFTER_SECONDS
}

pub(crate) fn group_key(policy: &Policy, group: u32) -> GroupKey {
    GroupKey { client: policy.client.clone(), policy: policy.id.clone(), group }
}
