//! What the clients of a history were told, and so what must come of it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use croner::Cron;
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, EventId, JobId, PolicyId, RunId};
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::policy::{OnExpiry, Policy, PolicyTerms};
use tidegate_domain::time::{Instants, Window, seconds, shifted};
use tidegate_engine::{Engine, EngineError, JobDraft, Written};

use super::coverage::CoveredFault;
use super::oracle;

/// A policy and the limits that were in force, by step of the history.
#[derive(Debug)]
pub(crate) struct PolicyModel {
    pub(crate) client: ClientId,
    pub(crate) id: PolicyId,
    /// What its client has asked for at last.
    pub(crate) terms: PolicyTerms,
    pub(crate) paused: bool,
    pub(crate) spans: Vec<Span>,
    /// What is being set, until the call was answered.
    pub(crate) pending_call: Option<PendingPolicyCall>,
    pub(crate) busy: bool,
    /// Nobody releases its tokens until the end.
    pub(crate) starved: bool,
    /// More waits for its tokens than a history can serve.
    pub(crate) endless: bool,
}

/// What a client wants of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingPolicyCall {
    Limit(u32),
    /// That it is paused, or goes on.
    Pause(bool),
    /// That it is closed for so many seconds, or open.
    Close(Option<u32>),
}

/// A limit, 0 while the policy is paused, and when another one was in force for certain.
#[derive(Debug)]
pub(crate) struct Span {
    limit: u32,
    to: Option<u64>,
}

type PolicyAnswer = Result<Written<Policy>, EngineError>;

impl PolicyModel {
    pub(crate) fn new(client: ClientId, id: PolicyId, terms: PolicyTerms) -> Self {
        Self {
            client,
            id,
            terms,
            paused: false,
            spans: vec![Span { limit: terms.max_in_flight(), to: None }],
            pending_call: None,
            busy: false,
            starved: false,
            endless: false,
        }
    }

    /// Whether it comes to an end only after all others have.
    pub(crate) fn is_last(&self) -> bool {
        self.starved || self.endless
    }

    /// Whether a lease that ran out stays with its holder.
    pub(crate) fn holds(&self) -> bool {
        self.terms.on_expiry() == OnExpiry::Hold
    }

    /// A limit counts from the moment in which it is asked for.
    pub(crate) fn ask(&mut self, pending_call: PendingPolicyCall) -> anyhow::Result<()> {
        self.pending_call = Some(pending_call);
        match pending_call {
            PendingPolicyCall::Limit(limit) => {
                let terms = PolicyTerms::new(limit, self.terms.lease_seconds())?;
                self.terms = terms.with_on_expiry(self.terms.on_expiry()).with_rate(self.terms.rate());
            }
            PendingPolicyCall::Pause(paused) => self.paused = paused,
            // When it opens, clocks that are apart do not agree about.
            PendingPolicyCall::Close(_) => {}
        }
        let limit = if self.paused { 0 } else { self.terms.max_in_flight() };
        self.spans.push(Span { limit, to: None });
        Ok(())
    }

    /// The call that a pending one is.
    pub(crate) fn call(
        &self,
        engine: Engine,
        pending_call: PendingPolicyCall,
    ) -> impl Future<Output = PolicyAnswer> + Send + use<> {
        let (client, id, terms) = (self.client.clone(), self.id.clone(), self.terms);
        async move {
            match pending_call {
                PendingPolicyCall::Limit(_) => engine.policies().replace(&client, &id, terms, None).await,
                PendingPolicyCall::Pause(paused) => engine.policies().pause(&client, &id, paused, None).await,
                PendingPolicyCall::Close(length) => {
                    let until = |length: u32| shifted(engine.clock().now(), seconds(length.into()));
                    let closed = length.map(|length| (until(length), "repairs"));
                    engine.policies().close(&client, &id, closed, None).await
                }
            }
        }
    }

    /// The limits before stop counting when the change was answered. Tells what was done thereby.
    pub(crate) fn answered(&mut self, step: u64) -> Option<CoveredFault> {
        let pending_call = self.pending_call.take();
        let (last, before) = self.spans.split_last_mut()?;
        let was = before.last().map(|span| span.limit);
        before.iter_mut().filter(|span| span.to.is_none()).for_each(|span| span.to = Some(step));
        match (pending_call?, last.limit.cmp(&was?)) {
            (PendingPolicyCall::Pause(true), _) => Some(CoveredFault::Paused),
            (PendingPolicyCall::Pause(false), _) => Some(CoveredFault::Resumed),
            (PendingPolicyCall::Close(Some(_)), _) => Some(CoveredFault::Closed),
            (PendingPolicyCall::Close(None), _) => None,
            (PendingPolicyCall::Limit(_), Ordering::Less) => Some(CoveredFault::LimitLowered),
            (PendingPolicyCall::Limit(_), Ordering::Equal) => None,
            (PendingPolicyCall::Limit(_), Ordering::Greater) => Some(CoveredFault::LimitRaised),
        }
    }

