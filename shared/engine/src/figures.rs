//! Figures that a deployment is watched by. Each is an event of `tracing` with one numeric field, under a target of their own:
//! no log shows them unless it is asked to, and the functions make metrics of them.
//!
//! | field | means |
//! | --- | --- |
//! | `watermark_lag_s` | how far the watermark was behind the clock when a tick began |
//! | `late_s` | how late the oldest of the launches was that a window emitted |
//! | `oldest_part_s` | how late the oldest launches are that a part of a large emission stands for |
//! | `line_age_s` | how long ago what a slot group serves next was due |
//!
//! What has a line of the log is counted by a field of that line: `dead_events`, `rows_set_aside`, `poison`.

use chrono::TimeDelta;
use tracing::debug;

/// The target of the events.
pub const FIGURES: &str = "tidegate_figures";

/// Tells how far the watermark was behind when a tick began.
pub(crate) fn watermark_lag(lag: TimeDelta) {
    debug!(target: FIGURES, watermark_lag_s = late_seconds(lag));
}

/// Tells how late the oldest launch of a window was when it was emitted.
pub(crate) fn lateness(late: TimeDelta) {
    debug!(target: FIGURES, late_s = late_seconds(late));
}

/// Tells how late the oldest launches of a part are.
pub(crate) fn oldest_part(late: TimeDelta) {
    debug!(target: FIGURES, oldest_part_s = late_seconds(late));
}

/// Tells how long ago what a slot group serves was due.
pub(crate) fn line_age(age: TimeDelta) {
    debug!(target: FIGURES, line_age_s = late_seconds(age));
}

/// What is still to come is not late.
fn late_seconds(late: TimeDelta) -> u64 {
    late.num_seconds().max(0).unsigned_abs()
}
