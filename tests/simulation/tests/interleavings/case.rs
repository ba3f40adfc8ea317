//! One case: a job, what its client was told of it, and what must have come of that.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::JobId;
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::time::Window;
use tidegate_simulation::World;
use tidegate_simulation::world::{Account, Fired, Skipped};

/// A job of a case.
#[derive(Debug)]
pub struct Case {
    pub id: JobId,
    pub told: String,
    /// Nothing died and nobody was late: no event comes twice.
    pub strict: bool,
    revisions: Vec<Revision>,
}

#[derive(Debug)]
struct Revision {
    job: Job,
    until: Option<DateTime<Utc>>,
    /// While the call that ended it was under way, it may still have launched.
    may_until: Option<DateTime<Utc>>,
}

impl Case {
    pub fn new(id: JobId) -> Self {
        Self { id, told: String::new(), strict: true, revisions: Vec::new() }
    }

    /// The job is like this now.
    pub fn is(&mut self, job: Job) {
        if self.revisions.last().is_some_and(|last| last.job.revision == job.revision) {
            return;
        }
        self.ends(job.changed_at);
        self.revisions.push(Revision { job, until: None, may_until: None });
    }

    /// The job is gone, or its present revision is.
    pub fn ends(&mut self, at: DateTime<Utc>) {
        if let Some(last) = self.revisions.last_mut().filter(|last| last.until.is_none()) {
            last.until = Some(at);
        }
    }

    /// The call that brought the present revision was answered.
    pub fn answered(&mut self, at: DateTime<Utc>) {
        if let [.., before, _] = &mut self.revisions[..] {
            before.may_until = Some(at);
        }
    }

    /// What is wrong with what came of it.
    pub async fn verdict(&self, world: &World, account: &Account) -> Option<String> {
        let delivered = account.delivered(self.id.as_str()).unwrap();
        let records = world.skipped(self.id.as_str()).await.unwrap();
        let reason = |(revision, launch_s): &Fired| {
            let covers =
                |r: &&Skipped| r.run.revision() == *revision && (r.first_s..=r.last_s).contains(launch_s);
            records.iter().find(covers).map(|record| &*record.reason)
        };
        let (mut to_deliver, mut to_record, mut may_come) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for revision in &self.revisions {
            may_come.extend(revision.launches(revision.may_until));
            let due = revision.launches(revision.until).into_iter();
            if revision.job.paused { to_record.extend(due) } else { to_deliver.extend(due) }
        }
        let came: BTreeSet<Fired> = delivered.iter().copied().collect();
        if !self.strict {
            // What a deletion finds undelivered, because a tick died, is recorded as such.
            to_deliver.retain(|fired| came.contains(fired) || reason(fired) != Some("job_deleted"));
        }
        if let Some(missing) = to_deliver.difference(&came).next() {
            return Some(self.wrong(format!("{missing:?} never came; recorded is {:?}", reason(missing))));
        }
        if let Some(extra) =
            came.iter().find(|fired| !to_deliver.contains(fired) && !may_come.contains(fired))
        {
            return Some(self.wrong(format!("{extra:?} came and should not")));
        }
        if self.strict && came.len() < delivered.len() {
            return Some(self.wrong(format!("some came twice: {delivered:?}")));
        }
        to_record
            .iter()
            .find(|fired| reason(fired) != Some("paused"))
            .map(|missing| self.wrong(format!("{missing:?} is not recorded as paused")))
    }

    fn wrong(&self, what: String) -> String {
        let revisions = self.revisions.iter().map(|r| {
            let (changed_at, emit_from) = (r.job.changed_at.timestamp(), r.job.emit_from.timestamp());
            format!("{} from {changed_at}, emitted from {emit_from}, until {:?}", r.job.revision, r.until)
        });
        format!("{} {}: {what} ({})", self.id, self.told, revisions.collect::<Vec<_>>().join("; "))
    }
}

impl Revision {
    /// Its launches from the second in which it was written on.
    fn launches(&self, until: Option<DateTime<Utc>>) -> Vec<Fired> {
        let Some(until) = until else { return Vec::new() };
        let from = DateTime::from_timestamp(self.job.changed_at.timestamp(), 0).unwrap();
        let from = match &self.job.trigger {
            Trigger::At(instants) => from.min(instants.first()),
            _ => from,
        };
        let Ok(window) = Window::new(from, until.max(from)) else { return Vec::new() };
        let firings = self.job.trigger.cadence().firings(window);
        firings.iter().map(|firing| (self.job.revision, firing.launch_at.timestamp())).collect()
    }
}
