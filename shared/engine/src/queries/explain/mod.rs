//! Why an event is where it is: who holds the tokens that it waits for, its place in line, when its turn is expected.
//!
//! Rows are read one by one, without locks: an event that moves from one to another meanwhile may be found in neither. An
//! explanation is for people; nothing is decided by it.

mod reason;
mod wait_context;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, EventId, PolicyId};
use tidegate_domain::slots::{Lease, SlotGroup};
use tidegate_domain::time::{seconds, shifted};
use tidegate_domain::token::Token;
use tidegate_store::line::LineEntry;
use tidegate_store::runs::RunRow;

use super::Queries;
use crate::EngineError;
use crate::queries::PolicyStatus;
use crate::queries::forecast::Progress;
use crate::queries::history::{EventRecord, EventStatus, Live};
use crate::queries::packs::Packs;
pub use reason::{ExpectationBasis, LeaseSpan, Reason};
use wait_context::{Blocker, Measured, WaitContext};

/// Holders that an explanation names.
const HOLDERS: usize = 100;
/// Pages of a line that are read for one explanation: more than a policy's line may have rows.
const LINE_PAGES: usize = 100;

/// Who holds a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The token.
    pub token: Token,
    /// The event that holds it.
    pub event: EventId,
    /// Which delivery of the event it is, from 1.
    pub attempt: u8,
    /// How many tokens of the limit it takes.
    pub cost: u32,
    /// When its lease ends, or ended.
    pub lease_end: DateTime<Utc>,
    /// Whether its lease ran out.
    pub expired: bool,
}

/// Why an event is where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Where it is.
    pub record: EventRecord,
    /// The instant that the explanation is of.
    pub as_of: DateTime<Utc>,
    /// Why. Of several reasons to wait the first of [`Reason`].
    pub reason: Reason,
    /// How many due events of its policy come before it: those in front of it in the line, and those that slot groups took
    /// from the line and have not admitted. `None` when it does not wait for a token.
    pub events_before: Option<u64>,
    /// The policy that throttles it, and what goes on in it.
    pub policy: Option<PolicyStatus>,
    /// Who holds the tokens, those whose lease ends first in front; at most 100.
    pub holders: Vec<Holder>,
    /// When it is expected to be admitted.
    pub expected_at: Option<DateTime<Utc>>,
    /// What `expected_at` follows from, or why nothing can be expected; empty when it does not wait for a token.
    pub basis: Vec<ExpectationBasis>,
}

