//! Looking whether launches are over that should be: what of a job's schedule was not made, or has not come to its end, is
//! recorded, and its client is told.
//!
//! What should have happened is worked out from the job anew, and held against what is recorded: emission is not asked, so what it
//! loses is noticed too. A tick asks for a look at each watch that is due; while the look fails, the next tick asks again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::bounded::PageRows;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, JobId, RunId};
use tidegate_domain::job::{ExpectedSeconds, Job};
use tidegate_domain::occurrence::{SkipReason, StopReason};
use tidegate_domain::time::{Window, seconds, shifted, whole_second};
use tidegate_store::journal::{Entry, Step};
use tidegate_store::overdue::{Overdue, OverdueState};
use tidegate_store::watches::Watch;
use tidegate_store::{Create, PageOf, Store};
use tracing::warn;

use crate::EngineError;
use crate::contents::Contents;
use crate::figures::OVERDUE;
use crate::queries::{Queries, RunState};
use crate::queues::message::{Message, Telling};
use crate::queues::{Outgoing, Queues};

/// Launches of a job that are looked at at once.
const LAUNCHES_AT_ONCE: usize = 16;
/// Records before a launch that are read to find the one that stands for it.
const RECORDS_BEFORE: u8 = 3;
/// Why a launch is not made, or not finished, that its client asked for: that is as expected.
const ASKED_FOR: [&str; 6] = [
    SkipReason::Paused.as_str(),
    SkipReason::Excluded.as_str(),
    SkipReason::OnRequest.as_str(),
    SkipReason::JobDeleted.as_str(),
    SkipReason::Rescheduled.as_str(),
    StopReason::Cancelled.as_str(),
];

/// Looks whether launches are over that should be.
pub(crate) struct Watches {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) queries: Arc<Queries>,
}

impl Watches {
    /// Looks at the launches of a job that should be over, and puts its next watch in the place of the one that was due. Repeating
    /// it changes nothing.
    pub(crate) async fn look(
        &self,
        client: &ClientId,
        job: &JobId,
        due: DateTime<Utc>,
    ) -> Result<(), EngineError> {
        let Some(watch) = self.store.watch(client, job, due).await? else { return Ok(()) };
        let job = self.contents.present_job(client, job).await?;
        let job = job.filter(|job| job.revision == watch.revision);
        let Some((job, within)) = job.and_then(|job| job.expect.map(|within| (job, within))) else {
            // It was deleted, or changed and has another watch.
            return Ok(self.store.move_watch(&watch, None).await?);
        };
        let now = self.clock.now();
        // A launch that should be over at this very second is one of them.
        let to = shifted(whole_second(shifted(now, -seconds(within.get().into()))), seconds(1));
        let Ok(window) = Window::new(watch.from, to) else { return Ok(()) };
        let past = self.queries.past_launches(&job, window, false).await?;
        let looks: Vec<_> =
            past.launches.iter().map(|launch| self.look_at(&job, within, launch.launch_at)).collect();
        stream::iter(looks).buffer_unordered(LAUNCHES_AT_ONCE).try_collect::<()>().await?;
        let next = Watch::from(&job, past.next_from.unwrap_or(to));
        Ok(self.store.move_watch(&watch, next.as_ref()).await?)
    }

    async fn look_at(
        &self,
        job: &Job,
        within: ExpectedSeconds,
        launch_at: DateTime<Utc>,
    ) -> Result<(), EngineError> {
        let run = RunId::new(job.id.clone(), job.revision, launch_at);
        let Some((state, reason)) = self.why_overdue(&job.client, &run).await? else { return Ok(()) };
        let (client, within_seconds) = (&job.client, within.get());
        let overdue = Overdue {
            run: run.clone(),
            within_seconds,
            state,
            reason: reason.clone(),
            seen_at: self.clock.now(),
            told: None,
        };
        if self.store.record_overdue(client, &overdue, job.terms.history_days).await? == Create::Done {
            let state = state.as_str();
            warn!(%client, %run, within_seconds, state, reason, { OVERDUE } = 1_u64, "a launch is not over in time");
            self.store.note(|| Entry {
                client: client.clone(),
                run: run.clone(),
                policy: job.terms.policy.clone(),
                step: Step::Overdue,
                reason: reason.or_else(|| Some(state.to_owned())),
                at: Some(overdue.seen_at),
            });
        }
        // Whoever recorded it before may have died before this.
        let tell = Message::Overdue(Telling::now(client, &run));
        self.queues.dispatch(&[Outgoing::now(client, tell)]).await
    }

    /// Where a launch stands that should be over, and for what reason; `None`: it is over, or is not made as its client asked.
    async fn why_overdue(
        &self,
        client: &ClientId,
        run: &RunId,
    ) -> Result<Option<(OverdueState, Option<String>)>, EngineError> {
        let (state, reason) = match self.queries.run_summary(client, run).await? {
            Some(summary) => (Some(summary.state), summary.reason),
            None => match self.skipped_with(client, run).await? {
                Some(reason) => (Some(RunState::Stopped), Some(reason)),
                None => (None, None),
            },
        };
        let is_asked_for = reason.as_deref().is_some_and(|reason| ASKED_FOR.contains(&reason));
        let is_skip = |reason: &str| SkipReason::ALL.iter().any(|skip| skip.as_str() == reason);
        let stands = match state {
            Some(RunState::Finished) => return Ok(None),
            Some(RunState::Stopped) if is_asked_for => return Ok(None),
            Some(RunState::Stopped) if reason.as_deref().is_some_and(is_skip) => OverdueState::Skipped,
            Some(RunState::Stopped) => OverdueState::Stopped,
            Some(RunState::Running) => OverdueState::Running,
            Some(RunState::Waiting) => OverdueState::Waiting,
            None => OverdueState::Unrecorded,
        };
        Ok(Some((stands, reason)))
    }

    /// Why a launch was skipped together with one before it, whose record stands for both; `None`: it was not.
    async fn skipped_with(&self, client: &ClientId, run: &RunId) -> Result<Option<String>, EngineError> {
        let launch_at = run.launch_at();
        let page = PageOf {
            after: Some(format!("{:012}|", launch_at.timestamp())),
            rows: PageRows::new(RECORDS_BEFORE.into()).unwrap_or_default(),
        };
        let before = self.store.runs(client, run.job(), page).await?;
        let covers = before.rows.into_iter().find(|row| {
            row.id.revision() == run.revision()
                && row.skipped.is_some_and(|skipped| skipped.until >= launch_at)
        });
        Ok(covers.and_then(|row| row.stopped))
    }
}
