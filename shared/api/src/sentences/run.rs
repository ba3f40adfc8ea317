//! What the forecast of a run follows from, in a sentence.

use chrono::{DateTime, Utc};
use tidegate_engine::{ForecastBasis, RunDetail};

use super::{clock_text, length_text, rate_text, so_far_text, speed_text};

/// What rate and predicted finish of a run follow from, or why nothing can be predicted.
pub fn forecast(run: &RunDetail) -> String {
    let parts: Vec<String> = run.basis.iter().map(|basis| part(basis, run)).collect();
    parts.join("; ")
}

fn part(basis: &ForecastBasis, run: &RunDetail) -> String {
    let clock = |at: DateTime<Utc>| clock_text(at, run.as_of);
    match basis {
        ForecastBasis::NotLaunched(at) => format!("its launch is in the future, at {}", clock(*at)),
        ForecastBasis::SoFar(so_far) => so_far_text(so_far, run.as_of),
        ForecastBasis::Left { events, takes } => {
            format!("{events} are left, so about {} more", length_text(*takes))
        }
        ForecastBasis::Rate(rate) => format!("its policy's rate lets {} begin", rate_text(*rate)),
        ForecastBasis::Draining { held, limit } => {
            format!("its policy drains: {held} in flight, limit {limit}")
        }
        ForecastBasis::Paced { ends_at, last_at } => {
            let (end, last) = (clock(*ends_at), clock(*last_at));
            format!("it is paced over its window, which ends at {end}: its last event begins at {last}")
        }
        ForecastBasis::LeftOutAtDeadline(ends_at) => {
            format!("what is not admitted by {} is left out", clock(*ends_at))
        }
        ForecastBasis::ContinuesAfterDeadline(ends_at) => {
            format!("its window ends at {}, and it goes on after that", clock(*ends_at))
        }
        ForecastBasis::PolicyPaused => {
            "its policy is paused: nothing is admitted until it is resumed".to_owned()
        }
        ForecastBasis::PolicyClosed(until) => {
            format!("its policy is closed until {}: nothing is admitted before", clock(*until))
        }
        ForecastBasis::Sidelined => {
            "its client is sidelined: nothing is admitted until it is drained".to_owned()
        }
        ForecastBasis::PolicyDeleted => "its policy was deleted: nothing more is admitted".to_owned(),
        ForecastBasis::Finished { since } => finished(run, *since),
        ForecastBasis::Stopped { done } => stopped(run, *done),
    }
}

fn finished(run: &RunDetail, since: DateTime<Utc>) -> String {
    let count = run.summary.count;
    let Some(last_at) = run.summary.last_outcome_at else {
        return format!("all {count} events have ended");
    };
    let speed = run.rate_per_second.map(|speed| format!(", {} a second", speed_text(speed)));
    let (from, to) = (clock_text(since, run.as_of), clock_text(last_at, run.as_of));
    format!("all {count} events have ended, from {from} to {to}{}", speed.unwrap_or_default())
}

fn stopped(run: &RunDetail, done: u32) -> String {
    let summary = &run.summary;
    let mut text = format!("it was stopped ({})", summary.reason.as_deref().unwrap_or("no reason"));
    if done > 0 {
        text.push_str(&format!("; {done} of {} events have ended", summary.count));
    }
    if summary.tally.left_out > 0 {
        text.push_str(&format!("; {} were left out", summary.tally.left_out));
    }
    if run.in_flight > 0 {
        text.push_str(&format!("; {} are still with their consumers", run.in_flight));
    }
    text
}
