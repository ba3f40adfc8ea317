//! What is to come: previews of triggers, and the next firings of jobs.

use serde::{Deserialize, Serialize};

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

/// What a trigger means and when it fires.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Preview {
    /// The IANA zone of the local times.
    pub zone: String,
    /// The release of the IANA zone database that they are computed with, such as `2026e`.
    pub zone_database: String,
    /// The trigger in words; `None` when it never fires.
    pub description: Option<String>,
    /// The expression as a job would show it; `None` for instants, and when it never fires.
    pub canonical: Option<String>,
    /// Rows of the time index that are read for one launch, on the average; `None` when it never fires.
    pub reads_per_launch: Option<f64>,
    /// The next firings, in order of time.
    pub firings: Vec<Firing>,
    /// Sentences about what may not be as meant.
    pub warnings: Vec<String>,
}

/// One firing of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Firing {
    /// When it is due, in UTC, RFC 3339.
    pub launch_at: String,
    /// The same as the zone's wall clock shows it, with its offset.
    pub local: String,
    /// What a change of the clocks has to do with it: `gap`, `overlap`, or empty for nothing.
    pub dst: String,
    /// The end of the flexible window, RFC 3339; `None` without jitter.
    pub latest_at: Option<String>,
}

/// What is to come of a job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Upcoming {
    /// The IANA zone of the local times.
    pub zone: String,
    /// The release of the IANA zone database that they are computed with, such as `2026e`.
    pub zone_database: String,
    /// The next firings in order of time, those that will not be made among them.
    pub upcoming: Vec<UpcomingFiring>,
}

/// One firing of a job that is to come.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UpcomingFiring {
    /// When it is due, in UTC, RFC 3339.
    pub launch_at: String,
    /// The same as the zone's wall clock shows it, with its offset.
    pub local: String,
    /// What a change of the clocks has to do with it: `gap`, `overlap`, or empty for nothing.
    pub dst: String,
    /// What the trigger says, in UTC, RFC 3339; `None` unless jitter moves the launch.
    pub scheduled_at: Option<String>,
    /// Why it will not be made, as things stand: `paused` or `excluded`; `None` when it will.
    pub skipped: Option<String>,
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
