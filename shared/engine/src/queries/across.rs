//! What is asked of many jobs of a client at once: those that have something in common.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tidegate_domain::bounded::PageRows;
use tidegate_domain::ids::{ClientId, JobId, ONE_TIME_PREFIX};
use tidegate_domain::job::Job;
use tidegate_domain::time::Window;
use tidegate_store::runs::list_key;
use tidegate_store::{Page, PageOf};

use super::Queries;
use super::one_times::{NoPlace, OneTimePlace};
use super::run_state::{RunState, RunSummary};
use crate::{EngineError, deadline};

/// Jobs that are looked at for one page, or as many as the time of the call allows: then it ends, however few rows it has.
pub(super) const JOBS_LOOKED_AT: usize = 1_000;
/// Jobs that are read at once, at the least.
const JOBS_READ: u8 = 25;
/// Jobs whose runs are read at once.
const JOBS_AT_ONCE: usize = 16;
/// Pages of one job's runs that are read for one page of all.
const PAGES_OF_ONE: usize = 5;

/// Jobs that have something in common.
#[derive(Clone, Copy)]
pub struct JobsAlike<'a> {
    /// What their ids begin with; no others are read.
    pub prefix: &'a str,
    /// Whether a job is meant whose id begins so.
    pub is_meant: &'a (dyn Fn(&Job) -> bool + Sync),
}

/// Which runs are asked for: those that fit all that is given.
#[derive(Debug, Clone, Copy)]
pub struct RunsWanted<'a> {
    /// When they were due. A record of several launches counts when one of them was.
    pub window: Window,
    /// Where they stand; `None`: anywhere.
    pub states: Option<&'a BTreeSet<RunState>>,
}

/// A place in a list of several jobs, or of their runs, which begins with jobs by their ids and goes on with one-time jobs that have
/// generated ids, by their minutes. As text it is `<job>|<place in the list of the job's runs>`, and behind the former
/// `|<place among one-time jobs>`.
///
/// ```
/// use tidegate_engine::JobsPlace;
///
/// for text in ["nightly|001790000000|0000000003", "nightly|", "|", "|at_hnkb-3-x"] {
///     assert_eq!(text.parse::<JobsPlace>()?.to_string(), text);
/// }
/// # Ok::<(), tidegate_engine::NoPlace>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobsPlace {
    /// Behind a job, or behind a run of it.
    Listed {
        /// The job.
        job: JobId,
        /// The place in the list of its runs.
        run: Option<String>,
    },
    /// Behind a one-time job with a generated id, or before the first of them.
    OneTimes(Option<OneTimePlace>),
}

impl JobsPlace {
    /// Behind a job and all of its runs.
    pub(super) fn behind(job: &JobId) -> Self {
        Self::Listed { job: job.clone(), run: None }
    }
}

impl FromStr for JobsPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        if let Some(place) = text.strip_prefix(ONE_TIMES) {
            return Ok(Self::OneTimes((!place.is_empty()).then(|| place.parse()).transpose()?));
        }
        let (job, run) = text.split_once('|').unwrap_or((text, ""));
        let job = job.parse().map_err(|_| NoPlace)?;
        Ok(Self::Listed { job, run: (!run.is_empty()).then(|| run.to_owned()) })
    }
}

impl fmt::Display for JobsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed { job, run } => write!(f, "{job}|{}", run.as_deref().unwrap_or_default()),
            Self::OneTimes(None) => f.write_str(ONE_TIMES),
            Self::OneTimes(Some(place)) => write!(f, "{ONE_TIMES}{place}"),
        }
    }
}

/// What the text of a place among one-time jobs with generated ids begins with, as no id does.
const ONE_TIMES: &str = "|";

/// The text of a place among one-time jobs with generated ids, of which the list of all of them has told.
pub(super) fn behind_one_times(next: Option<String>) -> Option<String> {
    next.map(|place| format!("{ONE_TIMES}{place}"))
}

impl JobsAlike<'_> {
    /// Whether one-time jobs with generated ids may be among them.
    pub(super) fn may_have_one_times(&self) -> bool {
        self.prefix.starts_with(ONE_TIME_PREFIX) || ONE_TIME_PREFIX.starts_with(self.prefix)
    }

    /// Whether a one-time job with a generated id is.
    pub(super) fn has_one_time(&self, job: &Job) -> bool {
        job.id.as_str().starts_with(self.prefix) && (self.is_meant)(job)
    }
}

impl RunsWanted<'_> {
    fn has(&self, run: &RunSummary) -> bool {
        self.states.is_none_or(|states| states.contains(&run.state))
    }
}

