//! Jobs and policies.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{Client, Page, Route};
use crate::error::Error;
use crate::trigger::Trigger;

/// A throttling policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The most events in flight at once.
    pub max_in_flight: u32,
    /// How long a token may be held without a heartbeat, in seconds; 60 when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u32>,
}

impl Policy {
    /// At most `max_in_flight` events at once, with the default lease.
    pub fn new(max_in_flight: u32) -> Self {
        Self { max_in_flight, lease_seconds: None }
    }
}

/// A policy as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PolicyStatus {
    /// Its name.
    pub policy_id: String,
    /// Rises by one with each change.
    pub revision: u32,
    /// The most events in flight at once.
    pub max_in_flight: u32,
    /// How long a token may be held without a heartbeat, in seconds.
    pub lease_seconds: u32,
    /// Events in flight now; only from [`Client::policy`].
    pub in_flight: Option<u32>,
    /// Events that were launched and wait for a token; only from [`Client::policy`].
    pub waiting: Option<u32>,
    /// Runs in its line, due or not; only from [`Client::policy`].
    pub waiting_runs: Option<u32>,
    /// Whether more is in flight than a lowered limit allows; only from [`Client::policy`].
    pub draining: Option<bool>,
}

/// A job.
///
/// ```
/// use tidegate_client::{Job, Target, Trigger};
///
/// let trigger = Trigger::cron("0 9 * * MON-FRI", "Europe/London");
/// let job = Job::new(trigger, Target::sqs("http://127.0.0.1:9324/000000000000/jobs")).count(20).policy("small");
/// assert_eq!(job.count, 20);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// When it fires.
    pub trigger: Trigger,
    /// Where its events go.
    pub target: Target,
    /// Events of one firing.
    pub count: u32,
    /// The policy that throttles them.
    pub policy_id: Option<String>,
    /// What each event carries.
    pub payload: Value,
    /// How much of what happened is kept.
    pub history: History,
    /// Deliveries of one event before it is recorded as dead; 5 when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Nothing is launched before it, an RFC 3339 instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// Nothing is launched at it or later, an RFC 3339 instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    /// The width of the flexible window, in seconds; none when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<u32>,
    /// What becomes of launches that an outage missed; the latest 100 are made up for when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfire: Option<Misfire>,
    /// How old a launch may be when it is delivered, in seconds; any age when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevancy_seconds: Option<u32>,
    /// The exclusion calendars on whose days it does not launch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calendars: Vec<String>,
}

/// What becomes of launches that an outage missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Misfire {
    /// None is made up for.
    Skip,
    /// The latest is.
    Latest,
    /// The latest `max` are.
    All {
        /// How many, at the most.
        max: u32,
    },
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A standard or FIFO queue.
    Sqs {
        /// Its URL.
        queue_url: String,
    },
    /// An endpoint that takes a POST for each event.
    Http {
        /// Its URL.
        url: String,
    },
}

/// How much of what happened to a job's events is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// A record for each event.
    #[default]
    All,
    /// A record for each event that failed.
    Failures,
}

impl Target {
    /// A queue by its URL.
    pub fn sqs(queue_url: impl Into<String>) -> Self {
        Self::Sqs { queue_url: queue_url.into() }
    }

    /// An endpoint by its URL.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into() }
    }
}

impl Job {
    /// One event for each firing, without a policy and a payload.
    pub fn new(trigger: Trigger, target: Target) -> Self {
        Self {
            trigger,
            target,
            count: 1,
            policy_id: None,
            payload: Value::Null,
            history: History::default(),
            max_attempts: None,
            start_at: None,
            end_at: None,
            jitter_seconds: None,
            misfire: None,
            relevancy_seconds: None,
            calendars: Vec::new(),
        }
    }

    /// The same with `count` events for each firing.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// The same under a policy.
    #[must_use]
    pub fn policy(mut self, policy_id: impl Into<String>) -> Self {
        self.policy_id = Some(policy_id.into());
        self
    }

    /// The same with a payload.
    #[must_use]
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = payload;
        self
    }
}

