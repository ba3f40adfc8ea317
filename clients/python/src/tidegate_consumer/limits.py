"""The defaults and bounds of a consumer. `limits.ts` of the TypeScript package has the same."""

# What the API and SQS bound.
TOKENS_PER_CALL = 100
NOTE_BYTES = 2_048  # of a `result` or an `error` of a release
MESSAGES_PER_BATCH = 10  # of a receive, a delete and a change of visibility

# Defaults of what a user may choose.
CONCURRENCY = 10  # events of a queue that are worked on at once
LAMBDA_CONCURRENCY = 1  # records of an invocation that are worked on at once
VISIBILITY_SECONDS = 60  # how long a message stays invisible after its consumer was killed
WAIT_SECONDS = 10  # how long a receive waits for a message
LINGER_SECONDS = 0.02  # how long a release waits for others to go with it
SHUTDOWN_SECONDS = 20  # how long a shutdown waits for what is under way
MARGIN_SECONDS = 5  # of an invocation's time, kept for its releases
REMEMBERED_EVENTS = 10_000
TOLERANCE_SECONDS = 300  # how far a webhook's timestamp may be off
TIMEOUT_SECONDS = 10  # of one attempt of a call
ATTEMPTS = 6  # of a call in all

# Retries of calls and polls.
FIRST_BACKOFF_SECONDS = 0.5  # doubled for each further attempt, up to the longest
LONGEST_BACKOFF_SECONDS = 10
LONGEST_RETRY_AFTER_SECONDS = 60  # a call that is to wait for longer has failed
ANSWER_BYTES = 1024 * 1024  # the longest answer of the API that is read

# Heartbeats.
SHORTEST_BEAT_SECONDS = 1
LONGEST_FIRST_BEAT_SECONDS = 20  # until the API has told the lease's end by its own clock
OVERDUE_BEAT_SECONDS = 5  # between heartbeats once the lease has ended and nobody has answered yet
CHECKED_BELOW_SECONDS = 3  # a lease with less than this left is extended before the work begins

# Shutdown.
RELEASE_GRACE_SECONDS = 5  # what a shutdown waits for its last releases, after the work
