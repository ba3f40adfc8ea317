//! Exclusion calendars: put, read, listed and deleted by the client whose they are.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use tidegate_domain::calendar::{Calendar, Exclusions};
use tidegate_domain::ids::CalendarId;
use tidegate_domain::limits::{CALENDAR_FILE_BYTES, WRITE_ROUNDS};
use tidegate_domain::quota::Counted;
use tidegate_engine::{CalendarDelete, Expect, Written};
use tidegate_protocol::{CalendarChange, CalendarList, CalendarView};

use super::quotas::{is_overtaken, take_if_new};
use super::{contended, exists_already, not_found, nothing_to_match, same_id, with_revision, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{
    Asked, Body, Cursor, Expected, ListQuery, Paged, Precondition, collect, id_to_find, id_to_write,
    media_type,
};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::calendar::{CalendarBody, PreviewChangeQuery, PutCalendarQuery, change_view, view};
use crate::wire::ics;
use crate::wire::read_only::expectation;
use crate::wire::spoiled;

/// What an iCalendar file is declared as.
const ICALENDAR: &str = "text/calendar";

/// Lists the client's calendars.
#[utoipa::path(get, path = "/v1/calendars", tag = "calendars", params(ListQuery), responses(
    (status = 200, description = "A page of calendars", body = CalendarList),
))]
pub(crate) async fn list_calendars(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Paged(asked): Paged,
) -> Result<Json<CalendarList>, Problem> {
    let given = asked.after.is_some();
    let page = state.engine.store().calendars(&client.id, asked).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list calendars", &e))?;
    let calendars = page.rows.iter().map(view).collect();
    Ok(Json(CalendarList {
        calendars,
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Shows a calendar.
#[utoipa::path(get, path = "/v1/calendars/{calendar_id}", tag = "calendars", params(("calendar_id" = String, Path)), responses(
    (status = 200, description = "The calendar", body = CalendarView, headers(("etag" = String))),
))]
pub(crate) async fn read_calendar(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id: CalendarId = id_to_find("calendar", &id)?;
    let found = state.engine.store().calendar(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_store("read a calendar", &e))?;
    let Some(calendar) = found else { return Err(not_found("calendar", id.as_str())) };
    Ok(with_revision(StatusCode::OK, calendar.revision, view(&calendar)))
}

/// Creates or replaces a calendar. What GET answers can be put back. It acts on every job that names it, from the next launches that are planned.
/// An iCalendar file of up to 1 MiB does as well: its all-day events become dates, those of every year days of every year, its timed
/// events intervals, and an event that can be none of these is refused by its name.
#[utoipa::path(put, path = "/v1/calendars/{calendar_id}", tag = "calendars",
    request_body(description = "The calendar", content((CalendarBody = "application/json"), (String = "text/calendar"))),
    params(("calendar_id" = String, Path), PutCalendarQuery, ("if-match" = Option<String>, Header, description = "The ETag that is expected"),
        ("if-none-match" = Option<String>, Header, description = "`*`: create it, and answer 412 when it exists already")),
    responses(
        (status = 200, description = "The calendar", body = CalendarView, headers(("etag" = String))),
        (status = 201, description = "It did not exist before", body = CalendarView),
))]
pub(crate) async fn put_calendar(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Precondition(by_header): Precondition,
    Asked(query): Asked<PutCalendarQuery>,
    sent: Sent,
) -> Result<Response, Problem> {
    let id: CalendarId = id_to_write("calendar_id", &id)?;
    let exclusions = sent.check(query.zone.as_deref(), &id)?;
    let expected = sent.expectation(by_header)?;
    for _ in 0..WRITE_ROUNDS {
        // Only a client whose calendars are counted needs to know whether it is there.
        let there = match client.quotas.calendars {
            Some(_) => state.engine.store().calendar(&client.id, &id).await,
            None => Ok(None),
        };
        let there = there.map_err(|e| Problem::of_store("read a calendar", &e))?;
        let seen = there.map(|calendar| calendar.revision);
        if seen.is_some() && expected == Expect::Nothing {
            return Err(exists_already("calendar", id.as_str()));
        }
        let over = take_if_new(&state, &client, Counted::Calendars, seen, expected).await?;
        let written = state.engine.calendars().put(&client.id, id.clone(), exclusions.clone(), over).await;
        let written = written.map_err(|e| Problem::of_engine("write a calendar", &e))?;
        if !is_overtaken(&written, seen, expected) {
            return answer_put(written, &id);
        }
    }
    Err(contended("calendar", id.as_str()))
}

