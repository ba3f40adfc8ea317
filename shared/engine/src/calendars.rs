//! What clients do with calendars.
//!
//! A change acts on what is not delivered yet: the client's jobs are looked up before delivery for a while.

use std::sync::Arc;

use futures::future::BoxFuture;
use tidegate_domain::calendar::{Calendar, Exclusions};
use tidegate_domain::change::What;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{CalendarId, ClientId, JobId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_store::{Create, Store, Write};

use crate::author;
use crate::contents::Contents;
use crate::{EngineError, Expect, Written};

/// What came of deleting a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CalendarDelete {
    /// It is gone.
    Done,
    /// There is no such calendar.
    Absent,
    /// It has another revision than was expected: this one. Nothing changed.
    RevisionIs(u32),
    /// This job names it, or cannot be read: then nobody can tell. Nothing changed.
    InUse(JobId),
}

/// Creates, changes and deletes calendars.
pub struct Calendars {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) contents: Arc<Contents>,
}

impl Calendars {
    /// Creates a calendar, or replaces the one that has its name, if what is there is as expected.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Contended` when the calendar changed in each of `WRITE_ROUNDS` rounds. Repeating the call is safe.
    pub fn put<'a>(
        &'a self,
        client: &'a ClientId,
        id: CalendarId,
        mut exclusions: Exclusions,
        expected: impl Into<Expect>,
    ) -> BoxFuture<'a, Result<Written<Calendar>, EngineError>> {
        let expected = expected.into();
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let seen = self.store.calendar(client, &id).await?;
                let revision = seen.as_ref().map_or(0, |calendar| calendar.revision);
                // What a newer version stored of it stays.
                exclusions.unknown =
                    seen.as_ref().map(|seen| seen.exclusions.unknown.clone()).unwrap_or_default();
                match (&seen, expected) {
                    (None, Expect::Revision(_)) => return Ok(Written::Absent),
                    (Some(seen), Expect::Nothing) => return Ok(Written::Taken(seen.clone())),
                    (Some(_), expected) if expected.is_other_than(revision) => {
                        return Ok(Written::RevisionIs(revision));
                    }
                    (Some(seen), _) if seen.exclusions == exclusions => {
                        // An earlier call may have died before it said so.
                        self.contents.mark_dirty(client).await?;
                        return Ok(Written::Unchanged(seen.clone()));
                    }
                    _ => {}
                }
                let calendar = Calendar {
                    client: client.clone(),
                    id: id.clone(),
                    revision: revision + 1,
                    exclusions: exclusions.clone(),
                };
                let now = self.clock.now();
                let Some(seen) = seen else {
                    let change = author::change(What::Created, now);
                    if self.store.create_calendar(&calendar, &change).await? == Create::Done {
                        return Ok(Written::Created(calendar));
                    }
                    continue;
                };
                let change = author::change(What::Changed, now);
                if self.store.replace_calendar(&calendar, &seen, &change).await? == Write::Done {
                    self.contents.mark_dirty(client).await?;
                    return Ok(Written::Replaced(calendar));
                }
            }
            Err(EngineError::Contended { what: "a calendar", rounds: WRITE_ROUNDS })
        })
    }

    /// Deletes a calendar that no job names, at the `expected` revision; `None`: at any. One-time jobs with a generated
    /// id are not looked at: for them, a calendar that is gone has no days. It excludes nothing, and what may launch on its days
    /// alone does not launch.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// Repeating the call is safe.
    pub fn delete<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a CalendarId,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<CalendarDelete, EngineError>> {
        Box::pin(async move {
            let Some(seen) = self.store.calendar(client, id).await? else {
                return Ok(CalendarDelete::Absent);
            };
            if expected.is_some_and(|expected| expected != seen.revision) {
                return Ok(CalendarDelete::RevisionIs(seen.revision));
            }
            let mut after = None;
            loop {
                let page = self.store.jobs(client, "", after).await?;
                if let Some(job) =
                    page.rows.iter().find(|job| job.rules.all_calendars().any(|named| named == id))
                {
                    return Ok(CalendarDelete::InUse(job.id.clone()));
                }
                // Of a job that cannot be read, nobody can tell whether it names the calendar.
                if let Some(job) = page.unreadable.iter().find_map(|job| job.sort_key.parse().ok()) {
                    return Ok(CalendarDelete::InUse(job));
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let change = author::change(What::Deleted, self.clock.now());
            Ok(match self.store.delete_calendar(&seen, &change).await? {
                Write::Done => CalendarDelete::Done,
                Write::Refused => match self.store.calendar(client, id).await? {
                    Some(now_seen) => CalendarDelete::RevisionIs(now_seen.revision),
                    None => CalendarDelete::Done,
                },
            })
        })
    }
}
