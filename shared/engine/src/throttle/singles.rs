//! Single events that wait in packs: what becomes of them when their job, or their policy, goes or changes.
//!
//! Nothing is stored for each of them, so nothing can be taken out of a pack. Instead, an event that may not be wanted any
//! more is looked up before it is sent: ranges that are taken after a change of a job of their client are marked for that
//! by whoever takes them, and those that groups had before it are marked here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::job::Job;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, Singles, SinglesId, SinglesKind};
use tidegate_domain::policy::PolicyRef;
use tidegate_store::Write;
use tidegate_store::line::LineEntry;

use super::Throttle;
use crate::effect::Effect;
use crate::error::readable;
use crate::{EngineError, deadline};

/// Records of the events of one pack that are written at once.
const RECORDS_AT_ONCE: usize = 16;
/// Packs that are read at once.
const PACKS_AT_ONCE: usize = 4;

/// What is left of packs of single events: the indexes of those that were not granted yet.
type Left = BTreeMap<SinglesId, Vec<Range<u32>>>;

impl Throttle {
    /// Records of a job's events that wait in packs of its policy that they are not delivered, and why.
    pub(crate) async fn stop_waiting_singles(&self, job: &Job, reason: &str) -> Result<(), EngineError> {
        let Some(policy) = job.terms.policy.as_ref().filter(|_| SinglesKind::fits(&job.terms)) else {
            return Ok(());
        };
        let name = PolicyRef::new(&job.client, policy);
        let Some(policy) = self.store.policy(&job.client, policy).await? else { return Ok(()) };
        let mut held = Left::new();
        for group in self.groups_as_they_are(&policy).await? {
            if let (Some(PackId::Singles(id)), Some(range)) = (group.serving(), group.range()) {
                held.entry(*id).or_default().push(range.next..range.next.saturating_add(range.left));
            }
        }
        self.stop_left(&name, job, held, reason).await?;
        let mut after = None;
        loop {
            let page = self.store.line(&name.client, &name.policy, after).await?;
            let mut waiting = Left::new();
            for entry in page.rows {
                if let PackId::Singles(id) = entry.pack {
                    waiting.entry(id).or_default().push(entry.cursor..entry.count);
                }
            }
            self.stop_left(&name, job, waiting, reason).await?;
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The same with those of a job that are among what is left of some packs.
    async fn stop_left(
        &self,
        policy: &PolicyRef,
        job: &Job,
        left: Left,
        reason: &str,
    ) -> Result<(), EngineError> {
        let stop_in = async |(id, left): (SinglesId, Vec<Range<u32>>)| {
            deadline::check(&*self.clock)?;
            let Some(pack) = readable(self.contents.pack(policy, id).await)? else { return Ok(()) };
            let is_its = |(index, member): &(u32, &Occurrence)| {
                member.job == job.id && left.iter().any(|range| range.contains(index))
            };
            self.stop_members(members(&pack).filter(is_its), reason).await
        };
        let stops: Vec<_> = left.into_iter().map(stop_in).collect();
        stream::iter(stops).buffer_unordered(PACKS_AT_ONCE).try_collect().await
    }

    /// What waits of an entry of single events, whose policy is gone, is delivered to nobody.
    pub(crate) async fn stop_entry(
        &self,
        policy: PolicyRef,
        entry: LineEntry,
        reason: &str,
    ) -> Result<Vec<Effect>, EngineError> {
        if let PackId::Singles(id) = entry.pack
            && let Some(pack) = readable(self.contents.pack(&policy, id).await)?
        {
            let is_left = |(index, _): &(u32, &Occurrence)| (entry.cursor..entry.count).contains(index);
            self.stop_members(members(&pack).filter(is_left), reason).await?;
        }
        // Last: whoever finds it still there records them once more.
        match self.store.exhaust_singles(&policy.client, &policy.policy, &entry).await? {
            Write::Refused => Ok(Vec::new()),
            Write::Done => Ok(vec![Effect::RemoveEntry(policy, Box::new(entry))]),
        }
    }

    async fn stop_members(
        &self,
        members: impl Iterator<Item = (u32, &Occurrence)>,
        reason: &str,
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        let stops: Vec<_> = members.map(|(_, member)| self.store.stop_single(member, reason, now)).collect();
        let stopped: Vec<_> = stream::iter(stops).buffer_unordered(RECORDS_AT_ONCE).try_collect().await?;
        drop(stopped);
        Ok(())
    }
}

fn members(pack: &Arc<Singles>) -> impl Iterator<Item = (u32, &Occurrence)> {
    (0..).zip(&pack.members)
}
