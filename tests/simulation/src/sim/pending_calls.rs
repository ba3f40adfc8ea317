//! What clients want in a history: jobs that come, change and go, and policies whose limits move.

use anyhow::Result;
use chrono::DateTime;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{Count, Job, Terms, Trigger};
use tidegate_domain::time::{Window, seconds};
use tidegate_engine::{Backfill, Backfilled, Engine, EngineError, JobDraft, Written};

use super::coverage::CoveredFault;
use super::history::History;
use super::mix::{
    BACKFILLED, BACKFILLED_AGO, CLOSED_FOR, IN_BULK, JOB_CHANGES, JOB_CHANGES_AND_BACKFILLS, JobChange,
    NAMELESS_CHANGES, PAUSED_CHANGES, POLICY_CHANGES, PolicyChange,
};
use super::model::{Draft, JobModel, PendingCall, PendingPolicyCall};
use super::processes::{About, Call, Done};
use super::setup;
use crate::world::JobSpec;

/// Jobs that clients have, but for those of races, and those that came in bulk.
const JOBS: usize = 7;
/// Jobs that come in bulk, at the most.
const JOBS_IN_BULK: usize = 8;

impl History {
    pub(crate) fn change_job(&mut self) -> Result<()> {
        let open: Vec<usize> = (0..self.model.jobs.len())
            .filter(|job| {
                let model = &self.model.jobs[*job];
                !model.busy && !model.kept && (model.pending_call.is_some() || self.dice.chance(250))
            })
            .collect();
        let job = match self.dice.pick(&open) {
            Some(job) => *job,
            None if self.model.jobs.len() < JOBS + self.in_bulk => {
                let Some(client) = self.dice.pick(&self.model.clients).cloned() else { return Ok(()) };
                let number = self.model.jobs.len();
                let id = if self.dice.chance(750) { Some(format!("job{number}").parse()?) } else { None };
                self.model.jobs.push(JobModel::new(client, id));
                number
            }
            None => return Ok(()),
        };
        if self.model.jobs[job].pending_call.is_none() {
            let (now, client) = (self.now(), self.model.jobs[job].client.clone());
            let live = self.model.jobs[job].is_live();
            // One-time jobs with a generated id cannot be replaced.
            let nameless = self.model.jobs[job].id.as_ref().is_none_or(|id| id.one_time_shard().is_some());
            if !live && nameless && !self.model.jobs[job].revisions.is_empty() {
                return Ok(());
            }
            let changes: &[(JobChange, u64)] = match nameless {
                true => &NAMELESS_CHANGES,
                false if self.backfills => &JOB_CHANGES_AND_BACKFILLS,
                false => &JOB_CHANGES,
            };
            let change = if live { *self.dice.weighted(changes) } else { JobChange::Replace };
            let pending_call = match change {
                JobChange::PauseOrResume => PendingCall::Pause(!self.model.jobs[job].is_paused()),
                JobChange::Delete => PendingCall::Delete,
                JobChange::Backfill => {
                    let until = now - seconds(self.dice.within(BACKFILLED_AGO).cast_signed());
                    let since = until - seconds(self.dice.within(BACKFILLED).cast_signed());
                    let expected = self.model.jobs[job].revisions.last().map_or(0, |last| last.job.revision);
                    PendingCall::Backfill { window: Window::new(since, until)?, expected }
                }
                JobChange::Replace => {
                    let terms = setup::terms(&self.dice, &self.model, &client, &self.stage)?;
                    // Without an id, a cron job whose creation was not answered would fire for ever unknown.
                    let once = self.model.jobs[job].id.is_none();
                    let (trigger, cron) = setup::trigger(&self.dice, &self.model.zones, now, once)?;
                    let rules = setup::rules(&self.dice, now)?;
                    let job = JobDraft { rules, ..JobDraft::new(trigger, terms) };
                    PendingCall::Put(Box::new(Draft { job, cron }))
                }
            };
            self.model.jobs[job].pending_call(pending_call, now);
        }
        self.call_for_job(job);
        Ok(())
    }

