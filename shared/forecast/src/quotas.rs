//! What a load uses of each limit at its peak, what happens beyond it, and what raises it.

use serde::Serialize;
use tidegate_domain::limits::{BULK_BODY_BYTES, GRANT_EVENTS, OUTCOMES_PER_COMPACTION, REQUEST_BODY_BYTES};

use crate::account::Account;
use crate::counted::{Counted, PolicyLoad};
use crate::dispatch::BATCH_SECONDS;
use crate::facts::{Created, Policy, Setting};
use crate::peak::Peak;
use crate::steps::Step;
use crate::tables::{Table, TablePeak};

/// Write units of a slot group's row: it is seldom over a kilobyte.
const SLOT_ROW_UNITS: f64 = 1.07;
/// Shards that the instants of ten minutes lie over, and how much fuller the fullest is than the others.
const INSTANT_SHARDS: f64 = 64.0;
const FULLEST_SHARD: f64 = 1.07;
/// How long the master takes for a call, in seconds. *Assumed*: twice what the model of AWS shows for a release.
const CALL_SECONDS: f64 = 0.06;
/// Bytes of a row of the index that a tick reads.
const INDEX_ROW_BYTES: f64 = 450.0;
/// Bytes of half a read unit, which is what a read takes that may be a little behind.
const HALF_UNIT_BYTES: f64 = 4_096.0;
/// Read units of a row of the index, as a tick reads it.
pub(crate) const INDEX_READ: f64 = INDEX_ROW_BYTES / HALF_UNIT_BYTES / 2.0;
/// Seconds from a tick to the first instant that it plans, at the least.
pub(crate) const LEAD_SECONDS: f64 = 60.0;
/// Rows of the index that one emitter emits in a second. *Assumed*: the model of AWS shows 20,000 of one instant in 0.56 s of
/// emitters, 100,000 were played with p99 1.3 s; a million of one minute were not played, so a third of that is taken.
const EMITTED_BY_ONE: f64 = 10_000.0;
/// Parts that a tick leaves to emitters beside it: more of them find nothing to do.
const PARTS: f64 = 8.0;
/// Calls a second that the URL of a function takes, for each invocation at once that the account has.
/// Source: AWS Lambda Developer Guide, "Lambda quotas", requests per second of a function URL.
const URL_CALLS: f64 = 10.0;

/// Rows of the index that are emitted in a second, by the tick and the emitters beside it.
pub(crate) fn emitted_per_second(account: &Account) -> f64 {
    EMITTED_BY_ONE * (1.0 + account.scan_maximum.min(PARTS))
}

/// How much of a limit is used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Use {
    /// Which limit: a name that stays the same.
    pub limit: &'static str,
    /// Of what: a table, a key, a policy.
    pub of: String,
    /// What is used at the peak.
    pub used: f64,
    /// What there is.
    pub available: f64,
    /// In what both are counted.
    pub unit: &'static str,
    /// Used / available: above 1 the limit is met.
    pub share: f64,
    /// When, in Unix seconds; `None`: all the time.
    pub at_s: Option<i64>,
    /// What happens beyond it.
    pub beyond: &'static str,
    /// What raises it.
    pub raised_by: &'static str,
}

struct Of<'a> {
    limit: &'static str,
    of: &'a str,
    unit: &'static str,
    beyond: &'static str,
    raised_by: &'static str,
}

impl Of<'_> {
    fn used(&self, peak: Peak, available: f64) -> Use {
        Use {
            limit: self.limit,
            of: self.of.to_owned(),
            used: peak.value,
            available,
            unit: self.unit,
            share: peak.value / available,
            at_s: (peak.at_s != 0).then_some(peak.at_s),
            beyond: self.beyond,
            raised_by: self.raised_by,
        }
    }
}

const REPEATED: &str = "requests are refused and repeated after a pause; events come later";
const WARM: &str =
    "warm throughput of the table ahead of the peak; beyond its quota, a quota request for DynamoDB";
const WRITES: &str = "write units a second";
const READS: &str = "read units a second";

/// What is used of all limits that the load touches, the fullest first.
pub(crate) fn uses(setting: &Setting, counted: &Counted) -> Vec<Use> {
    let mut uses = functions(setting, counted);
    uses.extend(tables(setting, counted));
    uses.extend(keys(setting, counted));
    uses.extend(queues(setting, counted));
    uses.extend(of_policies(setting, counted));
    uses.retain(|of| of.used > 0.0);
    uses.sort_by(|a, b| b.share.total_cmp(&a.share));
    uses
}

