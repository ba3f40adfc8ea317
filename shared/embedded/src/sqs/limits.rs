//! The limits of SQS, as AWS documents them.

use super::error::Refused;

/// The size of one message and of all messages of a batch: body and attributes.
pub(crate) const MESSAGE_BYTES: usize = 1024 * 1024;
/// Entries of a batch request.
pub(crate) const BATCH_ENTRIES: usize = 10;
/// Messages returned by one receive.
pub(crate) const RECEIVED_MESSAGES: i64 = 10;
/// Attributes of one message.
pub(crate) const MESSAGE_ATTRIBUTES: usize = 10;
/// Messages of a queue that are received and not yet deleted.
pub(crate) const IN_FLIGHT: i64 = 120_000;
/// The longest delay.
pub(crate) const DELAY_S: i64 = 900;
/// The longest visibility timeout, extensions included.
pub(crate) const VISIBILITY_S: i64 = 43_200;
/// The longest long poll.
pub(crate) const WAIT_S: i64 = 20;
/// How long a FIFO queue remembers a deduplication id.
pub(crate) const DEDUPLICATION_MS: i64 = 5 * 60 * 1000;
/// How long a purge blocks the next one.
pub(crate) const PURGE_MS: i64 = 60 * 1000;
/// Tags of a queue.
pub(crate) const TAGS: usize = 50;

/// The visibility timeout that a request asks for.
pub(crate) fn visibility(seconds: i64) -> Result<i64, Refused> {
    within(seconds, 0, VISIBILITY_S, "VisibilityTimeout")
}

/// The delay that a message asks for.
pub(crate) fn delay(seconds: i64) -> Result<i64, Refused> {
    within(seconds, 0, DELAY_S, "DelaySeconds")
}

/// The longest wait that a receive asks for.
pub(crate) fn wait(seconds: i64) -> Result<i64, Refused> {
    within(seconds, 0, WAIT_S, "WaitTimeSeconds")
}

/// How many messages a receive asks for.
pub(crate) fn received(count: i64) -> Result<i64, Refused> {
    if (1..=RECEIVED_MESSAGES).contains(&count) {
        return Ok(count);
    }
    let reason = format!("Must be between 1 and {RECEIVED_MESSAGES}, if provided.");
    Err(Refused::value(count, "MaxNumberOfMessages", &reason))
}

fn within(value: i64, least: i64, most: i64, parameter: &str) -> Result<i64, Refused> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Refused::value(value, parameter, &format!("Must be >= {least} and <= {most}, if provided.")))
}
