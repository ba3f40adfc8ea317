//! What the clients of a history were told, and so what must come of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::ids::{ClientId, JobId, PolicyId};
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::time::{Instants, Window};
use tidegate_engine::JobDraft;

/// A policy and the limits that were in force, by step of the history.
#[derive(Debug)]
pub(crate) struct PolicyModel {
    pub(crate) client: ClientId,
    pub(crate) id: PolicyId,
    pub(crate) lease_seconds: u32,
    spans: Vec<Span>,
    /// The limit that is being set, until the call was answered.
    pub(crate) wish: Option<u32>,
    pub(crate) busy: bool,
    /// Nobody releases its tokens until the end.
    pub(crate) hogged: bool,
}

#[derive(Debug)]
struct Span {
    limit: u32,
    to: Option<u64>,
}

impl PolicyModel {
    pub(crate) fn new(client: ClientId, id: PolicyId, limit: u32, lease_seconds: u32, hogged: bool) -> Self {
        let spans = vec![Span { limit, to: None }];
        Self { client, id, lease_seconds, spans, wish: None, busy: false, hogged }
    }

    /// A limit counts from the moment in which it is asked for.
    pub(crate) fn ask(&mut self, limit: u32) {
        self.wish = Some(limit);
        self.spans.push(Span { limit, to: None });
    }

    /// The limits before stop counting when the change was answered.
    pub(crate) fn answered(&mut self, step: u64) {
        self.wish = None;
        if let Some((_, before)) = self.spans.split_last_mut() {
            before.iter_mut().filter(|span| span.to.is_none()).for_each(|span| span.to = Some(step));
        }
    }

    /// The largest limit in force since a step.
    pub(crate) fn largest_since(&self, step: u64) -> u32 {
        let counts = |span: &&Span| span.to.is_none_or(|to| to >= step);
        self.spans.iter().filter(counts).map(|span| span.limit).max().unwrap_or(0)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.spans.last().map_or(0, |span| span.limit)
    }
}

/// What a client wants of a job.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Put(Box<JobDraft>),
    /// That it is paused, or goes on.
    Pause(bool),
    Delete,
}

/// A revision that a client was told of.
#[derive(Debug)]
pub(crate) struct Revision {
    pub(crate) job: Job,
    /// When the call was first made that ended it.
    ended: Option<DateTime<Utc>>,
    /// The instants of the revision before it: those that were over when this one was written were that one's.
    had: Option<Instants>,
}

/// A job of a client's.
#[derive(Debug)]
pub(crate) struct JobModel {
    pub(crate) client: ClientId,
    /// `None` until the id was generated and told.
    pub(crate) id: Option<JobId>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) wish: Option<Wish>,
    /// When the wish was first uttered.
    wished: Option<DateTime<Utc>>,
    pub(crate) busy: bool,
}

impl JobModel {
    pub(crate) fn new(client: ClientId, id: Option<JobId>) -> Self {
        Self { client, id, revisions: Vec::new(), wish: None, wished: None, busy: false }
    }

    pub(crate) fn wish(&mut self, wish: Wish, now: DateTime<Utc>) {
        self.wish = Some(wish);
        self.wished = Some(now);
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

    /// The client was told that the job is like this now; `None`: gone.
    pub(crate) fn told(&mut self, job: Option<Job>) {
        let unchanged =
            matches!((&job, self.revisions.last()), (Some(a), Some(b)) if a.revision == b.job.revision);
        self.wish = None;
        let wished = self.wished.take();
        if unchanged {
            return;
        }
        let mut had = None;
        if let Some(last) = self.revisions.last_mut().filter(|last| last.ended.is_none()) {
            last.ended = wished;
            if let Trigger::At(instants) = &last.job.trigger {
                had = Some(instants.clone());
            }
        }
        if let Some(job) = job {
            self.id = Some(job.id.clone());
            self.revisions.push(Revision { job, ended: None, had });
        }
    }

    /// The occurrences that must be delivered or recorded, up to an instant.
    pub(crate) fn due(&self, until: DateTime<Utc>) -> Vec<Occurrence> {
        self.revisions.iter().flat_map(|revision| revision.due(until)).collect()
    }
}

impl Revision {
    fn due(&self, until: DateTime<Utc>) -> Vec<Occurrence> {
        let from = DateTime::from_timestamp(self.job.changed_at.timestamp(), 0).unwrap_or_default();
        let to = self.ended.map_or(until, |ended| until.min(ended));
        // An instant may lie a little in the past when its job arrives.
        let from =
            if let Trigger::At(instants) = &self.job.trigger { from.min(instants.first()) } else { from };
        let Ok(window) = Window::new(from, to) else { return Vec::new() };
        let firings = self.job.trigger.cadence().firings(window).into_iter();
        let launches = firings.filter(|firing| self.is_own(firing.launch_at));
        launches.map(|firing| self.occurrence(firing.launch_at + self.offset())).collect()
    }

    fn is_own(&self, scheduled_at: DateTime<Utc>) -> bool {
        let is_over = scheduled_at <= self.job.changed_at;
        let was_had = is_over && self.had.as_ref().is_some_and(|had| had.contains(scheduled_at));
        self.job.rules.is_within(scheduled_at) && !was_had
    }

    /// By how much its launches come after their time.
    fn offset(&self) -> Duration {
        self.job.rules.jitter.offset(&self.job.client, &self.job.id)
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
        let second = Window::new(scheduled_at, scheduled_at + Duration::seconds(1)).ok();
        let launches = second.is_some_and(|second| !self.job.trigger.cadence().firings(second).is_empty());
        let is_instant = matches!(self.job.trigger, Trigger::At(_));
        let in_force = is_instant || scheduled_at >= self.job.changed_at - Duration::seconds(1);
        launches && in_force && self.is_own(scheduled_at) && !self.job.paused
    }
}

/// Everything that the clients of a history know.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) clients: Vec<ClientId>,
    pub(crate) policies: Vec<PolicyModel>,
    pub(crate) jobs: Vec<JobModel>,
    /// Event ids that consumers received, by client.
    pub(crate) delivered: BTreeMap<ClientId, BTreeSet<String>>,
}

impl Model {
    pub(crate) fn policy(&self, client: &ClientId, id: &PolicyId) -> Option<&PolicyModel> {
        self.policies.iter().find(|policy| policy.client == *client && policy.id == *id)
    }
}
