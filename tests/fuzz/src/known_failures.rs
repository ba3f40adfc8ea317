//! What is known to fail, while its mend is not merged.
//!
//! To run the suite without this list: set [`SKIPPED`] to `false`. When it then holds, this module goes, with its uses in
//! `round`, `messages` and `tests/found.rs`.

use crate::fault::Fault;

/// Whether known failures are passed over.
pub const SKIPPED: bool = true;

/// What of [`crate::found`] fails.
pub const FOUND: &[&str] = &[
    "a Retry-After beyond all time",
    "a start in the first instant of the calendar",
    "a local time in the last second of the calendar",
    "what is to come of a job that starts in the first instant of the calendar",
    "a thousand events of quotes that double",
    "sixteen jobs of quotes that double",
    "sixteen jobs of backslashes that double",
    "a path that is no UTF-8",
    "a field without a name",
    "a chunk whose item ends before it begins",
    "a chunk of more events than there is memory for",
    "a chunk of the first instant of the calendar",
    "a callback that failed too often to count",
];

/// Where panics are known to happen: a part of the file's path, and a part of what the panic says.
const PANICS: &[(&str, &str)] = &[
    // `Retry-After: 9223372036854775807`.
    ("engine/src/deliver/http.rs", "TimeDelta::seconds out of bounds"),
    // `start_at` in the first instant of the calendar, in a preview and in a job.
    ("api/src/wire/rules.rs", "`DateTime - TimeDelta` overflowed"),
    ("engine/src/upcoming.rs", "`DateTime - TimeDelta` overflowed"),
    // A local time in the last second of the calendar.
    ("api/src/wire/when.rs", "Local time out of range"),
    // A chunk whose item ends before it begins.
    ("engine/src/deliver/chunk.rs", "attempt to subtract with overflow"),
    // A chunk launched at the first instant of the calendar, of a job with jitter.
    ("engine/src/deliver/chunk.rs", "`DateTime - TimeDelta` overflowed"),
    // A granted event, or a callback, that failed 255 times.
    ("engine/src/deliver/granted.rs", "attempt to add with overflow"),
    ("engine/src/deliver/callback.rs", "attempt to add with overflow"),
];

/// Whether a fault is known.
pub fn is_known(fault: &Fault) -> bool {
    SKIPPED
        && match fault {
            Fault::Panic(panic) => PANICS
                .iter()
                .any(|(place, message)| panic.place.contains(place) && panic.message.contains(message)),
            // A path that is no UTF-8.
            Fault::Refusal { body, .. } if body.starts_with("Invalid URL: Invalid UTF-8") => true,
            // A field without a name.
            Fault::Refusal { body, .. } => {
                body.contains("unknown field ``") || body.contains("duplicate field ``")
            }
            // Ten messages of one batch that are too large together.
            Fault::Tick(error) => error.contains("Batch requests cannot be longer"),
            _ => false,
        }
}