impl Queries {
    /// Who holds the tokens of a policy, those whose lease ends first in front; `None` when there is no such policy.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn holders<'a>(
        &'a self,
        client: &'a ClientId,
        policy: &'a PolicyId,
    ) -> BoxFuture<'a, Result<Option<Vec<Holder>>, EngineError>> {
        Box::pin(async move {
            let Some(policy) = self.store.policy(client, policy).await? else { return Ok(None) };
            let groups = self.throttle.groups_as_they_are(&policy).await?;
            Ok(Some(holders_in(&groups, &self.packs_known_to(&groups).await?, self.clock.now())))
        })
    }

    /// Why an event is where it is; `None` when there is no such event.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn explain<'a>(
        &'a self,
        client: &'a ClientId,
        event: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<Explanation>, EngineError>> {
        Box::pin(async move {
            let run = self.find_run(client, event.run()).await?;
            let Some(run) = run.filter(|run| event.index() < run.terms.count.get()) else { return Ok(None) };
            let policy = match &run.terms.policy {
                Some(policy) => self.policy(client, policy).await?,
                None => None,
            };
            let groups = match &policy {
                Some(status) => self.throttle.groups_as_they_are(&status.policy).await?,
                None => Vec::new(),
            };
            let live = Live::of(&run, &groups);
            let index = event.index();
            let record = self.records(client, &run, &live, index..index + 1).await?.rows.pop();
            let Some(record) = record else { return Ok(None) };
            let now = self.clock.now();
            let mut holders = holders_in(&groups, &self.packs_known_to(&groups).await?, now);
            let (mut events_before, mut expected_at, mut basis) = (None, None, Vec::new());
            let reason = match (record.status, &policy) {
                (EventStatus::Waiting, Some(status)) => {
                    let rate_allows_at = self.rate_allows_at(status).await?;
                    let (groups, holders) = (&*groups, &*holders);
                    let wait_context =
                        WaitContext { run: &run, index, status, groups, holders, now, rate_allows_at };
                    let position = wait_context.position(self.entries(&wait_context).await?);
                    let sidelines = self.store.recheck(client).await?.sidelines;
                    let (reason, blocker) = match sidelines.jobs.get(event.run().job()) {
                        Some(job) if job.is_held() => (Reason::Sidelined { since: job.since }, Blocker::Halt),
                        _ => wait_context.reason(&position),
                    };
                    let measured = match blocker {
                        // No speed makes a difference.
                        Blocker::Halt | Blocker::Rate(_) => None,
                        Blocker::Until(_) | Blocker::Others => self.measured(client, &wait_context).await?,
                    };
                    (expected_at, basis) = wait_context.expectation(&position, blocker, measured);
                    events_before = Some(position.events_before);
                    reason
                }
                (EventStatus::Waiting, None) => {
                    let reason = match unthrottled(&run, now) {
                        Reason::BeingDelivered => self.sidelined(client, event).await?,
                        reason => reason,
                    };
                    if let Reason::NotLaunched { launch_at } = reason {
                        expected_at = Some(launch_at);
                    }
                    reason
                }
                (EventStatus::InFlight, policy) => in_flight(&record, policy.as_ref(), now),
                (EventStatus::Succeeded, _) => Reason::Succeeded,
                (EventStatus::Failed, _) => Reason::Failed,
                (EventStatus::Expired, _) => Reason::Expired,
                (EventStatus::Dead, _) => Reason::Dead,
                (EventStatus::Stopped, _) => Reason::Stopped,
                (EventStatus::Delivered, _) => Reason::Delivered,
            };
            holders.truncate(HOLDERS);
            Ok(Some(Explanation {
                record,
                as_of: now,
                reason,
                events_before,
                policy,
                holders,
                expected_at,
                basis,
            }))
        })
    }

    /// Why an event waits that nothing throttles and that is due.
    async fn sidelined(&self, client: &ClientId, event: &EventId) -> Result<Reason, EngineError> {
        let sidelines = self.store.recheck(client).await?.sidelines;
        let held = sidelines.held_by(event.run().job());
        Ok(held.map_or(Reason::BeingDelivered, |held| Reason::Sidelined { since: held.since }))
    }

    async fn rate_allows_at(&self, status: &PolicyStatus) -> Result<Option<DateTime<Utc>>, EngineError> {
        let policy = &status.policy;
        let Some(rate) = policy.rate() else { return Ok(None) };
        let names = (&policy.client, &policy.id);
        let allowed = self.store.rate_allows(names, rate, self.clock.now()).await?;
        Ok(DateTime::from_timestamp_micros(allowed.next_us))
    }

    /// The entries of the policy's line of which something is left, in their order.
    async fn entries(&self, wait_context: &WaitContext<'_>) -> Result<Vec<LineEntry>, EngineError> {
        let policy = &wait_context.status.policy;
        let (mut entries, mut after) = (Vec::new(), None);
        for _ in 0..LINE_PAGES {
            let page = self.store.line(&policy.client, &policy.id, after).await?;
            entries.extend(page.rows.into_iter().filter(|entry| !entry.is_exhausted()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(entries)
    }

    /// How fast events come to their end: those of the run itself, else those of the run that holds most tokens.
    async fn measured(
        &self,
        client: &ClientId,
        wait_context: &WaitContext<'_>,
    ) -> Result<Option<Measured>, EngineError> {
        if let Some(own) = self.speed_of(client, wait_context, wait_context.run.clone()).await? {
            return Ok(Some(own));
        }
        let Some(other) = wait_context.busiest_run() else { return Ok(None) };
        match self.find_run(client, &other).await? {
            Some(row) => self.speed_of(client, wait_context, row).await,
            None => Ok(None),
        }
    }

    async fn speed_of(
        &self,
        client: &ClientId,
        wait_context: &WaitContext<'_>,
        run: RunRow,
    ) -> Result<Option<Measured>, EngineError> {
        let live = Live::of(&run, wait_context.groups);
        let summary = self.summary(client, run.clone(), &live).await?;
        let progress = Progress::new(&run, &summary, (0, 0), Some(wait_context.status), wait_context.now);
        let (is_own, so_far) = (run.id == wait_context.run.id, progress.so_far());
        Ok(progress.speed().map(|per_second| Measured { per_second, is_own, so_far }))
    }
}

/// All who hold a token, those whose lease ends first in front.
fn holders_in(groups: &[SlotGroup], packs: &Packs, now: DateTime<Utc>) -> Vec<Holder> {
    let mut holders: Vec<Holder> = groups
        .iter()
        .flat_map(|group| group.leases.values().filter_map(|lease| holder(group, packs, lease, now)))
        .collect();
    holders.sort_by(|one, other| (one.lease_end, &one.token).cmp(&(other.lease_end, &other.token)));
    holders
}

fn holder(group: &SlotGroup, packs: &Packs, lease: &Lease, now: DateTime<Utc>) -> Option<Holder> {
    Some(Holder {
        token: group.token(lease.id.slot)?,
        event: packs.event(group, &lease.id)?,
        attempt: group.delivery_at(lease),
        cost: lease.id.cost,
        lease_end: lease.ends_at,
        expired: lease.ends_at <= now,
    })
}

/// Why an event that waits for no token is not delivered yet.
fn unthrottled(run: &RunRow, now: DateTime<Utc>) -> Reason {
    let launch_at = run.id.launch_at();
    match () {
        () if run.terms.policy.is_some() => Reason::PolicyDeleted,
        () if launch_at > now => Reason::NotLaunched { launch_at },
        () => Reason::BeingDelivered,
    }
}

fn in_flight(record: &EventRecord, policy: Option<&PolicyStatus>, now: DateTime<Utc>) -> Reason {
    let attempt = record.attempts.unwrap_or(1);
    let (Some(ends_at), Some(status)) = (record.at, policy) else {
        return Reason::InFlight { attempt, lease: None };
    };
    let terms = status.policy.terms;
    if ends_at <= now {
        return Reason::LeaseRanOut { attempt, ended_at: ends_at, on_expiry: terms.on_expiry() };
    }
    let since = shifted(ends_at, -seconds(terms.lease_seconds().into())).min(now);
    Reason::InFlight { attempt, lease: Some(LeaseSpan { since, ends_at }) }
}
