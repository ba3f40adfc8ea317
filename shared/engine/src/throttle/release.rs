//! Release and extension of tokens: what consumers call.
//!
//! Invariant (I4): a release acts once, on its own lease only. The lease's fencing number is part of the write's condition;
//! repeated, late and forged releases do not meet it.

use std::collections::BTreeMap;
use tidegate_domain::time::{seconds, shifted};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{LEASE_SECONDS, SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::shares;
use tidegate_domain::token::Token;
use tidegate_store::events::Record;
use tidegate_store::slots::{Change, GroupKey, Held, Outcome, SlotGroup, SlotRelease};
use tracing::warn;

use super::serve::marked;
use super::shares::Facts;
use crate::deliver::granted::granted_in;
use crate::message::Message;
use crate::queue::Outgoing;
use crate::{Engine, EngineError};

/// A token that its consumer is done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The token.
    pub token: Token,
    /// What came of its event.
    pub outcome: Outcome,
    /// What the consumer says about it: a result, or an error.
    pub text: Option<String>,
}

impl Release {
    /// A release without a word.
    pub fn new(token: Token, outcome: Outcome) -> Self {
        Self { token, outcome, text: None }
    }
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The token is free, or went on to the next event.
    Released,
    /// It was released before.
    AlreadyReleased,
    /// The lease ran out, and the token was taken back: the event may be with another consumer.
    Reclaimed,
    /// It belongs to another client.
    NotYours,
    /// No such token was ever given.
    Unknown,
    /// It will be applied as soon as the store answers.
    Deferred,
}

/// What came of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// The lease lasts longer now.
    Extended {
        /// Until then.
        lease_end: DateTime<Utc>,
    },
    /// The lease ended before.
    Expired,
    /// It belongs to another client.
    NotYours,
    /// No such token was ever given.
    Unknown,
}

type Answers = Vec<(Token, Released)>;

