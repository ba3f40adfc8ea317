//! Sentences for people, made from what the engine answers as data: why an event is where it is, what its turn and a run's
//! end follow from. Each shows its numbers.
//!
//! Deliberately absent: decisions. A sentence says what the data says and nothing more.

mod ahead;
mod event;
mod run;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::rate_limit::RateLimit;
use tidegate_engine::SoFar;

pub use ahead::strain;
pub use event::{because, expectation};
pub use run::forecast;

/// `310 of 1000 events have ended since 09:00:03 UTC, 12.4 a second`, as far as that is known.
fn so_far_text(so_far: &SoFar, as_of: DateTime<Utc>) -> String {
    let SoFar { done, count, since, per_second } = *so_far;
    if done == 0 {
        return format!("none of its {count} events has ended yet, so its speed is not known");
    }
    let speed = per_second.map(|speed| format!(", {} a second", speed_text(speed)));
    let since = clock_text(since, as_of);
    format!("{done} of {count} events have ended since {since}{}", speed.unwrap_or_default())
}

fn rate_text(rate: RateLimit) -> String {
    format!("no more than {} a {}", rate.events(), rate.per().as_str())
}

fn speed_text(speed: f64) -> String {
    match speed {
        ..0.1 => format!("{speed:.3}"),
        ..100.0 => format!("{speed:.1}"),
        _ => format!("{speed:.0}"),
    }
}

/// `56 s`, `12 min`, `3.2 h`.
fn length_text(length: Duration) -> String {
    let ms = length.num_milliseconds();
    match ms.saturating_add(999) / 1_000 {
        s @ ..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s.saturating_add(59) / 60),
        s => format!("{:.1} h", s as f64 / 3_600.0),
    }
}

/// The time of day, with its date when that is not today's.
fn clock_text(instant: DateTime<Utc>, as_of: DateTime<Utc>) -> String {
    let form =
        if instant.date_naive() == as_of.date_naive() { "%H:%M:%S UTC" } else { "%Y-%m-%d %H:%M:%S UTC" };
    instant.format(form).to_string()
}

#[cfg(test)]
mod tests;