impl Queries {
    /// A page of the runs of jobs that have something in common: by the ids of their jobs, of each the latest first, and then those of
    /// one-time jobs with generated ids, by their minutes. Up to 1,000 jobs are looked at: a page may have few runs, or none, and a
    /// `next`. Jobs that were deleted are not looked at.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn runs_across<'a>(
        &'a self,
        client: &'a ClientId,
        jobs: JobsAlike<'a>,
        wanted: RunsWanted<'a>,
        page: PageOf<JobsPlace>,
    ) -> BoxFuture<'a, Result<Page<RunSummary>, EngineError>> {
        Box::pin(async move {
            let PageOf { after, rows } = page;
            let mut found =
                Found { page: Page::new(Vec::new(), None), most: usize::from(rows.get()), last: None };
            let (mut begun, mut after) = match after {
                None => (Vec::new(), None),
                Some(JobsPlace::OneTimes(place)) => {
                    self.add_one_times(client, jobs, wanted, PageOf { after: place, rows }, &mut found)
                        .await?;
                    return Ok(found.page);
                }
                Some(JobsPlace::Listed { job, run: None }) => (Vec::new(), Some(job.to_string())),
                Some(JobsPlace::Listed { job, run }) => {
                    let after = job.to_string();
                    (vec![(job, run)], Some(after))
                }
            };
            let mut looked_at = 0_usize;
            loop {
                let reads = begun.drain(..).map(|(job, after)| async move {
                    let runs = self.runs_wanted(client, &job, wanted, PageOf { after, rows }).await;
                    (job, runs)
                });
                let mut reads =
                    stream::iter(reads.collect::<Vec<_>>()).buffered(JOBS_AT_ONCE.min(found.most));
                while let Some((job, runs)) = reads.next().await {
                    if found.is_full_with(job, runs?) {
                        return Ok(found.page);
                    }
                }
                drop(reads);
                if looked_at > 0 && after.is_none() {
                    let page = PageOf { after: None, rows };
                    self.add_one_times(client, jobs, wanted, page, &mut found).await?;
                    return Ok(found.page);
                }
                if looked_at >= JOBS_LOOKED_AT || (looked_at > 0 && deadline::is_over(&*self.clock)) {
                    found.page.next = after.map(|job| format!("{job}|"));
                    return Ok(found.page);
                }
                let page = jobs_read_for(PageOf { after: after.take(), rows });
                looked_at = looked_at.saturating_add(usize::from(page.rows.get()));
                let jobs_page = self.store.jobs(client, jobs.prefix, page).await?;
                found.page.unreadable.extend(jobs_page.unreadable);
                after = jobs_page.next;
                let meant = jobs_page.rows.into_iter().filter(|job| (jobs.is_meant)(job));
                begun.extend(meant.map(|job| (job.id, None)));
            }
        })
    }

    /// Adds the runs of one-time jobs with generated ids, as far as there is room.
    async fn add_one_times(
        &self,
        client: &ClientId,
        jobs: JobsAlike<'_>,
        wanted: RunsWanted<'_>,
        page: PageOf<OneTimePlace>,
        found: &mut Found,
    ) -> Result<(), EngineError> {
        if !jobs.may_have_one_times() {
            return Ok(());
        }
        let (mut last, rows) = (page.after.clone(), page.rows);
        if found.page.rows.len() >= found.most || deadline::is_over(&*self.clock) {
            found.page.next = Some(JobsPlace::OneTimes(last).to_string());
            return Ok(());
        }
        let one_times = self.one_times(client, wanted.window, page).await?;
        found.page.unreadable.extend(one_times.unreadable);
        let reads = one_times.rows.iter().map(|job| async move {
            let runs = match jobs.has_one_time(job) {
                true => self.runs_wanted(client, &job.id, wanted, PageOf { after: None, rows }).await?,
                false => Page::new(Vec::new(), None),
            };
            Ok::<_, EngineError>((OneTimePlace::behind(&job.id), runs))
        });
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffered(JOBS_AT_ONCE.min(found.most));
        while let Some(read) = reads.next().await {
            let (place, runs) = read?;
            let all = found.page.rows.len().saturating_add(runs.rows.len());
            if all > found.most && !found.page.rows.is_empty() {
                found.page.next = Some(JobsPlace::OneTimes(last).to_string());
                return Ok(());
            }
            found.page.rows.extend(runs.rows);
            found.page.unreadable.extend(runs.unreadable);
            last = place.or(last);
        }
        drop(reads);
        found.page.next = behind_one_times(one_times.next);
        Ok(())
    }

    /// A page of the runs of one job that are wanted.
    async fn runs_wanted(
        &self,
        client: &ClientId,
        job: &JobId,
        wanted: RunsWanted<'_>,
        page: PageOf,
    ) -> Result<Page<RunSummary>, EngineError> {
        let (mut found, rows) = (Page::new(Vec::new(), None), page.rows);
        let end = format!("{:012}|", wanted.window.to().timestamp());
        let mut after = Some(page.after.unwrap_or(end));
        for _ in 0..PAGES_OF_ONE {
            let page = self.runs(client, job, PageOf { after, rows }).await?;
            found.unreadable.extend(page.unreadable);
            for run in page.rows {
                let is_before = run.id.launch_at() < wanted.window.from();
                let last = run.skipped.map_or(run.id.launch_at(), |skipped| skipped.until);
                if last >= wanted.window.from() && wanted.has(&run) {
                    found.rows.push(run);
                }
                if is_before {
                    return Ok(found);
                }
            }
            after = page.next;
            if after.is_none() || found.rows.len() >= usize::from(rows.get()) {
                break;
            }
        }
        found.next = after;
        Ok(found)
    }
}

/// Which jobs are read to fill a page: no more than it may have, but some, since not each has what is asked for.
pub(super) fn jobs_read_for(page: PageOf) -> PageOf {
    let rows = PageRows::new(page.rows.get().max(JOBS_READ).into()).unwrap_or(page.rows);
    PageOf { rows, ..page }
}

/// A page that is being filled.
struct Found {
    page: Page<RunSummary>,
    most: usize,
    /// Behind the last run that it has.
    last: Option<JobsPlace>,
}

impl Found {
    /// Adds runs of a job. `true`: there is room for no more, or the job has more than were read.
    fn is_full_with(&mut self, job: JobId, runs: Page<RunSummary>) -> bool {
        self.page.unreadable.extend(runs.unreadable);
        for run in runs.rows {
            if self.page.rows.len() >= self.most {
                self.page.next = self.last.as_ref().map(ToString::to_string);
                return true;
            }
            self.last = Some(JobsPlace::Listed { job: job.clone(), run: Some(list_key(&run.id)) });
            self.page.rows.push(run);
        }
        if runs.next.is_some() {
            self.page.next = Some(JobsPlace::Listed { job, run: runs.next }.to_string());
            return true;
        }
        self.last = Some(JobsPlace::behind(&job));
        false
    }
}
