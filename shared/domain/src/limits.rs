//! Every bound of the system, in one place, with the relations between them asserted.

/// The instants that anybody may name, in seconds since the epoch: 1970-01-01 to 2200-01-01. No arithmetic that starts
/// from one of them leaves what dates and wall clocks can show.
pub const INSTANTS_S: std::ops::RangeInclusive<i64> = 0..=7_258_118_400;
/// Longest client or policy id, in bytes.
pub const NAME_BYTES: usize = 32;
/// Longest job id, in bytes.
pub const JOB_ID_BYTES: usize = 200;
/// Events in one run.
pub const EVENTS_PER_RUN: u32 = 1_000_000;
/// A job's payload, as JSON text, in bytes.
pub const PAYLOAD_BYTES: usize = 64 * 1024;
/// Arrays and objects within one another in a payload: what consumers read without harm.
pub const JSON_DEPTH: usize = 64;
/// A payload up to this size rides in the index row and in the chunk; a larger one is read from its job.
pub const INLINE_PAYLOAD_BYTES: usize = 400;
/// A request body of the API, in bytes.
pub const REQUEST_BODY_BYTES: usize = 256 * 1024;
/// Objects within each other in a merge patch.
pub const PATCH_DEPTH: u32 = 64;
/// Tokens of one policy.
pub const MAX_IN_FLIGHT: u32 = 10_000;
/// Tokens that a slot group has of its policy's limit: as many as a consumer receives at once, so that what it releases together
/// lies in few groups.
pub const TOKENS_PER_GROUP: u32 = 10;
/// Slots in the row of a group: what fits into one write unit of 1 KB beside its outcomes. The last two are of groups that had
/// twelve tokens in earlier versions.
pub const SLOTS_PER_GROUP: u32 = 12;
/// Shortest and longest lease of a token, in seconds.
pub const LEASE_SECONDS: std::ops::RangeInclusive<u32> = DELIVERY_SECONDS..=43_200;
/// The lease of a policy that does not name one, in seconds.
pub const DEFAULT_LEASE_SECONDS: u32 = 60;
/// How long one delivery to an HTTP target may take, in seconds: no lease is shorter.
pub const DELIVERY_SECONDS: u32 = 10;
/// Most tokens that one event takes: a slot group must be able to hold it.
pub const MAX_COST: u32 = TOKENS_PER_GROUP;
/// The last place in a line.
pub const MAX_PRIORITY: u8 = 9;
/// The longest JSON pointer that fair shares go by, in bytes.
pub const FAIR_BY_BYTES: usize = 256;
/// The place in a line of a job that does not name one.
pub const DEFAULT_PRIORITY: u8 = 5;
/// Shortest and longest window of a batch, in seconds: the record of its run must outlive it.
pub const WINDOW_SECONDS: std::ops::RangeInclusive<u32> = 1..=7 * 86_400;
/// Most events of a rate, in its second or minute.
pub const RATE_EVENTS: u32 = 100_000;
/// Largest burst of a rate.
pub const RATE_BURST: u32 = 10_000;
/// Runs that a policy's line may be limited to.
pub const WAITING_RUNS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// What a consumer may say about an event when it releases its token, in bytes.
pub const RESULT_BYTES: usize = 2_048;
/// Tokens in one release or extend call.
pub const TOKENS_PER_CALL: usize = 100;
/// Most deliveries of one event that a job may name.
pub const MAX_ATTEMPTS: u8 = 200;
/// How often an event is handed to a consumer that lets its lease run out each time, when its job does not name a number.
pub const DEFAULT_HAND_OVERS: u8 = 5;
/// Shortest and longest wait before an event is sent again that its target did not take, in seconds.
pub const RETRY_WAIT_SECONDS: std::ops::RangeInclusive<u32> = 1..=86_400;
/// The bound of the first such wait when its job does not say, in seconds.
pub const DEFAULT_RETRY_WAIT_SECONDS: u32 = 2;
/// What that bound doubles up to when its job does not say, in seconds.
pub const DEFAULT_RETRY_CEILING_SECONDS: u32 = 3_600;
/// For how long an event may be sent again, in seconds: the record of its run must outlive it.
pub const RETRY_AGE_SECONDS: std::ops::RangeInclusive<u32> = 1..=7 * 86_400;
/// The same when its job does not say: longer than the outage of a night.
pub const DEFAULT_RETRY_AGE_SECONDS: u32 = 86_400;
/// Most dead letters that a call redrives in a second when it is paced.
pub const REDRIVES_PER_SECOND: u32 = 1_000;
/// Most jobs of a client that are sidelined, or drain, one by one: all of them lie in one row that chunks read.
pub const SIDELINED_JOBS: usize = 100;
/// How long backpressure is left as it is before another sign halves a limit again, in seconds: what is in flight ends meanwhile.
pub const BACKPRESSURE_STEP_SECONDS: u32 = 10;
/// How long no sign of it must be seen before it becomes less by a step, in seconds.
pub const BACKPRESSURE_RECOVERY_SECONDS: u32 = 30;
/// How often nothing is sent for a time that doubles, from 2 seconds on, once a limit cannot be halved: up to 64 seconds.
pub const BACKPRESSURE_WAITS: u8 = 6;
/// The longest text that says why a policy or a target is closed or slowed, or a job paused, in bytes of UTF-8.
pub const CLOSED_BECAUSE_BYTES: usize = 200;
/// For how long a webhook secret that was replaced may be signed with beside the new one, in seconds.
pub const FORMER_SECRET_SECONDS: std::ops::RangeInclusive<u32> = 0..=7 * 86_400;
/// The same when the call that replaces it does not say.
pub const DEFAULT_FORMER_SECRET_SECONDS: u32 = 86_400;
/// The longest name of a message group that a job fixes, in bytes: with its client it fits into an id of SQS.
pub const MESSAGE_GROUP_BYTES: usize = 64;
/// Webhook secrets that are signed with beside the present one at the same time.
pub const FORMER_SECRETS: usize = 2;
/// For how long a call may close a policy, in seconds.
pub const CLOSED_SECONDS: u32 = 7 * 86_400;
/// What is kept of what a target answered that did not take an event, in bytes.
pub const ANSWER_BYTES: usize = 1_024;
/// The longest wait that a target can ask for, in seconds.
pub const RETRY_AFTER_SECONDS: u32 = 86_400;
/// Single events that one pack holds at the most.
pub const PACK_EVENTS: usize = 250;
/// Text of one pack, in bytes: whoever sends an event of it reads all of it once.
pub const PACK_BYTES: usize = 32 * 1024;
/// Events that one dispatch message carries at the most.
pub const EVENTS_PER_CHUNK: u32 = 100;
/// The same for HTTP targets, which take a call each.
pub const HTTP_EVENTS_PER_CHUNK: u32 = 20;
/// Text of one dispatch message, in bytes: SQS bills every 64 KB as a request of its own.
pub const CHUNK_BYTES: usize = 60 * 1024;
/// The longest delay of an SQS message, in seconds.
pub const SQS_DELAY_SECONDS: u32 = 900;
/// The attribute of a delayed message of our own queues that tells when it is due, in milliseconds since the epoch. SQS
/// delays by whole seconds and passes it on; the embedded queues go by it.
pub const DUE_MS_ATTRIBUTE: &str = "due_ms";
/// Messages in one SQS batch call.
pub const SQS_BATCH: usize = 10;
/// Text of one SQS batch call, in bytes. SQS takes 1 MiB; a margin is left for what it counts beside the bodies.
pub const SQS_BATCH_BYTES: usize = 1_000_000;
/// What is noted for the bus of a deployment until it is published, at the most: about 10 MB.
pub const JOURNAL_ENTRIES: usize = 20_000;
/// Text of one message or call to a bus, in bytes: four chunks of 64 KB, which SQS counts as a request each, less some room.
pub const BUS_BYTES: usize = 240_000;
/// How much of a reason a record of the bus has, in bytes.
pub const BUS_REASON_BYTES: usize = 1_000;
/// How long what publishes to a bus waits for it, in seconds.
pub const BUS_SECONDS: u32 = 2;
/// How long a bus is left alone that did not answer, in seconds.
pub const BUS_PAUSE_SECONDS: u32 = 30;
/// How far ahead of now a tick plans, in seconds.
pub const LOOK_AHEAD_SECONDS: u32 = 120;
/// From the end of the look-ahead, how much longer the master emits a new child's launches itself, in seconds.
pub const HANDOVER_SECONDS: u32 = 120;
/// The part of an outage that a tick plans in its first step, in seconds. Steps that find little grow longer.
pub const CATCH_UP_STEP_SECONDS: u32 = 600;
/// The longest stretch of time whose one-time jobs are listed, in days.
pub const ONE_TIMES_LISTED_DAYS: i64 = 31;
/// Days that the row of an instant is kept after it. Older parts of an outage cannot be caught up.
pub const AT_ROW_DAYS: i64 = 90;
/// How far back an outage is caught up, in seconds; what is older is recorded as a skipped window.
pub const CATCH_UP_SECONDS: u32 = 89 * 86_400;
/// How late an `at` instant may be when its job arrives, in seconds; it then fires at once.
pub const AT_GRACE_SECONDS: i64 = 60;
/// How far in the future an `at` instant may lie, in days.
pub const AT_HORIZON_DAYS: i64 = 3_660;
/// Most children of one job: its rows in the time index.
pub const MAX_CHILDREN: usize = 48;
/// Different instants of one job's `at` trigger: one transaction replaces all their rows.
pub const AT_INSTANTS: usize = MAX_CHILDREN;
/// Shortest and longest interval of a `rate` trigger, in seconds.
pub const RATE_SECONDS: std::ops::RangeInclusive<u32> = 1..=366 * 86_400;
/// The widest flexible window, in seconds.
pub const JITTER_SECONDS: u32 = 3_600;
/// Launches of an outage that a job may ask to be made up for.
pub const MISFIRE_LAUNCHES: u32 = 10_000;
/// The same when its job does not say.
pub const DEFAULT_MISFIRE_LAUNCHES: u32 = 100;
/// How late a launch may be planned before it is a misfire, in seconds.
pub const MISFIRE_THRESHOLD_SECONDS: i64 = 120;
/// Shortest and longest relevancy window, in seconds.
pub const RELEVANCY_SECONDS: std::ops::RangeInclusive<u32> = 1..=30 * 86_400;
/// Exclusion calendars of one job.
pub const CALENDARS_PER_JOB: usize = 8;
/// How many days a launch is moved at the most that falls on a closed day. One that finds no open day within them is left out.
pub const SHIFT_DAYS: u32 = 31;
/// Launches of one job that its client leaves out.
pub const SKIPPED_LAUNCHES: usize = 50;
/// Tags of one job.
pub const TAGS_PER_JOB: usize = 10;
/// The longest tag, in bytes.
pub const TAG_BYTES: usize = 64;
/// How long a stretch of time may be whose launches are counted, in days.
pub const AHEAD_DAYS: i64 = 31;
/// How many steps it may be counted in.
pub const AHEAD_STEPS: usize = 1_500;
/// The shortest and the longest of such steps, in seconds.
pub const STEP_SECONDS: std::ops::RangeInclusive<u32> = 60..=86_400;
/// How long an event may be said to hold its token, in milliseconds.
pub const HELD_MS: std::ops::RangeInclusive<u32> = 1..=86_400_000;
/// How far back launches may be made after all, in days.
pub const BACKFILL_DAYS: i64 = 366;
/// Launches that one call makes after all.
pub const BACKFILL_LAUNCHES: usize = 10 * AT_INSTANTS;
/// Days, early closes and intervals of one exclusion calendar.
pub const CALENDAR_ENTRIES: usize = 1_000;
/// An iCalendar file of days, in bytes: with half a kilobyte for each of [`CALENDAR_ENTRIES`] there is room left.
pub const CALENDAR_FILE_BYTES: usize = 1024 * 1024;
/// Seconds of a minute, in which quotas count.
pub const MINUTE_SECONDS: i64 = 60;
/// Jobs that a client may be allowed to write in a minute.
pub const CREATES_PER_MINUTE: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// Bytes of JSON that a client may be allowed for the payload of a job: at the least those of `null`.
pub const QUOTA_PAYLOAD_BYTES: std::ops::RangeInclusive<u32> = 4..=PAYLOAD_BYTES as u32;
/// Jobs that a client may be allowed to have.
pub const QUOTA_JOBS: std::ops::RangeInclusive<u32> = 0..=10_000_000;
/// Policies, or calendars, that a client may be allowed to have.
pub const QUOTA_NAMED: std::ops::RangeInclusive<u32> = 0..=100_000;
/// Zones that the jobs of a client may be allowed to have: each stands in the row that its writes take from.
pub const QUOTA_ZONES: std::ops::RangeInclusive<u32> = 0..=600;
/// Days that is kept what was emitted for a client, and how late its events came.
pub const USAGE_DAYS: i64 = 400;
/// Days that are shown of it in one answer: a month and today.
pub const USAGE_DAYS_SHOWN: u32 = 32;
/// Rows of clients that a process counts for before it tells the tables. What is counted for more of them is lost.
pub const ROWS_COUNTED: usize = 20_000;
/// Events that nothing throttles, of a client, that may go in a minute by its quota.
pub const EVENTS_PER_MINUTE: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// What may wait by a quota: events, or the runs in a line.
pub const QUOTA_WAITING: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// How far ahead events that are over a quota wait at the most, in seconds: what comes later is skipped.
pub const OVER_QUOTA_SECONDS: i64 = 86_400;
/// How many turns a client may have where one without a share has one.
pub const DELIVERY_SHARES: std::ops::RangeInclusive<u32> = 1..=10;
/// Seconds after a count of what a client has in which nobody counts it anew.
pub const COUNT_AGAIN_SECONDS: i64 = 10;
/// Milliseconds that are added to that for each row that was counted, so that a client that is at its quota pays little for it.
pub const COUNT_AGAIN_MS_PER_ROW: i64 = 2;
/// The most seconds after a count in which nobody counts anew.
pub const COUNT_AGAIN_MOST_SECONDS: i64 = 3_600;
/// Seconds after which whoever counts is taken to be dead.
pub const COUNT_CLAIM_SECONDS: i64 = 60;
/// Seconds after a quota was set in which calls may still go on that know nothing of it: it is counted once more then.
pub const COUNT_SETTLED_SECONDS: i64 = 120;
/// Seconds after which what a client has is counted anew, whatever was taken.
pub const COUNT_KEPT_SECONDS: i64 = 86_400;
/// Zones that are taken in one write, so that its expression is not too long.
pub const ZONES_PER_TAKE: usize = 32;
/// Minutes that are given back in one write, for the same reason.
pub const MINUTES_PER_TAKE: usize = 60;
/// Jobs in one bulk call.
pub const BULK_JOBS: usize = 1_000;
/// The body of a bulk call, in bytes: below what a function's URL takes.
pub const BULK_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Firings in one answer about what is to come.
pub const UPCOMING_FIRINGS: u32 = 1_000;
/// The same when the call does not say.
pub const DEFAULT_FIRINGS: u32 = 10;
/// Partitions that the instants of ten minutes are spread over.
pub const AT_SHARDS: u32 = 64;
/// Most partitions of one (zone, LaunchExpression).
pub const EXPRESSION_SHARDS: u32 = 64;
/// Partitions of the list of the jobs of a zone.
pub const ZONE_SHARDS: u32 = 4;
/// Partitions of the outbox: launches that the master must emit.
pub const OUTBOX_SHARDS: u32 = 4;
/// Partitions of the watches: launches that are expected to be over in time.
pub const WATCH_SHARDS: u32 = 4;
/// Partitions of the list of active policies.
pub const ACTIVE_SHARDS: u32 = 4;
/// Events of a run that one slot group takes from the line at once.
pub const GRANT_EVENTS: u32 = 250;
/// Slot groups of a policy that share a part of what is kept for a large run: with more, its row would cost several units a
/// write.
pub const GROUPS_PER_PART: u32 = 32;
/// Outcomes that a slot group keeps before they are compacted into their runs' history, where those of events that follow one
/// another and ended alike count as one.
pub const OUTCOMES_PER_COMPACTION: usize = 36;
/// Events whose outcomes a slot group keeps: what is compacted together fits into a write unit of history.
pub const EVENTS_PER_COMPACTION: u32 = 120;
/// Rows on one page of a list.
pub const PAGE_ROWS: i32 = 100;
/// Rows of one page of a list, as it may be asked for.
pub const ROWS_ASKED: std::ops::RangeInclusive<u32> = 1..=PAGE_ROWS as u32;
/// Days that runs and events are kept when their client's defaults do not say. What delivery or a repair goes by is never kept
/// for less.
pub const HISTORY_DAYS: i64 = 14;
/// The same when they do.
pub const CLIENT_HISTORY_DAYS: std::ops::RangeInclusive<u32> = 1..=365;
/// How long after its instant a launch may be expected to be over, in seconds: up to a week.
pub const EXPECT_SECONDS: std::ops::RangeInclusive<u32> = 1..=604_800;
/// The longest stretch for which is shown what went on in a policy, or how late events came, in days.
pub const SAMPLE_WINDOW_DAYS: i64 = 7;
/// Days that changes of what a client has are told, at the least: its history days when these are more.
pub const CHANGE_DAYS: u16 = 90;
/// Versions of a job that one call tells.
pub const VERSIONS_TOLD: u8 = 25;
/// How many versions back a call looks for one: each is a read.
pub const VERSIONS_SEARCHED: usize = 200;
/// How far a job of instants may be moved by a call, in seconds.
pub const DELAY_SECONDS: std::ops::RangeInclusive<u32> = 1..=366 * 86_400;
/// Hours that an idempotency key leads to what a call with it did, at the least.
pub const IDEMPOTENCY_HOURS: i64 = 24;
/// Rounds of one conditional write before the work goes to the queue.
pub const WRITE_ROUNDS: u32 = 8;
/// Patterns on a client's allow-list.
pub const ALLOWED_TARGETS: usize = 50;
/// Live keys of one client.
pub const CLIENT_KEYS: u32 = 20;
/// The longest note that says what a key is for, in bytes.
pub const KEY_NOTE_BYTES: usize = 100;
/// Longest target URL, in bytes.
pub const TARGET_URL_BYTES: usize = 512;
/// Headers that a job may add to its calls.
pub const HTTP_HEADERS: usize = 20;
/// Names and values of these headers, with their placeholders filled in, in bytes. They travel with each occurrence.
pub const HTTP_HEADERS_BYTES: usize = 2 * 1024;
/// Secrets of one client.
pub const SECRETS: u32 = 100;
/// The value of a secret, in bytes.
pub const SECRET_BYTES: usize = 4_096;
/// Secrets that the headers of one job may name.
pub const SECRETS_PER_CALL: usize = 4;
/// For how long a process may go on with the value of a secret that has changed meanwhile, in seconds.
pub const SECRET_SECONDS: i64 = 5;
/// How long a call to another service of AWS may take, in seconds: two rounds of calls fit into what handles a chunk.
pub const AWS_CALL_SECONDS: u32 = 5;
/// Events of one call to such a service, in bytes. They take 256 KiB; a margin is left for what they count beside the texts.
pub const AWS_BATCH_BYTES: usize = 250_000;
/// Longest name of an execution of a state machine.
pub const EXECUTION_NAME_BYTES: usize = 80;
/// Longest source of an event on a bus, in bytes.
pub const EVENT_SOURCE_BYTES: usize = 256;
/// Longest detail type of an event on a bus, in bytes.
pub const DETAIL_TYPE_BYTES: usize = 128;
/// Statuses in a list of expected or retried ones.
pub const HTTP_STATUSES: usize = 20;

