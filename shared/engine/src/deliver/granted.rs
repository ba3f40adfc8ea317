//! Delivery of events that hold a token.
//!
//! Those for queues go out at once, from wherever the slot was granted. Those for endpoints, and those that a queue did
//! not take, travel through the dispatch queue. An event that cannot be delivered gives its token back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::DateTime;
use futures::stream::{self, StreamExt, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, EventId, RunId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::occurrence::{Occurrence, SkipReason, StopReason};
use tidegate_domain::pack::{PackId, SinglesId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{GroupKey, LeaseId, Outcome, Transition};
use tidegate_domain::time::shifted;
use tidegate_domain::token::Token;
use tidegate_store::doc::Rest;
use tidegate_store::events::{EventRow, HistoryOf, Record};
use tidegate_store::slots::Written;
use tracing::{error, info, warn};

use super::trouble::Troubles;
use super::{Delivery, EventToSend, Sent, backoff};
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

/// Events that are not wanted any more: their leases end unsent. With the run that was stopped, when they are of one.
type Unwanted = Vec<(Option<RunId>, Release)>;

/// What was found of granted events.
#[derive(Default)]
struct LookedUp {
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
    /// It is not wanted any more, and that is recorded. With its run, when that was stopped.
    Unwanted(Option<RunId>),
}

impl Delivery {
    /// Sends granted events. Those that are not wanted any more give their tokens back unsent. When the time of the call is
    /// over, all go through the dispatch queue, to whoever has the time to look them up.
    pub(crate) async fn send_granted(&self, granted: Vec<Granted>) -> Result<Vec<Effect>, EngineError> {
        if deadline::is_over(&*self.clock) {
            let messages: Vec<_> =
                granted.iter().map(|grant| Outgoing::now(grant.token.client(), grant.message(0))).collect();
            return self.queues.dispatch(&messages).await.map(|()| Vec::new());
        }
        let LookedUp { deliveries, here, mut later, unwanted } = self.look_up_all(granted).await;
        let now = self.clock.now();
        let mut troubles = BTreeMap::<(&ClientId, u8), Troubles>::new();
        let (mut last, mut dead) = (Vec::new(), Vec::new());
        let sent = self.send(&deliveries).await;
        for ((grant, delivery), sent) in here.iter().zip(&deliveries).zip(sent) {
            let reason = match sent {
                Sent::Done => {
                    last.extend(delivery.is_last().then_some(&grant.token));
                    continue;
                }
                Sent::Failed { reason, .. } | Sent::Refused { reason } => reason,
            };
            let troubles = troubles.entry((&delivery.client, delivery.attempt)).or_default();
            if delivery.is_last() {
                troubles.dead(&delivery.event, &delivery.terms.terms, &reason);
                dead.push((grant, reason));
                continue;
            }
            troubles.retried(&delivery.event, &delivery.terms.terms, &reason);
            let not_before = shifted(now, backoff(1, None, &*self.random));
            later.push(Outgoing::at(&delivery.client, grant.message(1), not_before));
        }
        troubles.iter().for_each(|((client, attempt), troubles)| troubles.log(client, *attempt));
        let reasons: Vec<Record> =
            dead.iter().map(|(grant, reason)| self.reason(grant, grant.attempt, reason)).collect();
        match self.store.keep(&reasons).await {
            // By messages: what their tokens go to may fail at once as well, and whoever waits for this call would wait for it.
            Ok(()) => later.extend(dead.iter().map(|(grant, _)| grant.dead())),
            Err(error) => {
                warn!(%error, "what failed for the last time is tried again when its lease has ended")
            }
        }
        if !later.is_empty() {
            self.queues.dispatch(&later).await?;
        }
        self.note_sent(last).await;
        self.give_back(unwanted).await
    }

    async fn look_up_all(&self, granted: Vec<Granted>) -> LookedUp {
        let mut all = LookedUp::default();
        let key = self.keys.key().await;
        let key = key.inspect_err(
            |error| warn!(%error, "no token can be signed: what was granted goes through the dispatch queue"),
        );
        let find = async |grant: Granted| (self.find_granted(&grant).await, grant);
        let mut finds = stream::iter(granted.into_iter().map(find)).buffered(LOOKED_UP_AT_ONCE);
        while let Some((found, grant)) = finds.next().await {
            let client = grant.token.client().clone();
            match found {
                Ok(Found::Unwanted(run)) => {
                    all.unwanted.push((run, Release::new(grant.token, Outcome::Dead)));
                }
                Ok(Found::Wanted(event, terms)) => match &key {
                    Ok(key) if terms.terms.target.transport().is_inline => {
                        all.deliveries.push(grant.delivery(event, terms, 0, key));
                        all.here.push(grant);
                    }
                    _ => all.later.push(Outgoing::now(&client, grant.message(0))),
                },
                Err(error) => {
                    warn!(%error, pack = %grant.pack, "a granted event goes through the dispatch queue: it was not found");
                    all.later.push(Outgoing::now(&client, grant.message(0)));
                }
            }
        }
        all
    }

    /// The event that was granted, and what it delivers, unless it is not wanted any more. One that cannot be read is set
    /// aside: its token is given back, with the reason in the history of its pack.
    async fn find_granted(&self, grant: &Granted) -> Result<Found, EngineError> {
        match self.look_up(grant).await {
            Err(error) if error.is_of_one_row() => {
                error!(pack = %grant.pack, token = %grant.token, %error, { ROWS_SET_ASIDE } = 1_u64, "a granted event is set aside");
                self.keep_reason(grant, grant.attempt.saturating_sub(1), &error.to_string()).await?;
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
        let attempt = grant.attempt_after(message.failures);
        let is_wanted = match message.failures {
            0 => received == 1 || self.is_held(&grant.token).await?,
            _ => self.note_attempt(&grant.token, attempt).await?,
        };
        if !is_wanted {
            info!(pack = message.pack, token = message.token, "the event was sent and released before");
            return Ok(Vec::new());
        }
        let client = grant.token.client().clone();
        let Found::Wanted(event, terms) = self.find_granted(&grant).await? else {
            return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])]);
        };
        let max_attempts = terms.terms.max_attempts.get();
        let on_response = terms.terms.flow.release_on_response;
        let key = self.keys.key().await?;
        let delivery = grant.delivery(event.clone(), Arc::clone(&terms), message.failures, &key);
        let is_last = delivery.is_last();
        let sent = self.send(&[delivery]).await.pop();
        let mut troubles = Troubles::default();
        let (reason, retry_after) = match sent {
            Some(Sent::Done) if on_response => {
                return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Succeeded)])]);
            }
            None => return Ok(Vec::new()),
            Some(Sent::Done) => {
                self.note_sent(is_last.then_some(&grant.token)).await;
                return Ok(Vec::new());
            }
            Some(Sent::Failed { reason, retry_after }) if attempt < max_attempts => (reason, retry_after),
            Some(Sent::Failed { reason, .. } | Sent::Refused { reason }) => {
                troubles.dead(&event, &terms.terms, &reason);
                troubles.log(&client, attempt);
                self.keep_reason(&grant, attempt, &reason).await?;
                return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])]);
            }
        };
        let failures = message.failures + 1;
        troubles.retried(&event, &terms.terms, &reason);
        troubles.log(&client, attempt);
        let message = Message::Event(GrantedEvent { failures, ..message.clone() });
        let waits = backoff(failures, retry_after, &*self.random);
        let again = Outgoing::at(&client, message, shifted(self.clock.now(), waits));
        self.queues.dispatch(&[again]).await.map(|()| Vec::new())
    }

    /// Records a granted event as dead whose delivery panicked, and gives its token back.
    pub(crate) async fn set_aside_granted(
        &self,
        message: &GrantedEvent,
        panicked: &Panicked,
    ) -> Result<Vec<Effect>, EngineError> {
        let grant = Granted::read(message)?;
        self.keep_reason(&grant, grant.attempt_after(message.failures), &panicked.to_string()).await?;
        Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])])
    }

    async fn is_held(&self, token: &Token) -> Result<bool, EngineError> {
        let group = self.store.slot_group(&token.group).await?;
        Ok(group.is_some_and(|group| group.holds(&token.lease)))
    }

    /// Notes that a lease is at a repeated delivery of its event; whether the lease is still the present one of its slot.
    async fn note_attempt(&self, token: &Token, attempt: u8) -> Result<bool, EngineError> {
        let noted = Transition::note_attempt(token.lease, attempt);
        Ok(matches!(self.store.perform(&token.group, &noted).await?, Written::Done(_)))
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

    /// The record of why an event was not delivered.
    fn reason(&self, grant: &Granted, attempts: u8, reason: &str) -> Record {
        let event = EventRow {
            index: grant.token.lease.index,
            delivered: false,
            attempts,
            at: self.clock.now(),
            reason: Some(reason.to_owned()),
        };
        let GroupKey { client, policy, .. } = &grant.token.group;
        let (client, of) = (client.clone(), HistoryOf::pack(policy, &grant.pack));
        Record::Event { client, of, event }
    }
}