    fn call_for_job(&mut self, job: usize) {
        let (process, engine) = self.process();
        let model = &mut self.model.jobs[job];
        let (Some(pending_call), client, id) =
            (model.pending_call.clone(), model.client.clone(), model.id.clone())
        else {
            return;
        };
        model.busy = true;
        model.asked(engine.clock().now());
        let replaces = !model.revisions.is_empty();
        let about = About::Jobs(vec![job]);
        match (pending_call, id) {
            (PendingCall::Put(draft), id) => {
                let name = format!("a write of job {job} {id:?}: {}", drafted(&draft.job));
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    let result = match id {
                        Some(id) if replaces => engine.jobs().replace(&client, id, draft.job, None).await,
                        id => engine.jobs().create(&client, id, draft.job).await,
                    };
                    Done::Put { answers: vec![(job, result)] }
                });
            }
            (PendingCall::Pause(paused), Some(id)) => {
                let name = format!("a call for job {job} {id}: paused is {paused}");
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    let result = engine.jobs().pause(&client, &id, paused, None).await;
                    Done::Put { answers: vec![(job, result)] }
                });
            }
            (PendingCall::Backfill { window, expected }, Some(id)) => {
                let name = format!("a backfill of job {job} {id}, {} to {}", window.from(), window.to());
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    let result = backfilled(&engine, &client, &id, window, expected).await;
                    Done::Put { answers: vec![(job, result)] }
                });
            }
            (PendingCall::Delete, Some(id)) => {
                let name = format!("a deletion of job {job} {id}");
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    Done::Deleted { job, result: engine.jobs().delete(&client, &id, None).await }
                });
            }
            (PendingCall::Pause(_) | PendingCall::Backfill { .. } | PendingCall::Delete, None) => {}
        }
    }

    /// A client creates one-time jobs without ids in one call: their events are of one instant and, under a policy, of one
    /// line.
    pub(crate) fn create_in_bulk(&mut self) -> Result<()> {
        if self.in_bulk >= JOBS_IN_BULK {
            return Ok(());
        }
        let Some(client) = self.dice.pick(&self.model.clients).cloned() else { return Ok(()) };
        let numbers = self.model.jobs.len()..self.model.jobs.len() + self.dice.within(IN_BULK) as usize;
        self.in_bulk += numbers.len();
        let now = self.now();
        let (trigger, cron) = setup::trigger(&self.dice, &self.model.zones, now, true)?;
        let terms = setup::terms(&self.dice, &self.model, &client, &self.stage)?;
        let terms = Terms { count: Count::new(1)?, ..terms };
        let draft = Draft { job: JobDraft::new(trigger, terms), cron };
        let (process, engine) = self.process();
        for _ in numbers.clone() {
            let mut job = JobModel::new(client.clone(), None);
            job.pending_call(PendingCall::Put(Box::new(draft.clone())), now);
            job.busy = true;
            job.asked(engine.clock().now());
            self.model.jobs.push(job);
            self.count(CoveredFault::InBulk);
        }
        let name = format!("a creation of jobs {numbers:?} in one call: {}", drafted(&draft.job));
        let call = Call { process, name, about: About::Jobs(numbers.clone().collect()), seconds: 29 };
        self.begin(call, async move {
            let drafts = numbers.clone().map(|_| (None, draft.job.clone())).collect();
            let answers = numbers.zip(engine.jobs().create_all(&client, drafts).await).collect();
            Done::Put { answers }
        });
        Ok(())
    }

    /// The last holder of a policy's tokens releases while something new joins its line.
    pub(crate) fn race(&mut self) -> Result<()> {
        let tokens = self.watch.last_tokens(&self.model);
        let Some(token) = self.dice.pick(&tokens).cloned() else { return Ok(()) };
        let (number, now) = (self.model.jobs.len(), self.now());
        let (client, policy) = (token.client().clone(), token.group.policy.to_string());
        let url = self.stage.queue_urls.first().cloned().unwrap_or_default();
        let launch_at = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
        let spec = JobSpec::at(launch_at, &url)?.of(self.dice.within(1..=2))?.under(&policy)?;
        let mut job = JobModel::new(client, Some(format!("job{number}").parse()?));
        job.pending_call(PendingCall::Put(Box::new(Draft { job: spec.into_draft(), cron: None })), now);
        self.model.jobs.push(job);
        self.count(CoveredFault::LastRelease);
        self.release(vec![token], false);
        self.call_for_job(number);
        Ok(())
    }

    pub(crate) fn change_policy(&mut self) -> Result<()> {
        let idle: Vec<usize> =
            (0..self.model.policies.len()).filter(|number| !self.model.policies[*number].busy).collect();
        let Some(number) = self.dice.pick(&idle).copied() else { return Ok(()) };
        let dice = &self.dice;
        let policy = &mut self.model.policies[number];
        if policy.pending_call.is_none() {
            let most = if policy.endless { 5 } else { 30 };
            let changes = if policy.paused { &PAUSED_CHANGES } else { &POLICY_CHANGES };
            let pending_call = match dice.weighted(changes) {
                PolicyChange::PauseOrResume => PendingPolicyCall::Pause(!policy.paused),
                PolicyChange::Close => PendingPolicyCall::Close(Some(dice.within(CLOSED_FOR) as u32)),
                PolicyChange::LowerLimit => {
                    PendingPolicyCall::Limit(dice.within(1..=policy.terms.max_in_flight().into()) as u32)
                }
                PolicyChange::AnyLimit => PendingPolicyCall::Limit(dice.within(1..=most) as u32),
            };
            policy.ask(pending_call)?;
        }
        self.call_for_policy(number)
    }

    fn call_for_policy(&mut self, number: usize) -> Result<()> {
        let (process, engine) = self.process();
        let policy = &mut self.model.policies[number];
        let Some(pending_call) = policy.pending_call else { return Ok(()) };
        policy.busy = true;
        let name = format!("a change of policy {}/{}: {pending_call:?}", policy.client, policy.id);
        let call = policy.call(engine, pending_call);
        self.begin(Call { process, name, about: About::Policy(number), seconds: 29 }, async move {
            Done::Changed { policy: number, result: call.await }
        });
        Ok(())
    }
}

