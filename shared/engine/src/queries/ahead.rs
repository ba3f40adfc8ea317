//! What a client's jobs are going to do: how many launches and events are due, by job, by step of time and by policy, and where a
//! policy cannot keep up with them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::demand::{Backlog, HeldMs, StepSeconds, backlog};
use tidegate_domain::ids::{ClientId, JobId, PolicyId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::UPCOMING_FIRINGS;
use tidegate_domain::policy::Policy;
use tidegate_domain::time::{Window, seconds, shifted, whole_second};
use tidegate_store::launch::Child;
use tidegate_store::{PageOf, Unreadable};

use super::Queries;
use super::across::{JOBS_LOOKED_AT, JobsAlike, JobsPlace, behind_one_times, jobs_read_for};
use super::one_times::OneTimePlace;
use crate::error::readable;
use crate::scan::evaluate::evaluate;
use crate::scan::plan_at_once;
use crate::{EngineError, deadline};

/// Launches of one job that are counted.
const COUNTED_OF_ONE: u64 = 50_000;
/// Launches that are counted for one page, at the least: then it ends.
const COUNTED: u64 = 300_000;

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct AheadWanted {
    /// When launches are due that are counted, with their jobs' jitter.
    pub window: Window,
    /// The steps that it is counted in.
    pub step: StepSeconds,
    /// How long an event holds its token; `None`: it is not known, and only rates are compared with what is due.
    pub held: Option<HeldMs>,
}

/// What a page of jobs is going to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ahead {
    /// The jobs that have launches in the window, by their ids.
    pub jobs: Vec<JobAhead>,
    /// What is due in each step in which something is.
    pub steps: BTreeMap<DateTime<Utc>, Due>,
    /// The policies of the jobs, by their ids.
    pub policies: Vec<PolicyAhead>,
    /// Rows of jobs that cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// Behind which job to go on; `None`: those are all.
    pub next: Option<String>,
}

/// What a job is going to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAhead {
    /// The job.
    pub job: JobId,
    /// Its policy.
    pub policy: Option<PolicyId>,
    /// What is due of it.
    pub due: Due,
    /// Launches that are not going to be made, as things stand.
    pub skipped: u64,
    /// Its first launch in the window, made or not.
    pub first_at: DateTime<Utc>,
    /// Its last one that was counted.
    pub last_at: DateTime<Utc>,
    /// Whether it has more, which were not counted.
    pub has_more: bool,
}

/// How much is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due {
    /// Launches that are made.
    pub launches: u64,
    /// Their events.
    pub events: u64,
}

/// What is due under a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyAhead {
    /// The policy.
    pub policy: PolicyId,
    /// How much.
    pub due: Due,
    /// The step in which most events are due.
    pub most_at: DateTime<Utc>,
    /// How many.
    pub most_events: u64,
    /// Where the policy cannot keep up; `None`: it can, as far as can be said.
    pub strain: Option<PolicyStrain>,
}

/// Where a policy cannot keep up with what is due.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyStrain {
    /// Whether its rate is what holds, else its tokens.
    pub by_rate: bool,
    /// How many events begin in a step; of tokens, how many events that take one.
    pub per_step: f64,
    /// From the end of which step on something waits.
    pub begins_at: DateTime<Utc>,
    /// How many events wait where most do; of tokens, each counts as often as it takes tokens.
    pub most_waiting: u64,
    /// At the end of which step.
    pub most_at: DateTime<Utc>,
    /// By the end of which step nothing waits; `None`: not within the window.
    pub ends_at: Option<DateTime<Utc>>,
}

/// What is due under a policy in each step, events and tokens.
#[derive(Default)]
struct Demand {
    due: Due,
    events: Vec<u64>,
    tokens: Vec<u64>,
}

