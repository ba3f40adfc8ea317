//! AWS in numbers: what its documentation says, and where it says nothing, what is taken for it. No other file of the model
//! has a number of AWS. What the embedded services refuse by themselves, as AWS does (items of 400 KB, batches of 1 MiB, delays
//! of 900 s), stands with them.
//!
//! The documents that are named: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/> (Amazon DynamoDB Developer
//! Guide), <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/> (Amazon SQS) and
//! <https://docs.aws.amazon.com/lambda/latest/dg/> (AWS Lambda), as of November 2026.
//!
//! Those marked *assumed* are in no document: they are what the services usually show, and what a proof may be repeated with
//! others of.

use std::time::Duration;

// ---- DynamoDB -----------------------------------------------------------------------------------------------------

/// Write units that one partition takes in a second.
/// Source: Developer Guide, "Best practices for designing and using partition keys effectively".
pub const PARTITION_WRITES: f64 = 1_000.0;
/// Read units that one partition gives in a second. Source: as [`PARTITION_WRITES`].
pub const PARTITION_READS: f64 = 3_000.0;
/// Write units a second that a new on-demand table takes.
/// Source: Developer Guide, "DynamoDB on-demand capacity mode", initial throughput.
pub const COLD_TABLE_WRITES: f64 = 4_000.0;
/// Read units a second that a new on-demand table gives. Source: as [`COLD_TABLE_WRITES`].
pub const COLD_TABLE_READS: f64 = 12_000.0;
/// An on-demand table takes at once up to so many times its previous peak. Source: as [`COLD_TABLE_WRITES`].
pub const TABLE_GROWTH: f64 = 2.0;
/// A peak counts as a previous one after this time: who grows faster may be throttled. Source: as [`COLD_TABLE_WRITES`].
pub const TABLE_GROWTH_TIME: Duration = Duration::from_secs(30 * 60);
/// How long a key is at its limit before its partition is split. *Assumed*: the Developer Guide speaks of sustained
/// traffic, and of minutes.
pub const SPLIT_AFTER: Duration = Duration::from_secs(10 * 60);
/// How long after it was too small for a request a partition that is too small again counts as short all the time. *Assumed*.
pub const SHORT_AGAIN: Duration = Duration::from_secs(10);
/// Write units a second, and read units a second, that a table may take in an account that asked for no more.
/// Source: Developer Guide, "Service, account, and table quotas in Amazon DynamoDB", on-demand mode.
pub const TABLE_QUOTA: f64 = 40_000.0;
/// A call that reads or writes. *Assumed* from "consistent single-digit millisecond"; the tail is what p99 usually shows.
pub const DYNAMODB_CALL: Latency = Latency::ms(4.0, 12.0);
/// A transaction: two phases. *Assumed*.
pub const DYNAMODB_TRANSACTION: Latency = Latency::ms(12.0, 35.0);
/// By how much an eventually consistent read may lag behind. *Assumed*: the documentation says usually a second or less.
pub const READ_LAG: Duration = Duration::from_secs(1);

/// How long after it expired an item is still there, at the most. Source: Developer Guide, "Using time to live" ("within a few
/// days").
pub const EXPIRED_FOR: Duration = Duration::from_secs(2 * 86_400);

// ---- SQS ----------------------------------------------------------------------------------------------------------

/// A call that sends, deletes or changes. *Assumed*.
pub const SQS_CALL: Latency = Latency::ms(8.0, 40.0);
/// By how much a message of a standard queue may be overtaken by later ones. *Assumed*: the Developer Guide, "Amazon SQS standard
/// queues", speaks of best-effort ordering.
pub const OVERTAKEN_BY: Duration = Duration::from_secs(2);
/// Of a million messages with a group, so many are delivered as if they had none: a fair queue takes turns between groups only
/// once one of them has many in flight. *Assumed*: the Developer Guide, "Amazon SQS fair queues", names no time and no share.
pub const UNFAIR: u32 = 200_000;
/// Messages of a standard queue that are received and not deleted. Source: Developer Guide, "Amazon SQS queue quotas".
pub const SQS_IN_FLIGHT: f64 = 120_000.0;
/// Messages a second of a FIFO queue, sent in tens, without its high throughput.
/// Source: Developer Guide, "Amazon SQS message quotas", FIFO queues: 300 calls a second.
pub const FIFO_MESSAGES: f64 = 3_000.0;

// ---- Lambda -------------------------------------------------------------------------------------------------------

