//! Exclusion calendars.

use serde::{Deserialize, Serialize};

use crate::policy::Unreadable;
use crate::words::words;

/// A calendar as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Calendar))]
pub struct CalendarView {
    /// Its name within the client.
    pub calendar_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    pub revision: u32,
    /// The zone whose days these are, and whose clocks its early closes go by; that of each job when null.
    pub zone: Option<String>,
    /// Its days: those of one year first, then those of every year.
    pub dates: Vec<String>,
    /// The days of every week that it has, from Monday on.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub weekdays: Vec<Weekday>,
    /// The days that it has only from a time on.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub early_close: Vec<EarlyClose>,
    /// Its stretches of real time, in UTC.
    pub intervals: Vec<Interval>,
}

words! {
    /// A day of the week.
    Weekday {
        /// Monday.
        Mon = "mon",
        /// Tuesday.
        Tue = "tue",
        /// Wednesday.
        Wed = "wed",
        /// Thursday.
        Thu = "thu",
        /// Friday.
        Fri = "fri",
        /// Saturday.
        Sat = "sat",
        /// Sunday.
        Sun = "sun",
    }
}

/// A day that a calendar has only from a time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EarlyClose {
    /// The day, such as `2026-12-24`, or `12-24` for every year.
    #[cfg_attr(feature = "openapi", schema(example = "12-24"))]
    pub date: String,
    /// The first time of that day that the calendar has, as the clocks of the zone show it.
    #[cfg_attr(feature = "openapi", schema(example = "13:00"))]
    pub from: String,
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

/// What a job would gain and lose by a change of a calendar. A job that is paused gains and loses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaunchChange {
    /// The job, which names the calendar.
    pub job_id: String,
    /// Launches within 400 days that are left out as things stand, and would be made.
    pub gained: u32,
    /// The first of them, up to 20, in UTC.
    pub first_gained: Vec<String>,
    /// Launches within 400 days that are to come as things stand, and would be left out.
    pub lost: u32,
    /// The first of them, up to 20, in UTC.
    pub first_lost: Vec<String>,
    /// The last launch that was compared, where the days that change have more than 5,000; null: all were.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub compared_to: Option<String>,
}

/// What a change of a calendar would do, by the jobs of a page that name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarChange {
    /// The jobs, by id: those that name the calendar, of a page of the client's jobs. It may be empty and be followed by others.
    pub jobs: Vec<LaunchChange>,
    /// What the page has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
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
