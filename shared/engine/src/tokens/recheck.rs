//! Marking the packs of slot groups: the events of a job that changed, or is sidelined, are looked up before they are sent.

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::JobId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::{SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::pack::{PackId, SinglesKind};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{SlotGroup, Transition};
use tidegate_store::slots::Written;

use super::Tokens;
use crate::error::readable;
use crate::throttle::parts::Supply;
use crate::throttle::shares::GROUPS_AT_ONCE;
use crate::{EngineError, deadline};

/// Writes that mark the packs of a slot group: one for each that it may still send events of, and some that are lost.
const MARKS: u32 = SLOTS_PER_GROUP + WRITE_ROUNDS;

impl Tokens {
    /// Has the events of a job, whose present revision is `job`, looked up before they are sent that slot groups have in
    /// packs. It comes after the client was marked as dirty, and before the job is changed.
    pub(crate) async fn recheck_packs(&self, job: &Job) -> Result<(), EngineError> {
        match job.terms.policy.as_ref().filter(|_| SinglesKind::fits(&job.terms)) {
            Some(policy) => self.recheck_packs_with(&PolicyRef::new(&job.client, policy), &job.id).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn recheck_packs_with(
        &self,
        policy: &PolicyRef,
        job: &JobId,
    ) -> Result<(), EngineError> {
        let Some(policy) = self.store.policy(&policy.client, &policy.policy).await? else { return Ok(()) };
        let groups = self.throttle.groups_as_they_are(&policy).await?;
        let groups: Vec<_> = groups.into_iter().map(|group| self.recheck_group(group, job)).collect();
        stream::iter(groups).buffer_unordered(GROUPS_AT_ONCE).try_collect().await
    }

    async fn recheck_group(&self, mut group: SlotGroup, job: &JobId) -> Result<(), EngineError> {
        deadline::check(&*self.clock)?;
        let (key, policy) = (group.key.clone(), PolicyRef::of(&group));
        for _ in 0..MARKS {
            if let Some(line_key) = group.refilling().map(str::to_owned) {
                // Whoever began it may have read the mark before it was there: what comes of it is then marked.
                let mut more = Vec::new();
                let entry = (&*line_key, None);
                self.throttle.finish_refill(&mut group, entry, Supply::Room, &mut more).await?;
                self.effects.carry_out(more).await?;
            }
            let Some(number) = self.unmarked_pack_with(&policy, &group, job).await? else {
                if group.refilling().is_none() {
                    return Ok(());
                }
                continue;
            };
            let Some(seen) = group.packs.get(&number) else { return Ok(()) };
            match self.store.perform(&key, &Transition::mark_for_recheck(number, seen)).await? {
                Written::Done(now_seen) | Written::Refused(Some(now_seen)) => group = now_seen,
                Written::Refused(None) => return Ok(()),
            }
        }
        Err(EngineError::Contended { what: "a slot group's packs", rounds: MARKS })
    }

    /// A pack that a group takes for settled, may still send events of, and that holds events of a job.
    async fn unmarked_pack_with(
        &self,
        policy: &PolicyRef,
        group: &SlotGroup,
        job: &JobId,
    ) -> Result<Option<u32>, EngineError> {
        for (number, known) in &group.packs {
            let is_held = group.leases.values().any(|lease| lease.id.pack_number == *number);
            let is_served = group.range().is_some_and(|range| range.pack_number == *number);
            if known.recheck || !(is_held || is_served) {
                continue;
            }
            let has_its_events = match &known.pack {
                PackId::Run(run) => run.job() == job,
                PackId::Singles(id) => {
                    let pack = readable(self.contents.pack(policy, *id).await)?;
                    pack.is_none_or(|pack| pack.members.iter().any(|member| member.job == *job))
                }
            };
            if has_its_events {
                return Ok(Some(*number));
            }
        }
        Ok(None)
    }
}