/// A job as the API shows it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct JobStatus {
    /// Its name.
    pub job_id: String,
    /// Rises by one with each change.
    pub revision: u32,
    /// When it fires.
    pub trigger: Trigger,
    /// The same in words.
    pub description: String,
    /// Events of one firing.
    pub count: u32,
    /// The policy that throttles them.
    pub policy_id: Option<String>,
    /// Where they go.
    pub target: Target,
    /// What they carry.
    pub payload: Value,
    /// How much of what happened is kept.
    pub history: History,
    /// Deliveries of one event before it is recorded as dead.
    pub max_attempts: u32,
    /// Nothing is launched before it, RFC 3339.
    pub start_at: Option<String>,
    /// Nothing is launched at it or later, RFC 3339.
    pub end_at: Option<String>,
    /// The width of the flexible window, in seconds.
    pub jitter_seconds: u32,
    /// What becomes of launches that an outage missed.
    pub misfire: Misfire,
    /// How old a launch may be when it is delivered, in seconds; any age when `None`.
    pub relevancy_seconds: Option<u32>,
    /// The exclusion calendars on whose days it does not launch.
    pub calendars: Vec<String>,
    /// Whether it is paused.
    pub paused: bool,
    /// When this revision was written, RFC 3339.
    pub changed_at: String,
    /// What may not be as meant, though it was taken.
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<JobStatus>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Policies {
    policies: Vec<PolicyStatus>,
    next_cursor: Option<String>,
}

/// A body with the name that is part of it when posted.
#[derive(Serialize)]
struct Named<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<&'a str>,
    #[serde(flatten)]
    body: &'a T,
}

impl Client {
    /// Creates a policy. One that says the same already is no error, one that says something else is.
    ///
    /// # Errors
    /// When the API refuses it, or the call fails.
    pub async fn create_policy(&self, policy_id: &str, policy: &Policy) -> Result<PolicyStatus, Error> {
        let body = Named { job_id: None, policy_id: Some(policy_id), body: policy };
        self.post(Route::Policies, &body).await
    }

    /// Creates or replaces a policy; with `expected`, only at that revision.
    ///
    /// # Errors
    /// When the API refuses it, or the call fails.
    pub async fn put_policy(
        &self,
        policy_id: &str,
        policy: &Policy,
        expected: Option<u32>,
    ) -> Result<PolicyStatus, Error> {
        self.put(Route::Policy(policy_id), policy, expected).await
    }

    /// A policy, with what it holds at present.
    ///
    /// # Errors
    /// When there is none, or the call fails.
    pub async fn policy(&self, policy_id: &str) -> Result<PolicyStatus, Error> {
        self.get(Route::Policy(policy_id), None).await
    }

    /// A page of the client's policies; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn policies(&self, cursor: Option<&str>) -> Result<Page<PolicyStatus>, Error> {
        let page: Policies = self.get(Route::Policies, cursor).await?;
        Ok(Page { rows: page.policies, next_cursor: page.next_cursor })
    }

    /// Deletes a policy that no job names and that holds nothing; with `expected`, only at that revision.
    ///
    /// # Errors
    /// When there is none, it is in use, or the call fails.
    pub async fn delete_policy(&self, policy_id: &str, expected: Option<u32>) -> Result<(), Error> {
        self.delete(Route::Policy(policy_id), expected).await
    }

    /// Creates a job. Without a `job_id` each call makes another one; with it, the same job again is no error.
    ///
    /// # Errors
    /// When the API refuses it, or the call fails.
    pub async fn create_job(&self, job_id: Option<&str>, job: &Job) -> Result<JobStatus, Error> {
        self.post(Route::Jobs, &Named { job_id, policy_id: None, body: job }).await
    }

    /// Creates or replaces a job; with `expected`, only at that revision.
    ///
    /// # Errors
    /// When the API refuses it, or the call fails.
    pub async fn put_job(&self, job_id: &str, job: &Job, expected: Option<u32>) -> Result<JobStatus, Error> {
        self.put(Route::Job(job_id), job, expected).await
    }

    /// A job.
    ///
    /// # Errors
    /// When there is none, or the call fails.
    pub async fn job(&self, job_id: &str) -> Result<JobStatus, Error> {
        self.get(Route::Job(job_id), None).await
    }

    /// A page of the client's jobs; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn jobs(&self, cursor: Option<&str>) -> Result<Page<JobStatus>, Error> {
        let page: Jobs = self.get(Route::Jobs, cursor).await?;
        Ok(Page { rows: page.jobs, next_cursor: page.next_cursor })
    }

    /// Deletes a job; with `expected`, only at that revision.
    ///
    /// # Errors
    /// When there is none, or the call fails.
    pub async fn delete_job(&self, job_id: &str, expected: Option<u32>) -> Result<(), Error> {
        self.delete(Route::Job(job_id), expected).await
    }
}
