//! How fast a run goes and when it will be done, told in words that show the numbers.
//!
//! Pure. A prediction follows from the speed so far and from what limits the rest: a paused policy, its rate, pacing, a
//! deadline.

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::flow::{BatchWindow, OnDeadline};
use tidegate_domain::rate_limit::RateLimit;
use tidegate_domain::time::{milliseconds, shifted};
use tidegate_store::runs::RunRow;

use crate::queries::PolicyStatus;
use crate::queries::run_state::{RunState, RunSummary};

/// What is known of a run at an instant.
#[derive(Debug, Clone)]
pub(crate) struct Progress<'a> {
    launch_at: DateTime<Utc>,
    count: u32,
    state: RunState,
    reason: Option<&'a str>,
    /// Events that have come to an end.
    done: u32,
    left_out: u32,
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
    pub(crate) reasoning: String,
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
            reason: summary.reason.as_deref(),
            done: summary.tally.total() - summary.tally.left_out,
            left_out: summary.tally.left_out,
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

    /// `310 of 1000 events have ended since 09:00:03 UTC, 12.4 a second`, as far as that is known.
    pub(crate) fn so_far(&self) -> String {
        if self.done == 0 {
            return format!("none of its {} events has ended yet, so its speed is not known", self.count);
        }
        let speed = self.speed().map(|speed| format!(", {} a second", speed_text(speed)));
        let (done, count) = (self.done, self.count);
        let since = clock_text(self.since(), self.now);
        format!("{done} of {count} events have ended since {since}{}", speed.unwrap_or_default())
    }
}

impl Forecast {
    /// The forecast of a run.
    pub(crate) fn of(run: &Progress<'_>) -> Self {
        let rate_per_second = run.speed();
        let without = |reasoning: String| Self { rate_per_second, finish_at: None, reasoning };
        match run.state {
            RunState::Finished => without(finished(run)),
            RunState::Stopped => without(stopped(run)),
            _ if run.launch_at > run.now => {
                without(format!("its launch is in the future, at {}", clock_text(run.launch_at, run.now)))
            }
            _ if run.throttled && run.policy.is_none() => {
                without(format!("{}; its policy was deleted: nothing more is admitted", run.so_far()))
            }
            _ => Self::of_running(run, rate_per_second),
        }
    }

    fn of_running(run: &Progress<'_>, rate_per_second: Option<f64>) -> Self {
        let mut words = vec![run.so_far()];
        let left = run.waiting + run.in_flight;
        let mut finish_at = rate_per_second.map(|speed| {
            let rest = seconds(f64::from(left) / speed);
            words.push(format!("{left} are left, so about {} more", length_text(rest)));
            shifted(run.now, rest)
        });
        if let Some(rate) = run.policy.and_then(|status| status.policy.terms.rate()) {
            words.push(format!("its policy's rate lets {} begin", rate_text(rate)));
            let bound = shifted(run.now, seconds(f64::from(run.waiting) / per_second(rate)));
            finish_at = finish_at.map(|at| at.max(bound));
        }
        if let Some(status) = run.policy
            && status.load.in_flight > status.policy.limit()
            && !status.policy.paused
        {
            let (held, limit) = (status.load.in_flight, status.policy.limit());
            words.push(format!("its policy drains: {held} in flight, limit {limit}"));
        }
        if let Some(window) = &run.window {
            finish_at = within(run, window, finish_at, &mut words);
        }
        if run.policy.is_some_and(|status| status.policy.paused) {
            words.push("its policy is paused: nothing is admitted until it is resumed".to_owned());
            finish_at = None;
        }
        Self { rate_per_second, finish_at, reasoning: words.join("; ") }
    }
}

/// Bounds a prediction by the run's window.
fn within(
    run: &Progress<'_>,
    window: &BatchWindow,
    mut finish_at: Option<DateTime<Utc>>,
    words: &mut Vec<String>,
) -> Option<DateTime<Utc>> {
    let ends_at = window.ends_at(run.launch_at);
    let end = clock_text(ends_at, run.now);
    if window.paced && run.waiting > 0 {
        let last_at = window.admits_at(run.launch_at, run.count, run.count.saturating_sub(1));
        let last = clock_text(last_at, run.now);
        words.push(format!(
            "it is paced over its window, which ends at {end}: its last event begins at {last}"
        ));
        if last_at > run.now {
            finish_at = Some(finish_at.map_or(ends_at, |at| at.max(ends_at)));
        }
    }
    match window.on_deadline {
        OnDeadline::Expire => {
            words.push(format!("what is not admitted by {end} is left out"));
            // What was admitted may still be in flight then; how long is not known.
            finish_at.map(|at| if run.now < ends_at { at.min(ends_at) } else { at })
        }
        OnDeadline::Continue => {
            if ends_at <= run.now || finish_at.is_some_and(|at| at > ends_at) {
                words.push(format!("its window ends at {end}, and it goes on after that"));
            }
            finish_at
        }
    }
}

fn finished(run: &Progress<'_>) -> String {
    let speed = run.speed().map(|speed| format!(", {} a second", speed_text(speed))).unwrap_or_default();
    match run.last_outcome_at {
        Some(last_at) => {
            let (from, to) = (clock_text(run.since(), run.now), clock_text(last_at, run.now));
            format!("all {} events have ended, from {from} to {to}{speed}", run.count)
        }
        None => format!("all {} events have ended", run.count),
    }
}

fn stopped(run: &Progress<'_>) -> String {
    let mut text = format!("it was stopped ({})", run.reason.unwrap_or("no reason"));
    if run.done > 0 {
        text.push_str(&format!("; {} of {} events have ended", run.done, run.count));
    }
    if run.left_out > 0 {
        text.push_str(&format!("; {} were left out", run.left_out));
    }
    if run.in_flight > 0 {
        text.push_str(&format!("; {} are still with their consumers", run.in_flight));
    }
    text
}

/// A number of seconds, kept within what an instant can take: a century.
pub(crate) fn seconds(seconds: f64) -> Duration {
    milliseconds((seconds.clamp(0.0, 3e9) * 1_000.0) as i64)
}

/// How many events a rate lets begin in a second, in the long run.
pub(crate) fn per_second(rate: RateLimit) -> f64 {
    rate.per_second()
}

pub(crate) fn rate_text(rate: RateLimit) -> String {
    format!("no more than {} a {}", rate.events(), rate.per().as_str())
}

pub(crate) fn speed_text(speed: f64) -> String {
    match speed {
        ..0.1 => format!("{speed:.3}"),
        ..100.0 => format!("{speed:.1}"),
        _ => format!("{speed:.0}"),
    }
}

/// `56 s`, `12 min`, `3.2 h`.
pub(crate) fn length_text(length: Duration) -> String {
    let ms = length.num_milliseconds();
    match (ms + 999) / 1_000 {
        s @ ..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", (s + 59) / 60),
        s => format!("{:.1} h", s as f64 / 3_600.0),
    }
}

/// The time of day, with its date when that is not today's.
pub(crate) fn clock_text(instant: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let form =
        if instant.date_naive() == now.date_naive() { "%H:%M:%S UTC" } else { "%Y-%m-%d %H:%M:%S UTC" };
    instant.format(form).to_string()
}

#[cfg(test)]
mod tests;
