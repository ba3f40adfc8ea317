//! Jobs: what is to happen, and when.

use serde::Serialize;
use serde_json::{Value, json};
use tidegate_protocol::{
    BatchWindow, Expected, History, JobView, Misfire, OnClosedDay, Retry, RunOverlap, SkippedLaunch, Target,
    TriggeredRun,
};

use crate::client::{Client, Page, Route};
use crate::error::Error;
use crate::trigger::Trigger;

/// A job. The bounds of its numbers are those of the OpenAPI document; the API refuses others with status 422 and names
/// the field.
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
    /// Events of one firing, 1 to 1,000,000. With a list of payloads, their number.
    pub count: u32,
    /// The policy that throttles them; nothing throttles them when `None`.
    pub policy_id: Option<String>,
    /// What each event carries. With a list, the number of payloads must be `count`.
    #[serde(flatten)]
    pub payload: Payload,
    /// How much of what happened is kept.
    pub history: History,
    /// Tokens that each event takes; 1 when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// Its place in its policy's line, 0 first and 9 last; 5 when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Where in its payload the key lies by which its policy is shared out fairly, such as `/customer_id`; by none when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_by: Option<String>,
    /// What becomes of a run that is due while an earlier one is not finished.
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: RunOverlap,
    /// The time that a run has; any time when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<BatchWindow>,
    /// So many events of a run that did not succeed stop it; none do when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// Who is told when a run has come to its end; nobody when `None`. Needs a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_completion: Option<Target>,
    /// The address that is called when a run has come to its end, and with `/fail` behind its path when it ended badly, such as a
    /// check of Healthchecks; none is when `None`. Needs a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_url: Option<String>,
    /// The most deliveries of one event, those that failed and those under later leases included. When `None`,
    /// what its target does not take is sent again as `retry` says, and what nobody releases is delivered five times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// When an event is sent again that its target did not take; after waits that grow up to an hour, for 24 hours, when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Nothing is launched before it, an RFC 3339 instant; no bound when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// Nothing is launched at it or later, an RFC 3339 instant; no bound when `None`.
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
    /// The names of the exclusion calendars on whose days it does not launch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calendars: Vec<String>,
    /// The names of the calendars on whose days alone it launches; on any day when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_on: Vec<String>,
    /// What becomes of launches that these leave out: left out by default. Launches of cron triggers alone are moved.
    #[serde(skip_serializing_if = "is_default")]
    pub on_closed_day: OnClosedDay,
    /// Launches that are left out, as the trigger says them: at most 50 RFC 3339 instants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<String>,
    /// Words by which it is found again: at most 10 of 1 to 64 letters, digits and `- _ . : / @ = +`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When each launch is expected to be over; nobody watches when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What the events of a job carry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Payload {
    /// Every event carries the same.
    Same {
        /// What they carry: any JSON, up to 64 KiB.
        payload: Value,
    },
    /// Each event carries its own.
    List {
        /// What they carry, in the order of the events: as many as there are events, 64 KiB in all.
        payloads: Vec<Value>,
    },
    /// What a template makes of the event.
    Template {
        /// JSON in whose texts `{{index}}`, `{{index1}}`, `{{count}}`, `{{event_id}}`, `{{run_id}}`, `{{job_id}}` and
        /// `{{launch_at}}` stand for what the event has.
        payload_template: Value,
    },
}

impl Job {
    /// One event for each firing, without a policy and a payload.
    pub fn new(trigger: Trigger, target: Target) -> Self {
        Self {
            trigger,
            target,
            count: 1,
            policy_id: None,
            payload: Payload::Same { payload: Value::Null },
            history: History::default(),
            cost: None,
            priority: None,
            fair_by: None,
            overlap: RunOverlap::Allow,
            window: None,
            max_failures: None,
            on_completion: None,
            heartbeat_url: None,
            max_attempts: None,
            retry: None,
            start_at: None,
            end_at: None,
            jitter_seconds: None,
            misfire: None,
            relevancy_seconds: None,
            calendars: Vec::new(),
            only_on: Vec::new(),
            on_closed_day: OnClosedDay::LeaveOut,
            skip: Vec::new(),
            tags: Vec::new(),
            expect: None,
        }
    }

