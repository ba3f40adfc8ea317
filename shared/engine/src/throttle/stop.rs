//! Stopping a run before its end: cancelled, over its deadline, failed too often, skipped, or its job is gone.
//!
//! What is in flight goes on. The rest is taken out of the line and the slot groups, and counted in the run's row, so
//! that the row of a stopped run adds up as well.

use futures::stream::{self, StreamExt as _};
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::occurrence::StopReason;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_domain::slots::{GroupKey, Range, SlotGroup};
use tidegate_store::journal::{Ends, Entry, Step};
use tidegate_store::runs::{RunRow, Tally};
use tidegate_store::{Store, Write};

use super::Throttle;
use super::shares::GROUPS_AT_ONCE;
use crate::effect::{Effect, WaitingRun};
use crate::error::readable;
use crate::{EngineError, deadline};

impl Throttle {
    /// Stops a run and takes what is left of it out of the line and of the slot groups. A first reason stays.
    pub(crate) async fn stop(&self, waiting: WaitingRun, reason: &str) -> Result<Vec<Effect>, EngineError> {
        let WaitingRun { policy: name, run, rank } = waiting;
        let PolicyRef { client, policy } = &name;
        self.store.stop_run(client, &run, reason).await?;
        self.contents.forget_run(client, &run);
        let places = self.store.exhaust(client, policy, (&run, rank)).await?;
        if let Some(policy) = self.store.policy(client, policy).await? {
            self.drop_from_groups(&policy, &run).await?;
        }
        let row = readable(self.store.run(client, &run).await.map_err(EngineError::from))?;
        let mut effects: Vec<Effect> =
            row.into_iter().map(|row| Effect::Conclude(client.clone(), Box::new(row))).collect();
        // Last: whoever finds an entry that was left behind concludes the run once more.
        for place in places {
            if let Some(entry) = self.store.line_entry(client, policy, &place).await? {
                effects.push(Effect::RemoveEntry(name.clone(), Box::new(entry)));
            }
        }
        Ok(effects)
    }

    /// Drops what the groups of a policy still have of a run. Each range is counted in the run's row, so writes of several
    /// groups follow each other, and take many of them at once.
    async fn drop_from_groups(&self, policy: &Policy, run: &RunId) -> Result<(), EngineError> {
        let groups = self.groups_as_they_are(policy).await?;
        self.drop_from_each(&groups, run).await
    }

    /// Drops what some groups of one policy still have of a run.
    pub(crate) async fn drop_ranges_of(&self, keys: &[GroupKey], run: &RunId) -> Result<(), EngineError> {
        let looks: Vec<_> = keys.iter().map(|key| self.store.slot_group(key)).collect();
        let mut looks = stream::iter(looks).buffered(GROUPS_AT_ONCE);
        let mut groups = Vec::with_capacity(keys.len());
        while let Some(found) = looks.next().await {
            groups.extend(found?);
        }
        self.drop_from_each(&groups, run).await
    }

    async fn drop_from_each(&self, groups: &[SlotGroup], run: &RunId) -> Result<(), EngineError> {
        let pack = PackId::Run(run.clone());
        let serving = groups.iter().filter(|group| group.serves(&pack));
        let ranges: Vec<(&SlotGroup, Range)> =
            serving.filter_map(|group| Some((group, *group.range()?))).collect();
        for some in ranges.chunks(Store::RANGES_AT_ONCE) {
            // Whoever grants of the run, or looks after the policy, sees that it is stopped, and drops the rest.
            if deadline::is_over(&*self.clock) {
                return Ok(());
            }
            if self.store.drop_ranges(some, run).await? == Write::Done {
                continue;
            }
            for (group, _) in some {
                self.drop_from(&group.key, run).await?;
            }
        }
        Ok(())
    }

    /// Drops what one group still has of a run.
    async fn drop_from(&self, key: &GroupKey, run: &RunId) -> Result<(), EngineError> {
        for _ in 0..WRITE_ROUNDS {
            if self.drop_range_of(key, run).await? == Write::Done {
                return Ok(());
            }
        }
        // Whoever grants of it sees that the run is stopped, and drops the rest.
        Ok(())
    }

    /// Drops the range of a group if it is one of a run; `Refused` when the group changed meanwhile.
    async fn drop_range_of(&self, key: &GroupKey, run: &RunId) -> Result<Write, EngineError> {
        let pack = PackId::Run(run.clone());
        let found = self.store.slot_group(key).await?.filter(|group| group.serves(&pack));
        let Some((group, range)) = found.as_ref().and_then(|group| Some((group, *group.range()?))) else {
            return Ok(Write::Done);
        };
        Ok(self.store.drop_range(group, range, run).await?)
    }

    /// What follows when outcomes were added to a run's row, or the rest of it was taken away: the failure limit, the
    /// callback, and the turn of the run that waits for its end. Repeating it is safe.
    pub(crate) fn conclude_run(&self, client: &ClientId, row: &RunRow) -> Vec<Effect> {
        if row.has_ended() {
            self.store.note(|| finished(client, row));
        }
        let flow = &row.terms.flow;
        let Some(policy) = row.terms.policy.as_ref().filter(|_| flow.is_watched()) else { return Vec::new() };
        let policy = PolicyRef::new(client, policy);
        let too_many = flow.max_failures.is_some_and(|most| row.tally.unsuccessful() >= most.get());
        if too_many && row.stopped.is_none() && !row.has_ended() {
            let waiting = WaitingRun { policy, run: row.id.clone(), rank: flow.rank() };
            return vec![Effect::Stop(waiting, StopReason::FailureLimit.as_str())];
        }
        if !row.has_ended() {
            return Vec::new();
        }
        let mut effects = Vec::new();
        if row.announced.is_none() {
            let announce =
                |by_heartbeat| Effect::Announce { client: client.clone(), run: row.id.clone(), by_heartbeat };
            // First: once the completion is marked as told, nobody asks for either any more.
            effects.extend(flow.heartbeat.is_some().then(|| announce(true)));
            effects.extend(flow.on_completion.is_some().then(|| announce(false)));
        }
        if flow.overlap == Overlap::BufferOne {
            effects.push(Effect::WakeNow(policy));
        }
        effects
    }
}

/// That all events of a run have come to an end, for the bus.
fn finished(client: &ClientId, row: &RunRow) -> Entry {
    let Tally { succeeded, failed, expired, dead, left_out, .. } = row.tally;
    let ends = Ends { succeeded, failed, expired, dead, left_out };
    Entry {
        client: client.clone(),
        run: row.id.clone(),
        policy: row.terms.policy.clone(),
        step: Step::Finished { count: row.terms.count.get(), ends, redriven: row.redriven.total() },
        reason: row.stopped.clone(),
        at: row.last_outcome_at,
    }
}
