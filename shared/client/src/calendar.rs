//! Exclusion calendars: days and stretches on which the jobs that name them do not launch.

use serde::Serialize;
use tidegate_protocol::{
    CalendarChange, CalendarList, CalendarView, EarlyClose, Interval, LaunchChange, Weekday,
};

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// An exclusion calendar.
///
/// ```
/// use tidegate_client::{Calendar, Weekday};
///
/// let holidays = Calendar { zone: Some("Europe/Berlin".to_owned()), ..Calendar::of_dates(["2026-12-24", "12-25"]) };
/// assert_eq!(holidays.dates.len(), 2);
/// let weekends = Calendar { weekdays: vec![Weekday::Sat, Weekday::Sun], ..Calendar::default() };
/// assert!(weekends.dates.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Calendar {
    /// Days, such as `2026-12-25`, or `12-25` for every year.
    pub dates: Vec<String>,
    /// Days of every week.
    pub weekdays: Vec<Weekday>,
    /// Days that it has only from a time on.
    pub early_close: Vec<EarlyClose>,
    /// Stretches of real time, whatever the zone.
    pub intervals: Vec<Interval>,
    /// The IANA zone whose days these are, and whose clocks its early closes go by; that of each job when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Calendar {
    /// A calendar of days in the zone of each job.
    pub fn of_dates(dates: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { dates: dates.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Client {
    /// Creates or replaces a calendar; with `expected`, only at that revision. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 412 when it is at another revision, 422 when a field is wrong. Otherwise as every
    /// call of [`Client`].
    pub async fn put_calendar(
        &self,
        calendar_id: &str,
        calendar: &Calendar,
        expected: Option<u32>,
    ) -> Result<CalendarView, Error> {
        self.put(Route::Calendar(calendar_id), calendar, expected).await
    }

    /// Creates or replaces a calendar by what an iCalendar file lists: text as calendar programs export it. `zone` is the zone whose
    /// days its all-day events are, that of each job when `None`, and by whose clocks its times without a zone go. Repeating it is
    /// safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 412 when it is at another revision than `expected`, 413 when the file is too large, 422 when an
    /// event can be no day or interval. Otherwise as every call of [`Client`].
    pub async fn import_calendar(
        &self,
        calendar_id: &str,
        file: impl Into<String>,
        zone: Option<&str>,
        expected: Option<u32>,
    ) -> Result<CalendarView, Error> {
        let query: Vec<_> = zone.iter().map(|zone| ("zone", *zone)).collect();
        self.put_file(Route::Calendar(calendar_id), &query, ("text/calendar", file.into()), expected).await
    }

    /// A calendar, by its name.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is none of this name. Otherwise as every call of [`Client`].
    pub async fn calendar(&self, calendar_id: &str) -> Result<CalendarView, Error> {
        self.get(Route::Calendar(calendar_id)).await
    }

    /// A page of the client's calendars, by name; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when the cursor is not one of this list. Otherwise as every call of
    /// [`Client`].
    pub async fn calendars(&self, cursor: Option<&str>) -> Result<Page<CalendarView>, Error> {
        let page: CalendarList = self.get_page(Route::Calendars, &[], cursor).await?;
        Ok(Page { rows: page.calendars, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// What the jobs that name a calendar would gain and lose if it were put so: those of a page of the client's jobs, which may have few
    /// rows, or none; the list ends where `next_cursor` is `None`. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when a field is wrong, 400 when the cursor is not one of this list. Otherwise as every call
    /// of [`Client`].
    pub async fn preview_calendar(
        &self,
        calendar_id: &str,
        calendar: &Calendar,
        cursor: Option<&str>,
    ) -> Result<Page<LaunchChange>, Error> {
        let page: CalendarChange =
            self.post_for_page(Route::PreviewCalendar(calendar_id), calendar, cursor).await?;
        Ok(Page { rows: page.jobs, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// Deletes a calendar that no job names; with `expected`, only at that revision.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is none of this name, 409 when a job names it, 412 when it is at
    /// another revision. Otherwise as every call of [`Client`].
    pub async fn delete_calendar(&self, calendar_id: &str, expected: Option<u32>) -> Result<(), Error> {
        self.delete(Route::Calendar(calendar_id), expected).await
    }
}
