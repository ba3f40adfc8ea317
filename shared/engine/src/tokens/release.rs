//! Release and extension of tokens: what consumers call.

use std::collections::BTreeMap;
use std::convert::Infallible;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{LEASE_SECONDS, SLOTS_PER_GROUP};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{GroupKey, Transition};
use tidegate_domain::time::{seconds, shifted};
use tidegate_domain::token::Token;
use tidegate_store::slots::Written;
use tracing::warn;

use super::together::Told;
use super::{RELEASED_AT_ONCE, Tokens, all_of};
use crate::effect::{Effect, Granted, Release};
use crate::throttle::release::{Answers, Released, by_group, why_gone};
use crate::{EngineError, contain, deadline};

/// After how long a policy is looked after when what follows a release could not be done, in seconds.
const LOOKED_AFTER_SECONDS: i64 = 1;

/// What came of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// The lease lasts longer now.
    Extended {
        /// Until when, unless it is extended again.
        lease_end: DateTime<Utc>,
    },
    /// The lease ended before: it ran out, or was released. The event may be with another consumer.
    Expired,
    /// It belongs to another client.
    NotYours,
    /// No such token was ever given, or its policy is gone.
    Unknown,
}

/// Leases of one slot group that were ended.
struct Ended {
    answers: Answers,
    /// Whether each token has its answer.
    is_whole: bool,
    /// Whether slots went on to other events.
    has_granted: bool,
    effects: Vec<Effect>,
}

impl Ended {
    /// The same without the sending of what was granted, which is added to `granted`.
    fn without_sends(mut self, granted: &mut Vec<Granted>) -> Self {
        let mut others = Vec::with_capacity(self.effects.len());
        for effect in self.effects {
            match effect {
                Effect::Send(some) => {
                    self.has_granted = true;
                    granted.extend(some);
                }
                other => others.push(other),
            }
        }
        Self { effects: others, ..self }
    }
}

/// Releases of a slot group that did not answer.
struct Left {
    group: GroupKey,
    releases: Vec<Release>,
    error: EngineError,
}

/// Leases that were ended, by their slot groups.
type Ends = Vec<(GroupKey, Result<Ended, EngineError>)>;

/// What came of the tokens of all groups that answered.
fn told(ends: &Ends) -> Told {
    let answered = ends.iter().filter_map(|(_, end)| end.as_ref().ok());
    Told::new(answered.flat_map(|end| end.answers.iter().cloned()))
}

