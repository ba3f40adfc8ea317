//! Figures that a deployment is watched by. Each is an event of `tracing` with one numeric field, under a target of their own:
//! no log shows them unless it is asked to, and the functions make metrics of them.
//!
//! What has a line of the log is counted by a field of that line.

use chrono::TimeDelta;
use tracing::{Level, event};

/// The target of the events that are figures and nothing else.
pub const TARGET: &str = "tidegate_figures";

/// Seconds that the watermark was behind the clock when a tick began.
pub const WATERMARK_LAG: &str = "watermark_lag_s";
/// Seconds that the oldest of the launches was late that a window emitted.
pub const LATENESS: &str = "late_s";
/// Seconds that the oldest launches are late that a part of a large emission stands for.
pub const OLDEST_PART: &str = "oldest_part_s";
/// Seconds since what a slot group serves next was due.
pub const LINE_AGE: &str = "line_age_s";

/// Of a line of the log: events that were given up.
pub const DEAD_EVENTS: &str = "dead_events";
/// Of a line of the log: rows that were set aside.
pub const ROWS_SET_ASIDE: &str = "rows_set_aside";
/// Of a line of the log: records that the bus did not get.
pub const BUS_DROPPED: &str = "bus_dropped";
/// Of a line of the log: launches that were not over in time.
pub const OVERDUE: &str = "overdue";
/// Of a line of the log: messages that nobody can handle.
pub const POISON: &str = "poison";

/// Tells how far the watermark was behind when a tick began.
pub(crate) fn watermark_lag(lag: TimeDelta) {
    event!(target: TARGET, Level::DEBUG, { { WATERMARK_LAG } = late_seconds(lag) });
}

/// Tells how late the oldest launch of a window was when it was emitted.
pub(crate) fn lateness(late: TimeDelta) {
    event!(target: TARGET, Level::DEBUG, { { LATENESS } = late_seconds(late) });
}

/// Tells how late the oldest launches of a part are.
pub(crate) fn oldest_part(late: TimeDelta) {
    event!(target: TARGET, Level::DEBUG, { { OLDEST_PART } = late_seconds(late) });
}

/// Tells how long ago what a slot group serves was due.
pub(crate) fn line_age(age: TimeDelta) {
    event!(target: TARGET, Level::DEBUG, { { LINE_AGE } = late_seconds(age) });
}

/// What is still to come is not late.
fn late_seconds(late: TimeDelta) -> u64 {
    late.num_seconds().max(0).unsigned_abs()
}
