//! Single events that wait in packs: what becomes of them when their job, or their policy, goes or changes.
//!
//! Nothing is stored for each of them, so nothing can be taken out of a pack. Instead, an event that may not be wanted any
//! more is looked up before it is sent: ranges that are taken after a change of a job of their client are marked as unsettled
//! by whoever takes them, and those that groups had before it are marked here.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::{SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::occurrence::{Occurrence, StopReason};
use tidegate_domain::pack::{PackId, Singles, SinglesId, SinglesKind};
use tidegate_domain::slots::{GroupKey, SlotGroup, Transition};
use tidegate_store::Write;
use tidegate_store::line::LineEntry;
use tidegate_store::runs::RunRow;
use tidegate_store::slots::Written;

use super::shares::{GROUPS_AT_ONCE, group_key};
use super::stop::RunCancel;
use crate::effect::{Effect, PolicyRef};
use crate::error::readable;
use crate::history::Live;
use crate::{Engine, EngineError};

/// Writes that mark the packs of a slot group: one for each that it may still send events of, and some that are lost.
const MARKS: u32 = SLOTS_PER_GROUP + WRITE_ROUNDS;
/// Records of events that are written at once.
const RECORDS_AT_ONCE: usize = 16;

impl Engine {
    /// Has the events of a job, whose present revision is `job`, looked up before they are sent that slot groups have in
    /// packs. It comes after the client was marked as unsettled, and before the job is changed.
    pub(crate) async fn unsettle_packs(&self, job: &Job) -> Result<(), EngineError> {
        match job.terms.policy.as_ref().filter(|_| SinglesKind::fits(&job.terms)) {
            Some(policy) => self.unsettle_packs_with(&PolicyRef::new(&job.client, policy), &job.id).await,
            None => Ok(()),
        }
    }

    async fn unsettle_packs_with(&self, policy: &PolicyRef, job: &JobId) -> Result<(), EngineError> {
        let Some(policy) = self.store().policy(&policy.client, &policy.policy).await? else { return Ok(()) };
        let keys: Vec<GroupKey> = (0..policy.plan.groups()).map(|group| group_key(&policy, group)).collect();
        let groups: Vec<_> = keys.iter().map(|key| self.unsettle_group(key, job)).collect();
        stream::iter(groups).buffer_unordered(GROUPS_AT_ONCE).try_collect().await
    }

    /// Cancels a single event that waits in a pack.
    pub(super) async fn cancel_single(
        &self,
        client: &ClientId,
        run: &RunRow,
    ) -> Result<RunCancel, EngineError> {
        let groups = self.groups_of(client, run).await?;
        let live = Live::of(run, &groups);
        let ended = self.summary(client, run.clone(), &live).await?.tally.total() > 0;
        let Some(policy) = run.terms.policy.as_ref().filter(|_| !ended && run.stopped.is_none()) else {
            return Ok(RunCancel::Over);
        };
        self.unsettle(client).await?;
        self.unsettle_packs_with(&PolicyRef::new(client, policy), run.id.job()).await?;
        let reason = StopReason::Cancelled.as_str();
        self.store().stop_single(&run.occurrence(client), reason, self.now()).await?;
        Ok(RunCancel::Done)
    }

    async fn unsettle_group(&self, key: &GroupKey, job: &JobId) -> Result<(), EngineError> {
        let policy = PolicyRef::of_key(key);
        let Some(mut group) = self.store().slot_group(key).await? else { return Ok(()) };
        for _ in 0..MARKS {
            if let Some(place) = group.refilling().map(str::to_owned) {
                // Whoever began it may have read the mark before it was there: what comes of it is then marked.
                let mut more = Vec::new();
                self.finish_refill(&mut group, (&place, None), &mut more).await?;
                self.carry_out(more).await?;
            }
            let Some(number) = self.settled_pack_with(&policy, &group, job).await? else {
                if group.refilling().is_none() {
                    return Ok(());
                }
                continue;
            };
            let Some(seen) = group.packs.get(&number) else { return Ok(()) };
            match self.store().perform(key, &Transition::unsettle(number, seen)).await? {
                Written::Done(now_seen) | Written::Refused(Some(now_seen)) => group = now_seen,
                Written::Refused(None) => return Ok(()),
            }
        }
        Err(EngineError::Contended { what: "a slot group's packs", rounds: MARKS })
    }

