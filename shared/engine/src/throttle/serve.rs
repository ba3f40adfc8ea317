//! Serving a slot group: its free slots go to the events of its range, and to what waits in the line behind.

use chrono::{DateTime, Utc};
use tidegate_domain::limits::{SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::occurrence::StopReason;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{GroupKey, Range, Refill, SlotGroup, Transition};
use tidegate_domain::time::whole_second;
use tidegate_store::Write;
use tidegate_store::line::LineEntry;
use tidegate_store::slots::Written;
use tracing::warn;

use super::Throttle;
use super::parts::Supply;
use super::shares::PolicySnapshot;
use crate::effect::{Effect, Granted, WaitingRun};
use crate::error::readable;
use crate::queues::Outgoing;
use crate::queues::message::Message;
use crate::{EngineError, deadline};

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
    /// The entry that a refill was begun from, as it was seen, and what the group is supplied with.
    entry: Option<(LineEntry, Supply)>,
    /// What else follows.
    more: Vec<Effect>,
    pub(crate) line: Line,
}

impl Served {
    /// A group that is to be served, and what it was granted before.
    pub(super) fn new(group: SlotGroup, granted: Vec<Granted>) -> Self {
        Self { group, granted, entry: None, more: Vec::new(), line: Line::More }
    }

    /// All that follows: sending first, compaction last, when it is due.
    pub(crate) fn effects(self) -> Vec<Effect> {
        let compact = self.group.is_compaction_due().then(|| Effect::Compact(Box::new(self.group)));
        sending(self.granted).into_iter().chain(self.more).chain(compact).collect()
    }

    /// What must be sent, what else follows beside compaction, and the group.
    pub(super) fn into_parts(self) -> (Vec<Granted>, Vec<Effect>, SlotGroup) {
        (self.granted, self.more, self.group)
    }
}

/// What was granted, on its way: of several groups at once, as few calls as may be.
pub(super) fn sending(granted: Vec<Granted>) -> Option<Effect> {
    (!granted.is_empty()).then_some(Effect::Send(granted))
}

/// What a round of serving comes to.
enum Round {
    /// The group changed: there is another round.
    Again,
    /// Nothing more can be done now.
    Over(Line),
}

impl Throttle {
    /// Serves a group that has free slots.
    pub(crate) async fn serve_group(&self, seen: SlotGroup) -> Result<Vec<Effect>, EngineError> {
        let Some(snapshot) = self.snapshot(&seen.key.client, &seen.key.policy, seen.share.plan).await? else {
            // The policy is gone: the tick stops what waits for it.
            return Ok(Vec::new());
        };
        let served = Served::new(seen, Vec::new());
        self.serve(served, (snapshot, Supply::RESERVE), None).await.map(Served::effects)
    }

    /// The same, of a group that changed since it was seen.
    pub(crate) async fn serve_anew(&self, key: &GroupKey) -> Result<Vec<Effect>, EngineError> {
        match self.store.slot_group(key).await? {
            Some(group) => self.serve_group(group).await,
            None => Ok(Vec::new()),
        }
    }

    /// Grants free slots of a group until there is no room or nothing waits. `head`: the head of the line, if it was just
    /// read. After an error what was granted is sent before the call fails: it is among what follows.
    pub(super) async fn serve(
        &self,
        mut served: Served,
        (mut snapshot, supply): (PolicySnapshot, Supply),
        mut head: Option<&[LineEntry]>,
    ) -> Result<Served, EngineError> {
        for _ in 0..SERVE_ROUNDS {
            if deadline::is_over(&*self.clock) {
                served.more.push(Effect::ServeAnew(served.group.key.clone()));
                return Ok(served);
            }
            match self.serve_round(&mut served, (&mut snapshot, supply), &mut head).await {
                Ok(Round::Again) => {}
                Ok(Round::Over(line)) => return Ok(Served { line, ..served }),
                Err(error) if served.granted.is_empty() => return Err(error),
                Err(error) => {
                    served.more.push(Effect::Fail(error));
                    return Ok(served);
                }
            }
        }
        // The next release, wake-up or tick goes on from here.
        warn!(group = ?served.group.key, "a slot group is left after many rounds");
        Ok(served)
    }

    async fn serve_round(
        &self,
        served: &mut Served,
        (snapshot, supply): (&mut PolicySnapshot, Supply),
        head: &mut Option<&[LineEntry]>,
    ) -> Result<Round, EngineError> {
        match &served.group.refill {
            Refill::Begun { entry } => {
                let (entry, begun) = (entry.clone(), served.entry.take());
                let supply = begun.as_ref().map_or(supply, |(_, supply)| *supply);
                let entry = (&*entry, begun.as_ref().map(|(entry, _)| entry));
                self.finish_refill(&mut served.group, entry, supply, &mut served.more).await?;
                Ok(Round::Again)
            }
            Refill::Idle => self.begin_refill(served, supply, head.take()).await,
            Refill::Serving(range) => {
                let range = *range;
                self.grant(served, range, snapshot).await
            }
        }
    }