impl Tokens {
    /// Releases tokens of a client. Each gets its own answer, in no particular order.
    ///
    /// A group of tokens whose rows do not answer is taken over by the dispatch queue and answered `Deferred`.
    ///
    /// # Errors
    /// [`EngineError::Queue`] when neither the store nor the dispatch queue answers, [`EngineError::Store`] when the
    /// row of a policy or slot group cannot be read. Nothing is lost: the consumer may call again.
    pub fn release<'a>(
        &'a self,
        client: &'a ClientId,
        releases: Vec<Release>,
    ) -> BoxFuture<'a, Result<Answers, EngineError>> {
        Box::pin(async move {
            let (own, foreign) = releases.into_iter().partition::<Vec<_>, _>(|r| r.token.client() == client);
            let mut answers: Answers = foreign.into_iter().map(|r| (r.token, Released::NotYours)).collect();
            let (told, left) = self.release_with_others(client, own).await;
            answers.extend(told);
            let defer = |Left { group, releases, error }| async move {
                self.throttle.defer(&group, releases, error).await
            };
            answers.extend(all_of(left.into_iter().map(defer)).await?);
            Ok(answers)
        })
    }

    /// Releases a client's own tokens in writes that they share with those of its calls beside this one. What a group did not
    /// answer is left, with its error.
    async fn release_with_others(&self, client: &ClientId, own: Vec<Release>) -> (Answers, Vec<Left>) {
        if own.is_empty() {
            return Default::default();
        }
        let mut led = None;
        let leads = &mut led;
        let end = |calls: Vec<Vec<Release>>| async move {
            let ends = self.end_groups(by_group(calls.into_iter().flatten().collect())).await;
            Ok::<_, Infallible>(told(leads.insert(ends)))
        };
        let Ok(told) = self.together.calls_of(client).with_others(own.clone(), end).await;
        let (mut answers, open) = told.unwrap_or_default().take(&own);
        let (mut alone, mut left) = (by_group(open), Vec::new());
        // Whoever wrote for the others also does what follows for them.
        let finished = match led {
            Some(ends) => self.finish_all(ends).await,
            None => Vec::new(),
        };
        for (group, error) in finished.into_iter().filter_map(|(group, end)| Some((group, end.err()?))) {
            match alone.remove(&group) {
                Some(releases) => left.push(Left { group, releases, error }),
                None if own.iter().all(|release| release.token.group != group) => {
                    warn!(%error, ?group, "releases of another call failed");
                }
                // The leases have ended, and what follows never can be done.
                None => left.push(Left { group, releases: Vec::new(), error }),
            }
        }
        // Nobody knows what became of them, or another call with the same tokens was answered.
        for (group, released) in self.release_groups(alone.clone()).await {
            match released {
                Ok(answered) => answers.extend(answered),
                Err(error) => {
                    let releases = alone.remove(&group).unwrap_or_default();
                    left.push(Left { group, releases, error });
                }
            }
        }
        (answers, left)
    }

    /// Releases tokens without falling back to the queue, for messages that come from it.
    pub(crate) async fn release_now(
        &self,
        client: &ClientId,
        releases: Vec<Release>,
    ) -> Result<Answers, EngineError> {
        let own = releases.into_iter().filter(|release| release.token.client() == client).collect();
        let released = self.release_groups(by_group(own)).await;
        let answers: Vec<Answers> = released.into_iter().map(|(_, of)| of).collect::<Result<_, _>>()?;
        Ok(answers.into_iter().flatten().collect())
    }

    /// Releases tokens, those of each slot group whatever becomes of the others. What all of them grant goes out together: ten
    /// tokens that lie in ten groups cost one call to the queue, and consumers are given full batches.
    pub(super) async fn release_groups(
        &self,
        groups: BTreeMap<GroupKey, Vec<Release>>,
    ) -> Vec<(GroupKey, Result<Answers, EngineError>)> {
        self.finish_all(self.end_groups(groups).await).await
    }

    async fn end_groups(&self, groups: BTreeMap<GroupKey, Vec<Release>>) -> Ends {
        let ends: Vec<_> = groups.into_iter().map(|(key, releases)| self.end_in(key, releases)).collect();
        stream::iter(ends).buffer_unordered(RELEASED_AT_ONCE).collect().await
    }

    /// Does what follows. Groups are served first: what they grant is sent with what others handed on.
    async fn finish_all(&self, ends: Ends) -> Vec<(GroupKey, Result<Answers, EngineError>)> {
        let serve = |(key, end): (GroupKey, Result<Ended, EngineError>)| async move {
            let served = match end {
                Ok(end) => Ok(self.served(&key, end).await),
                Err(error) => Err(error),
            };
            (key, served)
        };
        let serves: Vec<_> = ends.into_iter().map(serve).collect();
        let mut serves = stream::iter(serves).buffer_unordered(RELEASED_AT_ONCE);
        let (mut ended, mut granted) = (Vec::new(), Vec::new());
        while let Some((key, end)) = serves.next().await {
            ended.push((key, end.map(|end| end.without_sends(&mut granted))));
        }
        let is_sent = self.send_together(granted).await;
        let finish = |(key, end): (GroupKey, Result<Ended, EngineError>)| async move {
            let answers = match end {
                Ok(end) => self.finish(&key, end, is_sent).await,
                Err(error) => Err(error),
            };
            (key, answers)
        };
        let finishes: Vec<_> = ended.into_iter().map(finish).collect();
        stream::iter(finishes).buffer_unordered(RELEASED_AT_ONCE).collect().await
    }

    async fn end_in(&self, key: GroupKey, releases: Vec<Release>) -> (GroupKey, Result<Ended, EngineError>) {
        let tokens = releases.len();
        let ended = contain(|| format!("{key:?}"), async {
            deadline::check(&*self.clock)?;
            self.throttle.release_group(&key, releases).await
        });
        let ended = ended.await.map_err(EngineError::from).flatten();
        let ended = ended.map(|(answers, effects)| Ended {
            is_whole: answers.len() == tokens,
            has_granted: false,
            answers,
            effects,
        });
        (key, ended)
    }

    /// A slot group that is to be served after its leases ended, with what serving it comes to in the place of that.
    async fn served(&self, key: &GroupKey, end: Ended) -> Ended {
        let mut effects = Vec::with_capacity(end.effects.len());
        for effect in end.effects {
            let Effect::Serve(group) = effect else {
                effects.push(effect);
                continue;
            };
            let served = contain(|| format!("{key:?}"), Box::pin(self.throttle.serve_group(*group))).await;
            match served.map_err(EngineError::from).flatten() {
                Ok(served) => effects.extend(served),
                Err(error) => effects.push(Effect::Fail(error)),
            }
        }
        Ended { effects, ..end }
    }

    /// Sends what several groups granted. Says whether it is on its way.
    async fn send_together(&self, granted: Vec<Granted>) -> bool {
        if granted.is_empty() {
            return true;
        }
        let send = self.effects.carry_out(vec![Effect::Send(granted)]);
        let sent = contain(|| "what a release granted".to_owned(), send).await;
        let sent = sent.map_err(EngineError::from).flatten();
        sent.inspect_err(|error| warn!(%error, "what a release granted was not sent")).is_ok()
    }

    /// Does what follows a release beside what it granted. The leases have ended: what cannot be done now is when somebody
    /// looks after the policy.
    async fn finish(&self, key: &GroupKey, end: Ended, is_sent: bool) -> Result<Answers, EngineError> {
        let Ended { answers, is_whole, has_granted, effects } = end;
        let done = contain(|| format!("{key:?}"), self.effects.carry_out(effects)).await;
        let is_left = match done.map_err(EngineError::from).flatten() {
            Ok(_) => has_granted && !is_sent,
            Err(error) if !is_whole || !error.is_retryable() => return Err(error),
            Err(error) => {
                warn!(%error, group = ?key, "what follows a release is left to a wake-up");
                true
            }
        };
        if is_left {
            let soon = shifted(self.clock.now(), seconds(LOOKED_AFTER_SECONDS));
            self.throttle.wake_at(&PolicyRef::of_key(key), soon).await?;
        }
        Ok(answers)
    }

    /// Extends leases, by the policy's lease or by `lease_seconds` from now, which counts as the nearest bound of
    /// [`LEASE_SECONDS`]. Each token gets its own answer, in the order of the call.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// Some leases may last longer then; repeating the call is safe.
    pub fn extend<'a>(
        &'a self,
        client: &'a ClientId,
        tokens: Vec<Token>,
        lease_seconds: Option<u32>,
    ) -> BoxFuture<'a, Result<Vec<(Token, Extended)>, EngineError>> {
        Box::pin(async move {
            let extend = async |token: Token| {
                let answer = match token.client() == client {
                    true => self.extend_one(&token, lease_seconds).await?,
                    false => Extended::NotYours,
                };
                Ok((token, answer))
            };
            let extends: Vec<_> = tokens.into_iter().map(extend).collect();
            stream::iter(extends).buffered(RELEASED_AT_ONCE).try_collect().await
        })
    }

    async fn extend_one(&self, token: &Token, lease_seconds: Option<u32>) -> Result<Extended, EngineError> {
        deadline::check(&*self.clock)?;
        let snapshot = self.throttle.snapshot(token.client(), &token.group.policy, 0).await?;
        let Some(own) = snapshot.map(|snapshot| snapshot.lease) else { return Ok(Extended::Unknown) };
        let chosen = lease_seconds.map(|s| s.clamp(*LEASE_SECONDS.start(), *LEASE_SECONDS.end()));
        let lease_end = shifted(self.clock.now(), chosen.map_or(own, |s| seconds(s.into())));
        if token.lease.slot >= SLOTS_PER_GROUP {
            return Ok(Extended::Unknown);
        }
        Ok(match self.store.perform(&token.group, &Transition::extend(token.lease, lease_end)).await? {
            Written::Done(_) => Extended::Extended { lease_end },
            Written::Refused(None) => Extended::Unknown,
            Written::Refused(Some(group)) => match why_gone(&group, &token.lease) {
                Released::Unknown => Extended::Unknown,
                _ => Extended::Expired,
            },
        })
    }
}
