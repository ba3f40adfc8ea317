//! How jobs lie in the time index: how many rows the ticks of a deployment read for each launch.
//!
//! A dry run reads a row once for a piece of hours or days, a deployment once for each minute that it may be due in.
//! So over-selection is taken from the keys of the rows and not from what was read here.

use chrono::{DateTime, Duration};
use chrono_tz::Tz;
use tidegate_domain::time::{Cadence, CompiledCron, Firing, launches_per_cycle, reads_per_cycle};
use tidegate_engine::JobDraft;

/// Sums over jobs of what ticks of one minute would read in a cycle of the calendar, 28 years, and of the minutes in which
/// they launch. Single instants are left out: each is read once.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    reads: f64,
    launch_minutes: f64,
    jitter_seconds: u32,
}

impl Shape {
    /// Adds a job.
    pub(crate) fn add(&mut self, draft: &JobDraft) {
        self.jitter_seconds = self.jitter_seconds.max(draft.rules.jitter.seconds());
        let cadence = draft.trigger.cadence();
        let reads = reads_per_cycle(&cadence.candidates(draft.rules.on_closed_day).children()) as f64;
        let launch_minutes = match &cadence {
            Cadence::Cron { cron, .. } => launches_per_cycle(cron) as f64 / launches_per_minute(cron),
            Cadence::Rate(rate) => {
                let launches = reads / rate.reads_per_launch();
                launches * (f64::from(rate.every_seconds()) / 60.0).min(1.0)
            }
            Cadence::At(_) => return,
        };
        self.reads += reads;
        self.launch_minutes += launch_minutes;
    }

    /// How many rows are read for each that launches in the minute of the tick: 1 is none too many.
    pub(crate) fn over_selection(&self) -> Option<f64> {
        (self.launch_minutes > 0.0).then(|| self.reads / self.launch_minutes)
    }

    /// The widest flexible window of all jobs.
    pub(crate) fn jitter(&self) -> Duration {
        Duration::seconds(self.jitter_seconds.into())
    }
}

/// How often an expression launches in a minute in which it does.
fn launches_per_minute(cron: &CompiledCron) -> f64 {
    let minute = |firing: &Firing| firing.launch_at.timestamp().div_euclid(60);
    // From the first second of a minute on, so that the first minute found is whole.
    let next = cron.upcoming(Tz::UTC, DateTime::UNIX_EPOCH - Duration::seconds(1), 60);
    let first = next.first().map(minute);
    next.iter().filter(|firing| Some(minute(firing)) == first).count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_api::documents;

    use super::*;

    fn over_selection(triggers: &[serde_json::Value]) -> Option<f64> {
        let now = "2026-11-21T11:00:00Z".parse().unwrap();
        let mut shape = Shape::default();
        for trigger in triggers {
            let target = json!({"sqs": {"queue_url": "http://localhost/1/jobs"}});
            let job = json!({"trigger": trigger, "target": target});
            shape.add(&documents::read_job(job, now).unwrap().1);
        }
        shape.over_selection()
    }

    #[test]
    fn only_rows_that_are_read_in_vain_count() {
        let exact = [
            json!({"cron": "0 3 * * *"}),
            json!({"cron": "*/10 * 3 * * *"}),
            json!({"cron": "* * * * *"}),
            json!({"cron": "* * * * * *"}),
            json!({"rate": "90s"}),
            json!({"rate": "1s"}),
        ];
        for trigger in &exact {
            assert_eq!(over_selection(std::slice::from_ref(trigger)), Some(1.0), "{trigger}");
        }
        assert_eq!(over_selection(&exact), Some(1.0));
        assert_eq!(over_selection(&[json!({"at": "2026-11-21T12:00:00Z"})]), None);
        // The last day of a month is read as four days of it.
        let last = over_selection(&[json!({"cron": "0 3 L * *"})]).unwrap();
        assert!((3.0..4.0).contains(&last), "{last}");
    }
}
