//! What each firing of a job takes by itself.

use tidegate_domain::limits::GRANT_EVENTS;

use crate::facts::{Created, Job, Setting, Target};
use crate::minute::{CALL_MESSAGES, events_per_chunk, payload};
use crate::steps::{Step, Steps};

/// Events of a run that are sent by whoever finds it.
const EVENTS_INLINE: u32 = 1_000;

/// What it takes to create a job, for each of its firings.
pub(crate) fn creation_steps(job: &Job, setting: &Setting) -> Steps {
    let mut steps = Steps::default();
    // A job with several instants is created once for all of them.
    let once = match job.created {
        Created::Listed(instants) => 1.0 / f64::from(instants.max(1)),
        _ => 1.0,
    };
    match job.created {
        Created::Before => return steps,
        Created::Generated => steps.add(Step::OneTimeJob, 1.0),
        Created::Named => steps.add(Step::NamedOneTimeJob, 1.0),
        Created::Listed(_) => {
            steps.add(Step::ListedJob, once);
            steps.add(Step::ListedInstant, 1.0);
        }
    }
    steps.add(Step::CreateCall, once / setting.created_together.max(1.0));
    steps.add(Step::RowUnit, once * f64::from(job.row_units.saturating_sub(1)));
    steps
}

/// What each firing of a job takes, whatever else fires, its creation included.
pub(crate) fn own_steps(job: &Job, setting: &Setting) -> Steps {
    let mut steps = creation_steps(job, setting);
    let events = f64::from(job.count);
    steps.add(Step::RowRead, f64::from(job.row_reads));
    steps.add(Step::SingleEvent, 1.0);
    match (job.policy, job.count) {
        (None, 1) if job.keeps_record => {
            steps.add(Step::SingleRecord, 1.0);
            // A payload that has no other row than that of the instant is kept with what became of it.
            if job.created == Created::Generated {
                steps.add(Step::RowUnit, f64::from(job.row_units.saturating_sub(1)));
            }
        }
        (None, 1) => {}
        (None, _) => {
            let chunks = chunks_of_a_run(job);
            steps.add(Step::BatchRun, 1.0);
            if job.count > EVENTS_INLINE {
                steps.add(Step::RunPart, 1.0);
            }
            steps.add(Step::BatchChunk, chunks);
            steps.add(Step::Payload, payload(chunks, chunks * f64::from(job.item_bytes)));
            if job.target != Target::Http {
                steps.add(Step::Send, (events / CALL_MESSAGES).ceil());
            }
        }
        (Some(_), _) if job.is_packed => {}
        (Some(_), _) => {
            steps.add(Step::ThrottledRun, 1.0);
            steps.add(Step::Range, (events / f64::from(GRANT_EVENTS)).floor());
        }
    }
    // Those of a policy are called one by one, as tokens are granted.
    if job.target == Target::Http && job.policy.is_none() {
        steps.add(Step::HttpCall, events);
    }
    steps
}

pub(crate) fn chunks_of_a_run(job: &Job) -> f64 {
    (f64::from(job.count) / events_per_chunk(job.target == Target::Http, 1.0)).ceil()
}