impl Queries {
    /// What the jobs that have something in common are going to do in a window: a page of those that have launches in it, by their
    /// ids, and then one-time jobs with generated ids, by their minutes. Up to 1,000 jobs are looked at for it: it may have few, or
    /// none, and a `next`.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn ahead<'a>(
        &'a self,
        client: &'a ClientId,
        jobs: JobsAlike<'a>,
        wanted: AheadWanted,
        page: PageOf<JobsPlace>,
    ) -> BoxFuture<'a, Result<Ahead, EngineError>> {
        Box::pin(async move {
            let PageOf { after, rows } = page;
            let most = usize::from(rows.get());
            let (mut ahead, mut demands) = (Ahead::default(), BTreeMap::<PolicyId, Demand>::new());
            let (mut looked_at, mut counted) = (0_usize, 0_u64);
            let (mut after, mut one_times) = match after {
                None => (None, None),
                Some(JobsPlace::Listed { job, .. }) => (Some(job.to_string()), None),
                Some(JobsPlace::OneTimes(place)) => (None, Some(place)),
            };
            'pages: while one_times.is_none() {
                let read = jobs_read_for(PageOf { after: after.take(), rows });
                let page = self.store.jobs(client, jobs.prefix, read).await?;
                ahead.unreadable.extend(page.unreadable);
                after = page.next;
                for job in page.rows {
                    looked_at = looked_at.saturating_add(1);
                    let is_full =
                        ahead.jobs.len() >= most || counted >= COUNTED || looked_at > JOBS_LOOKED_AT;
                    if is_full || (looked_at > 1 && deadline::is_over(&*self.clock)) {
                        break 'pages;
                    }
                    ahead.next = Some(JobsPlace::behind(&job.id).to_string());
                    if (jobs.is_meant)(&job)
                        && let Some(of_job) = self.count(&job, wanted, &mut ahead.steps, &mut demands).await?
                    {
                        let passed = of_job.due.launches.saturating_add(of_job.skipped);
                        counted = counted.saturating_add(passed);
                        ahead.jobs.push(of_job);
                    }
                }
                if after.is_none() {
                    one_times = Some(None);
                }
            }
            if let Some(place) = one_times {
                let page = PageOf { after: place, rows };
                self.count_one_times(client, jobs, wanted, page, (&mut ahead, &mut demands)).await?;
            }
            for (policy, demand) in demands {
                let known = readable(self.store.policy(client, &policy).await.map_err(EngineError::from))?;
                ahead.policies.push(demand.under(policy, known.as_ref(), wanted));
            }
            Ok(ahead)
        })
    }

    /// Counts the launches of one-time jobs with generated ids, as far as there is room.
    async fn count_one_times(
        &self,
        client: &ClientId,
        jobs: JobsAlike<'_>,
        wanted: AheadWanted,
        page: PageOf<OneTimePlace>,
        (ahead, demands): (&mut Ahead, &mut BTreeMap<PolicyId, Demand>),
    ) -> Result<(), EngineError> {
        let most = usize::from(page.rows.get());
        ahead.next = None;
        if !jobs.may_have_one_times() {
            return Ok(());
        }
        let mut last = page.after.clone();
        if ahead.jobs.len() >= most || deadline::is_over(&*self.clock) {
            ahead.next = Some(JobsPlace::OneTimes(last).to_string());
            return Ok(());
        }
        let found = self.one_times(client, wanted.window, page).await?;
        ahead.unreadable.extend(found.unreadable);
        for job in found.rows {
            if ahead.jobs.len() >= most {
                ahead.next = Some(JobsPlace::OneTimes(last).to_string());
                return Ok(());
            }
            last = OneTimePlace::behind(&job.id).or(last);
            if jobs.has_one_time(&job)
                && let Some(of_job) = self.count(&job, wanted, &mut ahead.steps, demands).await?
            {
                ahead.jobs.push(of_job);
            }
        }
        ahead.next = behind_one_times(found.next);
        Ok(())
    }

    /// Counts the launches of a job; `None` when it has none in the window.
    async fn count(
        &self,
        job: &Job,
        wanted: AheadWanted,
        steps: &mut BTreeMap<DateTime<Utc>, Due>,
        demands: &mut BTreeMap<PolicyId, Demand>,
    ) -> Result<Option<JobAhead>, EngineError> {
        let (child, window) = (Child::of(job), wanted.window);
        let plan = plan_at_once(self.clock.now(), false);
        let offset = job.rules.jitter.offset(&job.client, &job.id);
        let days = self.contents.open_days(&job.client, &job.rules).await?;
        let events = u64::from(job.terms.count.get());
        let cost = u64::from(job.terms.flow.cost.get());
        let mut found: Option<JobAhead> = None;
        let mut after = shifted(whole_second(shifted(window.from(), -offset)), -seconds(1));
        let (mut counted, mut decisions) = (0_u64, Vec::new());
        loop {
            let firings = days.upcoming(&child.cadence, after, window.to(), UPCOMING_FIRINGS as usize);
            let Some(last) = firings.last() else { return Ok(found) };
            after = last.launch_at;
            let is_all = firings.len() < UPCOMING_FIRINGS as usize;
            decisions.clear();
            evaluate(&child, &firings, &days, &plan, &mut decisions);
            for decision in &decisions {
                let at = decision.launch_at;
                if at >= window.to() {
                    return Ok(found);
                }
                let of_job = found.get_or_insert_with(|| JobAhead::new(job, at));
                if counted >= COUNTED_OF_ONE {
                    of_job.has_more = true;
                    return Ok(found);
                }
                counted = counted.saturating_add(1);
                of_job.last_at = at;
                if decision.skip_reason.is_some() {
                    of_job.skipped = of_job.skipped.saturating_add(1);
                    continue;
                }
                of_job.due.add(events);
                let step = wanted.step_of(at);
                steps.entry(wanted.begin_of(step)).or_default().add(events);
                if let Some(policy) = &job.terms.policy {
                    demands.entry(policy.clone()).or_default().add(step, events, cost);
                }
            }
            if is_all || shifted(after, offset) >= window.to() {
                return Ok(found);
            }
        }
    }
}