    /// A pack that a group takes for settled, may still send events of, and that holds events of a job.
    async fn settled_pack_with(
        &self,
        policy: &PolicyRef,
        group: &SlotGroup,
        job: &JobId,
    ) -> Result<Option<u32>, EngineError> {
        for (number, known) in &group.packs {
            let PackId::Singles(id) = known.pack else { continue };
            let is_held = group.leases.values().any(|lease| lease.id.pack_number == *number);
            let is_served = group.range().is_some_and(|range| range.pack_number == *number);
            if known.unsettled || !(is_held || is_served) {
                continue;
            }
            let pack = readable(self.pack(policy, id).await)?;
            if pack.is_none_or(|pack| pack.members.iter().any(|member| member.job == *job)) {
                return Ok(Some(*number));
            }
        }
        Ok(None)
    }

    /// Records of a job's events that wait in packs of its policy that they are not delivered, and why.
    pub(crate) async fn stop_waiting_singles(&self, job: &Job, reason: &str) -> Result<(), EngineError> {
        let Some(policy) = job.terms.policy.as_ref().filter(|_| SinglesKind::fits(&job.terms)) else {
            return Ok(());
        };
        let name = PolicyRef::new(&job.client, policy);
        let Some(policy) = self.store().policy(&job.client, policy).await? else { return Ok(()) };
        let mut waiting = BTreeSet::<(SinglesId, u32)>::new();
        for group in self.groups_as_they_are(&policy).await? {
            if let (Some(PackId::Singles(id)), Some(range)) = (group.serving(), group.range()) {
                let indexes = range.next..range.next.saturating_add(range.left);
                waiting.extend(indexes.map(|index| (*id, index)));
            }
        }
        let mut after = None;
        loop {
            let page = self.store().line(&name.client, &name.policy, after).await?;
            for entry in page.rows {
                if let PackId::Singles(id) = entry.pack {
                    waiting.extend((entry.cursor..entry.count).map(|index| (id, index)));
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let packs: BTreeSet<SinglesId> = waiting.iter().map(|(id, _)| *id).collect();
        for id in packs {
            let Some(pack) = readable(self.pack(&name, id).await)? else { continue };
            let is_its = |(index, member): &(u32, &Occurrence)| {
                member.job == job.id && waiting.contains(&(id, *index))
            };
            self.stop_members(members(&pack).filter(is_its), reason).await?;
        }
        Ok(())
    }

    /// What waits of an entry of single events, whose policy is gone, is delivered to nobody.
    pub(crate) async fn stop_entry(
        &self,
        policy: PolicyRef,
        entry: LineEntry,
        reason: &str,
    ) -> Result<Vec<Effect>, EngineError> {
        if let PackId::Singles(id) = entry.pack
            && let Some(pack) = readable(self.pack(&policy, id).await)?
        {
            let is_left = |(index, _): &(u32, &Occurrence)| (entry.cursor..entry.count).contains(index);
            self.stop_members(members(&pack).filter(is_left), reason).await?;
        }
        // Last: whoever finds it still there records them once more.
        match self.store().exhaust_singles(&policy.client, &policy.policy, &entry).await? {
            Write::Refused => Ok(Vec::new()),
            Write::Done => Ok(vec![Effect::RemoveEntry(policy, Box::new(entry))]),
        }
    }

    async fn stop_members(
        &self,
        members: impl Iterator<Item = (u32, &Occurrence)>,
        reason: &str,
    ) -> Result<(), EngineError> {
        let now = self.now();
        let stops: Vec<_> =
            members.map(|(_, member)| self.store().stop_single(member, reason, now)).collect();
        let stopped: Vec<_> = stream::iter(stops).buffer_unordered(RECORDS_AT_ONCE).try_collect().await?;
        drop(stopped);
        Ok(())
    }
}

fn members(pack: &Arc<Singles>) -> impl Iterator<Item = (u32, &Occurrence)> {
    (0..).zip(&pack.members)
}
