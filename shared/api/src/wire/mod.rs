//! What travels over the API: bodies that are read and checked, answers that are written.
//!
//! Reading is in two stages. `form` judges the form by the schemas that are derived here; `check` turns a body into
//! domain values and collects every fault. Nothing here asks the store: whether a queue or policy exists is the routes' part.

pub(crate) mod ahead;
pub(crate) mod backfill;
pub(crate) mod bounds;
pub(crate) mod bulk;
pub(crate) mod calendar;
pub(crate) mod change;
pub(crate) mod client;
pub(crate) mod dead_letter;
pub(crate) mod explain;
pub(crate) mod fair;
pub(crate) mod flow;
pub(crate) mod holder;
pub(crate) mod ics;
pub(crate) mod index;
pub(crate) mod job;
pub(crate) mod job_calls;
pub(crate) mod key;
pub(crate) mod lateness;
pub(crate) mod number;
pub(crate) mod one_time;
pub(crate) mod overdue;
pub(crate) mod past;
pub(crate) mod payload;
pub(crate) mod policy;
pub(crate) mod preview;
pub(crate) mod quota;
pub(crate) mod read_only;
pub(crate) mod retry;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod selection;
pub(crate) mod sideline;
pub(crate) mod skip;
pub(crate) mod spoiled;
pub(crate) mod standing;
pub(crate) mod target;
pub(crate) mod token;
pub(crate) mod trigger;
mod unreadable;
pub(crate) mod upcoming;
pub(crate) mod when;

use chrono::{DateTime, SecondsFormat, Utc};

/// An instant as the API writes it: UTC, with milliseconds where there are any.
pub(crate) fn instant(at: DateTime<Utc>) -> String {
    let digits = if at.timestamp_subsec_millis() == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
    at.to_rfc3339_opts(digits, true)
}
