//! What is to come: previews of triggers, and the next firings of jobs.

use serde::{Deserialize, Serialize};

/// What a trigger means and when it fires.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// The zone of the local times.
    pub zone: String,
    /// The release of the IANA zone database that they are computed with.
    #[cfg_attr(feature = "openapi", schema(example = "2026e"))]
    pub zone_database: String,
    /// The trigger in words; null when it never fires.
    pub description: Option<String>,
    /// The expression as a job would show it; null when there is none.
    pub canonical: Option<String>,
    /// Rows of the time index that are read for one launch, on the average: above 1 is over-selection. Null when it never
    /// fires.
    pub reads_per_launch: Option<f64>,
    /// The next firings, in order of time.
    pub firings: Vec<Firing>,
    /// What may not be as meant: it never fires, firings on changes of the clocks, a shape that over-selects.
    pub warnings: Vec<String>,
}

/// One firing of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Firing {
    /// When it is due, in UTC, to the second.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// The same as the zone's wall clock shows it, with its offset.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub local: String,
    /// `gap`, `overlap`, or empty.
    pub dst: String,
    /// The end of the flexible window, in UTC: a job launches between `launch_at` and this. Only with jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub latest_at: Option<String>,
}

/// What is to come of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = UpcomingList))]
pub struct Upcoming {
    /// The zone of the local times.
    pub zone: String,
    /// The release of the IANA zone database that they are computed with.
    #[cfg_attr(feature = "openapi", schema(example = "2026e"))]
    pub zone_database: String,
    /// The next firings in order of time, those that will not be made among them.
    pub upcoming: Vec<UpcomingFiring>,
}

/// One firing that is to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Upcoming))]
pub struct UpcomingFiring {
    /// When it is due, in UTC, to the second.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// The same as the zone's wall clock shows it, with its offset.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub local: String,
    /// `gap` when its local time is skipped by the clocks and it was moved to the first instant after, `overlap` when its
    /// local time happens twice, else empty.
    pub dst: String,
    /// What the trigger says, in UTC; only when the job's jitter moves the launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub scheduled_at: Option<String>,
    /// What the trigger says, in UTC; only when the launch is moved there off a closed day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub moved_from: Option<String>,
    /// When it is due instead, in UTC, with the job's jitter; only when it is moved off its closed day, and `skipped` then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub moved_to: Option<String>,
    /// Why it will not be made, as things stand: `paused`, `excluded` or `skipped_on_request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}