    /// The largest limit in force since a step.
    pub(crate) fn largest_since(&self, step: u64) -> u32 {
        let counts = |span: &&Span| span.to.is_none_or(|to| to >= step);
        self.spans.iter().filter(counts).map(|span| span.limit).max().unwrap_or(0)
    }
}

/// A job as its client writes it.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) job: JobDraft,
    /// Its cron expression, as croner reads the client's own text.
    pub(crate) cron: Option<Cron>,
}

/// What a client wants of a job.
#[derive(Debug, Clone)]
pub(crate) enum PendingCall {
    Put(Box<Draft>),
    /// That it is paused, or goes on.
    Pause(bool),
    Delete,
    /// That its launches of a window are made after all, of the revision behind the one that it has.
    Backfill {
        window: Window,
        expected: u32,
    },
}

/// A revision that a client was told of.
#[derive(Debug)]
pub(crate) struct Revision {
    pub(crate) job: Job,
    /// Its cron expression, as croner reads the client's own text.
    cron: Option<Cron>,
    /// When the call was first made that ended it.
    ended: Option<DateTime<Utc>>,
    /// The instants of the revision before it: those that were over when this one was written were that one's.
    had: Option<Instants>,
    /// It took the place of another: what was due up to the change was that one's.
    replaces: bool,
    /// Launches before it that are made after all, without jitter.
    backfilled: Vec<DateTime<Utc>>,
}

/// A job of a client's.
#[derive(Debug)]
pub(crate) struct JobModel {
    pub(crate) client: ClientId,
    /// `None` until the id was generated and told.
    pub(crate) id: Option<JobId>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) pending_call: Option<PendingCall>,
    /// When it was first asked for.
    wished: Option<DateTime<Utc>>,
    pub(crate) busy: bool,
    /// Nobody changes it until the end.
    pub(crate) kept: bool,
}

impl JobModel {
    pub(crate) fn new(client: ClientId, id: Option<JobId>) -> Self {
        Self { client, id, revisions: Vec::new(), pending_call: None, wished: None, busy: false, kept: false }
    }

    pub(crate) fn pending_call(&mut self, pending_call: PendingCall, now: DateTime<Utc>) {
        self.pending_call = Some(pending_call);
        self.wished = Some(now);
    }

    /// A process whose clock shows `now` is asked for the pending call. By its clock the present revision may end earlier.
    pub(crate) fn asked(&mut self, now: DateTime<Utc>) {
        self.wished = self.wished.map(|wished| wished.min(now));
    }

    /// When it launches for the last time, if it comes to an end by itself.
    pub(crate) fn last_instant(&self) -> Option<DateTime<Utc>> {
        let last = self.revisions.last().filter(|last| last.ended.is_none())?;
        match &last.job.trigger {
            Trigger::At(instants) => Some(instants.last() + last.offset()),
            Trigger::Cron { .. } | Trigger::Rate { .. } => None,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.revisions.last().is_some_and(|revision| revision.ended.is_none())
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.revisions.last().is_some_and(|revision| revision.job.paused)
    }

    /// The client was told that the job is like this now; `None`: gone. Answers how many launches are made after all thereby.
    pub(crate) fn told(&mut self, job: Option<Job>) -> usize {
        let unchanged =
            matches!((&job, self.revisions.last()), (Some(a), Some(b)) if a.revision == b.job.revision);
        let (pending_call, wished) = (self.pending_call.take(), self.wished.take());
        if unchanged {
            return 0;
        }
        let (mut had, replaces) = (None, self.is_live());
        if let Some(last) = self.revisions.last_mut().filter(|last| last.ended.is_none()) {
            let changed_at = job.as_ref().map(|job| job.changed_at);
            last.ended = wished.into_iter().chain(changed_at).min();
            if let Trigger::At(instants) = &last.job.trigger {
                had = Some(instants.clone());
            }
        }
        if let Some(job) = job {
            self.id = Some(job.id.clone());
            let window = match &pending_call {
                Some(PendingCall::Backfill { window, .. }) => Some(*window),
                _ => None,
            };
            let cron = match pending_call {
                Some(PendingCall::Put(draft)) => draft.cron,
                // A pause changes no trigger.
                _ => self.revisions.last().and_then(|last| last.cron.clone()),
            };
            let mut revision = Revision { job, cron, ended: None, had, replaces, backfilled: Vec::new() };
            revision.backfilled = window.map(|window| revision.firings_in(window)).unwrap_or_default();
            self.revisions.push(revision);
        }
        self.revisions.last().map_or(0, |last| if last.ended.is_none() { last.backfilled.len() } else { 0 })
    }

    /// The occurrences that must be delivered or recorded, up to an instant.
    pub(crate) fn due(&self, until: DateTime<Utc>) -> Vec<Occurrence> {
        self.revisions.iter().flat_map(|revision| revision.due(until)).collect()
    }
}

impl Revision {
    fn due(&self, until: DateTime<Utc>) -> Vec<Occurrence> {
        let from_s = self.job.changed_at.timestamp() + i64::from(self.replaces);
        let from = DateTime::from_timestamp(from_s, 0).unwrap_or_default();
        let to = self.ended.map_or(until, |ended| until.min(ended));
        // An instant may lie a little in the past when its job arrives.
        let from =
            if let Trigger::At(instants) = &self.job.trigger { from.min(instants.first()) } else { from };
        let firings = oracle::firings(&self.job.trigger, self.cron.as_ref(), from, to).into_iter();
        let own = firings.filter(|firing| self.is_own(*firing));
        let own = own.map(|firing| self.occurrence(firing + self.offset()));
        let backfilled = self.backfilled.iter().map(|firing| {
            let mut occurrence = self.occurrence(*firing + self.offset());
            occurrence.terms.flow.overlap = Overlap::Allow;
            occurrence
        });
        own.chain(backfilled).collect()
    }

