//! Release and extension of tokens: what consumers call.
//!
//! Invariant (I4): a release acts once, on its own lease only. The lease's fencing number is part of the write's condition;
//! repeated, late and forged releases do not meet it.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{LEASE_SECONDS, SLOTS_PER_GROUP, WRITE_ROUNDS};
use tidegate_domain::token::Token;
use tidegate_store::slots::{Change, GroupKey, Held, Outcome, SlotGroup, SlotRelease};
use tracing::warn;

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
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The token is free, or went on to the next event.
    Released,
    /// The lease ended before: it was released, or ran out and was taken back.
    AlreadyReleased,
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
                let token = release.token.to_string();
                Outgoing::now(client, Message::Release { token, succeeded, dead })
            })
            .collect();
        self.dispatch(&messages).await
    }

    /// Ends leases of one slot group and hands their slots on: one write where the group's range suffices.
    async fn release_group(&self, key: &GroupKey, releases: Vec<Release>) -> Result<Answers, EngineError> {
        let Some(lease) = self.lease(&key.client, &key.policy).await? else {
            return Ok(releases.into_iter().map(|r| (r.token, Released::Unknown)).collect());
        };
        let mut answers = Vec::with_capacity(releases.len());
        let mut pending: Vec<(Token, SlotRelease)> = Vec::with_capacity(releases.len());
        for Release { token, outcome } in releases {
            let slot = slot_release(&token, outcome);
            match token.slot < SLOTS_PER_GROUP && !pending.iter().any(|(_, p)| p.slot == slot.slot) {
                true => pending.push((token, slot)),
                // One lease a slot: of two tokens of one slot in a call, one at the most can be live.
                false if pending.iter().any(|(t, _)| *t == token) => {
                    answers.push((token, Released::AlreadyReleased));
                }
                false if token.slot < SLOTS_PER_GROUP => {
                    answers
                        .extend(Box::pin(self.release_group(key, vec![Release { token, outcome }])).await?);
                }
                false => answers.push((token, Released::Unknown)),
            }
        }
        let lease_end = self.now() + lease;
        let mut hand_off = true;
        for _ in 0..WRITE_ROUNDS {
            if pending.is_empty() {
                return Ok(answers);
            }
            let slots: Vec<SlotRelease> = pending.iter().map(|(_, slot)| *slot).collect();
            let change = match hand_off {
                true => self.store().hand_off(key, &slots, lease_end).await?,
                false => self.store().free(key, &slots).await?,
            };
            match change {
                Change::Done(group) => {
                    answers.extend(pending.drain(..).map(|(token, _)| (token, Released::Released)));
                    self.follow_up(group, hand_off.then_some(&*slots), lease).await?;
                    return Ok(answers);
                }
                Change::Refused(None) => {
                    answers.extend(pending.drain(..).map(|(token, _)| (token, Released::Unknown)));
                }
                Change::Refused(Some(group)) => {
                    // The reply to our own write can be lost and the client library repeat it: then it is ours.
                    let ours = |slot: &SlotRelease| handed_by_this_call(&group, slot, lease_end);
                    if hand_off && pending.iter().any(|(_, slot)| ours(slot)) {
                        let done: Vec<SlotRelease> =
                            slots.iter().copied().filter(|slot| ours(slot)).collect();
                        let (own, rest) = pending.into_iter().partition::<Vec<_>, _>(|(_, slot)| ours(slot));
                        answers.extend(own.into_iter().map(|(token, _)| (token, Released::Released)));
                        pending = rest;
                        self.send_granted(granted_in(&group, done.iter().map(|slot| slot.slot))).await?;
                    }
                    let (live, gone) = pending.into_iter().partition::<Vec<_>, _>(|(_, s)| group.holds(s));
                    answers.extend(gone.into_iter().map(|(token, slot)| (token, why_gone(&group, &slot))));
                    pending = live;
                    hand_off = group.range.left as usize >= pending.len() && group.held <= group.cap;
                }
            }
        }
        Err(EngineError::Contended { what: "a slot group", rounds: WRITE_ROUNDS })
    }

    /// After leases ended: send what was granted, grant what became free, pack what has piled up.
    async fn follow_up(
        &self,
        group: SlotGroup,
        handed: Option<&[SlotRelease]>,
        lease: Duration,
    ) -> Result<(), EngineError> {
        let mut granted = granted_in(&group, handed.unwrap_or_default().iter().map(|slot| slot.slot));
        let group = match handed {
            Some(_) => group,
            None => {
                let (group, more) = self.serve(group, lease).await?;
                granted.extend(more);
                group
            }
        };
        self.send_granted(granted).await?;
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
        let Some(own) = self.lease(&token.client, &token.policy).await? else { return Ok(Extended::Unknown) };
        let chosen = lease_seconds.map(|s| s.clamp(*LEASE_SECONDS.start(), *LEASE_SECONDS.end()));
        let lease_end = self.now() + chosen.map_or(own, |s| Duration::seconds(s.into()));
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

/// The lease that a token names.
pub(crate) fn slot_release(token: &Token, outcome: Outcome) -> SlotRelease {
    let Token { slot, fence, run_number, index, .. } = *token;
    SlotRelease { slot, fence, run_number, index, outcome }
}

fn by_group(releases: Vec<Release>) -> BTreeMap<GroupKey, Vec<Release>> {
    let mut groups: BTreeMap<GroupKey, Vec<Release>> = BTreeMap::new();
    for release in releases {
        groups.entry(group_of(&release.token)).or_default().push(release);
    }
    groups
}

fn handed_by_this_call(group: &SlotGroup, release: &SlotRelease, lease_end: DateTime<Utc>) -> bool {
    let end = lease_end.timestamp_millis();
    let ours = |held: &Held| held.handed_by == release.fence && held.lease_end.timestamp_millis() == end;
    // The outcome tells a forged token, whose fencing number alone is right, from the one that was released.
    let mut outcomes = group.outcomes.iter().chain(&group.packing);
    group.slots.get(&release.slot).is_some_and(ours)
        && outcomes.any(|entry| (entry.run_number, entry.index) == (release.run_number, release.index))
}

/// A fencing number that was never given is nobody's token.
fn why_gone(group: &SlotGroup, release: &SlotRelease) -> Released {
    match release.fence < group.next_fence && !is_forged(group, release) {
        true => Released::AlreadyReleased,
        false => Released::Unknown,
    }
}

/// The slot's present lease has this number, for another event: nobody was given such a token.
fn is_forged(group: &SlotGroup, release: &SlotRelease) -> bool {
    group.slots.get(&release.slot).is_some_and(|held| held.fence == release.fence)
}