/// A job whose launches of a window are made after all. A call whose answer was lost has made the next revision.
pub(crate) async fn backfilled(
    engine: &Engine,
    client: &ClientId,
    id: &JobId,
    window: Window,
    expected: u32,
) -> Result<Written<Job>, EngineError> {
    let backfill = Backfill { window, only_missed: false, dry_run: false };
    let done = engine.jobs().backfill(client, id, backfill, Some(expected)).await?;
    let Some(job) = engine.jobs().get(client, id).await? else { return Ok(Written::Absent) };
    Ok(match done {
        Backfilled::Launches { .. } => Written::Replaced(job),
        Backfilled::RevisionIs(_) if job.revision == expected.saturating_add(1) => Written::Replaced(job),
        Backfilled::RevisionIs(revision) => Written::RevisionIs(revision),
        // It comes without an idempotency key.
        Backfilled::Absent | Backfilled::OneTime | Backfilled::Before { .. } | Backfilled::OtherBody(_) => {
            Written::Absent
        }
    })
}

fn drafted(draft: &JobDraft) -> String {
    let JobDraft { trigger, rules, terms, .. } = draft;
    let when = match trigger {
        Trigger::Cron { spec, zone } => format!("{:?} {zone}", spec.canonical()),
        other => format!("{other:?}"),
    };
    let (count, attempts) =
        (terms.count.get(), (terms.max_attempts.map(|most| most.get()), terms.retry.backoff));
    let (policy, url) = (&terms.policy, terms.target.address());
    format!(
        "{when}, {count} to {url} under {policy:?} in {attempts:?} attempts, {rules:?}, {:?}",
        terms.relevancy
    )
}
