//! Delivery of events that hold a token.
//!
//! Those for queues go out at once, from wherever the slot was granted. Those for endpoints, and those that a queue did
//! not take, travel through the dispatch queue. An event that cannot be delivered gives its token back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::DateTime;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::occurrence::{NonRun, StopReason};
use tidegate_domain::slots::{GroupKey, Outcome, Transition};
use tidegate_domain::time::shifted;
use tidegate_domain::token::Token;
use tidegate_store::slots::Written;
use tracing::info;

use super::trouble::Troubles;
use super::{Delivery, Sent, backoff};
use crate::effect::{Effect, Granted, Release};
use crate::message::{GrantedEvent, Message};
use crate::queue::Outgoing;
use crate::{Engine, EngineError, Panicked, TokenKey};

/// Events whose runs were stopped: their leases end unsent.
type Stopped = Vec<(RunId, Release)>;

impl Engine {
    /// Sends granted events. Events of runs that were stopped give their tokens back unsent.
    pub(crate) async fn send_granted(&self, granted: Vec<Granted>) -> Result<Vec<Effect>, EngineError> {
        let (mut deliveries, mut here) = (Vec::new(), Vec::new());
        let (mut later, mut stopped) = (Vec::new(), Stopped::new());
        for grant in granted {
            let client = grant.token.client().clone();
            let run = grant.event.run();
            match self.run_terms(&client, run).await? {
                None => stopped.push((run.clone(), Release::new(grant.token, Outcome::Dead))),
                Some(terms) if terms.terms.is_too_old(run.launch_at(), self.now()) => {
                    self.store().stop_run(&client, run, NonRun::Expired.as_str()).await?;
                    self.forget_run(&client, run);
                    stopped.push((run.clone(), Release::new(grant.token, Outcome::Dead)));
                }
                Some(terms) if terms.terms.target.is_http() => {
                    later.push(Outgoing::now(&client, grant.message(0)));
                }
                Some(terms) => {
                    deliveries.push(grant.delivery(client, terms, 0, &*self.token_key().await?));
                    here.push(grant);
                }
            }
        }
        let now = self.now();
        let mut troubles = BTreeMap::<(&ClientId, u8), Troubles>::new();
        let sent = self.send(&deliveries).await;
        for ((grant, delivery), sent) in here.iter().zip(&deliveries).zip(sent) {
            let reason = match sent {
                Sent::Done => continue,
                Sent::Failed { reason, .. } | Sent::Refused { reason } => reason,
            };
            let troubles = troubles.entry((&delivery.client, delivery.attempt)).or_default();
            troubles.retried(&grant.event, &delivery.terms.terms, &reason);
            let not_before = shifted(now, backoff(1, None));
            later.push(Outgoing::at(&delivery.client, grant.message(1), not_before));
        }
        troubles.iter().for_each(|((client, attempt), troubles)| troubles.log(client, *attempt));
        if !later.is_empty() {
            self.dispatch(&later).await?;
        }
        self.give_back_stopped(stopped).await
    }

    /// Gives back the tokens of events whose runs were stopped; first what their groups still have of those runs is
    /// dropped, or each token would go on to another event that nobody wants.
    async fn give_back_stopped(&self, stopped: Stopped) -> Result<Vec<Effect>, EngineError> {
        let groups: BTreeSet<(&GroupKey, &RunId)> =
            stopped.iter().map(|(run, release)| (&release.token.group, run)).collect();
        for (key, run) in groups {
            // One whose payload is gone with its job was stopped by nobody yet; a first reason stays.
            self.store().stop_run(&key.client, run, StopReason::PayloadGone.as_str()).await?;
            self.drop_range_of(key, run).await?;
        }
        Ok(vec![Effect::Release(stopped.into_iter().map(|(_, release)| release).collect())])
    }

