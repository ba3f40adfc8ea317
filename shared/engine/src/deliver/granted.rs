//! Delivery of events that hold a token.
//!
//! Those for queues go out at once, from wherever the slot was granted; those for endpoints travel through the dispatch queue.
//! Those that a target did not take return to the line until they are sent again: whoever waits holds no token.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use futures::stream::{self, StreamExt, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, EventId, RunId};
use tidegate_domain::job::{self, HistoryDays};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::occurrence::{Occurrence, SkipReason, StopReason};
use tidegate_domain::pack::{PackId, SinglesId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::retry::Tries;
use tidegate_domain::slots::{GroupKey, LeaseId, Outcome, Transition};
use tidegate_domain::time::{seconds, shifted};
use tidegate_domain::token::Token;
use tidegate_store::doc::Rest;
use tidegate_store::events::{EventRow, HistoryOf, Record};
use tidegate_store::line::Requeued;
use tidegate_store::slots::Written;
use tracing::{error, info, warn};

use super::back_to_line::all_or_each;
use super::sidelined_in_line::{AllSidelines, SidelinedEvent};
use super::trouble::Troubles;
use super::{Delivery, EventToSend, Sent, signs};
use crate::contents::Terms;
use crate::effect::{Effect, Granted, Release};
use crate::figures::ROWS_SET_ASIDE;
use crate::queues::Outgoing;
use crate::queues::message::{GrantedEvent, Message};
use crate::{EngineError, Panicked, TokenKey, deadline};

/// Granted events that are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 16;
/// Runs that are stopped at once.
const STOPPED_AT_ONCE: usize = 16;
/// Events that are put back at once. Those of one slot group stand in each other's way.
const REQUEUED_AT_ONCE: usize = 8;
/// How long what waits behind events that failed waits for their slots.
const SERVED_AFTER: Duration = seconds(1);
/// Wake-ups that events of one call ask for that are sent again.
const WAKES: usize = 10;

/// Events that are not wanted any more: their leases end unsent. With the run that was stopped, when they are of one.
type Unwanted = Vec<(Option<RunId>, Release)>;

/// When and how an event is sent again that its target did not take.
#[derive(Clone, Copy)]
struct Again {
    tries: Tries,
    due_at: DateTime<Utc>,
    priority: u8,
}

/// A delivery that failed.
struct Failure {
    reason: String,
    /// `None`: it was the last one.
    again: Option<Again>,
}

impl Failure {
    fn note(&self, event: &EventId, terms: &job::Terms, troubles: &mut Troubles) {
        match self.again {
            Some(_) => troubles.retried(event, terms, &self.reason),
            None => troubles.dead(event, terms, &self.reason),
        }
    }
}

/// What was found of granted events.
#[derive(Default)]
struct LookedUp {
    /// Those whose jobs are sidelined.
    sidelined: Vec<SidelinedEvent>,
    /// Those to be sent from here, and what is sent.
    here: Vec<Granted>,
    deliveries: Vec<EventToSend>,
    /// What goes through the dispatch queue.
    later: Vec<Outgoing>,
    unwanted: Unwanted,
}

/// What was found of a granted event.
enum Found {
    /// It is to be sent.
    Wanted(EventId, Arc<Terms>),
    /// It waits until its job is drained; with its priority.
    Sidelined(EventId, u8),
    /// It is not wanted any more, and that is recorded. With its run, when that was stopped.
    Unwanted(Option<RunId>),
}

impl Delivery {
    /// Sends granted events. Those that are not wanted any more give their tokens back unsent. When the time of the call is
    /// over, all go through the dispatch queue, to whoever has the time to look them up.
    pub(crate) async fn send_granted(&self, granted: Vec<Granted>) -> Result<Vec<Effect>, EngineError> {
        if deadline::is_over(&*self.clock) {
            return self.queues.dispatch(&Granted::messages(&granted)).await.map(|()| Vec::new());
        }
        let LookedUp { sidelined, deliveries, here, mut later, unwanted } = self.look_up_all(granted).await;
        let mut troubles = BTreeMap::<(&ClientId, u8), Troubles>::new();
        let (mut last, mut dead, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let sent = self.send(&deliveries).await;
        let strained = strained(here.iter().zip(&sent));
        for ((grant, delivery), sent) in here.iter().zip(&deliveries).zip(sent) {
            let Some(failure) = self.failure(grant, &delivery.terms.terms, sent) else {
                self.note_delivered(delivery);
                last.extend(delivery.is_last().then_some(&grant.token));
                continue;
            };
            let troubles = troubles.entry((&delivery.client, delivery.attempt)).or_default();
            failure.note(&delivery.event, &delivery.terms.terms, troubles);
            match failure.again {
                Some(again) => failed.push((grant, again)),
                None => dead.push((grant, failure.reason)),
            }
        }
        troubles.iter().for_each(|((client, attempt), troubles)| troubles.log(client, *attempt));
        let reasons: Vec<Record> =
            dead.iter().map(|(grant, reason)| self.reason(grant, grant.delivery_number(), reason)).collect();
        match self.store.keep(&reasons).await {
            // By messages: what their tokens go to may fail at once as well, and whoever waits for this call would wait for it.
            Ok(()) => later.extend(dead.iter().map(|(grant, ..)| grant.dead())),
            Err(error) => {
                warn!(%error, "what failed for the last time is tried again when its lease has ended")
            }
        }
        later.extend(self.requeue(&failed).await);
        if !later.is_empty() {
            self.queues.dispatch(&later).await?;
        }
        self.note_sent(last).await;
        let mut effects = self.give_back(unwanted).await?;
        effects.extend(strained);
        effects.extend(self.sideline_events(&sidelined).await?);
        Ok(effects)
    }

    /// What a delivery that failed leads to; `None`: it did not fail.
    fn failure(&self, grant: &Granted, terms: &job::Terms, sent: Sent) -> Option<Failure> {
        let now = self.clock.now();
        let (reason, again) = match sent {
            Sent::Done => return None,
            Sent::Refused { reason } => (reason, None),
            Sent::Failed { reason, retry_after, .. } => {
                let tries = Tries::after_failure(grant.tries, grant.delivery_number(), now);
                let wait = terms.retry_in(tries, retry_after, now, self.random.next_u64());
                let priority = terms.flow.priority.get();
                (reason, wait.map(|wait| Again { tries, due_at: shifted(now, wait), priority }))
            }
        };
        Some(Failure { reason, again })
    }

    /// Events that their target did not take give their tokens back and return to the line, each until it is sent again. What
    /// follows are messages: their policies are looked after when the first of them are due.
    ///
    /// Nobody serves the slots that become free at once: when a target takes nothing, all that waits would go round within one
    /// call. An event that cannot be put back is sent again when its lease has ended.
    async fn requeue(&self, failed: &[(&Granted, Again)]) -> Vec<Outgoing> {
        let mut groups = BTreeMap::<&GroupKey, Vec<(&Granted, Again)>>::new();
        for (grant, again) in failed {
            groups.entry(&grant.token.group).or_default().push((grant, *again));
        }
        let soonest = shifted(self.clock.now(), SERVED_AFTER);
        let backs: Vec<_> = groups.into_iter().map(|(key, events)| self.requeue_in(key, events)).collect();
        let mut backs = stream::iter(backs).buffer_unordered(REQUEUED_AT_ONCE);
        let mut due = Vec::new();
        while let Some((policy, back)) = backs.next().await {
            let due_ats = back.iter().map(|again| again.due_at.max(soonest)).chain([soonest]);
            due.extend(due_ats.map(|due_at| (policy.clone(), due_at)));
        }
        // What is due later the tick sees to.
        let mut wakes = Outgoing::wakes(due);
        wakes.truncate(WAKES);
        wakes
    }

    /// The same of events of one group: together, or one by one where one of them is not its any more. Answers with those that
    /// are back.
    async fn requeue_in(&self, key: &GroupKey, events: Vec<(&Granted, Again)>) -> (PolicyRef, Vec<Again>) {
        let entry = |(grant, again): &(&Granted, Again)| {
            let Again { tries, due_at, priority } = *again;
            (grant.token.lease, Requeued { pack: grant.pack.clone(), priority, tries, due_at })
        };
        if !self.may_go_back(key, events.iter().map(|(grant, _)| *grant)).await {
            return (PolicyRef::of_key(key), Vec::new());
        }
        let entries: Vec<_> = events.iter().map(entry).collect();
        let back = all_or_each(key, &entries, |some| Box::pin(self.store.requeue(key, some))).await;
        let is_back = |grant: &Granted| back.iter().any(|(lease, _)| *lease == grant.token.lease);
        let again = events.iter().filter(|(grant, _)| is_back(grant));
        (PolicyRef::of_key(key), again.map(|(_, again)| *again).collect())
    }

    async fn look_up_all(&self, granted: Vec<Granted>) -> LookedUp {
        let mut all = LookedUp::default();
        let key = self.keys.key().await;
        let key = key.inspect_err(
            |error| warn!(%error, "no token can be signed: what was granted goes through the dispatch queue"),
        );
        let sidelines = match self.sidelines_of(&granted).await {
            Ok(sidelines) => sidelines,
            Err(error) => {
                warn!(%error, "what is sidelined cannot be read: what was granted goes through the dispatch queue");
                all.later = Granted::messages(&granted);
                return all;
            }
        };
        let find = async |grant: Granted| (self.find_granted(&grant, &sidelines).await, grant);
        let mut finds = stream::iter(granted.into_iter().map(find)).buffered(LOOKED_UP_AT_ONCE);
        while let Some((found, grant)) = finds.next().await {
            let client = grant.token.client().clone();
            match found {
                Ok(Found::Unwanted(run)) => {
                    all.unwanted.push((run, Release::new(grant.token, Outcome::Dead)));
                }
                Ok(Found::Sidelined(event, priority)) => {
                    all.sidelined.push(SidelinedEvent { grant, event, priority });
                }
                Ok(Found::Wanted(event, terms)) => match &key {
                    Ok(key) if terms.terms.target.transport().is_inline => {
                        all.deliveries.push(grant.delivery(event, terms, key));
                        all.here.push(grant);
                    }
                    _ => all.later.push(Outgoing::now(&client, grant.message())),
                },
                Err(error) => {
                    warn!(%error, pack = %grant.pack, "a granted event goes through the dispatch queue: it was not found");
                    all.later.push(Outgoing::now(&client, grant.message()));
                }
            }
        }
        all
    }

    /// The event that was granted, and what it delivers, unless it is not wanted any more. One that cannot be read is set
    /// aside: its token is given back, with the reason in the history of its pack.
    async fn find_granted(&self, grant: &Granted, sidelines: &AllSidelines) -> Result<Found, EngineError> {
        match self.look_up(grant).await {
            Ok(Found::Wanted(event, terms)) if sidelines.hold(grant.token.client(), event.run().job()) => {
                Ok(Found::Sidelined(event, terms.terms.flow.priority.get()))
            }
            Err(error) if error.is_of_one_row() => {
                error!(pack = %grant.pack, token = %grant.token, %error, { ROWS_SET_ASIDE } = 1_u64, "a granted event is set aside");
                self.keep_reason(grant, grant.delivery_number().saturating_sub(1), &error.to_string())
                    .await?;
                Ok(Found::Unwanted(None))
            }
            found => found,
        }
    }

    async fn look_up(&self, grant: &Granted) -> Result<Found, EngineError> {
        let client = grant.token.client();
        let run = match &grant.pack {
            PackId::Run(run) => run,
            PackId::Singles(id) => return self.find_single(grant, *id).await,
        };
        match self.contents.run_terms(client, run).await? {
            Some(terms) if terms.terms.is_too_old(run.launch_at(), self.clock.now()) => {
                self.store.stop_run(client, run, SkipReason::Expired.as_str()).await?;
                self.contents.forget_run(client, run);
                Ok(Found::Unwanted(Some(run.clone())))
            }
            Some(terms) => Ok(Found::Wanted(run.event(grant.token.lease.index), terms)),
            None => Ok(Found::Unwanted(Some(run.clone()))),
        }
    }

    async fn find_single(&self, grant: &Granted, id: SinglesId) -> Result<Found, EngineError> {
        let pack = self.contents.pack(&PolicyRef::of_key(&grant.token.group), id).await?;
        let Some(member) = pack.as_ref().and_then(|pack| pack.member(grant.token.lease.index)) else {
            // The time of the pack is over: there is nobody to tell.
            return Ok(Found::Unwanted(None));
        };
        match self.find_member(grant, member).await {
            Err(error) if error.is_of_one_row() => {
                let Occurrence { client, job, .. } = member;
                error!(%client, %job, %error, { ROWS_SET_ASIDE } = 1_u64, "a granted event is set aside: its job cannot be read");
                self.skip_single(member, SkipReason::NotEmittable.as_str()).await
            }
            found => found,
        }
    }

    async fn find_member(&self, grant: &Granted, member: &Occurrence) -> Result<Found, EngineError> {
        if grant.recheck
            && let Some(reason) = self.single_unwanted_because(member).await?
        {
            return self.skip_single(member, &reason).await;
        }
        if member.terms.is_too_old(member.launch_at, self.clock.now()) {
            return self.skip_single(member, SkipReason::Expired.as_str()).await;
        }
        match self.contents.member_terms(member).await? {
            Some(terms) => Ok(Found::Wanted(member.run_id().event(0), terms)),
            None => self.skip_single(member, StopReason::PayloadGone.as_str()).await,
        }
    }

    async fn skip_single(&self, member: &Occurrence, reason: &str) -> Result<Found, EngineError> {
        self.store.stop_single(member, reason, self.clock.now()).await?;
        Ok(Found::Unwanted(None))
    }

    /// Gives back the tokens of events that are not wanted; first what their groups still have of runs that were stopped is
    /// dropped, or each token would go on to another event that nobody wants.
    async fn give_back(&self, unwanted: Unwanted) -> Result<Vec<Effect>, EngineError> {
        let mut groups = BTreeMap::<(PolicyRef, &RunId), BTreeSet<&GroupKey>>::new();
        for (run, release) in &unwanted {
            let key = &release.token.group;
            if let Some(run) = run {
                groups.entry((PolicyRef::of_key(key), run)).or_default().insert(key);
            }
        }
        // One whose payload is gone with its job was stopped by nobody yet; a first reason stays.
        let stops: Vec<_> = groups
            .keys()
            .map(|(policy, run)| self.store.stop_run(&policy.client, run, StopReason::PayloadGone.as_str()))
            .collect();
        stream::iter(stops).buffer_unordered(STOPPED_AT_ONCE).try_for_each(async |_| Ok(())).await?;
        let drops = groups.into_iter().map(|((policy, run), keys)| {
            Effect::DropRanges(policy, keys.into_iter().cloned().collect(), run.clone())
        });
        let mut effects: Vec<Effect> = drops.collect();
        effects.push(Effect::Release(unwanted.into_iter().map(|(_, release)| release).collect()));
        Ok(effects)
    }

    /// Sends a granted event that came through the dispatch queue. `received` is how often its message came.
    pub(crate) async fn deliver_granted(
        &self,
        message: &GrantedEvent,
        received: u32,
    ) -> Result<Vec<Effect>, EngineError> {
        let grant = Granted::read(message)?;
        if self.clock.now() >= grant.lease_end {
            info!(pack = message.pack, token = message.token, "the lease ended before its event was sent");
            return Ok(Vec::new());
        }
        if received > 1 && !self.is_held(&grant.token).await? {
            info!(
                pack = message.pack,
                token = message.token,
                "the event was sent and released, or put back, before"
            );
            return Ok(Vec::new());
        }
        let client = grant.token.client().clone();
        let sidelines = self.sidelines_of(std::slice::from_ref(&grant)).await?;
        let (event, terms) = match self.find_granted(&grant, &sidelines).await? {
            Found::Wanted(event, terms) => (event, terms),
            Found::Sidelined(event, priority) => {
                return self.sideline_events(&[SidelinedEvent { grant, event, priority }]).await;
            }
            Found::Unwanted(_) => {
                return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])]);
            }
        };
        let key = self.keys.key().await?;
        let delivery = grant.delivery(event.clone(), Arc::clone(&terms), &key);
        let (attempt, is_last) = (delivery.attempt, delivery.is_last());
        let deliveries = [delivery];
        let Some(sent) = self.send(&deliveries).await.pop() else { return Ok(Vec::new()) };
        let strained = strained([(&grant, &sent)]);
        let Some(failure) = self.failure(&grant, &terms.terms, sent) else {
            deliveries.iter().for_each(|delivery| self.note_delivered(delivery));
            if terms.terms.flow.release_on_response {
                return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Succeeded)])]);
            }
            self.note_sent(is_last.then_some(&grant.token)).await;
            return Ok(Vec::new());
        };
        let mut troubles = Troubles::default();
        failure.note(&event, &terms.terms, &mut troubles);
        troubles.log(&client, attempt);
        match failure.again {
            Some(again) => {
                let wakes = self.requeue(&[(&grant, again)]).await;
                self.queues.dispatch(&wakes).await?;
                Ok(strained)
            }
            None => {
                self.keep_reason(&grant, attempt, &failure.reason).await?;
                let release = Effect::Release(vec![Release::new(grant.token, Outcome::Dead)]);
                // First, so that its token is not handed on at once.
                Ok(strained.into_iter().chain([release]).collect())
            }
        }
    }

    /// Records a granted event as dead whose delivery panicked, and gives its token back.
    pub(crate) async fn set_aside_granted(
        &self,
        message: &GrantedEvent,
        panicked: &Panicked,
    ) -> Result<Vec<Effect>, EngineError> {
        let grant = Granted::read(message)?;
        self.keep_reason(&grant, grant.delivery_number(), &panicked.to_string()).await?;
        Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])])
    }

    async fn is_held(&self, token: &Token) -> Result<bool, EngineError> {
        let group = self.store.slot_group(&token.group).await?;
        Ok(group.is_some_and(|group| group.holds(&token.lease)))
    }

    /// Notes of leases that the last delivery of their events was sent. Those for which it fails are delivered once more when
    /// they run out.
    async fn note_sent<'a>(&self, last: impl IntoIterator<Item = &'a Token>) {
        let mut groups = BTreeMap::<&GroupKey, Vec<LeaseId>>::new();
        for token in last {
            groups.entry(&token.group).or_default().push(token.lease);
        }
        for (key, leases) in groups {
            if let Err(error) = self.note_sent_in(key, leases).await {
                warn!(%error, group = ?key, "that last deliveries were sent is not noted");
            }
        }
    }

    async fn note_sent_in(&self, key: &GroupKey, mut leases: Vec<LeaseId>) -> Result<(), EngineError> {
        for _ in 0..WRITE_ROUNDS {
            match self.store.perform(key, &Transition::note_sent(&leases)).await? {
                Written::Refused(Some(group)) => leases.retain(|lease| group.holds(lease)),
                Written::Done(_) | Written::Refused(None) => return Ok(()),
            }
            if leases.is_empty() {
                return Ok(());
            }
        }
        Err(EngineError::Contended { what: "leases", rounds: WRITE_ROUNDS })
    }

    async fn keep_reason(&self, grant: &Granted, attempts: u8, reason: &str) -> Result<(), EngineError> {
        Ok(self.store.keep(&[self.reason(grant, attempts, reason)]).await?)
    }

    /// The record of why an event was not delivered. Its dead letter has it when its end is compacted: until then the lease may
    /// run out before its token is given back, and the event be delivered again.
    fn reason(&self, grant: &Granted, attempts: u8, reason: &str) -> Record {
        let (index, at) = (grant.token.lease.index, self.clock.now());
        let GroupKey { client, policy, .. } = &grant.token.group;
        let event = EventRow { index, delivered: false, attempts, at, reason: Some(reason.to_owned()) };
        let (of, kept) = (HistoryOf::pack(policy, &grant.pack), grant.history_days);
        Record::Event { client: client.clone(), of, event, kept }
    }
}

