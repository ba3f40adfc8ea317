/** The defaults and bounds of a consumer. `limits.py` of the Python package has the same. */

// What the API and SQS bound.
export const TOKENS_PER_CALL = 100;
/** Of a `result` or an `error` of a release. */
export const NOTE_BYTES = 2_048;
/** Of a receive, a delete and a change of visibility. */
export const MESSAGES_PER_BATCH = 10;

// Defaults of what a user may choose.
/** Events of a queue that are worked on at once. */
export const CONCURRENCY = 10;
/** Records of an invocation that are worked on at once. */
export const LAMBDA_CONCURRENCY = 1;
/** How long a message stays invisible after its consumer was killed. */
export const VISIBILITY_SECONDS = 60;
/** How long a receive waits for a message. */
export const WAIT_SECONDS = 10;
/** How long a release waits for others to go with it. */
export const LINGER_SECONDS = 0.02;
/** How long a shutdown waits for what is under way. */
export const SHUTDOWN_SECONDS = 20;
/** Of an invocation's time, kept for its releases. */
export const MARGIN_SECONDS = 5;
export const REMEMBERED_EVENTS = 10_000;
/** How far a webhook's timestamp may be off. */
export const TOLERANCE_SECONDS = 300;
/** Of one attempt of a call. */
export const TIMEOUT_SECONDS = 10;
/** Of a call in all. */
export const ATTEMPTS = 6;

// Retries of calls and polls.
/** Doubled for each further attempt, up to the longest. */
export const FIRST_BACKOFF_SECONDS = 0.5;
export const LONGEST_BACKOFF_SECONDS = 10;
/** A call that is to wait for longer has failed. */
export const LONGEST_RETRY_AFTER_SECONDS = 60;
/** The longest answer of the API that is read. */
export const ANSWER_BYTES = 1024 * 1024;

// Heartbeats.
export const SHORTEST_BEAT_SECONDS = 1;
/** Until the API has told the lease's end by its own clock. */
export const LONGEST_FIRST_BEAT_SECONDS = 20;
/** Between heartbeats once the lease has ended and nobody has answered yet. */
export const OVERDUE_BEAT_SECONDS = 5;
/** A lease with less than this left is extended before the work begins. */
export const CHECKED_BELOW_SECONDS = 3;

// Shutdown.
/** What a shutdown waits for its last releases, after the work. */
export const RELEASE_GRACE_SECONDS = 5;