    async fn begin_refill(
        &self,
        served: &mut Served,
        supply: Supply,
        head: Option<&[LineEntry]>,
    ) -> Result<Round, EngineError> {
        let group = &mut served.group;
        let is_full = group.room() == 0 || group.free_slots().next().is_none();
        let is_reserve = |supply| matches!(supply, Supply::Reserve { .. });
        if is_full && !(is_reserve(supply) && (1..=group.share.cap).contains(&group.held)) {
            return Ok(Round::Over(Line::More));
        }
        let next = self.next_entry((group, supply), head, &mut served.more).await?;
        let Some((entry, supply)) = next else { return Ok(Round::Over(Line::Nothing)) };
        // What few wait for goes where slots are free, and nobody keeps a turn.
        if is_full && !is_reserve(supply) {
            return Ok(Round::Over(Line::More));
        }
        match self.store.perform(&group.key, &Transition::begin_refill(group, &entry.line_key)).await? {
            Written::Done(now_seen) => {
                *group = now_seen;
                served.entry = Some((entry, supply));
            }
            Written::Refused(Some(now_seen)) => *group = now_seen,
            Written::Refused(None) => return Ok(Round::Over(Line::Nothing)),
        }
        Ok(Round::Again)
    }

    /// Gives free slots to the next events of the range.
    async fn grant(
        &self,
        served: &mut Served,
        range: Range,
        snapshot: &mut PolicySnapshot,
    ) -> Result<Round, EngineError> {
        if range.deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
            return self.end_range(served, range).await;
        }
        let mut slots = served.group.grantable();
        if slots.is_empty() {
            return Ok(Round::Over(Line::More));
        }
        if served.group.share.rated {
            let leave = self.take_rate(&served.group, snapshot, slots.len(), &mut served.more).await?;
            slots.truncate(leave);
            if slots.is_empty() {
                return Ok(Round::Over(Line::Nothing));
            }
        }
        let lease = self.new_lease(snapshot.lease);
        let grant = Transition::grant(&served.group, &slots, lease, self.clock.now());
        match self.store.perform(&served.group.key, &grant).await? {
            Written::Done(now_seen) => {
                served.granted.extend(Granted::all_in(&now_seen, slots));
                served.group = now_seen;
            }
            Written::Refused(Some(now_seen)) => {
                // The reply to our own write can be lost and the client library repeat it: then it is ours.
                served.granted.extend(Granted::all_in(&now_seen, now_seen.given_by(lease.write_id)));
                served.group = now_seen;
            }
            Written::Refused(None) => return Ok(Round::Over(Line::Nothing)),
        }
        Ok(Round::Again)
    }

    /// How many of `wanted` events may begin now under the policy's rate. When it is fewer, the policy is woken in time.
    async fn take_rate(
        &self,
        group: &SlotGroup,
        snapshot: &mut PolicySnapshot,
        wanted: usize,
        more: &mut Vec<Effect>,
    ) -> Result<usize, EngineError> {
        let policy = PolicyRef::of(group);
        if snapshot.plan < group.share.plan {
            let known = self.snapshot(&policy.client, &policy.policy, group.share.plan).await?;
            *snapshot = known.unwrap_or(*snapshot);
        }
        let Some(rate) = snapshot.rate else { return Ok(wanted) };
        let asked = u32::try_from(wanted).unwrap_or(u32::MAX);
        let allowed =
            self.store.take_rate((&policy.client, &policy.policy), rate, asked, self.clock.now()).await?;
        if allowed.events < asked {
            let next_at = DateTime::from_timestamp_micros(allowed.next_us).unwrap_or_default();
            more.push(Effect::Wake(policy, next_at));
        }
        Ok(allowed.events as usize)
    }

    /// The window of the run that a group serves is over: the run is stopped, then the group is served on.
    async fn end_range(&self, served: &mut Served, range: Range) -> Result<Round, EngineError> {
        let group = &served.group;
        // Packs of single events have no deadline of their own.
        let Some(PackId::Run(run)) = group.serving().cloned() else { return Ok(Round::Over(Line::More)) };
        match readable(self.contents.run_terms(&group.key.client, &run).await)? {
            Some(terms) => {
                let rank = terms.terms.flow.rank();
                let waiting = WaitingRun { policy: PolicyRef::of(group), run, rank };
                served.more.push(Effect::Stop(waiting, StopReason::Deadline.as_str()));
                served.more.push(Effect::ServeAnew(group.key.clone()));
                Ok(Round::Over(Line::More))
            }
            None => {
                self.store.drop_range(group, range, &run).await?;
                match self.store.slot_group(&group.key).await? {
                    Some(now_seen) => served.group = now_seen,
                    None => return Ok(Round::Over(Line::Nothing)),
                }
                Ok(Round::Again)
            }
        }
    }

    /// Sees to it that a policy is looked after at an instant. One message at a time is under way; when it is lost, the
    /// tick does the same.
    pub(crate) async fn wake_at(&self, policy: &PolicyRef, due_at: DateTime<Utc>) -> Result<(), EngineError> {
        let PolicyRef { client, policy } = policy;
        let now = self.clock.now();
        // Messages come by the second.
        let due_at = whole_second(due_at).max(now);
        if self.memory.woken_by(client, policy).is_some_and(|by| now < by && by <= due_at) {
            return Ok(());
        }
        let claimed = self.store.claim_wake(client, policy, due_at, now).await?;
        self.memory.keep_wake(client, policy, due_at);
        if claimed == Write::Refused {
            return Ok(());
        }
        self.queues.dispatch(&[Outgoing::at(client, Message::wake(client, policy, due_at), due_at)]).await
    }
}