/// Memory that comes with one whole processor, in MB. Source: Developer Guide, "Configure Lambda function memory".
pub const MEMORY_OF_A_PROCESSOR: f64 = 1_769.0;
/// Processor time that one request of the SDK takes on a whole processor, with its part of our own work.
/// *Assumed*: 150 us measured in this repository without a network; TLS and signing take as much again.
pub const PROCESSOR_PER_REQUEST: Duration = Duration::from_micros(300);
/// From the call to the handler in a new environment, for a binary of a few MB. *Assumed*.
pub const COLD_START: Latency = Latency::ms(120.0, 400.0);
/// From the call to the handler in one that is there. *Assumed*.
pub const WARM_START: Latency = Latency::ms(3.0, 15.0);
/// How long an environment is kept that nobody uses. *Assumed*: the documentation names no time.
pub const KEPT_IDLE: Duration = Duration::from_secs(5 * 60);
/// Invocations at once in an account that asked for no more.
/// Source: Developer Guide, "Understanding Lambda function scaling".
pub const CONCURRENCY: usize = 1_000;
/// Invocations at once in a new account. Source: as [`CONCURRENCY`] ("new accounts have reduced quotas").
pub const NEW_ACCOUNT_CONCURRENCY: usize = 10;
/// Batches that an event source has under way when it begins.
/// Source: Developer Guide, "Configuring scaling behavior for SQS event source mappings".
pub const POLLERS_AT_FIRST: usize = 5;
/// By how many batches a minute it grows while messages are left. Source: as [`POLLERS_AT_FIRST`].
pub const POLLERS_PER_MINUTE: usize = 300;
/// The most batches that it has under way. Source: as [`POLLERS_AT_FIRST`].
pub const MOST_POLLERS: usize = 1_250;
/// Batches that one provisioned poller has under way. Source: as [`POLLERS_AT_FIRST`], provisioned mode.
pub const BATCHES_OF_A_POLLER: usize = 10;
/// Polls a second of one provisioned poller. Source: as [`BATCHES_OF_A_POLLER`].
pub const POLLS_OF_A_POLLER: f64 = 10.0;
/// Bytes a second of one provisioned poller. Source: as [`BATCHES_OF_A_POLLER`].
pub const BYTES_OF_A_POLLER: f64 = 1024.0 * 1024.0;
/// By how many batches a minute provisioned pollers grow. Source: as [`BATCHES_OF_A_POLLER`].
pub const PROVISIONED_PER_MINUTE: usize = 1_000;
/// How long a poll of an event source waits for messages. Source: Developer Guide, "Using Lambda with Amazon SQS".
pub const POLL: Duration = Duration::from_secs(20);
/// How long an event source waits after a poll that failed. *Assumed*.
pub const POLL_AGAIN: Duration = Duration::from_secs(1);
/// By how many batches a second an event source shrinks while less than half of them are busy. *Assumed*: the documentation
/// says that it scales down, and not how fast.
pub const IDLE_POLLERS_PER_SECOND: usize = 1;
/// The part of its batches that an event source keeps in a second in which its function was throttled. *Assumed*: the
/// documentation says that it reduces them.
pub const POLLERS_LEFT_BY_A_THROTTLE: f64 = 0.9;
/// How long an event source waits before it tries a function again that was throttled. *Assumed*.
pub const THROTTLED_AGAIN: Duration = Duration::from_secs(1);
/// How long Lambda waits before it tries an asynchronous call again that was throttled, at first; then twice as long each
/// time. Source: Developer Guide, "How Lambda handles errors and retries with asynchronous invocation".
pub const ASYNC_AGAIN: Duration = Duration::from_secs(1);

/// From a release call to the next event in the hands of a consumer that waits for it: the call, its writes, the send, the
/// receive. *Assumed* from what the model of AWS shows under ten tokens: 30 ms in tens, 90 ms singly.
pub const HANDOVER: Duration = Duration::from_millis(60);
/// By what part of itself [`HANDOVER`] grows with each tenfold of ten tokens. *Assumed* from what the model of AWS shows:
/// some 570 events a second of 5,000 under 100 tokens with 20 ms of work, released in tens.
pub const HANDOVER_GROWTH: f64 = 1.2;
/// What a function's URL takes as a request, in bytes. Source: Developer Guide, "Lambda quotas", invocation payload.
pub const REQUEST_BYTES: f64 = 6.0 * 1024.0 * 1024.0;

/// How long a connection lasts on which nothing comes. *Assumed*.
pub const NO_ANSWER: Duration = Duration::from_secs(60);
/// Of a million requests to a service that is gone, so many get no answer; the others get an error. *Assumed*.
pub const UNANSWERED: u32 = 500_000;

/// How long something takes: half of all times are below the median, one in a hundred is above the tail.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// The median, in milliseconds.
    pub median_ms: f64,
    /// What 99 of 100 stay under, in milliseconds.
    pub p99_ms: f64,
}

impl Latency {
    const fn ms(median_ms: f64, p99_ms: f64) -> Self {
        Self { median_ms, p99_ms }
    }
}