/// What follows for policies whose consumers cannot keep up, for all that their answers say.
fn strained<'s>(answers: impl IntoIterator<Item = (&'s Granted, &'s Sent)>) -> Vec<Effect> {
    let signs = signs(answers, |grant| PolicyRef::of_key(&grant.token.group));
    signs.into_iter().map(|(policy, sign)| Effect::Strained(policy, sign)).collect()
}

impl Granted {
    fn read(message: &GrantedEvent) -> Result<Self, EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        let token: Token = message.token.parse().map_err(|e| bad(format!("'token': {e}")))?;
        let pack: PackId = message.pack.parse().map_err(|e| bad(format!("'pack': {e}")))?;
        let lease_end = DateTime::from_timestamp_millis(message.lease_end_ms)
            .ok_or_else(|| bad("'lease_end_ms': no instant".to_owned()))?;
        let (attempt, failed) = (message.attempt, message.failures);
        let made = attempt.saturating_add(failed).saturating_sub(1);
        // A version before this one did not say since when, and sent it again under the same lease.
        let since_s = message.failing_since_s.unwrap_or(lease_end.timestamp());
        let tries = (failed > 0).then_some(Tries { made, failed, since_s });
        let history_days = HistoryDays::read(message.history_days);
        let history_days = history_days.map_err(|e| bad(format!("'history_days': {e}")))?;
        Ok(Self { pack, recheck: message.recheck, history_days, token, lease_end, attempt, tries })
    }

    fn delivery(&self, event: EventId, terms: Arc<Terms>, key: &TokenKey) -> EventToSend {
        let lease = Some((key.sign(&self.token), self.lease_end));
        let (client, attempt, hand_over) =
            (self.token.client().clone(), self.delivery_number(), self.attempt);
        EventToSend { client, event, attempt, hand_over, lease, terms }
    }

    /// Gives its token back: it is dead.
    fn dead(&self) -> Outgoing {
        let token = self.token.to_string();
        let message = Message::Release { token, succeeded: false, dead: true, text: None };
        Outgoing::now(self.token.client(), message)
    }

    /// All of them through the dispatch queue.
    fn messages(granted: &[Self]) -> Vec<Outgoing> {
        granted.iter().map(|grant| Outgoing::now(grant.token.client(), grant.message())).collect()
    }

    fn message(&self) -> Message {
        Message::Event(GrantedEvent {
            pack: self.pack.to_string(),
            recheck: self.recheck,
            history_days: (self.history_days != HistoryDays::DEFAULT).then(|| self.history_days.get()),
            token: self.token.to_string(),
            lease_end_ms: self.lease_end.timestamp_millis(),
            attempt: self.attempt,
            failures: self.failed(),
            failing_since_s: self.tries.map(|tries| tries.since_s),
            rest: Rest::default(),
        })
    }
}
