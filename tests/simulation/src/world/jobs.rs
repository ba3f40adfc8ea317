//! Policies and jobs, in as few words as a test needs.

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, Utc};
use tidegate_domain::job::{Attempts, Count, History, HistoryDays, Payload, Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::rules::{Relevancy, Rules};
use tidegate_domain::target::Target;
use tidegate_domain::time::{CronSpec, parse_zone};
use tidegate_engine::{JobDraft, Written};

use super::{CLIENT, World};

/// A job to be created. Without an id, one is generated.
#[derive(Debug, Clone)]
pub struct JobSpec {
    id: Option<String>,
    draft: JobDraft,
}

impl JobSpec {
    /// One event without a policy, at an instant.
    ///
    /// # Errors
    /// When the URL is none of a queue.
    pub fn at(launch_at: DateTime<Utc>, queue_url: &str) -> Result<Self> {
        Self::new(Trigger::at(launch_at), queue_url)
    }

    /// One event without a policy, whenever the expression matches.
    ///
    /// # Errors
    /// When the expression, the zone or the URL is refused.
    pub fn cron(expression: &str, zone: &str, queue_url: &str) -> Result<Self> {
        let trigger = Trigger::Cron { spec: CronSpec::parse(expression)?, zone: parse_zone(zone)? };
        Self::new(trigger, queue_url)
    }

    /// One event without a policy, by any trigger.
    ///
    /// # Errors
    /// When the URL is none of a queue.
    pub fn new(trigger: Trigger, queue_url: &str) -> Result<Self> {
        let draft = JobDraft::new(trigger, terms(queue_url)?);
        Ok(Self { id: None, draft })
    }

    /// With rules for its launches.
    #[must_use]
    pub fn ruled(mut self, rules: Rules) -> Self {
        self.draft.rules = rules;
        self
    }

    /// Delivered only while its launch is no older than this.
    ///
    /// # Errors
    /// When the number of seconds is out of bounds.
    pub fn relevant_for(mut self, seconds: u64) -> Result<Self> {
        self.draft.terms.relevancy = Some(Relevancy::new(seconds)?);
        Ok(self)
    }

    /// With an id of the client's choice.
    #[must_use]
    pub fn named(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// With several events.
    ///
    /// # Errors
    /// When the number is out of bounds.
    pub fn of(mut self, count: u64) -> Result<Self> {
        self.draft.terms.count = Count::new(count)?;
        Ok(self)
    }

    /// Throttled by a policy.
    ///
    /// # Errors
    /// When the name is none.
    pub fn under(mut self, policy: &str) -> Result<Self> {
        self.draft.terms.policy = Some(policy.parse()?);
        Ok(self)
    }

    /// With a record for failures only.
    #[must_use]
    pub fn failures_only(mut self) -> Self {
        self.draft.terms.history = History::Failures;
        self
    }

    /// With this many deliveries of an event at the most.
    ///
    /// # Errors
    /// When the number is out of bounds.
    pub fn attempts(mut self, attempts: u64) -> Result<Self> {
        self.draft.terms.max_attempts = Some(Attempts::new(attempts)?);
        Ok(self)
    }

    /// With whatever else a test says of it.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut JobDraft)) -> Self {
        change(&mut self.draft);
        self
    }

    /// What the engine is asked for.
    pub fn into_draft(self) -> JobDraft {
        self.draft
    }
}

fn terms(queue_url: &str) -> Result<Terms> {
    Ok(Terms {
        count: Count::new(1)?,
        policy: None,
        target: Target::sqs(queue_url)?,
        payload: Payload::new(r#"{"report":"daily"}"#.to_owned())?,
        history: History::All,
        history_days: HistoryDays::DEFAULT,
        max_attempts: None,
        retry: Default::default(),
        relevancy: None,
        flow: tidegate_domain::flow::Flow::default(),
        unknown: Default::default(),
    })
}

impl World {
    /// Creates a policy of [`CLIENT`].
    ///
    /// # Errors
    /// When it is refused or there already.
    pub async fn policy(&self, id: &str, max_in_flight: u32, lease_seconds: u32) -> Result<()> {
        let terms = PolicyTerms::new(max_in_flight, lease_seconds)?;
        match self.engine.policies().create(&CLIENT.parse()?, id.parse()?, terms).await? {
            Written::Created(_) | Written::Unchanged(_) => Ok(()),
            other => bail!("failed to create policy {id}: {other:?}"),
        }
    }

    /// Changes the limit of a policy of [`CLIENT`].
    ///
    /// # Errors
    /// When it is refused.
    pub async fn change_policy(&self, id: &str, max_in_flight: u32, lease_seconds: u32) -> Result<()> {
        let terms = PolicyTerms::new(max_in_flight, lease_seconds)?;
        match self.engine.policies().replace(&CLIENT.parse()?, &id.parse()?, terms, None).await? {
            Written::Replaced(_) | Written::Unchanged(_) => Ok(()),
            other => bail!("failed to change policy {id}: {other:?}"),
        }
    }

    /// Creates a job of [`CLIENT`] and tells its id.
    ///
    /// # Errors
    /// When it is refused or another job has its id.
    pub async fn create(&self, job: JobSpec) -> Result<String> {
        let id = job.id.map(|id| id.parse()).transpose()?;
        match self.engine.jobs().create(&CLIENT.parse()?, id, job.draft).await? {
            Written::Created(job) => Ok(job.id.to_string()),
            other => bail!("failed to create a job: {other:?}"),
        }
    }

    /// Replaces a job of [`CLIENT`], which must have an id.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn replace(&self, job: JobSpec) -> Result<()> {
        let id = job.id.context("a job to be replaced has no id")?.parse()?;
        match self.engine.jobs().replace(&CLIENT.parse()?, id, job.draft, None).await? {
            Written::Replaced(_) => Ok(()),
            other => bail!("failed to replace a job: {other:?}"),
        }
    }
}
