//! What clients do with policies.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::backpressure::Backpressure;
use tidegate_domain::change::What;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, JobId, PolicyId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::policy::{Policy, PolicyRef, PolicyTerms};
use tidegate_domain::shares::SharePlan;
use tidegate_domain::sideline::Sideline;
use tidegate_store::{Create, Store, Write};

use crate::author;
use crate::effect::Effect;
use crate::effect_loop::{EffectLoop, Left};
use crate::queries::{Load, Queries};
use crate::throttle::Throttle;
use crate::tokens::Tokens;
use crate::{EngineError, Expect, Written, deadline};

/// Users of a policy that are named when it cannot be deleted.
const NAMED_USERS: usize = 10;

/// What came of deleting a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyDelete {
    /// It is gone.
    Done,
    /// There is no such policy.
    Absent,
    /// It has another revision than was expected: this one. Nothing changed.
    RevisionIs(u32),
    /// Jobs name it, or cannot be read, so that nobody can tell: up to 10 of them. Nothing changed.
    UsedBy(Vec<JobId>),
    /// Events hold its tokens or wait for them: so many. Nothing changed.
    Busy(Load),
}

/// Creates, changes and deletes policies.
pub struct Policies {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) effects: Arc<EffectLoop>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) queries: Arc<Queries>,
}