impl Granted {
    fn read(message: &GrantedEvent) -> Result<Self, EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        let token: Token = message.token.parse().map_err(|e| bad(format!("'token': {e}")))?;
        let pack: PackId = message.pack.parse().map_err(|e| bad(format!("'pack': {e}")))?;
        let lease_end = DateTime::from_timestamp_millis(message.lease_end_ms)
            .ok_or_else(|| bad("'lease_end_ms': no instant".to_owned()))?;
        Ok(Self { pack, recheck: message.recheck, token, lease_end, attempt: message.attempt })
    }

    /// Which delivery comes after so many that failed under its lease.
    fn attempt_after(&self, failures: u8) -> u8 {
        self.attempt.saturating_add(failures)
    }

    /// What is sent after so many deliveries that failed under its lease.
    fn delivery(&self, event: EventId, terms: Arc<Terms>, failures: u8, key: &TokenKey) -> EventToSend {
        let lease = Some((key.sign(&self.token), self.lease_end));
        let (client, attempt) = (self.token.client().clone(), self.attempt_after(failures));
        EventToSend { client, event, attempt, repeats: self.attempt, lease, terms }
    }

    /// Gives its token back: it is dead.
    fn dead(&self) -> Outgoing {
        let token = self.token.to_string();
        let message = Message::Release { token, succeeded: false, dead: true, text: None };
        Outgoing::now(self.token.client(), message)
    }

    fn message(&self, failures: u8) -> Message {
        Message::Event(GrantedEvent {
            pack: self.pack.to_string(),
            recheck: self.recheck,
            token: self.token.to_string(),
            lease_end_ms: self.lease_end.timestamp_millis(),
            attempt: self.attempt,
            failures,
            rest: Rest::default(),
        })
    }
}