    /// The same with `count` events for each firing, 1 to 1,000,000.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// The same under the policy of this name, which must be there when the job is stored.
    #[must_use]
    pub fn policy(mut self, policy_id: impl Into<String>) -> Self {
        self.policy_id = Some(policy_id.into());
        self
    }

    /// The same with a payload, which every event carries. Takes the place of a list or a template.
    #[must_use]
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = Payload::Same { payload };
        self
    }

    /// The same with a payload for each event, in their order: `count` becomes the number of payloads.
    #[must_use]
    pub fn payloads(mut self, payloads: Vec<Value>) -> Self {
        self.count = u32::try_from(payloads.len()).unwrap_or(u32::MAX);
        self.payload = Payload::List { payloads };
        self
    }

    /// The same with a template, in whose texts `{{index}}` and its like stand for what differs from event to event;
    /// all of them: [`Payload::Template`].
    #[must_use]
    pub fn payload_template(mut self, payload_template: Value) -> Self {
        self.payload = Payload::Template { payload_template };
        self
    }
}

/// A body with the name that is part of it when posted.
#[derive(Serialize)]
pub(crate) struct Named<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_id: Option<&'a str>,
    #[serde(flatten)]
    pub(crate) body: &'a Job,
}

#[derive(Serialize)]
struct SkipBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_at: Option<&'a str>,
}

impl Client {
    /// Creates a job. Without a `job_id` each call makes another one; with it, the same job again is no error.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 when the id names another job, 403 when a target is not on the client's
    /// allow-list, 422 when a field is wrong, such as a policy that is not there. Otherwise as every call of
    /// [`Client`]: without an id, do not repeat it then, or call [`Self::create_job_once`].
    pub async fn create_job(&self, job_id: Option<&str>, job: &Job) -> Result<JobView, Error> {
        self.post(Route::Jobs, &Named { job_id, body: job }).await
    }

    /// Creates a job without a name once, whose id follows from the key (1 to 255 visible ASCII characters, such as a UUID):
    /// repeating it is safe as long as the job is there.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 when the key was given with another job, 400 when it is none. Otherwise as
    /// [`Self::create_job`].
    pub async fn create_job_once(&self, idempotency_key: &str, job: &Job) -> Result<JobView, Error> {
        self.post_once(Route::Jobs, job, idempotency_key).await
    }

    /// Creates or replaces a job; with `expected`, only at that revision. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 412 when it is at another revision, 403 when a target is not on the client's
    /// allow-list, 422 when a field is wrong, such as a policy that is not there. Otherwise as every call of
    /// [`Client`].
    pub async fn put_job(&self, job_id: &str, job: &Job, expected: Option<u32>) -> Result<JobView, Error> {
        self.put(Route::Job(job_id), job, expected).await
    }

    /// Changes some fields of a job by a JSON merge patch (RFC 7396), such as `json!({"count": 20, "window": null})`:
    /// null takes a field out, which brings back its default. With `expected`, only at that revision; without, the
    /// patch is merged into whatever is there.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 409 when it changed at the same time, 412 when it
    /// is at another revision, 403 when a target is not on the client's allow-list, 422 when a field of what would come
    /// of it is wrong. Otherwise as every call of [`Client`].
    pub async fn patch_job(
        &self,
        job_id: &str,
        changes: &impl Serialize,
        expected: Option<u32>,
    ) -> Result<JobView, Error> {
        self.patch(Route::Job(job_id), changes, expected).await
    }

    /// A job, by its name.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job. Otherwise as every call of [`Client`].
    pub async fn job(&self, job_id: &str) -> Result<JobView, Error> {
        self.get(Route::Job(job_id)).await
    }

    /// A page of the client's jobs, by name; the first page when `cursor` is `None`. One-time jobs with a generated id
    /// are not listed: [`Client::job`] finds them.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when the cursor is not one of this list. Otherwise as every call of
    /// [`Client`].
    pub async fn jobs(&self, cursor: Option<&str>) -> Result<Page<JobView>, Error> {
        self.jobs_that_begin_with("", cursor).await
    }

