//! Sidelining: a client or a job is held, and later drains at a pace.
//!
//! What nothing throttles is set aside chunk by chunk (`deliver`). What a policy throttles waits in its line: that of a client
//! that is sidelined is not served; of a job, each event is set aside within the line as its turn comes.

use std::sync::Arc;

use futures::future::BoxFuture;
use tidegate_domain::change::{Change, What};
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{SIDELINED_JOBS, WRITE_ROUNDS};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::retry::RedrivePace;
use tidegate_domain::sideline::{Sideline, SidelineOf, Sidelines};
use tidegate_store::{Store, Write};

use crate::EngineError;
use crate::author;
use crate::contents::Contents;
use crate::policies::Policies;
use crate::queues::{Outgoing, Queues};
use crate::tokens::Tokens;

/// Rows that are read to count what is set aside under a client or a job.
const COUNTED: i32 = 100;

/// What clients and admins do to hold deliveries.
pub struct Sidelining {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) tokens: Arc<Tokens>,
}

/// What is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetAside {
    /// Events that are set aside.
    pub events: u32,
    /// Whether there are more, which were not counted.
    pub has_more: bool,
}

/// What came of a call to sideline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sidelined {
    /// It is.
    Done,
    /// There is no such job.
    Absent,
    /// As many jobs are sidelined as may be.
    TooMany,
}

impl Sidelining {
    /// Holds all that a client or a job would deliver, from now on. What is in flight goes on. Repeating it changes nothing but
    /// the reason; while it drains it is held anew.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer; `Queue` when the dispatch queue does not take what
    /// follows, `Contended` when others changed the same rows in each of `WRITE_ROUNDS` rounds. Some policies of the client may be
    /// held then and others not; repeating the call is safe.
    pub fn sideline<'a>(
        &'a self,
        client: &'a ClientId,
        of: &'a SidelineOf,
        because: &'a str,
    ) -> BoxFuture<'a, Result<Sidelined, EngineError>> {
        Box::pin(async move {
            let job = match of {
                SidelineOf::Client => None,
                SidelineOf::Job(id) => match self.contents.present_job(client, id).await? {
                    None => return Ok(Sidelined::Absent),
                    job => job,
                },
            };
            let now = self.clock.now();
            let hold = |known: Option<&Sideline>| match known {
                Some(known) if known.is_held() => Sideline { because: because.to_owned(), ..known.clone() },
                _ => Sideline::new(now, because),
            };
            let change = |known: Option<&Sideline>| Some(hold(known));
            if !self.change(client, of, change, &author::change(What::Sidelined, now)).await? {
                return Ok(Sidelined::TooMany);
            }
            match job.as_ref().and_then(|job| Some((&job.id, job.terms.policy.as_ref()?))) {
                // What slot groups have of it is looked up from now on; what they take from now on, they mark themselves.
                Some((job, policy)) => {
                    self.tokens.recheck_packs_with(&PolicyRef::new(client, policy), job).await?;
                }
                None if *of == SidelineOf::Client => self.policies.sideline_all(client, change).await?,
                None => {}
            }
            Ok(Sidelined::Done)
        })
    }

    /// Lets what was held go, at a pace: so many events a second of all that nothing throttles, and of each policy. What is
    /// launched from now on goes as usual; under a policy it takes its place in the line, at the same pace until that has
    /// drained. Where nothing is sidelined it changes nothing; while it drains it sets the pace.
    ///
    /// # Errors
    /// As [`Self::sideline`].
    pub fn drain<'a>(
        &'a self,
        client: &'a ClientId,
        of: &'a SidelineOf,
        pace: RedrivePace,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let now = self.clock.now();
            let change = |known: Option<&Sideline>| known.map(|known| known.draining(pace, now));
            self.change(client, of, change, &author::change(What::Drained, now)).await?;
            if *of == SidelineOf::Client {
                self.policies.sideline_all(client, change).await?;
            }
            self.queues.dispatch(&[Outgoing::drain(client, of)]).await
        })
    }

    /// What of a client is sidelined, or drains.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn find<'a>(&'a self, client: &'a ClientId) -> BoxFuture<'a, Result<Sidelines, EngineError>> {
        Box::pin(async move { Ok(self.store.recheck(client).await?.sidelines) })
    }

    /// How many events are set aside under a client or a job, as far as they are counted: of those in lines, those under the policy
    /// that the job has now.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn count<'a>(
        &'a self,
        client: &'a ClientId,
        of: &'a SidelineOf,
    ) -> BoxFuture<'a, Result<SetAside, EngineError>> {
        Box::pin(async move {
            let page = self.store.chunks_set_aside(client, of, None, COUNTED).await?;
            let events = page.rows.iter().map(|row| row.events).sum();
            let mut set_aside = SetAside { events, has_more: page.next.is_some() };
            if let SidelineOf::Job(id) = of
                && let Some(job) = self.contents.present_job(client, id).await?
                && let Some(policy) = &job.terms.policy
            {
                let waiting = self.store.sidelined_of((client, policy), id, COUNTED).await?;
                let events = u32::try_from(waiting.rows.len()).unwrap_or(u32::MAX);
                set_aside.events = set_aside.events.saturating_add(events);
                set_aside.has_more |= waiting.next.is_some();
            }
            Ok(set_aside)
        })
    }

    /// Whether there was room for it.
    async fn change(
        &self,
        client: &ClientId,
        of: &SidelineOf,
        change: impl Fn(Option<&Sideline>) -> Option<Sideline>,
        recorded: &Change,
    ) -> Result<bool, EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let seen = self.store.recheck(client).await?;
            let known = seen.sidelines.get(of);
            let next = seen.sidelines.clone().with(of, change(known));
            if next == seen.sidelines {
                return Ok(true);
            }
            if next.jobs.len() > SIDELINED_JOBS {
                return Ok(false);
            }
            let recorded = Some((of, recorded));
            if self.store.replace_sidelines(client, &next, &seen, recorded).await? == Write::Done {
                return Ok(true);
            }
        }
        Err(EngineError::Contended { what: "what is sidelined", rounds: WRITE_ROUNDS })
    }
}