fn answer_put(written: Written<Calendar>, id: &CalendarId) -> Result<Response, Problem> {
    let shown = |status, calendar: &Calendar| with_revision(status, calendar.revision, view(calendar));
    match written {
        Written::Created(calendar) => Ok(shown(StatusCode::CREATED, &calendar)),
        Written::Replaced(calendar) | Written::Unchanged(calendar) => Ok(shown(StatusCode::OK, &calendar)),
        Written::RevisionIs(current) => Err(wrong_revision("calendar", id.as_str(), current)),
        Written::Taken(_) => Err(exists_already("calendar", id.as_str())),
        Written::Absent => Err(nothing_to_match("calendar", id.as_str())),
    }
}

/// Says which launches the jobs that name a calendar would gain and lose within 400 days, if it were put so. Nothing is changed. Up to 100
/// of the client's jobs are looked at for each page; one-time jobs with a generated id are not. Repeating it is safe.
#[utoipa::path(post, path = "/v1/calendars/{calendar_id}/preview", tag = "calendars",
    request_body(description = "The calendar", content((CalendarBody = "application/json"), (String = "text/calendar"))),
    params(("calendar_id" = String, Path), PreviewChangeQuery), responses(
    (status = 200, description = "What would change", body = CalendarChange),
))]
pub(crate) async fn preview_calendar(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Asked(query): Asked<PreviewChangeQuery>,
    sent: Sent,
) -> Result<Json<CalendarChange>, Problem> {
    let id: CalendarId = id_to_write("calendar_id", &id)?;
    let asked = Paged::read(query.cursor, query.limit.as_deref())?;
    let exclusions = sent.check(query.zone.as_deref(), &id)?;
    let given = asked.after.is_some();
    let page = state.engine.queries().calendar_change(&client.id, &id, exclusions, asked).await;
    let page = page.map_err(|e| Cursor::refusal_of_engine(given, "preview a calendar", &e))?;
    Ok(Json(CalendarChange {
        jobs: page.rows.iter().map(change_view).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// A calendar as it is sent: the document, or an iCalendar file.
pub(crate) enum Sent {
    Document(CalendarBody),
    File(Bytes),
}

impl FromRequest<ApiState> for Sent {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        if media_type(request.headers()).as_deref() == Some(ICALENDAR) {
            return collect(request.into_body(), CALENDAR_FILE_BYTES).await.map(Self::File);
        }
        let Body(body): Body<CalendarBody> = Body::from_request(request, state).await?;
        Ok(Self::Document(body))
    }
}

impl Sent {
    /// What it says that the calendar lists. `zone` is what the query says of it.
    fn check(&self, zone: Option<&str>, id: &CalendarId) -> Result<Exclusions, Problem> {
        let mut errors = FieldErrors::default();
        let exclusions = match (self, zone) {
            (Self::File(file), zone) => ics::read(file, zone, &mut errors),
            (Self::Document(body), None) => body.check(&mut errors),
            (Self::Document(_), Some(zone)) => {
                errors.add(
                    "zone",
                    zone,
                    "zone is said in the body, beside 'dates'; take it out of the query",
                );
                None
            }
        };
        errors.into_result(Kind::InvalidBody)?;
        if let Self::Document(body) = self {
            same_id("calendar_id", body.calendar_id.as_deref(), id.as_str())?;
        }
        exclusions.ok_or_else(|| Problem::new(Kind::InvalidBody, "the body is not that of a calendar"))
    }

    /// What it expects to find, by its headers and by itself.
    fn expectation(self, by_header: Expect) -> Result<Expect, Problem> {
        match self {
            Self::Document(body) => expectation(by_header, body.revision),
            Self::File(_) => Ok(by_header),
        }
    }
}

/// Deletes a calendar that no job names.
#[utoipa::path(delete, path = "/v1/calendars/{calendar_id}", tag = "calendars",
    params(("calendar_id" = String, Path), ("if-match" = Option<String>, Header, description = "The ETag that is expected")),
    responses(
        (status = 204, description = "It is gone"),
))]
pub(crate) async fn delete_calendar(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
    Expected(expected): Expected,
) -> Result<StatusCode, Problem> {
    let id: CalendarId = id_to_find("calendar", &id)?;
    let deleted = state.engine.calendars().delete(&client.id, &id, expected).await;
    match deleted.map_err(|e| Problem::of_engine("delete a calendar", &e))? {
        CalendarDelete::Done => Ok(StatusCode::NO_CONTENT),
        CalendarDelete::Absent => Err(not_found("calendar", id.as_str())),
        CalendarDelete::RevisionIs(current) => Err(wrong_revision("calendar", id.as_str(), current)),
        CalendarDelete::InUse(job) => Err(Problem::new(
            Kind::InUse,
            format!(
                "calendar '{id}' is named by the job '{job}'; delete that, or leave the calendar out of it"
            ),
        )),
    }
}
