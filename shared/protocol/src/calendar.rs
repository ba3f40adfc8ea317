//! Exclusion calendars.

use serde::{Deserialize, Serialize};

use crate::policy::Unreadable;

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

/// A page of calendars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarList {
    /// The calendars, by name.
    pub calendars: Vec<CalendarView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}
