//! Exclusion calendars.

use serde::{Deserialize, Serialize};

/// A calendar as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Calendar))]
pub struct CalendarView {
    /// Its name within the client.
    pub calendar_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    pub revision: u32,
    /// The zone whose days the dates are; that of each job when null.
    pub zone: Option<String>,
    /// Its days: those of one year first, then those of every year.
    pub dates: Vec<String>,
    /// Its stretches of real time, in UTC.
    pub intervals: Vec<Interval>,
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Interval {
    /// Its first instant, in ISO 8601 with an offset.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub from: String,
    /// The first instant after it.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub to: String,
}