const _: () = assert!(LOOK_AHEAD_SECONDS + HANDOVER_SECONDS + 60 < SQS_DELAY_SECONDS);
const _: () = assert!(INLINE_PAYLOAD_BYTES < PAYLOAD_BYTES && PAYLOAD_BYTES < REQUEST_BODY_BYTES);
const _: () = assert!(REQUEST_BODY_BYTES < BULK_BODY_BYTES && BULK_BODY_BYTES < 6_000_000);
const _: () = assert!(512 * CALENDAR_ENTRIES < CALENDAR_FILE_BYTES && CALENDAR_FILE_BYTES < BULK_BODY_BYTES);
const _: () = assert!(HTTP_EVENTS_PER_CHUNK <= EVENTS_PER_CHUNK);
const _: () = assert!((*WINDOW_SECONDS.end() as i64) < HISTORY_DAYS * 86_400);
const _: () = assert!((*RETRY_AGE_SECONDS.end() as i64) < HISTORY_DAYS * 86_400);
const _: () = assert!(HISTORY_DAYS <= *CLIENT_HISTORY_DAYS.end() as i64);
const _: () = assert!(RETRY_AFTER_SECONDS <= *RETRY_AGE_SECONDS.end());
const _: () = assert!(TOKENS_PER_GROUP <= SLOTS_PER_GROUP && DELIVERY_SECONDS <= *LEASE_SECONDS.start());
const _: () = assert!(CATCH_UP_STEP_SECONDS < CATCH_UP_SECONDS);
const _: () = assert!((CATCH_UP_SECONDS as i64) < AT_ROW_DAYS * 86_400 && HISTORY_DAYS < AT_ROW_DAYS);
const _: () = assert!(AWS_CALL_SECONDS <= DELIVERY_SECONDS && 2 * PAYLOAD_BYTES < AWS_BATCH_BYTES);
// What a chunk says of one job beside its payload: its target, and who is told of its end.
const _: () = assert!(2 * (2 * HTTP_HEADERS_BYTES + TARGET_URL_BYTES) < CHUNK_BYTES / 4);
/// Rows that one transaction writes at the most.
pub const TRANSACTION_ROWS: usize = 100;
// One transaction writes a job, what is recorded of its change, its new children, the removal of its old ones, its outbox row and
// its place in the list of a zone. Where it is in the list of another zone as well, one row may be too many: see `Store::write_job`.
const _: () = assert!(2 * MAX_CHILDREN + 4 <= TRANSACTION_ROWS);