    /// Sends a granted event that came through the dispatch queue. `received` is how often its message came.
    pub(crate) async fn deliver_granted(
        &self,
        message: &GrantedEvent,
        received: u32,
    ) -> Result<Vec<Effect>, EngineError> {
        let grant = Granted::read(message)?;
        if self.now() >= grant.lease_end {
            info!(run = message.run, token = message.token, "the lease ended before its event was sent");
            return Ok(Vec::new());
        }
        let attempt = grant.attempt_after(message.failures);
        let is_wanted = match message.failures {
            0 => received == 1 || self.is_held(&grant.token).await?,
            _ => self.note_attempt(&grant.token, attempt).await?,
        };
        if !is_wanted {
            info!(run = message.run, token = message.token, "the event was sent and released before");
            return Ok(Vec::new());
        }
        let client = grant.token.client().clone();
        let Some(terms) = self.run_terms(&client, grant.event.run()).await? else {
            return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])]);
        };
        let max_attempts = terms.terms.max_attempts.get();
        let on_response = terms.terms.flow.release_on_response;
        let key = self.token_key().await?;
        let delivery = grant.delivery(client.clone(), Arc::clone(&terms), message.failures, &key);
        let sent = self.send(&[delivery]).await.pop();
        let mut troubles = Troubles::default();
        let (reason, retry_after) = match sent {
            Some(Sent::Done) if on_response => {
                return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Succeeded)])]);
            }
            None | Some(Sent::Done) => return Ok(Vec::new()),
            Some(Sent::Failed { reason, retry_after }) if attempt < max_attempts => (reason, retry_after),
            Some(Sent::Failed { reason, .. } | Sent::Refused { reason }) => {
                troubles.dead(&grant.event, &terms.terms, &reason);
                troubles.log(&client, attempt);
                self.keep_reason(&grant, attempt, &reason).await?;
                return Ok(vec![Effect::Release(vec![Release::new(grant.token, Outcome::Dead)])]);
            }
        };
        let failures = message.failures + 1;
        troubles.retried(&grant.event, &terms.terms, &reason);
        troubles.log(&client, attempt);
        let again = Outgoing::at(
            &client,
            grant.message(failures),
            shifted(self.now(), backoff(failures, retry_after)),
        );
        self.dispatch(&[again]).await.map(|()| Vec::new())
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
        let group = self.store().slot_group(&token.group).await?;
        Ok(group.is_some_and(|group| group.holds(&token.lease)))
    }

    /// Notes that a lease is at a repeated delivery of its event; whether the lease is still the present one of its slot.
    async fn note_attempt(&self, token: &Token, attempt: u8) -> Result<bool, EngineError> {
        let noted = Transition::note_attempt(token.lease, attempt);
        Ok(matches!(self.store().perform(&token.group, &noted).await?, Written::Done(_)))
    }

    async fn keep_reason(&self, grant: &Granted, attempts: u8, reason: &str) -> Result<(), EngineError> {
        use tidegate_store::events::{EventRow, Record};
        let event = EventRow {
            index: grant.event.index(),
            delivered: false,
            attempts,
            at: self.now(),
            reason: Some(reason.to_owned()),
        };
        let (client, run) = (grant.token.client().clone(), grant.event.run().clone());
        Ok(self.store().keep(&[Record::Event { client, run, event }]).await?)
    }
}

impl Granted {
    fn read(message: &GrantedEvent) -> Result<Self, EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        let token: Token = message.token.parse().map_err(|e| bad(format!("'token': {e}")))?;
        let run: RunId = message.run.parse().map_err(|e| bad(format!("'run': {e}")))?;
        let lease_end = DateTime::from_timestamp_millis(message.lease_end_ms)
            .ok_or_else(|| bad("'lease_end_ms': no instant".to_owned()))?;
        Ok(Self { event: run.event(token.lease.index), token, lease_end, attempt: message.attempt })
    }

    /// Which delivery comes after so many that failed under its lease.
    fn attempt_after(&self, failures: u8) -> u8 {
        self.attempt.saturating_add(failures)
    }

    /// What is sent after so many deliveries that failed under its lease.
    fn delivery(&self, client: ClientId, terms: Arc<super::Terms>, failures: u8, key: &TokenKey) -> Delivery {
        let lease = Some((key.sign(&self.token), self.lease_end));
        let (event, attempt) = (self.event.clone(), self.attempt_after(failures));
        Delivery { client, event, attempt, repeats: self.attempt, lease, terms }
    }

    fn message(&self, failures: u8) -> Message {
        Message::Event(GrantedEvent {
            run: self.event.run().to_string(),
            token: self.token.to_string(),
            lease_end_ms: self.lease_end.timestamp_millis(),
            attempt: self.attempt,
            failures,
        })
    }
}
