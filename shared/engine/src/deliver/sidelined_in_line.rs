//! Events under a policy whose job is sidelined: each gives its token back as its turn comes, and waits in the line, never due, until
//! the job drains and it takes its place again.
//!
//! They stay in the line of their policy, so whatever looks after a line looks after them: their runs and packs do not expire, the
//! policy cannot be deleted, a repair finds them waiting. Each moves by a transaction, so it is in one place at any time.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, EventId, JobId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::retry::Tries;
use tidegate_domain::sideline::{SidelineOf, Sidelines};
use tidegate_domain::slots::{GroupKey, LeaseId};
use tidegate_store::line::{LineEntry, Requeued};
use tracing::{error, warn};

use super::Delivery;
use super::back_to_line::all_or_each;
use crate::effect::{Effect, Granted};
use crate::figures::ROWS_SET_ASIDE;
use crate::queues::Outgoing;
use crate::{EngineError, deadline};

/// Slot groups whose events are moved at once.
const GROUPS_AT_ONCE: usize = 8;
/// Events that rejoin their lines at once.
const REJOIN_AT_ONCE: usize = 16;

/// A granted event whose job is sidelined.
pub(super) struct SidelinedEvent {
    pub(super) grant: Granted,
    pub(super) event: EventId,
    pub(super) priority: u8,
}

/// What is sidelined of the clients of some events.
#[derive(Default)]
pub(super) struct AllSidelines(BTreeMap<ClientId, Sidelines>);

impl AllSidelines {
    /// Whether the events of a job are set aside.
    pub(super) fn hold(&self, client: &ClientId, job: &JobId) -> bool {
        self.0.get(client).is_some_and(|sidelines| sidelines.holds_job(job))
    }
}

impl SidelinedEvent {
    /// Where it waits: its deliveries count on, and this was none.
    fn entry(&self) -> (LeaseId, JobId, Requeued) {
        let Self { grant, event, priority } = self;
        let launch_at = event.run().launch_at();
        let since_s = grant.tries.map_or(launch_at.timestamp(), |tries| tries.since_s);
        let made = grant.delivery_number().saturating_sub(1);
        let tries = Tries { made, failed: grant.failed(), since_s };
        let at = Requeued { pack: grant.pack.clone(), priority: *priority, tries, due_at: launch_at };
        (grant.token.lease, event.run().job().clone(), at)
    }
}

impl Delivery {
    /// What is sidelined of the clients of granted events, as some replica has it: what is granted at the same moment may go on as
    /// what is in flight does. Nothing is read where no pack is marked to be looked up.
    pub(super) async fn sidelines_of(&self, granted: &[Granted]) -> Result<AllSidelines, EngineError> {
        let mut all = AllSidelines::default();
        for client in granted.iter().filter(|grant| grant.recheck).map(|grant| grant.token.client()) {
            if !all.0.contains_key(client) {
                all.0.insert(client.clone(), self.store.sidelines(client).await?);
            }
        }
        Ok(all)
    }

    /// Granted events of jobs that are sidelined give their tokens back, and wait in their lines until their jobs drain. What waits
    /// behind them has its turn by another message: however many they are, nobody waits for them here.
    pub(super) async fn sideline_events(
        &self,
        events: &[SidelinedEvent],
    ) -> Result<Vec<Effect>, EngineError> {
        let mut groups = BTreeMap::<&GroupKey, Vec<&SidelinedEvent>>::new();
        for event in events {
            groups.entry(&event.grant.token.group).or_default().push(event);
        }
        let moves: Vec<_> = groups
            .iter()
            .map(async |(key, events)| {
                if !self.may_go_back(key, events.iter().map(|event| &event.grant)).await {
                    return (PolicyRef::of_key(key), Vec::new());
                }
                let entries: Vec<_> = events.iter().map(|event| event.entry()).collect();
                let moved = all_or_each(key, &entries, |some| Box::pin(self.store.sideline(key, some))).await;
                let jobs = moved.into_iter().map(|(_, job, _)| (key.client.clone(), job.clone()));
                (PolicyRef::of_key(key), jobs.collect::<Vec<_>>())
            })
            .collect();
        let moved: Vec<_> = stream::iter(moves).buffer_unordered(GROUPS_AT_ONCE).collect().await;
        let (mut policies, mut jobs) = (BTreeSet::new(), BTreeSet::new());
        for (policy, of_policy) in moved.into_iter().filter(|(_, moved)| !moved.is_empty()) {
            policies.insert(policy);
            jobs.extend(of_policy);
        }
        for (client, job) in jobs {
            self.drain_unless_held(&client, &SidelineOf::Job(job)).await?;
        }
        Ok(policies.into_iter().map(Effect::WakeNow).collect())
    }

    /// Has events rejoin the lines of their policies, each when the pace lets it. Those that cannot are left for the next message.
    pub(super) async fn rejoin(
        &self,
        due: Vec<(PolicyRef, LineEntry, DateTime<Utc>)>,
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        for policy in due.iter().map(|(policy, ..)| policy).collect::<BTreeSet<_>>() {
            // First: the tick looks after what is in the line of a policy on this list.
            self.store.touch_active(&policy.client, &policy.policy, now).await?;
        }
        let rejoin = async |(policy, entry, due_at): &(PolicyRef, LineEntry, DateTime<Utc>)| match self
            .store
            .rejoin((&policy.client, &policy.policy), entry, *due_at)
            .await
        {
            Err(error) if error.is_of_one_row() => {
                error!(?policy, entry = entry.line_key, %error, { ROWS_SET_ASIDE } = 1_u64, "a sidelined event cannot be read");
                Ok(())
            }
            rejoined => rejoined.map(drop),
        };
        let rejoins: Vec<_> = due.iter().map(rejoin).collect();
        stream::iter(rejoins).buffer_unordered(REJOIN_AT_ONCE).try_collect::<()>().await?;
        let wakes = Outgoing::wakes(due.into_iter().map(|(policy, _, due_at)| (policy, due_at)));
        if let Err(error) = self.queues.dispatch(&wakes).await {
            warn!(%error, "what rejoined its line waits for the tick");
        }
        Ok(())
    }

    /// Events of a job that wait in the lines of policies until it drains, up to `most`. All policies of its client are looked at: the
    /// job may have had another one before.
    pub(super) async fn sidelined_in_lines(
        &self,
        client: &ClientId,
        job: &JobId,
        most: usize,
    ) -> Result<Vec<(PolicyRef, LineEntry)>, EngineError> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let policies = self.store.policies(client, after).await?;
            for policy in policies.rows {
                deadline::check(&*self.clock)?;
                let left = most.saturating_sub(found.len());
                if left == 0 {
                    return Ok(found);
                }
                let limit = i32::try_from(left).unwrap_or(i32::MAX);
                let page = self.store.sidelined_of((client, &policy.id), job, limit).await?;
                let name = PolicyRef::new(client, &policy.id);
                found.extend(page.rows.into_iter().map(|entry| (name.clone(), entry)));
            }
            after = policies.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }
}
