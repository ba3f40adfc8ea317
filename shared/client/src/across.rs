//! What jobs that have something in common did, and what they are going to do.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_protocol::{
    Ahead, CancelledRuns, EventList, EventRecord, OverdueLaunch, OverdueList, Run, RunCounts, RunList,
};

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// Runs that are meant by what they have in common: those that fit all that is given.
///
/// ```
/// use tidegate_client::RunsWanted;
///
/// let nights = RunsWanted { prefix: "nightly-".to_owned(), ..RunsWanted::between("2026-12-24T00:00:00Z", "2026-12-25T00:00:00Z") };
/// assert!(nights.states.is_empty() && !nights.dry_run);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunsWanted {
    /// What the names of their jobs begin with; an empty text for any.
    pub prefix: String,
    /// Those that were due at this RFC 3339 instant or later.
    pub since: String,
    /// Those that were due before this RFC 3339 instant.
    pub until: String,
    /// The policy that their jobs are under; any when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<String>,
    /// Where their jobs send events: a URL or an ARN, with at most one `*`; anywhere when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A tag that their jobs have; any when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether their jobs are paused; either when `None`. Not looked at where they are cancelled.
    #[serde(skip)]
    pub paused: Option<bool>,
    /// Where they stand, as [`Run::state`] says it; anywhere when there is none. Not looked at where they are cancelled: those that
    /// wait or are under way are.
    #[serde(skip)]
    pub states: Vec<String>,
    /// Only tells which runs are meant. Not looked at where they are listed.
    pub dry_run: bool,
    /// The `next_cursor` of the call before; the first page when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl RunsWanted {
    /// All that were due in a stretch of time, of all jobs.
    pub fn between(since: impl Into<String>, until: impl Into<String>) -> Self {
        Self { since: since.into(), until: until.into(), ..Self::default() }
    }
}

/// Events of all jobs that are wanted.
///
/// ```
/// use tidegate_client::EventsWanted;
///
/// let held = EventsWanted::under("reports", "in_flight");
/// assert_eq!(held.policy_id.as_deref(), Some("reports"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventsWanted {
    /// Where they stand: `waiting`, `in_flight`, `failed`, `expired` or `dead`.
    pub status: String,
    /// The policy that they are under; any when `None`, but for those that wait or are in flight.
    pub policy_id: Option<String>,
    /// Those that are due, or ended when they did not succeed, at this RFC 3339 instant or later; at any time when `None`.
    pub since: Option<String>,
    /// Those of before this RFC 3339 instant; of any time when `None`.
    pub until: Option<String>,
}

impl EventsWanted {
    /// Those of all jobs that stand somewhere.
    pub fn that_are(status: impl Into<String>) -> Self {
        Self { status: status.into(), ..Self::default() }
    }

    /// Those under a policy that stand somewhere.
    pub fn under(policy_id: impl Into<String>, status: impl Into<String>) -> Self {
        Self { policy_id: Some(policy_id.into()), ..Self::that_are(status) }
    }
}

/// What is asked of the time ahead. What is `None` is as when it is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AheadQuery {
    /// Launches at this RFC 3339 instant or later; now when `None`.
    pub since: Option<String>,
    /// Launches before this RFC 3339 instant; a day after `since` when `None`, at most 31.
    pub until: Option<String>,
    /// The length of the steps that are counted, in seconds; an hour when `None`.
    pub step_seconds: Option<u32>,
    /// How long an event holds its token, in milliseconds; when `None`, policies are asked for their rates only.
    pub held_ms: Option<u32>,
    /// What the names of the jobs begin with; an empty text for any.
    pub prefix: String,
    /// The policy that they are under; any when `None`.
    pub policy_id: Option<String>,
    /// Where they send events: a URL or an ARN, with at most one `*`; anywhere when `None`.
    pub target: Option<String>,
    /// A tag that they have; any when `None`.
    pub tag: Option<String>,
    /// Whether they are paused; either when `None`.
    pub paused: Option<bool>,
    /// The `next_cursor` of the page before; the first page when `None`.
    pub cursor: Option<String>,
}