impl AheadWanted {
    fn step_of(&self, at: DateTime<Utc>) -> usize {
        let passed = (at - self.window.from()).num_seconds().checked_div(self.step.get().into());
        passed.and_then(|step| usize::try_from(step).ok()).unwrap_or_default()
    }

    /// When a step begins.
    fn begin_of(&self, step: usize) -> DateTime<Utc> {
        let passed = i64::try_from(step).unwrap_or(i64::MAX).saturating_mul(self.step.get().into());
        shifted(self.window.from(), seconds(passed))
    }
}

impl JobAhead {
    fn new(job: &Job, at: DateTime<Utc>) -> Self {
        Self {
            job: job.id.clone(),
            policy: job.terms.policy.clone(),
            due: Due::default(),
            skipped: 0,
            first_at: at,
            last_at: at,
            has_more: false,
        }
    }
}

impl Due {
    fn add(&mut self, events: u64) {
        self.launches = self.launches.saturating_add(1);
        self.events = self.events.saturating_add(events);
    }
}

impl Demand {
    fn add(&mut self, step: usize, events: u64, cost: u64) {
        self.due.add(events);
        let more = [(&mut self.events, events), (&mut self.tokens, events.saturating_mul(cost))];
        for (steps, more) in more {
            if steps.len() <= step {
                steps.resize(step.saturating_add(1), 0);
            }
            if let Some(due) = steps.get_mut(step) {
                *due = due.saturating_add(more);
            }
        }
    }

    /// Compares it with what its policy lets begin; of one that is gone, nothing is said.
    fn under(self, id: PolicyId, policy: Option<&Policy>, wanted: AheadWanted) -> PolicyAhead {
        let most =
            self.events.iter().enumerate().max_by_key(|(step, events)| (**events, std::cmp::Reverse(*step)));
        let (most_step, most_events) = most.map_or((0, 0), |(step, events)| (step, *events));
        let step_s = f64::from(wanted.step.get());
        let by_rate = policy.and_then(|policy| policy.terms.rate()).map(|rate| rate.per_second() * step_s);
        let by_tokens = policy.zip(wanted.held).map(|(policy, held)| {
            f64::from(policy.terms.max_in_flight()) * step_s * 1_000.0 / f64::from(held.get())
        });
        let all_steps = wanted.step_of(shifted(wanted.window.to(), -seconds(1))).saturating_add(1);
        let strain = |mut due: Vec<u64>, per_step: Option<f64>, by_rate: bool| {
            // What is left over goes on into steps in which nothing is due.
            due.resize(all_steps, 0);
            let backlog = backlog(&due, per_step?)?;
            Some(PolicyStrain::of(backlog, (by_rate, per_step?), wanted))
        };
        let strains = [strain(self.events, by_rate, true), strain(self.tokens, by_tokens, false)];
        PolicyAhead {
            policy: id,
            due: self.due,
            most_at: wanted.begin_of(most_step),
            most_events,
            strain: strains.into_iter().flatten().max_by_key(|strain| strain.most_waiting),
        }
    }
}

impl PolicyStrain {
    fn of(backlog: Backlog, (by_rate, per_step): (bool, f64), wanted: AheadWanted) -> Self {
        let end_of = |step: usize| wanted.begin_of(step.saturating_add(1)).min(wanted.window.to());
        Self {
            by_rate,
            per_step,
            begins_at: end_of(backlog.begins),
            most_waiting: backlog.most,
            most_at: end_of(backlog.most_at),
            ends_at: backlog.ends.map(end_of),
        }
    }
}
