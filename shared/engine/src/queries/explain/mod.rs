//! Why an event is where it is: who holds the tokens that it waits for, its place in line, when its turn is expected.
//!
//! Rows are read one by one, without locks: an event that moves from one to another meanwhile may be found in neither. An
//! explanation is for people; nothing is decided by it.

mod wait_context;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, PolicyId};
use tidegate_domain::policy::OnExpiry;
use tidegate_domain::slots::{Lease, SlotGroup};
use tidegate_domain::time::{seconds, shifted};
use tidegate_domain::token::Token;
use tidegate_store::line::LineEntry;
use tidegate_store::runs::RunRow;

use super::Queries;
use crate::EngineError;
use crate::queries::PolicyStatus;
use crate::queries::forecast::{Progress, clock_text};
use crate::queries::history::{EventRecord, EventStatus, Live};
use crate::queries::packs::Packs;
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
    /// Why, in a sentence.
    pub because: String,
    /// How many due events of its policy come before it: those in front of it in the line, and those that slot groups took
    /// from the line and have not admitted. `None` when it does not wait for a token.
    pub events_before: Option<u64>,
    /// The policy that throttles it, and what goes on in it.
    pub policy: Option<PolicyStatus>,
    /// Who holds the tokens, those whose lease ends first in front; at most 100.
    pub holders: Vec<Holder>,
    /// When it is expected to be admitted.
    pub expected_at: Option<DateTime<Utc>>,
    /// What `expected_at` follows from, in words and numbers, or why nothing can be expected.
    pub reasoning: String,
}

impl Queries {
    /// Who holds the tokens of a policy, those whose lease ends first in front; `None` when there is no such policy.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn holders(
        &self,
        client: &ClientId,
        policy: &PolicyId,
    ) -> Result<Option<Vec<Holder>>, EngineError> {
        let Some(policy) = self.store.policy(client, policy).await? else { return Ok(None) };
        let groups = self.throttle.groups_as_they_are(&policy).await?;
        Ok(Some(holders_in(&groups, &self.packs_known_to(&groups).await?, self.clock.now())))
    }

    /// Why an event is where it is; `None` when there is no such event.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn explain(
        &self,
        client: &ClientId,
        event: &EventId,
    ) -> Result<Option<Explanation>, EngineError> {
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
        let mut explanation = Explanation {
            because: String::new(),
            events_before: None,
            policy,
            holders: Vec::new(),
            expected_at: None,
            reasoning: "it does not wait for a token".to_owned(),
            record,
        };
        match (&explanation.record.status, &explanation.policy) {
            (EventStatus::Waiting, Some(status)) => {
                let rate_allows_at = self.rate_allows_at(status).await?;
                let (groups, holders) = (&*groups, &*holders);
                let wait_context =
                    WaitContext { run: &run, index, status, groups, holders, now, rate_allows_at };
                let place = wait_context.place(self.entries(&wait_context).await?);
                let (because, because_of) = wait_context.because(&place);
                let measured = match because_of {
                    // No speed makes a difference.
                    Blocker::Halt | Blocker::Rate(_) => None,
                    Blocker::Until(_) | Blocker::Others => self.measured(client, &wait_context).await?,
                };
                let (expected_at, reasoning) = wait_context.expectation(&place, because_of, measured);
                explanation.because = because;
                explanation.events_before = Some(place.events_before);
                (explanation.expected_at, explanation.reasoning) = (expected_at, reasoning);
            }
            (EventStatus::Waiting, _) => {
                (explanation.because, explanation.expected_at) = unthrottled(&run, now);
            }
            _ => explanation.because = ended(&explanation.record, explanation.policy.as_ref(), now),
        }
        holders.truncate(HOLDERS);
        explanation.holders = holders;
        Ok(Some(explanation))
    }

    async fn rate_allows_at(&self, status: &PolicyStatus) -> Result<Option<DateTime<Utc>>, EngineError> {
        let policy = &status.policy;
        let Some(rate) = policy.terms.rate() else { return Ok(None) };
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
        let of =
            if run.id == wait_context.run.id { "of its run" } else { "of the run that holds the tokens" };
        Ok(progress
            .speed()
            .map(|per_second| Measured { per_second, words: format!("{of}, {}", progress.so_far()) }))
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
        attempt: lease.attempt,
        cost: lease.id.cost,
        lease_end: lease.ends_at,
        expired: lease.ends_at <= now,
    })
}

/// Why an event that waits for no token is not delivered yet.
fn unthrottled(run: &RunRow, now: DateTime<Utc>) -> (String, Option<DateTime<Utc>>) {
    let launch_at = run.id.launch_at();
    if run.terms.policy.is_some() {
        return ("its policy was deleted: it is not delivered".to_owned(), None);
    }
    if launch_at > now {
        let text = format!("its launch is in the future, at {}", clock_text(launch_at, now));
        return (text, Some(launch_at));
    }
    ("nothing throttles it: its delivery is under way, or is tried again".to_owned(), None)
}

/// Why an event that does not wait is where it is.
fn ended(record: &EventRecord, policy: Option<&PolicyStatus>, now: DateTime<Utc>) -> String {
    let at = record.at.map(|at| format!(" at {}", clock_text(at, now))).unwrap_or_default();
    let said = record.text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    let why = record.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match record.status {
        EventStatus::InFlight => in_flight(record, policy, now),
        EventStatus::Succeeded => format!("its consumer released it as succeeded{at}{said}"),
        EventStatus::Failed => format!("its consumer released it as failed{at}{said}"),
        EventStatus::Expired => {
            "nobody released it before its lease ended, in any of its deliveries".to_owned()
        }
        EventStatus::Dead => format!("it could not be delivered{at}{why}"),
        EventStatus::Stopped => {
            let reason = record.reason.as_deref().unwrap_or("no reason");
            format!("its run was stopped ({reason}): it is not delivered")
        }
        EventStatus::Delivered => format!("it was delivered{at}; nothing throttles it"),
        EventStatus::Waiting => "it waits".to_owned(),
    }
}

fn in_flight(record: &EventRecord, policy: Option<&PolicyStatus>, now: DateTime<Utc>) -> String {
    let attempt = record.attempts.unwrap_or(1);
    let (Some(lease_end), Some(status)) = (record.at, policy) else {
        return format!("its consumer has it, delivery {attempt}");
    };
    let terms = status.policy.terms;
    let end = clock_text(lease_end, now);
    if lease_end <= now {
        let becomes = match terms.on_expiry() {
            OnExpiry::Hold => "the policy holds the token until it is released or freed",
            OnExpiry::Reclaim => "the token is about to be taken back",
        };
        return format!("its consumer has it, delivery {attempt}; the lease ran out at {end}, and {becomes}");
    }
    // An extension by other than the policy's lease moves this by the difference.
    let since = shifted(lease_end, -seconds(terms.lease_seconds().into()));
    let since = clock_text(since.min(now), now);
    format!("its consumer has it, delivery {attempt}: granted or last extended at {since}, lease until {end}")
}