/// Calls of the API in the busiest second.
fn calls(setting: &Setting, counted: &Counted) -> Peak {
    let seconds = &counted.seconds;
    let called = |load: &PolicyLoad| load.shared.of(Step::ReleaseCall) / load.events.max(1e-9);
    let events: f64 = counted.policies.iter().map(|load| load.events).sum();
    let each = counted.policies.iter().map(|load| called(load) * load.events).sum::<f64>() / events.max(1e-9);
    let releases = seconds.released.value * each;
    let creates = seconds.creates.value / setting.created_together.max(1.0);
    let at_s = if releases > creates { seconds.released.at_s } else { seconds.creates.at_s };
    Peak { value: releases + creates, at_s }
}

fn functions(setting: &Setting, counted: &Counted) -> Vec<Use> {
    let (account, seconds) = (&setting.account, &counted.seconds);
    let calls = calls(setting, counted);
    let emitted = emitted_per_second(account);
    let tick = (counted.busiest_tick.value / emitted / LEAD_SECONDS).clamp(1.0, 1.0 + account.scan_maximum);
    let at_s = if seconds.batches.value > calls.value * CALL_SECONDS { seconds.batches } else { calls }.at_s;
    let concurrency = Peak { value: seconds.batches.value + calls.value * CALL_SECONDS + tick, at_s };
    let batches = Peak { value: seconds.messages.value / 10.0 * BATCH_SECONDS, at_s: seconds.messages.at_s };
    vec![
        Of {
            limit: "lambda_concurrency",
            of: "the account",
            unit: "invocations at once",
            beyond: "calls of the API are answered with 429, batches of messages wait",
            raised_by: "a quota request for concurrent executions; releasing several tokens with one call",
        }
        .used(concurrency, account.lambda_concurrency),
        Of {
            limit: "url_calls",
            of: "the API",
            unit: "calls a second",
            beyond: "calls of the API are answered with 429",
            raised_by: "a quota request for concurrent executions, ten calls a second for each; releasing several tokens, \
                        creating several jobs with one call",
        }
        .used(calls, account.lambda_concurrency * URL_CALLS),
        Of {
            limit: "event_source",
            of: "the dispatch queue",
            unit: "batches at once, to be done within a second",
            beyond: "events come later, while the event source grows, and for as long as it may not",
            raised_by: "DispatchMaximumConcurrency with the account's concurrency; provisioned pollers \
                        (HandlerMinimumPollers, HandlerMaximumPollers)",
        }
        .used(batches, account.pollers().at_first),
        Of {
            limit: "emission",
            of: "the tick and its workers",
            unit: "rows of a minute",
            beyond: "launches of that minute are emitted late, and those after them",
            raised_by: "ScanMaximumConcurrency, up to 8; spreading launches over minutes (jitter_seconds)",
        }
        .used(counted.busiest_tick, emitted * LEAD_SECONDS),
    ]
}

fn tables(setting: &Setting, counted: &Counted) -> Vec<Use> {
    let account = &setting.account;
    let quota = "a quota request for DynamoDB, table-level throughput";
    let of = |limit, table: Table, unit, raised_by| Of {
        limit,
        of: table.name(),
        unit,
        beyond: REPEATED,
        raised_by,
    };
    let all = Table::ALL.into_iter().flat_map(|table| {
        let TablePeak { writes, reads } = counted.seconds.tables.of(table);
        [
            of("table_writes", table, WRITES, WARM).used(writes, account.table_writes),
            of("table_quota_writes", table, WRITES, quota).used(writes, account.table_quota_writes),
            of("table_reads", table, READS, WARM).used(reads, account.table_reads),
            of("table_quota_reads", table, READS, quota).used(reads, account.table_quota_reads),
        ]
    });
    all.collect()
}

fn keys(setting: &Setting, counted: &Counted) -> Vec<Use> {
    let (account, seconds) = (&setting.account, &counted.seconds);
    let shard = seconds.creates.value / INSTANT_SHARDS * FULLEST_SHARD;
    let shard = Peak { value: if setting.creates_any() { shard } else { 0.0 }, at_s: seconds.creates.at_s };
    let is_named = setting.jobs.iter().any(|job| matches!(job.created, Created::Named | Created::Listed(_)));
    let named = if is_named { seconds.creates } else { Peak::default() };
    let mut uses = vec![
        Of {
            limit: "partition_writes",
            of: "index: the instants of ten minutes, the fullest of 64 shards",
            unit: WRITES,
            beyond: REPEATED,
            raised_by: "creating jobs longer ahead, for more different minutes; the number of shards is fixed",
        }
        .used(shard, account.partition_writes),
        Of {
            limit: "partition_writes",
            of: "jobs: the client, for one-time jobs with ids of their own",
            unit: WRITES,
            beyond: REPEATED,
            raised_by: "generated ids; several clients; DynamoDB splits a key that stays hot",
        }
        .used(named, account.partition_writes),
        Of {
            limit: "partition_reads",
            of: "clients: the client's mark, which each chunk reads",
            unit: READS,
            beyond: REPEATED,
            raised_by: "several clients",
        }
        .used(seconds.mark_reads, account.partition_reads),
        Of {
            limit: "partition_reads",
            of: "jobs: the client, whose payloads of more than 400 bytes are read as they are delivered",
            unit: READS,
            beyond: REPEATED,
            raised_by: "generated ids for one-time jobs; payloads up to 400 bytes; several clients",
        }
        .used(seconds.row_reads, account.partition_reads),
    ];
    uses.extend(packs(setting, counted));
    if let Some((partition, rows)) = &setting.largest_partition {
        let units = rows * setting.scale * INDEX_READ;
        let of = format!("index: {partition}");
        let of = Of {
            limit: "partition_reads",
            of: &of,
            unit: "read units a second, for all its rows in the minute ahead of their launch",
            beyond: "launches of that hour are emitted late",
            raised_by: "shards for the LaunchExpression (PUT /v1/index/shards)",
        };
        uses.push(of.used(Peak { value: units / LEAD_SECONDS, at_s: 0 }, account.partition_reads));
    }
    uses
}