    /// Deletes a job; with `expected`, only at that revision. What it has waiting is cancelled.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 412 when it is at another revision. Otherwise as
    /// every call of [`Client`].
    pub async fn delete_job(&self, job_id: &str, expected: Option<u32>) -> Result<(), Error> {
        self.delete(Route::Job(job_id), expected).await
    }

    /// Pauses a job: launches deliver nothing and are recorded as runs with the reason `paused`. With `expected`, only
    /// at that revision. Repeating it without is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 412 when it is at another revision. Otherwise as
    /// every call of [`Client`].
    pub async fn pause_job(&self, job_id: &str, expected: Option<u32>) -> Result<JobView, Error> {
        self.act(Route::PauseJob(job_id), expected).await
    }

    /// The same for a reason, which the job shows as `paused_because` while it is paused: at most 200 bytes. One that is paused
    /// already has the new reason.
    ///
    /// # Errors
    /// As [`Self::pause_job`], and [`Error::Refused`] with status 422 when the reason is too long.
    pub async fn pause_job_because(
        &self,
        job_id: &str,
        because: &str,
        expected: Option<u32>,
    ) -> Result<JobView, Error> {
        self.act_with(Route::PauseJob(job_id), &json!({"because": because}), expected).await
    }

    /// Lets a job fire at other times, and leaves everything else of it as it is. With `expected`, only at that revision.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 409 when it is a one-time job without an id of its own, 412 when
    /// it is at another revision, 422 when the trigger is wrong. Otherwise as every call of [`Client`].
    pub async fn reschedule_job(
        &self,
        job_id: &str,
        trigger: &Trigger,
        expected: Option<u32>,
    ) -> Result<JobView, Error> {
        self.act_with(Route::Reschedule(job_id), &json!({"trigger": trigger}), expected).await
    }

    /// Moves the instants of a job that are to come by so many seconds. With `expected`, only at that revision, and repeating it is
    /// safe.
    ///
    /// # Errors
    /// As [`Self::reschedule_job`], and [`Error::Refused`] with status 409 when it has no instant that is to come.
    pub async fn delay_job(
        &self,
        job_id: &str,
        delay_seconds: u32,
        expected: Option<u32>,
    ) -> Result<JobView, Error> {
        let body = json!({"delay_seconds": delay_seconds});
        self.act_with(Route::Reschedule(job_id), &body, expected).await
    }

    /// Resumes a job. Launches that fell due in the meantime are not delivered later. With `expected`, only at that
    /// revision. Repeating it without is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 412 when it is at another revision. Otherwise as
    /// every call of [`Client`].
    pub async fn resume_job(&self, job_id: &str, expected: Option<u32>) -> Result<JobView, Error> {
        self.act(Route::ResumeJob(job_id), expected).await
    }

    /// Leaves out a launch of a job that is to come: the one at `launch_at`, an RFC 3339 instant, or the next that is made. It
    /// is recorded as `skipped_on_request`. With `expected`, only at that revision. Repeating it is safe with either of them.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 409 when it has no launch to leave out, or leaves out 50
    /// already, 412 when it is at another revision, 422 when it has no launch then. Otherwise as every call of [`Client`].
    pub async fn skip_launch(
        &self,
        job_id: &str,
        launch_at: Option<&str>,
        expected: Option<u32>,
    ) -> Result<SkippedLaunch, Error> {
        self.act_with(Route::SkipLaunch(job_id), &SkipBody { launch_at }, expected).await
    }

    /// Triggers a job: a run of it at once, beside its schedule, also when it is paused. With an `idempotency_key` (1 to 255
    /// visible ASCII characters) repeating it within 24 hours answers the same run and makes no other.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 409 when one of its calendars excludes today or it is
    /// a one-time job without an id of its own, 400 when the key is none. Otherwise as every call of [`Client`].
    pub async fn trigger_job(
        &self,
        job_id: &str,
        idempotency_key: Option<&str>,
    ) -> Result<TriggeredRun, Error> {
        self.act_once(Route::TriggerJob(job_id), idempotency_key).await
    }
}
