//! The defaults and bounds of a consumer. `limits.py` and `limits.ts` of the other packages have the same, which a test holds.

use std::time::Duration;

// What the API and SQS bound.
pub(crate) const TOKENS_PER_CALL: usize = 100;
/// Of a `result` or an `error` of a release.
pub(crate) const NOTE_BYTES: usize = 2_048;
/// Of a receive, a delete and a change of visibility.
#[cfg(feature = "sqs")]
pub(crate) const MESSAGES_PER_BATCH: usize = 10;
/// Of a message, from the moment on that it is set.
#[cfg(feature = "sqs")]
pub(crate) const LONGEST_VISIBILITY: Duration = Duration::from_secs(43_200);
/// So that keeping a message invisible is not all that a consumer does.
#[cfg(feature = "sqs")]
pub(crate) const SHORTEST_VISIBILITY: Duration = Duration::from_secs(1);

// Defaults of what a user may choose.
/// Events of a queue that are worked on at once.
#[cfg(feature = "sqs")]
pub(crate) const CONCURRENCY: usize = 10;
/// Records of an invocation that are worked on at once.
pub(crate) const LAMBDA_CONCURRENCY: usize = 1;
/// How long a message stays invisible after its consumer was killed.
#[cfg(feature = "sqs")]
pub(crate) const VISIBILITY: Duration = Duration::from_secs(60);
/// How long a receive waits for a message.
#[cfg(feature = "sqs")]
pub(crate) const WAIT: Duration = Duration::from_secs(10);
/// How long a release waits for others to go with it.
#[cfg(feature = "sqs")]
pub(crate) const LINGER: Duration = Duration::from_millis(20);
/// How long a shutdown waits for what is under way.
#[cfg(feature = "sqs")]
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(20);
/// Of an invocation's time, kept for its releases.
pub(crate) const MARGIN: Duration = Duration::from_secs(5);
pub(crate) const REMEMBERED_EVENTS: usize = 10_000;
/// How far a webhook's timestamp may be off.
#[cfg(feature = "webhook")]
pub(crate) const TOLERANCE: Duration = Duration::from_secs(300);
/// Of one attempt of a call.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// Of a call in all.
pub(crate) const ATTEMPTS: u32 = 6;

// Retries of calls and polls.
/// Doubled for each further attempt, up to the longest.
pub(crate) const FIRST_BACKOFF: Duration = Duration::from_millis(500);
pub(crate) const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// A call that is to wait for longer has failed.
pub(crate) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

// Heartbeats.
pub(crate) const SHORTEST_BEAT: Duration = Duration::from_secs(1);
/// Until the API has told the lease's end by its own clock.
pub(crate) const LONGEST_FIRST_BEAT: Duration = Duration::from_secs(20);
/// Between heartbeats once the lease has ended and nobody has answered yet.
pub(crate) const OVERDUE_BEAT: Duration = Duration::from_secs(5);
/// A lease with less than this left is extended before the work begins.
pub(crate) const CHECKED_BELOW: Duration = Duration::from_secs(3);

// Shutdown.
/// What a shutdown waits for its last releases, after the work.
#[cfg(feature = "sqs")]
pub(crate) const RELEASE_GRACE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: &str = include_str!("../../../../clients/python/src/tidegate_consumer/limits.py");

    /// The value of a name in the Python package's limits.
    fn python(name: &str) -> f64 {
        let line = PYTHON.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let value = line.unwrap_or_else(|| panic!("{name} is not there")).split(" #").next().unwrap();
        value.trim().replace('_', "").parse().unwrap()
    }

    #[test]
    fn they_are_those_of_the_python_package() {
        let numbers = [
            ("TOKENS_PER_CALL", TOKENS_PER_CALL),
            ("NOTE_BYTES", NOTE_BYTES),
            ("MESSAGES_PER_BATCH", MESSAGES_PER_BATCH),
            ("CONCURRENCY", CONCURRENCY),
            ("LAMBDA_CONCURRENCY", LAMBDA_CONCURRENCY),
            ("REMEMBERED_EVENTS", REMEMBERED_EVENTS),
            ("ATTEMPTS", ATTEMPTS as usize),
        ];
        for (name, value) in numbers {
            assert_eq!(value as f64, python(name), "{name}");
        }
        let times = [
            ("VISIBILITY", VISIBILITY),
            ("WAIT", WAIT),
            ("LINGER", LINGER),
            ("SHUTDOWN", SHUTDOWN),
            ("MARGIN", MARGIN),
            ("TOLERANCE", TOLERANCE),
            ("TIMEOUT", TIMEOUT),
            ("FIRST_BACKOFF", FIRST_BACKOFF),
            ("LONGEST_BACKOFF", LONGEST_BACKOFF),
            ("LONGEST_RETRY_AFTER", LONGEST_RETRY_AFTER),
            ("SHORTEST_BEAT", SHORTEST_BEAT),
            ("LONGEST_FIRST_BEAT", LONGEST_FIRST_BEAT),
            ("OVERDUE_BEAT", OVERDUE_BEAT),
            ("CHECKED_BELOW", CHECKED_BELOW),
            ("RELEASE_GRACE", RELEASE_GRACE),
        ];
        for (name, value) in times {
            assert_eq!(value.as_secs_f64(), python(&format!("{name}_SECONDS")), "{name}");
        }
    }
}