/// The packs of a client's single events of one minute, under all its policies: they lie under one key.
fn packs(setting: &Setting, counted: &Counted) -> [Use; 2] {
    let (account, seconds) = (&setting.account, &counted.seconds);
    let of = |limit, unit| Of {
        limit,
        of: "runs: the packs of a client and minute",
        unit,
        beyond: "requests are refused and repeated after a pause; throttled events of that client come later",
        raised_by: "several clients; spreading launches over minutes; runs of several events instead of single ones",
    };
    [
        of("partition_writes", WRITES).used(seconds.pack_writes, account.partition_writes),
        of("partition_reads", READS).used(seconds.pack_reads, account.partition_reads),
    ]
}

fn queues(setting: &Setting, counted: &Counted) -> Vec<Use> {
    let account = &setting.account;
    let tokens: f64 = setting.policies.iter().map(|policy| f64::from(policy.tokens)).sum();
    let created = setting.jobs.iter().filter(|job| job.created != Created::Before);
    let largest = created.map(|job| f64::from(job.body_bytes)).fold(0.0, f64::max);
    let call_bytes = setting.created_together * largest;
    let most_bytes = account.request_bytes.min(if setting.created_together > 1.0 {
        BULK_BODY_BYTES as f64
    } else {
        REQUEST_BODY_BYTES as f64
    });
    vec![
        Of {
            limit: "sqs_in_flight",
            of: "a consumer's queue, if all policies share it",
            unit: "messages in flight",
            beyond: "SQS hands out no more messages until some are deleted",
            raised_by: "a queue for each policy; a quota request for SQS",
        }
        .used(Peak { value: tokens, at_s: 0 }, account.sqs_in_flight),
        Of {
            limit: "fifo_messages",
            of: "the busiest FIFO queue",
            unit: "messages a second",
            beyond: "calls are refused; events come later, after a backoff",
            raised_by: "high throughput for FIFO queues; several queues; a policy with a rate",
        }
        .used(counted.seconds.fifo, account.fifo_messages),
        Of {
            limit: "request_bytes",
            of: "a call that creates jobs",
            unit: "bytes",
            beyond: "the call is answered with 413",
            raised_by: "fewer jobs in one call",
        }
        .used(Peak { value: call_bytes, at_s: 0 }, most_bytes),
    ]
}

/// The keys of each policy.
fn of_policies(setting: &Setting, counted: &Counted) -> Vec<Use> {
    let policies = setting.policies.iter().zip(&counted.policies).filter(|(_, load)| load.events > 0.0);
    policies.flat_map(|(policy, load)| of_policy(setting, policy, load)).collect()
}

fn of_policy(setting: &Setting, policy: &Policy, load: &PolicyLoad) -> [Use; 3] {
    let available = setting.account.partition_writes;
    let of_events = |units: f64| {
        let a_second = load.busiest_second.value.min(load.per_second);
        Peak { value: a_second * units, at_s: load.busiest_second.at_s }
    };
    let together = policy.tokens_of_a_release();
    let writes = policy.groups_of_a_release() / together / policy.groups() * SLOT_ROW_UNITS;
    let name = |what: &str| format!("policy {}: {what}", policy.id);
    let (group, line, history) = (name("a slot group"), name("its line"), name("the history of a run"));
    let of = |of, raised_by| Of { limit: "partition_writes", of, unit: WRITES, beyond: REPEATED, raised_by };
    [
        of(&group, "more tokens (a slot group for each 12); releasing several tokens with one call")
            .used(of_events(writes), available),
        of(&line, "several policies").used(of_events(4.0 / f64::from(GRANT_EVENTS)), available),
        of(&history, "several runs, or several policies")
            .used(of_events(1.0 / OUTCOMES_PER_COMPACTION as f64), available),
    ]
}
