//! What is to come: previews of triggers, and the next firings of jobs.

use serde::Serialize;
use tidegate_protocol::{Preview, Upcoming};

use crate::client::{Client, Route};
use crate::error::Error;
use crate::trigger::Trigger;

/// A trigger to be looked at. Nothing is stored.
///
/// ```
/// use tidegate_client::{PreviewQuery, Trigger};
///
/// let query = PreviewQuery { count: Some(5), ..PreviewQuery::of(Trigger::cron("30 2 * * *", "Europe/Berlin")) };
/// assert_eq!(query.after, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreviewQuery {
    /// The trigger, as a job has it.
    pub trigger: Trigger,
    /// How many firings, 1 to 1,000; 10 when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Only firings after it, an RFC 3339 instant; now when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Nothing fires before it, an RFC 3339 instant; no bound when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// Nothing fires at it or later, an RFC 3339 instant; no bound when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    /// The width of a flexible window, in seconds; none when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<u32>,
}

impl PreviewQuery {
    /// The next ten firings of a trigger.
    pub fn of(trigger: Trigger) -> Self {
        Self { trigger, count: None, after: None, start_at: None, end_at: None, jitter_seconds: None }
    }
}

impl Client {
    /// Says what a trigger means, when it fires, and what may not be as meant. Nothing is stored.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when a field is wrong, such as an expression that does not read. Otherwise as
    /// every call of [`Client`].
    pub async fn preview(&self, query: &PreviewQuery) -> Result<Preview, Error> {
        self.post(Route::Preview, query).await
    }

    /// The next firings of a job: 1 to 1,000, or 10 when `count` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 400 when `count` is out of bounds. Otherwise as
    /// every call of [`Client`].
    pub async fn upcoming(&self, job_id: &str, count: Option<u32>) -> Result<Upcoming, Error> {
        self.get_count(Route::Upcoming(job_id), count).await
    }
}