impl Client {
    /// A page of the runs that are wanted: by the names of their jobs, of each the latest first. Up to 1,000 jobs are looked at for
    /// it: it may have few rows, or none. The list ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when a part of it is wrong or the cursor is not one of this list. Otherwise as every call
    /// of [`Client`].
    pub async fn runs_across(&self, wanted: &RunsWanted) -> Result<Page<Run>, Error> {
        let page: RunList = self.get_runs(Route::AllRuns, wanted).await?;
        Ok(Page { rows: page.runs, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// How many of the runs that are wanted there are, by state, reason and job, and what became of their events: up to 1,000 of them.
    /// Where there are more, `next_cursor` says where to go on, and the next counts come on top.
    ///
    /// # Errors
    /// As [`Self::runs_across`].
    pub async fn count_runs(&self, wanted: &RunsWanted) -> Result<RunCounts, Error> {
        self.get_runs(Route::CountRuns, wanted).await
    }

    async fn get_runs<T: DeserializeOwned>(&self, route: Route<'_>, wanted: &RunsWanted) -> Result<T, Error> {
        let states = wanted.states.join(",");
        let mut some = vec![("prefix", &*wanted.prefix), ("since", &wanted.since), ("until", &wanted.until)];
        some.extend(wanted.policy_id.as_deref().map(|policy| ("policy_id", policy)));
        some.extend(wanted.target.as_deref().map(|target| ("target", target)));
        some.extend(wanted.tag.as_deref().map(|tag| ("tag", tag)));
        some.extend((!states.is_empty()).then_some(("state", &*states)));
        some.extend(wanted.paused.map(|paused| ("paused", if paused { "true" } else { "false" })));
        self.get_page(route, &some, wanted.cursor.as_deref()).await
    }

    /// A page of the events of all jobs that are wanted; the first page when `cursor` is `None`. A bounded number of rows is looked at
    /// for it: it may have few events, or none. The list ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when events of the status are not listed so, a policy is missing or the cursor is not one of
    /// this list; 404 when there is no such policy. Otherwise as every call of [`Client`].
    pub async fn events_across(
        &self,
        wanted: &EventsWanted,
        cursor: Option<&str>,
    ) -> Result<Page<EventRecord>, Error> {
        let EventsWanted { status, policy_id, since, until } = wanted;
        let given = [("policy_id", policy_id), ("since", since), ("until", until)];
        let mut some = vec![("status", &**status)];
        some.extend(given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))));
        let page: EventList = self.get_page(Route::AllEvents, &some, cursor).await?;
        Ok(Page { rows: page.events, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// Cancels those of the runs that are wanted that wait or are under way: a page of them; go on with the answer's `next_cursor`.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when a part of it is wrong, 400 when the cursor is not one of this list. Otherwise as
    /// every call of [`Client`]; some runs may be cancelled then.
    pub async fn cancel_runs(&self, wanted: &RunsWanted) -> Result<CancelledRuns, Error> {
        self.post(Route::CancelRuns, wanted).await
    }

    /// A page of the launches from `since` up to, not including, `until`, two RFC 3339 instants, that were not over when their job
    /// expects it: the latest first. The list ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when an instant is wrong or the cursor is not one of this list. Otherwise as every call of
    /// [`Client`].
    pub async fn overdue(
        &self,
        since: &str,
        until: &str,
        cursor: Option<&str>,
    ) -> Result<Page<OverdueLaunch>, Error> {
        let page: OverdueList =
            self.get_page(Route::Overdue, &[("since", since), ("until", until)], cursor).await?;
        Ok(Page { rows: page.launches, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// What jobs are going to do: a page of up to 100 jobs, with what is due of them by step of time and by policy. The list ends
    /// where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when a part of it is wrong or the cursor is not one of this list. Otherwise as every call
    /// of [`Client`].
    pub async fn ahead(&self, query: &AheadQuery) -> Result<Ahead, Error> {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let (step, held) = (number(query.step_seconds), number(query.held_ms));
        let paused = query.paused.map(|paused| paused.to_string());
        let mut some = vec![("prefix", &*query.prefix)];
        let given = [
            ("since", &query.since),
            ("until", &query.until),
            ("step_seconds", &step),
            ("held_ms", &held),
            ("policy_id", &query.policy_id),
            ("target", &query.target),
            ("tag", &query.tag),
            ("paused", &paused),
        ];
        some.extend(given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))));
        self.get_page(Route::Ahead, &some, query.cursor.as_deref()).await
    }
}
