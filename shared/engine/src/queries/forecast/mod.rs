//! How fast a run goes and when it will be done, with what that follows from.
//!
//! Pure. A prediction follows from the speed so far and from what limits the rest: a paused policy, its rate, pacing, a
//! deadline.

mod basis;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::flow::{BatchWindow, OnDeadline};
use tidegate_domain::time::{milliseconds, shifted};
use tidegate_store::runs::RunRow;

use crate::queries::PolicyStatus;
use crate::queries::run_state::{RunState, RunSummary};
pub use basis::{ForecastBasis, SoFar};

/// What is known of a run at an instant.
#[derive(Debug, Clone)]
pub(crate) struct Progress<'a> {
    launch_at: DateTime<Utc>,
    count: u32,
    state: RunState,
    /// Events that have come to an end.
    done: u32,
    in_flight: u32,
    waiting: u32,
    started_at: Option<DateTime<Utc>>,
    last_outcome_at: Option<DateTime<Utc>>,
    window: Option<BatchWindow>,
    throttled: bool,
    policy: Option<&'a PolicyStatus>,
    now: DateTime<Utc>,
}

/// How fast a run goes, when it will be done, and why that is thought.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Forecast {
    pub(crate) rate_per_second: Option<f64>,
    pub(crate) finish_at: Option<DateTime<Utc>>,
    pub(crate) basis: Vec<ForecastBasis>,
}

impl<'a> Progress<'a> {
    /// A run, how many of its events are in flight and wait, and what throttles it.
    pub(crate) fn new(
        run: &'a RunRow,
        summary: &'a RunSummary,
        (in_flight, waiting): (u32, u32),
        policy: Option<&'a PolicyStatus>,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            launch_at: run.id.launch_at(),
            count: summary.count,
            state: summary.state,
            done: summary.tally.total() - summary.tally.left_out,
            in_flight,
            waiting,
            started_at: run.started_at,
            last_outcome_at: summary.last_outcome_at,
            window: run.terms.flow.window,
            throttled: run.terms.policy.is_some(),
            policy,
            now,
        }
    }

    /// From when on its speed is measured: its first admission, or, without a policy, its launch.
    fn since(&self) -> DateTime<Utc> {
        self.started_at.unwrap_or(self.launch_at)
    }

    /// Until when its speed is measured: now, or, once it is over, when its last event ended.
    fn until(&self) -> Option<DateTime<Utc>> {
        match self.state {
            RunState::Finished | RunState::Stopped => self.last_outcome_at,
            RunState::Waiting | RunState::Running => Some(self.now),
        }
    }

    /// Events that ended per second; `None` when none has, no time has passed, or the run is over and when it ended is not
    /// known.
    pub(crate) fn speed(&self) -> Option<f64> {
        let until = self.until()?;
        let past_ms = (until - self.since()).num_milliseconds();
        (self.done > 0 && past_ms > 0).then(|| f64::from(self.done) * 1_000.0 / past_ms as f64)
    }

    /// How far it has come.
    pub(super) fn so_far(&self) -> SoFar {
        SoFar { done: self.done, count: self.count, since: self.since(), per_second: self.speed() }
    }
}

impl Forecast {
    /// The forecast of a run.
    pub(crate) fn of(run: &Progress<'_>) -> Self {
        let rate_per_second = run.speed();
        let without = |basis: Vec<ForecastBasis>| Self { rate_per_second, finish_at: None, basis };
        match run.state {
            RunState::Finished => without(vec![ForecastBasis::Finished { since: run.since() }]),
            RunState::Stopped => without(vec![ForecastBasis::Stopped { done: run.done }]),
            _ if run.launch_at > run.now => without(vec![ForecastBasis::NotLaunched(run.launch_at)]),
            _ if run.throttled && run.policy.is_none() => {
                without(vec![ForecastBasis::SoFar(run.so_far()), ForecastBasis::PolicyDeleted])
            }
            _ => Self::of_running(run, rate_per_second),
        }
    }

    fn of_running(run: &Progress<'_>, rate_per_second: Option<f64>) -> Self {
        let mut basis = vec![ForecastBasis::SoFar(run.so_far())];
        let events = run.waiting + run.in_flight;
        let mut finish_at = rate_per_second.map(|speed| {
            let takes = seconds(f64::from(events) / speed);
            basis.push(ForecastBasis::Left { events, takes });
            shifted(run.now, takes)
        });
        if let Some(rate) = run.policy.and_then(|status| status.policy.rate()) {
            basis.push(ForecastBasis::Rate(rate));
            let bound = shifted(run.now, seconds(f64::from(run.waiting) / rate.per_second()));
            finish_at = finish_at.map(|at| at.max(bound));
        }
        if let Some(status) = run.policy
            && status.load.in_flight > status.policy.limit()
            && !status.policy.paused
            && status.policy.closed().is_none()
            && !status.policy.is_sidelined()
        {
            let (held, limit) = (status.load.in_flight, status.policy.limit());
            basis.push(ForecastBasis::Draining { held, limit });
        }
        if let Some(window) = &run.window {
            finish_at = within(run, window, finish_at, &mut basis);
        }
        if let Some(closed) = run.policy.and_then(|status| status.policy.closed()) {
            basis.push(ForecastBasis::PolicyClosed(closed.until));
            finish_at = finish_at.map(|at| shifted(at, closed.until - run.now));
        }
        if run.policy.is_some_and(|status| status.policy.paused) {
            basis.push(ForecastBasis::PolicyPaused);
            finish_at = None;
        }
        if run.policy.is_some_and(|status| status.policy.is_sidelined()) {
            basis.push(ForecastBasis::Sidelined);
            finish_at = None;
        }
        Self { rate_per_second, finish_at, basis }
    }
}

/// Bounds a prediction by the run's window.
fn within(
    run: &Progress<'_>,
    window: &BatchWindow,
    mut finish_at: Option<DateTime<Utc>>,
    basis: &mut Vec<ForecastBasis>,
) -> Option<DateTime<Utc>> {
    let ends_at = window.ends_at(run.launch_at);
    if window.paced && run.waiting > 0 {
        let last_at = window.admits_at(run.launch_at, run.count, run.count.saturating_sub(1));
        basis.push(ForecastBasis::Paced { ends_at, last_at });
        if last_at > run.now {
            finish_at = Some(finish_at.map_or(ends_at, |at| at.max(ends_at)));
        }
    }
    match window.on_deadline {
        OnDeadline::Expire => {
            basis.push(ForecastBasis::LeftOutAtDeadline(ends_at));
            // What was admitted may still be in flight then; how long is not known.
            finish_at.map(|at| if run.now < ends_at { at.min(ends_at) } else { at })
        }
        OnDeadline::Continue => {
            if ends_at <= run.now || finish_at.is_some_and(|at| at > ends_at) {
                basis.push(ForecastBasis::ContinuesAfterDeadline(ends_at));
            }
            finish_at
        }
    }
}

/// A number of seconds, kept within what an instant can take: a century.
pub(crate) fn seconds(seconds: f64) -> Duration {
    milliseconds((seconds.clamp(0.0, 3e9) * 1_000.0) as i64)
}

#[cfg(test)]
mod tests;
