//! What the clients of a history were told, and so what must come of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, JobId, PolicyId};
use tidegate_domain::job::{Job, Terms, Trigger};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::time::Window;

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
    Put(Trigger, Terms),
    Delete,
}

/// A revision that a client was told of.
#[derive(Debug)]
pub(crate) struct Revision {
    pub(crate) job: Job,
    /// When the call was first made that ended it.
    ended: Option<DateTime<Utc>>,
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

    /// When it launches for the last time, if it launches once.
    pub(crate) fn last_instant(&self) -> Option<DateTime<Utc>> {
        match self.revisions.last().filter(|last| last.ended.is_none())?.job.trigger {
            Trigger::At { launch_at } => Some(launch_at),
            Trigger::Cron { .. } => None,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.revisions.last().is_some_and(|revision| revision.ended.is_none())
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
        if let Some(last) = self.revisions.last_mut().filter(|last| last.ended.is_none()) {
            last.ended = wished;
        }
        if let Some(job) = job {
            self.id = Some(job.id.clone());
            self.revisions.push(Revision { job, ended: None });
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
        let launches = match &self.job.trigger {
            Trigger::At { launch_at } => Vec::from_iter((*launch_at < to).then_some(*launch_at)),
            Trigger::Cron { spec, zone } => {
                let window = Window::new(from, to).ok();
                let firings = window.map(|window| spec.compiled().firings(*zone, window)).unwrap_or_default();
                firings.into_iter().map(|firing| firing.launch_at).collect()
            }
        };
        launches.into_iter().map(|launch_at| self.occurrence(launch_at)).collect()
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
        match &self.job.trigger {
            Trigger::At { launch_at: only } => *only == launch_at,
            Trigger::Cron { spec, zone } => {
                let window = Window::new(launch_at, launch_at + chrono::Duration::seconds(1)).ok();
                window.is_some_and(|window| !spec.compiled().firings(*zone, window).is_empty())
                    && launch_at >= self.job.changed_at - chrono::Duration::seconds(1)
            }
        }
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