impl Policies {
    /// Adds a policy. When the name is taken, the answer is `Unchanged` where that policy says the same, else `Taken`;
    /// `Absent` when it was deleted in the same moment.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Contended` when its slot groups were changed by others in each of `WRITE_ROUNDS` rounds. The
    /// policy may exist then; repeating the call is safe.
    pub fn create<'a>(
        &'a self,
        client: &'a ClientId,
        id: PolicyId,
        terms: PolicyTerms,
    ) -> BoxFuture<'a, Result<Written<Policy>, EngineError>> {
        Box::pin(async move {
            // Rows of a former policy of this name go on with their fencing numbers: every plan of its comes before this one.
            let now = self.clock.now();
            let first_plan = now.timestamp().unsigned_abs();
            let plan = SharePlan::new(first_plan, terms.max_in_flight());
            let policy = Policy {
                client: client.clone(),
                id,
                revision: 1,
                terms,
                paused: false,
                backpressure: None,
                sidelined: None,
                plan,
            };
            if self.store.create_policy(&policy, &author::change(What::Created, now)).await? == Create::Done {
                self.throttle.groups_in_step(&policy).await?;
                return Ok(Written::Created(self.sidelined_with_client(policy).await?));
            }
            Ok(match self.store.policy(client, &policy.id).await? {
                Some(there) if there.terms == terms => Written::Unchanged(there),
                Some(there) => Written::Taken(there),
                None => Written::Absent,
            })
        })
    }

    /// Creates a policy, or changes the one that has its name, if what is there is as expected. When nothing is
    /// expected and something is there, the answer is `Taken` or `Unchanged`.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Queue` when the dispatch queue does not take what follows, `EngineError::Contended` when the
    /// policy or its slot groups were changed by others in each of `WRITE_ROUNDS` rounds. Repeating the call is safe.
    pub fn put<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a PolicyId,
        terms: PolicyTerms,
        expected: impl Into<Expect>,
    ) -> BoxFuture<'a, Result<Written<Policy>, EngineError>> {
        let expected = expected.into();
        Box::pin(async move {
            if expected != Expect::Nothing {
                let revision = match expected {
                    Expect::Revision(revision) => Some(revision),
                    Expect::Anything | Expect::Nothing => None,
                };
                let written = self.replace(client, id, terms, revision).await?;
                if written != Written::Absent || expected != Expect::Anything {
                    return Ok(written);
                }
            }
            self.create(client, id.clone(), terms).await
        })
    }

    /// Changes a policy at the `expected` revision; `None`: at any. Acts on the next grant: a lowered limit drains, a
    /// raised one is used at once.
    ///
    /// # Errors
    /// As [`Policies::put`]. Repeating the call is safe.
    pub fn replace<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a PolicyId,
        terms: PolicyTerms,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<Written<Policy>, EngineError>> {
        Box::pin(
            self.change(client, id, expected, Some(What::Changed), move |old| Policy {
                terms,
                ..old.clone()
            }),
        )
    }

    /// Pauses a policy, or lets it go on, at the `expected` revision; `None`: at any. Nothing is admitted while it is
    /// paused; what is in flight goes on.
    ///
    /// # Errors
    /// As [`Policies::put`]. Repeating the call is safe.
    pub fn pause<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a PolicyId,
        paused: bool,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<Written<Policy>, EngineError>> {
        let what = if paused { What::Paused } else { What::Resumed };
        Box::pin(self.change(client, id, expected, Some(what), move |old| Policy { paused, ..old.clone() }))
    }

    /// Closes a policy until an instant, or opens it at once where that is `None`, at the `expected` revision; `None`: at any. Nothing
    /// is admitted while it is closed; what is in flight goes on. To open it takes back what its consumer's answers led to as well.
    ///
    /// # Errors
    /// As [`Policies::put`]. Repeating the call is safe.
    pub fn close<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a PolicyId,
        closed: Option<(DateTime<Utc>, &'a str)>,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<Written<Policy>, EngineError>> {
        Box::pin(async move {
            let backpressure = closed.map(|(until, because)| Backpressure::closed_by_client(until, because));
            let change = |old: &Policy| Policy { backpressure: backpressure.clone(), ..old.clone() };
            let what = if closed.is_some() { What::Closed } else { What::Opened };
            let written = self.change(client, id, expected, Some(what), change).await?;
            if let Some((until, _)) = closed {
                self.throttle.wake_at(&PolicyRef::new(client, id), until).await?;
            }
            Ok(written)
        })
    }

    /// Holds all policies of a client, or lets them drain. Repeating it changes nothing.
    pub(crate) async fn sideline_all(
        &self,
        client: &ClientId,
        change: impl Fn(Option<&Sideline>) -> Option<Sideline>,
    ) -> Result<(), EngineError> {
        let mut after = None;
        loop {
            let page = self.store.policies(client, after).await?;
            for policy in page.rows {
                deadline::check(&*self.clock)?;
                let next = |old: &Policy| {
                    let sidelined = change(old.sidelined.as_ref());
                    Policy { sidelined, ..old.clone() }
                };
                self.change(client, &policy.id, None, None, next).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// A new policy of a client that is sidelined is held as well: whoever sidelines it either finds it in the list or was faster.
    async fn sidelined_with_client(&self, policy: Policy) -> Result<Policy, EngineError> {
        let client = self.store.recheck(&policy.client).await?.sidelines.client;
        let Some(held) = client.filter(Sideline::is_held) else { return Ok(policy) };
        let next = |old: &Policy| Policy { sidelined: Some(held.clone()), ..old.clone() };
        Ok(match self.change(&policy.client, &policy.id, None, None, next).await? {
            Written::Replaced(policy) | Written::Unchanged(policy) => policy,
            _ => policy,
        })
    }

    /// Changes a policy, which is recorded as `what`; `None`: it is not, since it follows from something else.
    async fn change(
        &self,
        client: &ClientId,
        id: &PolicyId,
        expected: Option<u32>,
        what: Option<What>,
        change: impl Fn(&Policy) -> Policy,
    ) -> Result<Written<Policy>, EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let Some(old) = self.store.policy(client, id).await? else { return Ok(Written::Absent) };
            if expected.is_some_and(|expected| expected != old.revision) {
                return Ok(Written::RevisionIs(old.revision));
            }
            let mut new = change(&old);
            if new == old {
                // A call that died half way may be repeated: the shares follow, whatever it left.
                self.throttle.converge(old.clone()).await?;
                return Ok(Written::Unchanged(old));
            }
            new.revision = old.revision + 1;
            new.plan = old.plan.changed(old.limit(), new.limit());
            // On the list first: should we die half way, the next tick brings the shares into step.
            let now = self.clock.now();
            self.store.touch_active(client, id, now).await?;
            let recorded = what.map(|what| author::change(what, now));
            if self.store.replace_policy(&new, &old, recorded.as_ref()).await? == Write::Done {
                self.throttle.memory.keep_snapshot(client, id, self.clock.now(), (&new).into());
                self.tokens.reconcile_policy(client, id, Left::ToAWake).await?;
                return Ok(Written::Replaced(new));
            }
        }
        Err(EngineError::Contended { what: "a policy", rounds: WRITE_ROUNDS })
    }

    /// Deletes a policy that nothing uses, at the `expected` revision; `None`: at any.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Queue` when the dispatch queue does not take what follows from its last outcomes. Repeating the
    /// call is safe.
    pub fn delete<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a PolicyId,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<PolicyDelete, EngineError>> {
        Box::pin(async move {
            let Some(policy) = self.store.policy(client, id).await? else { return Ok(PolicyDelete::Absent) };
            if expected.is_some_and(|expected| expected != policy.revision) {
                return Ok(PolicyDelete::RevisionIs(policy.revision));
            }
            let users = self.users_of(client, id).await?;
            if !users.is_empty() {
                return Ok(PolicyDelete::UsedBy(users));
            }
            let load = self.queries.load(&policy).await?;
            if load != Load::default() {
                return Ok(PolicyDelete::Busy(load));
            }
            // What came of its last events is in its slot groups, into which nobody looks once it is gone.
            let groups = self.throttle.groups_as_they_are(&policy).await?;
            let compactions = groups.into_iter().map(|group| Effect::Compact(Box::new(group)));
            self.effects.carry_out(compactions.collect()).await?;
            let change = author::change(What::Deleted, self.clock.now());
            match self.store.delete_policy(&policy, &change).await? {
                // Its slot groups stay: should a policy of this name come again, no fencing number is given twice.
                Write::Done => Ok(PolicyDelete::Done),
                Write::Refused => Ok(PolicyDelete::RevisionIs(policy.revision + 1)),
            }
        })
    }

    async fn users_of(&self, client: &ClientId, id: &PolicyId) -> Result<Vec<JobId>, EngineError> {
        let (mut users, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.jobs(client, "", after).await?;
            let using = page.rows.into_iter().filter(|job| job.terms.policy.as_ref() == Some(id));
            users.extend(using.map(|job| job.id));
            // Of a job that cannot be read, nobody can tell whether it names the policy.
            users.extend(page.unreadable.iter().filter_map(|job| job.sort_key.parse().ok()));
            after = page.next;
            if after.is_none() || users.len() >= NAMED_USERS {
                users.truncate(NAMED_USERS);
                return Ok(users);
            }
        }
    }
}
