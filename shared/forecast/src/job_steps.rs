//! What each firing of a job takes by itself.

use tidegate_domain::limits::GRANT_EVENTS;

use crate::facts::{Created, Job, Setting, Target};
use crate::minute::{CALL_MESSAGES, events_per_chunk, payload};
use crate::steps::{Step, Steps};

/// Events of a run that are sent by whoever finds it.
const EVENTS_INLINE: u32 = 1_000;

/// What each firing of a job takes, whatever else fires.
pub(crate) fn own_steps(job: &Job, setting: &Setting) -> Steps {
    let mut steps = Steps::default();
    let events = f64::from(job.count);
    match job.created {
        Created::Before => {}
        Created::Generated => steps.add(Step::OneTimeJob, 1.0),
        Created::Named => steps.add(Step::NamedOneTimeJob, 1.0),
    }
    if job.created != Created::Before {
        steps.add(Step::CreateCall, 1.0 / setting.created_together.max(1.0));
    }
    steps.add(Step::SingleEvent, 1.0);
    match (job.policy, job.count) {
        (None, 1) if job.keeps_record => steps.add(Step::SingleRecord, 1.0),
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
    if job.target == Target::Http {
        steps.add(Step::HttpCall, events);
    }
    steps
}

pub(crate) fn chunks_of_a_run(job: &Job) -> f64 {
    (f64::from(job.count) / events_per_chunk(job.target == Target::Http, 1.0)).ceil()
}