    /// What its trigger says of a window of launches.
    fn firings_in(&self, window: Window) -> Vec<DateTime<Utc>> {
        let (from, to) = (window.from() - self.offset(), window.to() - self.offset());
        let firings = oracle::firings(&self.job.trigger, self.cron.as_ref(), from, to).into_iter();
        firings.filter(|firing| oracle::is_within(&self.job.rules, *firing)).collect()
    }

    fn is_own(&self, scheduled_at: DateTime<Utc>) -> bool {
        let is_over = scheduled_at <= self.job.changed_at;
        let was_had = is_over && self.had.as_ref().is_some_and(|had| had.iter().any(|at| at == scheduled_at));
        oracle::is_within(&self.job.rules, scheduled_at) && !was_had
    }

    /// By how much its launches come after their time.
    fn offset(&self) -> Duration {
        oracle::jitter(&self.job.client, &self.job.id, self.job.rules.jitter.seconds())
    }

    fn occurrence(&self, launch_at: DateTime<Utc>) -> Occurrence {
        Occurrence {
            client: self.job.client.clone(),
            job: self.job.id.clone(),
            revision: self.job.revision,
            launch_at,
            terms: self.job.terms.clone(),
        }
    }

    /// Whether it may launch at an instant at all.
    pub(crate) fn may_launch_at(&self, launch_at: DateTime<Utc>) -> bool {
        let scheduled_at = launch_at - self.offset();
        if self.backfilled.contains(&scheduled_at) {
            return true;
        }
        let next = scheduled_at + Duration::seconds(1);
        let launches = !oracle::firings(&self.job.trigger, self.cron.as_ref(), scheduled_at, next).is_empty();
        let is_instant = matches!(self.job.trigger, Trigger::At(_));
        // A job that was just created launches in its second too.
        let before = Duration::seconds(i64::from(!self.replaces));
        let in_force = is_instant || scheduled_at > self.job.changed_at - before;
        launches && in_force && self.is_own(scheduled_at) && !self.job.paused
    }
}

/// Everything that the clients of a history know.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Every policy has one token, and runs are short.
    pub(crate) tight: bool,
    /// The time zones of cron jobs.
    pub(crate) zones: Vec<Tz>,
    pub(crate) clients: Vec<ClientId>,
    pub(crate) policies: Vec<PolicyModel>,
    pub(crate) jobs: Vec<JobModel>,
    /// Event ids that consumers received, by client.
    pub(crate) delivered: BTreeMap<ClientId, BTreeSet<String>>,
}

impl Model {
    /// Whether any job may launch after an instant.
    pub(crate) fn may_launch_after(&self, at: DateTime<Utc>) -> bool {
        self.jobs
            .iter()
            .filter(|job| job.is_live())
            .any(|job| job.last_instant().is_none_or(|last| last > at))
    }

    /// Whether a consumer has received an event.
    pub(crate) fn has_received(&self, client: &ClientId, event: &EventId) -> bool {
        self.delivered.get(client).is_some_and(|ids| ids.contains(&event.to_string()))
    }

    /// The revision that a run is of, if its client was told of it.
    pub(crate) fn revision(&self, client: &ClientId, run: &RunId) -> Option<&Revision> {
        let mut revisions =
            self.jobs.iter().filter(|job| job.client == *client).flat_map(|job| &job.revisions);
        revisions.find(|of| of.job.id == *run.job() && of.job.revision == run.revision())
    }

    pub(crate) fn policy(&self, client: &ClientId, id: &PolicyId) -> Option<&PolicyModel> {
        self.policies.iter().find(|policy| policy.client == *client && policy.id == *id)
    }
}
