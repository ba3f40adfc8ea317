//! One-time jobs of a client whose ids say where they lie, by their instant: what the time index has of them.
//!
//! The rows of a minute are spread over partitions, each of which is asked for the client's: a minute costs so many reads, whatever lies
//! in it.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::time::{AtMinute, Window};
use tidegate_store::{Page, PageOf};

use super::Queries;
use super::standing::NoPlace;
use crate::{EngineError, deadline};

/// Minutes that are looked at for one page.
const MINUTES_LOOKED_AT: usize = 10;
/// Partitions that are read at once.
const SHARDS_AT_ONCE: usize = 32;

/// A place in a list of one-time jobs: behind a job, or before the first of an instant.
///
/// ```
/// use tidegate_engine::OneTimePlace;
///
/// for text in ["1795262640", "1795262640 at_hnkb-3-x"] {
///     assert_eq!(text.parse::<OneTimePlace>().unwrap().to_string(), text);
/// }
/// assert!("soon".parse::<OneTimePlace>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneTimePlace {
    at: DateTime<Utc>,
    behind: Option<JobId>,
}

impl FromStr for OneTimePlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (second, id) = text.split_once(' ').map_or((text, None), |(second, id)| (second, Some(id)));
        let at = second.parse().ok().and_then(|second| DateTime::from_timestamp(second, 0)).ok_or(NoPlace)?;
        Ok(Self { at, behind: id.map(str::parse).transpose().map_err(|_| NoPlace)? })
    }
}

impl fmt::Display for OneTimePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at.timestamp())?;
        match &self.behind {
            Some(id) => write!(f, " {id}"),
            None => Ok(()),
        }
    }
}

/// Where a job lies.
fn place_of(job: &Job) -> Option<OneTimePlace> {
    Some(OneTimePlace { at: job.trigger.only_instant()?, behind: Some(job.id.clone()) })
}

impl Queries {
    /// A page of the one-time jobs of a client that have generated ids and whose instants lie in a window, by instant and id: those that
    /// are to come, and those that are over for as long as their rows are kept. Up to ten minutes are looked at: a page may have few
    /// jobs, or none, and a `next`.
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
            let (most, mut found) = (usize::from(page.rows.get()), Page::new(Vec::new(), None));
            let from = page.after.as_ref().map_or(window.from(), |place| place.at.max(window.from()));
            let Ok(left) = Window::new(from, window.to()) else { return Ok(found) };
            for (number, minute) in left.at_minutes().enumerate() {
                let is_late = number > 0 && deadline::is_over(&*self.clock);
                if number >= MINUTES_LOOKED_AT || is_late {
                    let place = OneTimePlace { at: minute.starts_at(), behind: None };
                    found.next = Some(place.to_string());
                    break;
                }
                let of_minute = self.one_times_of(client, minute).await?;
                found.unreadable.extend(of_minute.unreadable);
                for job in of_minute.rows {
                    let Some(place) = place_of(&job) else { continue };
                    let is_shown = page.after.as_ref().is_some_and(|after| place <= *after);
                    if is_shown || !window.contains(place.at) {
                        continue;
                    }
                    if found.rows.len() >= most {
                        found.next = found.rows.last().and_then(place_of).map(|place| place.to_string());
                        return Ok(found);
                    }
                    found.rows.push(job);
                }
            }
            Ok(found)
        })
    }

    /// Those of a minute, by instant and id.
    async fn one_times_of(&self, client: &ClientId, minute: AtMinute) -> Result<Page<Job>, EngineError> {
        let shards = 0..self.store.spread().at_shards;
        let reads: Vec<_> = shards.map(|shard| self.store.one_times_of(client, minute, shard)).collect();
        let mut reads = stream::iter(reads).buffered(SHARDS_AT_ONCE);
        let mut found = Page::new(Vec::new(), None);
        while let Some(page) = reads.next().await {
            let page = page?;
            found.rows.extend(page.rows);
            found.unreadable.extend(page.unreadable);
        }
        found.rows.sort_by_key(place_of);
        Ok(found)
    }
}
