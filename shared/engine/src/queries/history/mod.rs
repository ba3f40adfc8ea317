//! What happened to the events of a run: what its rows say, and what the slot groups of its policy know beyond that.
//!
//! A page of events costs what it shows, whatever the size of the run: rows lie by blocks of event numbers.

mod live;
mod records;
mod search;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, EventId, RunId};
use tidegate_domain::slots::{Outcome, SlotGroup};
use tidegate_store::runs::RunRow;
use tidegate_store::{Page, PageOf};

use super::Queries;
use crate::EngineError;
pub(crate) use live::{Live, home};

/// An event, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Which event.
    pub id: EventId,
    /// Where it stands.
    pub status: EventStatus,
    /// How often delivery was tried; `None` while it waits, and where that is not known.
    pub attempts: Option<u8>,
    /// When it came to its end, or when its lease ends.
    pub at: Option<DateTime<Utc>>,
    /// Why it was not delivered: what the target answered, or why its run was stopped.
    pub reason: Option<String>,
    /// What its consumer said when it released it.
    pub text: Option<String>,
}

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventStatus {
    /// It was not delivered yet.
    Waiting,
    /// Its consumer has it and its token.
    InFlight,
    /// Its consumer has it; nothing throttles it.
    Delivered,
    /// Released as succeeded.
    Succeeded,
    /// Released as failed.
    Failed,
    /// Never released.
    Expired,
    /// It could not be delivered.
    Dead,
    /// It was not delivered, and will not be: its run was stopped first.
    Stopped,
}

impl EventStatus {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::InFlight,
        Self::Delivered,
        Self::Succeeded,
        Self::Failed,
        Self::Expired,
        Self::Dead,
        Self::Stopped,
    ];

    /// The one of this name in the API.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::InFlight => "in_flight",
            Self::Delivered => "delivered",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Dead => "dead",
            Self::Stopped => "stopped",
        }
    }
}

impl EventStatus {
    /// The outcome that it follows from; `None` for one that no release ends in.
    pub(crate) fn outcome(self) -> Option<Outcome> {
        let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::Expired, Outcome::Dead];
        outcomes.into_iter().find(|outcome| Self::from(*outcome) == self)
    }
}

impl From<Outcome> for EventStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Failed => Self::Failed,
            Outcome::Expired => Self::Expired,
            Outcome::Dead => Self::Dead,
        }
    }
}

impl Queries {
    /// The slot groups of a run's policy; none where nothing throttles it, or its policy is gone.
    pub(crate) async fn groups_of(
        &self,
        client: &ClientId,
        run: &RunRow,
    ) -> Result<Vec<SlotGroup>, EngineError> {
        let Some(policy) = &run.terms.policy else { return Ok(Vec::new()) };
        match self.store.policy(client, policy).await? {
            Some(policy) => self.throttle.groups_as_they_are(&policy).await,
            None => Ok(Vec::new()),
        }
    }

    /// What the slot groups of a run's policy know of it. Of a run that has ended they know nothing, and are not read.
    async fn live(&self, client: &ClientId, run: &RunRow) -> Result<Live, EngineError> {
        if run.has_ended() {
            return Ok(Live::default());
        }
        Ok(Live::of(run, &self.groups_of(client, run).await?))
    }

    /// A page of the events of a run, by their number. `None` when there is no such run. `after` is a number.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn events<'a>(
        &'a self,
        client: &'a ClientId,
        run: &'a RunId,
        page: impl Into<PageOf<u32>>,
    ) -> BoxFuture<'a, Result<Option<Page<EventRecord>>, EngineError>> {
        let PageOf { after, rows } = page.into();
        Box::pin(async move {
            let Some(row) = self.find_run(client, run).await? else { return Ok(None) };
            let count = row.terms.count.get();
            let first = after.map_or(0, |index| index.saturating_add(1));
            let end = count.min(first.saturating_add(rows.get().into()));
            let live = self.live(client, &row).await?;
            let page = self.records(client, &row, &live, first..end).await?;
            let next = (end < count).then(|| end.saturating_sub(1).to_string());
            Ok(Some(Page { next, ..page }))
        })
    }
}
