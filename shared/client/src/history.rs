//! Reading what came of a job, and stopping what is left of a run.

use serde::Deserialize;

use crate::client::{Client, Page, Route};
use crate::error::Error;
use crate::policy::{Holder, PolicyStatus};

/// A run: one firing of a job, with its progress.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Run {
    /// Its name.
    pub run_id: String,
    /// When it was due, RFC 3339.
    pub launch_at: String,
    /// Its number of events.
    pub count: u32,
    /// Where it stands: waiting, running, finished or stopped.
    pub state: String,
    /// Events of a job without a policy that were delivered: nobody releases them, so how they ended is not known.
    pub delivered: u32,
    /// Events that their consumer released as succeeded.
    pub succeeded: u32,
    /// Events that their consumer released as failed.
    pub failed: u32,
    /// Events that were never released.
    pub expired: u32,
    /// Events that could not be delivered.
    pub dead: u32,
    /// Events that were never admitted, because the run was stopped.
    pub left_out: u32,
    /// Why nothing (more) of it is delivered.
    pub reason: Option<String>,
    /// How many firings of the job were left out for the same reason, this one included; `None` when only this one was.
    pub skipped_count: Option<u32>,
    /// When the last of them was due, RFC 3339.
    pub skipped_until: Option<String>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EventRecord {
    /// Its name.
    pub event_id: String,
    /// Its number in the run, from 0.
    pub index: u32,
    /// Where it stands: waiting, in_flight, delivered, succeeded, failed, expired, dead, or stopped: its run was stopped
    /// before it was delivered.
    pub status: String,
    /// How often delivery was tried; `None` while it waits, and where that is not known.
    pub attempts: Option<u32>,
    /// When it came to its end, or when its lease ends, RFC 3339.
    pub at: Option<String>,
    /// Why it was not delivered: what its target answered, or why its run was stopped.
    pub reason: Option<String>,
    /// What its consumer said came of it.
    #[serde(default)]
    pub result: Option<String>,
    /// What its consumer said went wrong.
    #[serde(default)]
    pub error: Option<String>,
}

/// A run with how it gets on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Events that are with their consumers now.
    pub in_flight: u32,
    /// Events that wait for a token.
    pub waiting: u32,
    /// When its first event was admitted, RFC 3339.
    pub started_at: Option<String>,
    /// When its window ends, RFC 3339.
    pub deadline: Option<String>,
    /// Events that ended per second, until now or until the last one ended.
    pub rate_per_second: Option<f64>,
    /// When the last event is expected to end, RFC 3339.
    pub predicted_finish_at: Option<String>,
    /// What the rate and the finish follow from.
    pub reasoning: String,
}

/// Why an event is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Explanation {
    /// The event.
    pub event: EventRecord,
    /// Why it is where it is, in a sentence.
    pub because: String,
    /// How many due events of its policy come before it; `None` when it does not wait for a token.
    pub events_before: Option<u64>,
    /// The policy that throttles it, with what it holds.
    pub policy: Option<PolicyStatus>,
    /// Who holds the policy's tokens, at most 100.
    pub holders: Vec<Holder>,
    /// When it is expected to be admitted, RFC 3339.
    pub expected_at: Option<String>,
    /// What `expected_at` follows from, or why nothing can be expected.
    pub reasoning: String,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<Run>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<EventRecord>,
    next_cursor: Option<String>,
}

impl Client {
    /// A page of a job's runs, the latest first; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// When there is no such job, or the call fails.
    pub async fn runs(&self, job_id: &str, cursor: Option<&str>) -> Result<Page<Run>, Error> {
        let page: Runs = self.get(Route::Runs(job_id), cursor).await?;
        Ok(Page { rows: page.runs, next_cursor: page.next_cursor })
    }

    /// A page of a run's events, by index; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// When there is no such run, or the call fails.
    pub async fn events(
        &self,
        job_id: &str,
        run_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<EventRecord>, Error> {
        let page: Events = self.get(Route::Events(job_id, run_id), cursor).await?;
        Ok(Page { rows: page.events, next_cursor: page.next_cursor })
    }

    /// A run, with how fast it goes and when it is expected to end.
    ///
    /// # Errors
    /// When there is no such run, or the call fails.
    pub async fn run(&self, job_id: &str, run_id: &str) -> Result<RunDetail, Error> {
        self.get(Route::Run(job_id, run_id), None).await
    }

    /// Cancels what is left of a run: no further event of it is admitted, those that are with their consumers end as they
    /// would. Repeating the call is safe.
    ///
    /// # Errors
    /// When there is no such run, it is over already, or the call fails.
    pub async fn cancel_run(&self, job_id: &str, run_id: &str) -> Result<RunDetail, Error> {
        self.act(Route::CancelRun(job_id, run_id), None).await
    }

    /// Why an event is where it is: who holds the tokens, its place in line, when its turn is expected.
    ///
    /// # Errors
    /// When there is no such event, or the call fails.
    pub async fn explain(&self, event_id: &str) -> Result<Explanation, Error> {
        self.get(Route::Explain(event_id), None).await
    }
}
