//! One-time jobs of a client whose ids say where they lie, by the minutes of their instants: what the time index has of them.
//!
//! The rows of ten minutes are spread over partitions; marks say in which of them the client has some, and each of those is asked for
//! the client's of each minute.

use std::fmt;
use std::str::FromStr;

use chrono::DateTime;
use futures::future::{BoxFuture, join_all};
use tidegate_domain::ids::{ClientId, JobId, OneTimeShard};
use tidegate_domain::job::Job;
use tidegate_domain::time::{AtMinute, Window};
use tidegate_store::one_times::Mark;
use tidegate_store::{Page, PageOf};

use super::Queries;
use crate::{EngineError, deadline};

/// Partitions of minutes that are looked at for one page: half a read unit each, at the least.
const READS: usize = 640;
/// Those that are read at once to begin with: each may have a whole page.
const FIRST_READS: usize = 4;
/// Those that are read at once, at the most, while there is little in them.
const READS_AT_ONCE: usize = 32;

/// A place in a list of one-time jobs with generated ids, which goes by minute, by shard within a minute, and by id within a shard:
/// behind a job, or before the first one of a shard of a minute.
///
/// ```
/// use tidegate_engine::OneTimePlace;
///
/// for text in ["29921044-7", "at_hnkb-3-x"] {
///     assert_eq!(text.parse::<OneTimePlace>().unwrap().to_string(), text);
/// }
/// assert!("soon".parse::<OneTimePlace>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneTimePlace {
    at: OneTimeShard,
    behind: Option<JobId>,
}

/// The text is no place of such a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is no place in a list")]
pub struct NoPlace;

impl OneTimePlace {
    /// Behind a job; `None`: its id is not such a one.
    pub(super) fn behind(job: &JobId) -> Option<Self> {
        Some(Self { at: job.one_time_shard()?, behind: Some(job.clone()) })
    }
}

impl FromStr for OneTimePlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        if let Some(place) = text.parse().ok().and_then(|job| Self::behind(&job)) {
            return Ok(place);
        }
        let (minute, shard) = text.split_once('-').ok_or(NoPlace)?;
        let (minute, shard) = (minute.parse().map_err(|_| NoPlace)?, shard.parse().map_err(|_| NoPlace)?);
        Ok(Self { at: OneTimeShard { minute, shard }, behind: None })
    }
}

impl fmt::Display for OneTimePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.behind {
            Some(id) => id.fmt(f),
            None => write!(f, "{}-{}", self.at.minute, self.at.shard),
        }
    }
}

/// A partition of a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    minute: AtMinute,
    shard: u32,
}

impl Part {
    fn place(self) -> OneTimeShard {
        OneTimeShard { minute: self.minute.starts_at().timestamp().div_euclid(60), shard: self.shard }
    }
}

/// The partitions of minutes that may have jobs behind a place, in the order of the list: up to one more than are looked at.
fn parts_of(marks: &[Mark], window: Window, after: Option<&OneTimePlace>) -> Vec<Part> {
    let parts = marks.iter().flat_map(|(ten_minutes, shards)| {
        let minutes = ten_minutes.within(window).into_iter().flat_map(|within| within.at_minutes());
        minutes.flat_map(|minute| shards.iter().map(move |shard| Part { minute, shard: *shard }))
    });
    let is_passed = |part: &Part| {
        let (at, of) = (part.place(), after.map(|place| place.at));
        of.is_some_and(|of| (at.minute, at.shard) < (of.minute, of.shard))
    };
    parts.skip_while(is_passed).take(READS.saturating_add(1)).collect()
}

impl Queries {
    /// A page of the one-time jobs of a client that have generated ids and whose instants lie in a window, by minute, shard and id: those
    /// that are to come, and those that are over for as long as their rows are kept. Up to 640 partitions of minutes are looked
    /// at: a page may have few jobs, or none, and a `next`.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn one_times<'a>(
        &'a self,
        client: &'a ClientId,
        window: Window,
        page: PageOf<OneTimePlace>,
    ) -> BoxFuture<'a, Result<Page<Job>, EngineError>> {
        Box::pin(async move {
            let PageOf { after, rows } = page;
            let (most, mut found) = (usize::from(rows.get()), Page::new(Vec::new(), None));
            let begun = after
                .as_ref()
                .and_then(|place| DateTime::from_timestamp(place.at.minute.checked_mul(60)?, 0));
            let from = begun.map_or(window.from(), |begun| begun.max(window.from()));
            let Ok(left) = Window::new(from, window.to()) else { return Ok(found) };
            let (mut reads, mut at_once, mut marks_after) = (0_usize, FIRST_READS, None);
            loop {
                let marks = self.store.one_time_marks_in(client, left, marks_after).await?;
                found.unreadable.extend(marks.unreadable);
                let mut parts = parts_of(&marks.rows, left, after.as_ref()).into_iter().peekable();
                while let Some(next) = parts.peek() {
                    if reads > 0 && (reads >= READS || deadline::is_over(&*self.clock)) {
                        found.next = Some(OneTimePlace { at: next.place(), behind: None }.to_string());
                        return Ok(found);
                    }
                    let some: Vec<Part> = parts.by_ref().take(at_once).collect();
                    reads = reads.saturating_add(some.len());
                    let pages = some.into_iter().map(|part| {
                        let behind = after.as_ref().filter(|place| place.at == part.place());
                        let page = PageOf { after: behind.and_then(|place| place.behind.clone()), rows };
                        self.store.one_times_of(client, (part.minute, part.shard), page)
                    });
                    let before = found.rows.len();
                    for page in join_all(pages).await {
                        let page = page?;
                        found.unreadable.extend(page.unreadable);
                        for job in page.rows {
                            let at = job.trigger.only_instant();
                            if !at.is_some_and(|at| window.contains(at)) {
                                continue;
                            }
                            if found.rows.len() >= most {
                                found.next = found.rows.last().map(|job: &Job| job.id.to_string());
                                return Ok(found);
                            }
                            found.rows.push(job);
                        }
                        if page.next.is_some() {
                            found.next = page.next;
                            return Ok(found);
                        }
                    }
                    if found.rows.len() == before {
                        at_once = at_once.saturating_mul(2).min(READS_AT_ONCE);
                    }
                }
                marks_after = marks.next;
                if marks_after.is_none() {
                    return Ok(found);
                }
            }
        })
    }
}