impl Engine {
    /// Releases tokens of a client. Each gets its own answer, in no particular order.
    ///
    /// A group of tokens whose rows do not answer is taken over by the dispatch queue and answered `Deferred`.
    ///
    /// # Errors
    /// When neither the store nor the queue answers: nothing is lost, the consumer may call again.
    pub async fn release(&self, client: &ClientId, releases: Vec<Release>) -> Result<Answers, EngineError> {
        let (own, foreign) = releases.into_iter().partition::<Vec<_>, _>(|r| r.token.client == *client);
        let mut answers: Answers = foreign.into_iter().map(|r| (r.token, Released::NotYours)).collect();
        for (key, releases) in by_group(own) {
            let tokens: Vec<Release> = releases.clone();
            match self.release_group(&key, releases).await {
                Ok(answered) => answers.extend(answered),
                Err(error) if error.may_pass() => {
                    warn!(%error, group = ?key, "releases are left to the dispatch queue");
                    self.defer(client, &tokens).await?;
                    answers.extend(tokens.into_iter().map(|r| (r.token, Released::Deferred)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// Releases tokens without falling back to the queue, for messages that come from it.
    pub(crate) async fn release_now(
        &self,
        client: &ClientId,
        releases: Vec<Release>,
    ) -> Result<Answers, EngineError> {
        let mut answers = Vec::new();
        for (key, releases) in by_group(releases.into_iter().filter(|r| r.token.client == *client).collect())
        {
            answers.extend(self.release_group(&key, releases).await?);
        }
        Ok(answers)
    }

    async fn defer(&self, client: &ClientId, releases: &[Release]) -> Result<(), EngineError> {
        let messages: Vec<Outgoing> = releases
            .iter()
            .map(|release| {
                let succeeded = release.outcome == Outcome::Succeeded;
                let dead = release.outcome == Outcome::Dead;
                let (token, text) = (release.token.to_string(), release.text.clone());
                Outgoing::now(client, Message::Release { token, succeeded, dead, text })
            })
            .collect();
        self.dispatch(&messages).await
    }

    /// Ends leases of one slot group and hands their slots on: one write where the group's range suffices.
    async fn release_group(&self, key: &GroupKey, releases: Vec<Release>) -> Result<Answers, EngineError> {
        let Some(facts) = self.facts(&key.client, &key.policy, 0).await? else {
            return Ok(releases.into_iter().map(|r| (r.token, Released::Unknown)).collect());
        };
        self.keep_texts(key, &releases).await?;
        let mut answers = Vec::with_capacity(releases.len());
        let mut pending: Vec<(Token, SlotRelease)> = Vec::with_capacity(releases.len());
        for Release { token, outcome, .. } in releases {
            let slot = slot_release(&token, outcome);
            match token.slot < SLOTS_PER_GROUP && !pending.iter().any(|(_, p)| p.slot == slot.slot) {
                true => pending.push((token, slot)),
                // One lease a slot: of two tokens of one slot in a call, one at the most can be live.
                false if pending.iter().any(|(t, _)| *t == token) => {
                    answers.push((token, Released::AlreadyReleased));
                }
                false if token.slot < SLOTS_PER_GROUP => {
                    let again = vec![Release::new(token, outcome)];
                    answers.extend(Box::pin(self.release_group(key, again)).await?);
                }
                false => answers.push((token, Released::Unknown)),
            }
        }
        let mut hand_off = facts.rate.is_none() && cost_alike(&pending);
        for _ in 0..WRITE_ROUNDS {
            if pending.is_empty() {
                return Ok(answers);
            }
            let slots: Vec<SlotRelease> = pending.iter().map(|(_, slot)| *slot).collect();
            let new = self.new_lease(facts.lease);
            let change = match hand_off {
                true => self.store().hand_off(key, &slots, new, self.now()).await?,
                false => self.store().free(key, &slots).await?,
            };
            match change {
                Change::Done(group) => {
                    answers.extend(pending.drain(..).map(|(token, _)| (token, Released::Released)));
                    self.follow_up(group, hand_off.then_some(&*slots), facts).await?;
                    return Ok(answers);
                }
                Change::Refused(None) => {
                    answers.extend(pending.drain(..).map(|(token, _)| (token, Released::Unknown)));
                }
                Change::Refused(Some(group)) => {
                    // The reply to our own write can be lost and the client library repeat it: then it is ours.
                    let ours = marked(&group, new.mark);
                    if hand_off && !ours.is_empty() {
                        // All of them or none: some may have been released again since.
                        answers.extend(pending.drain(..).map(|(token, _)| (token, Released::Released)));
                        self.send_granted(granted_in(&group, ours)).await?;
                        return Ok(answers);
                    }
                    let (live, gone) = pending.into_iter().partition::<Vec<_>, _>(|(_, s)| group.holds(s));
                    answers.extend(gone.into_iter().map(|(token, slot)| (token, why_gone(&group, &slot))));
                    pending = live.into_iter().map(|(token, slot)| (token, group.at_attempt(slot))).collect();
                    hand_off = cost_alike(&pending) && self.may_hand_off(&group, &pending);
                }
            }
        }
        Err(EngineError::Contended { what: "a slot group", rounds: WRITE_ROUNDS })
    }

    /// Whether the slots of the named leases may go straight to the next events of the group's range.
    fn may_hand_off(&self, group: &SlotGroup, pending: &[(Token, SlotRelease)]) -> bool {
        let over = group.range.deadline.is_some_and(|deadline| deadline <= self.now());
        !group.rated
            && !over
            && group.held <= group.cap
            && group.range.left as usize >= pending.len()
            && pending.iter().all(|(_, slot)| slot.cost == group.range.cost)
    }

    /// Keeps what consumers say about events whose leases they hold. Before the release: whoever repeats a call that died
    /// in between says it again.
    async fn keep_texts(&self, key: &GroupKey, releases: &[Release]) -> Result<(), EngineError> {
        if releases.iter().all(|release| release.text.is_none()) {
            return Ok(());
        }
        let Some(group) = self.store().slot_group(key).await? else { return Ok(()) };
        let at = self.now();
        let said = |release: &Release| {
            let slot = slot_release(&release.token, release.outcome);
            let run = group.run(slot.run_number).filter(|_| group.holds(&slot))?;
            Some(Record::Said {
                client: key.client.clone(),
                run: run.clone(),
                index: slot.index,
                fence: slot.fence,
                outcome: release.outcome,
                text: release.text.clone()?,
                at,
            })
        };
        let records: Vec<Record> = releases.iter().filter_map(said).collect();
        Ok(self.store().keep(&records).await?)
    }

    /// After leases ended: send what was granted, grant what became free, pack what has piled up.
    async fn follow_up(
        &self,
        group: SlotGroup,
        handed: Option<&[SlotRelease]>,
        facts: Facts,
    ) -> Result<(), EngineError> {
        let mut granted = granted_in(&group, handed.unwrap_or_default().iter().map(|slot| slot.slot));
        let group = match handed {
            Some(_) => group,
            None => {
                let served = Box::pin(self.serve(group, facts)).await?;
                granted.extend(served.granted);
                served.group
            }
        };
        self.send_granted(granted).await?;
        if handed.is_none() && is_draining(&group) {
            Box::pin(self.after_drain(&group)).await?;
        }
        self.flush_if_due(group).await.map(drop)
    }

    /// Extends leases, by the policy's lease or by `lease_seconds` from now. Each token gets its own answer.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn extend(
        &self,
        client: &ClientId,
        tokens: Vec<Token>,
        lease_seconds: Option<u32>,
    ) -> Result<Vec<(Token, Extended)>, EngineError> {
        let mut answers = Vec::with_capacity(tokens.len());
        for token in tokens {
            let answer = match token.client == *client {
                true => self.extend_one(&token, lease_seconds).await?,
                false => Extended::NotYours,
            };
            answers.push((token, answer));
        }
        Ok(answers)
    }

    async fn extend_one(&self, token: &Token, lease_seconds: Option<u32>) -> Result<Extended, EngineError> {
        let facts = self.facts(&token.client, &token.policy, 0).await?;
        let Some(own) = facts.map(|facts| facts.lease) else { return Ok(Extended::Unknown) };
        let chosen = lease_seconds.map(|s| s.clamp(*LEASE_SECONDS.start(), *LEASE_SECONDS.end()));
        let lease_end = shifted(self.now(), chosen.map_or(own, |s| seconds(s.into())));
        if token.slot >= SLOTS_PER_GROUP {
            return Ok(Extended::Unknown);
        }
        let slot = slot_release(token, Outcome::Succeeded);
        Ok(match self.store().extend_lease(&group_of(token), &slot, lease_end).await? {
            Change::Done(_) => Extended::Extended { lease_end },
            Change::Refused(None) => Extended::Unknown,
            Change::Refused(Some(group)) => match why_gone(&group, &slot) {
                Released::Unknown => Extended::Unknown,
                _ => Extended::Expired,
            },
        })
    }
}

pub(crate) fn group_of(token: &Token) -> GroupKey {
    GroupKey { client: token.client.clone(), policy: token.policy.clone(), group: token.group }
}

/// The lease that a token names, at the first delivery of its event: a later one is seen when the write is refused.
pub(crate) fn slot_release(token: &Token, outcome: Outcome) -> SlotRelease {
    let Token { slot, fence, run_number, index, cost, .. } = *token;
    SlotRelease { slot, fence, run_number, index, cost, attempt: 1, outcome }
}

/// Whether the shares of its policy are on their way to a new limit, as far as a group can tell.
fn is_draining(group: &SlotGroup) -> bool {
    let goal = shares::target(group.limit, group.key.group);
    group.groups > 1 && group.limit > 0 && (group.cap < goal || goal == 0)
}

fn cost_alike(pending: &[(Token, SlotRelease)]) -> bool {
    pending.windows(2).all(|two| matches!(two, [(_, a), (_, b)] if a.cost == b.cost))
}

fn by_group(releases: Vec<Release>) -> BTreeMap<GroupKey, Vec<Release>> {
    let mut groups: BTreeMap<GroupKey, Vec<Release>> = BTreeMap::new();
    for release in releases {
        groups.entry(group_of(&release.token)).or_default().push(release);
    }
    groups
}

/// A fencing number that was never given is nobody's token.
pub(crate) fn why_gone(group: &SlotGroup, release: &SlotRelease) -> Released {
    // The same event under a later number: it was delivered again.
    let again = |held: &Held| {
        (held.run_number, held.index) == (release.run_number, release.index) && held.fence > release.fence
    };
    match () {
        () if release.fence >= group.next_fence || is_forged(group, release) => Released::Unknown,
        () if group.reclaimed.contains(&release.fence) => Released::Reclaimed,
        () if group.slots.get(&release.slot).is_some_and(again) => Released::Reclaimed,
        () => Released::AlreadyReleased,
    }
}

/// The slot's present lease has this number, for another event: nobody was given such a token.
fn is_forged(group: &SlotGroup, release: &SlotRelease) -> bool {
    group.slots.get(&release.slot).is_some_and(|held| held.fence == release.fence)
}
