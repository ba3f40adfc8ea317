//! Release and extension of tokens: what consumers call.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{LEASE_SECONDS, SLOTS_PER_GROUP};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{GroupKey, Transition};
use tidegate_domain::time::{seconds, shifted};
use tidegate_domain::token::Token;
use tidegate_store::slots::Written;
use tracing::warn;

use super::{Tokens, each_group};
use crate::EngineError;
use crate::effect::Release;
use crate::throttle::release::{Answers, Released, by_group, why_gone};
use crate::throttle::shares::GROUPS_AT_ONCE;

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

impl Tokens {
    /// Releases tokens of a client. Each gets its own answer, in no particular order.
    ///
    /// A group of tokens whose rows do not answer is taken over by the dispatch queue and answered `Deferred`.
    ///
    /// # Errors
    /// [`EngineError::Queue`] when neither the store nor the dispatch queue answers, [`EngineError::Store`] when the
    /// row of a policy or slot group cannot be read. Nothing is lost: the consumer may call again.
    pub async fn release(&self, client: &ClientId, releases: Vec<Release>) -> Result<Answers, EngineError> {
        let (own, foreign) = releases.into_iter().partition::<Vec<_>, _>(|r| r.token.client() == client);
        let mut answers: Answers = foreign.into_iter().map(|r| (r.token, Released::NotYours)).collect();
        let release = async |(key, releases): (GroupKey, Vec<Release>)| match self
            .release_here(&key, releases.clone())
            .await
        {
            Ok(answered) => Ok(answered),
            Err(error) => self.throttle.defer(&key, releases, error).await,
        };
        answers.extend(each_group(by_group(own).into_iter().map(release)).await?);
        Ok(answers)
    }

    /// Releases tokens without falling back to the queue, for messages that come from it.
    pub(crate) async fn release_now(
        &self,
        client: &ClientId,
        releases: Vec<Release>,
    ) -> Result<Answers, EngineError> {
        let own = releases.into_iter().filter(|release| release.token.client() == client).collect();
        let release =
            async |(key, releases): (GroupKey, Vec<Release>)| self.release_here(&key, releases).await;
        each_group(by_group(own).into_iter().map(release)).await
    }

    async fn release_here(&self, key: &GroupKey, releases: Vec<Release>) -> Result<Answers, EngineError> {
        let released = releases.len();
        let (answers, effects) = self.throttle.release_group(key, releases).await?;
        if let Err(error) = self.effects.carry_out(effects).await {
            if answers.len() < released || !error.is_retryable() {
                return Err(error);
            }
            // The leases have ended. What should have followed does when somebody looks after the policy.
            warn!(%error, group = ?key, "what follows a release is left to a wake-up");
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
    pub async fn extend(
        &self,
        client: &ClientId,
        tokens: Vec<Token>,
        lease_seconds: Option<u32>,
    ) -> Result<Vec<(Token, Extended)>, EngineError> {
        let extend = async |token: Token| {
            let answer = match token.client() == client {
                true => self.extend_one(&token, lease_seconds).await?,
                false => Extended::NotYours,
            };
            Ok((token, answer))
        };
        let extends: Vec<_> = tokens.into_iter().map(extend).collect();
        stream::iter(extends).buffered(GROUPS_AT_ONCE).try_collect().await
    }

    async fn extend_one(&self, token: &Token, lease_seconds: Option<u32>) -> Result<Extended, EngineError> {
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
