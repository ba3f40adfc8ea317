//! What a job is going to do.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::job::Job;
use tidegate_domain::limits::UPCOMING_FIRINGS;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::launch::Child;

use super::Queries;
use crate::EngineError;
use crate::scan::Decision;
use crate::scan::evaluate::evaluate;
use crate::scan::plan_at_once;

impl Queries {
    /// The next launches of a job after an instant, at most `count` and at most [`UPCOMING_FIRINGS`].
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn upcoming<'a>(
        &'a self,
        job: &'a Job,
        after: DateTime<Utc>,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<Decision>, EngineError>> {
        Box::pin(async move {
            let child = Child::of(job);
            let count = count.min(UPCOMING_FIRINGS as usize);
            // Jitter moves launches on by less than an offset; start and end cut what the trigger alone would give.
            let offset = job.rules.jitter.offset(&job.client, &job.id);
            let begin = shifted(after, -offset);
            let before = |start_at| shifted(start_at, seconds(-1));
            let begin = job.rules.start_at.map_or(begin, |start_at| begin.max(before(start_at)));
            let days = self.contents.open_days(&job.client, &job.rules).await?;
            let firings = days.upcoming(&child.cadence, begin, DateTime::<Utc>::MAX_UTC, count);
            let mut decisions = Vec::with_capacity(firings.len());
            evaluate(&child, &firings, &days, &plan_at_once(after, false), &mut decisions);
            decisions.retain(|launch| launch.launch_at > after);
            decisions.truncate(count);
            for launch in decisions.iter_mut().filter(|one| one.skip_reason == Some(SkipReason::Excluded)) {
                let moved_to = days.moved_to(&child.cadence, &launch.firing);
                launch.moved_to =
                    moved_to.filter(|at| job.rules.is_within(*at)).map(|at| shifted(at, offset));
            }
            Ok(decisions)
        })
    }
}
