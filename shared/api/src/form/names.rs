//! What to say about a field that there is not: the name that is meant, by what other systems call it, by its spelling,
//! or by the object that it belongs into; and all names, when none of these fits.

use tidegate_domain::spelling::edits;

use super::schema::{Kind, Schema};

/// What other systems call it: in which objects, by which names, and what to do here.
pub(super) type Foreign = (&'static [&'static str], &'static [&'static str], &'static str);

const JOB: &[&str] = &["JobBody"];
const TRIGGER: &[&str] = &["TriggerBody"];
const PREVIEW: &[&str] = &["PreviewBody"];
const POLICY: &[&str] = &["PolicyBody"];
const CALENDAR: &[&str] = &["CalendarBody"];
const RETRY: &[&str] = &["Retry"];

pub(super) const FOREIGN: &[Foreign] = &[
    (JOB, &["timezone", "time_zone", "tz"], "write 'trigger.zone', beside 'trigger.cron'"),
    (
        JOB,
        &["schedule", "expression", "cron_expression", "schedule_expression", "cron_schedule", "crontab"],
        "write 'trigger.cron', such as {\"trigger\": {\"cron\": \"0 3 * * *\", \"zone\": \"Europe/Berlin\"}}",
    ),
    (
        JOB,
        &["interval", "every", "frequency", "every_seconds"],
        "write 'trigger.rate', such as {\"trigger\": {\"rate\": \"5 minutes\"}}",
    ),
    (
        JOB,
        &["run_at", "scheduled_at", "schedule_at", "run_date", "date", "datetime", "when", "delay"],
        "write 'trigger.at', such as {\"trigger\": {\"at\": \"2026-11-21T12:00:00Z\"}}",
    ),
    (JOB, &["id", "name", "job_name", "key"], "write 'job_id'"),
    (
        JOB,
        &[
            "enabled",
            "disabled",
            "active",
            "is_active",
            "is_enabled",
            "suspend",
            "suspended",
            "state",
            "status",
        ],
        "pause a job with POST /v1/jobs/{job_id}/pause, and resume it with POST /v1/jobs/{job_id}/resume",
    ),
    (
        JOB,
        &["tag", "labels", "metadata", "annotations"],
        "write 'tags', such as {\"tags\": [\"team:books\"]}, for what you look jobs up by; what the consumer needs goes into 'payload'",
    ),
    (
        JOB,
        &["url", "uri", "endpoint", "webhook", "webhook_url", "http"],
        "write 'target.http.url', such as {\"target\": {\"http\": {\"url\": \"https://example.com/hook\"}}}",
    ),
    (
        JOB,
        &["queue", "queue_url", "queue_name", "queue_arn", "arn", "sqs"],
        "write 'target.sqs.queue_url' with the URL of the queue",
    ),
    (
        JOB,
        &[
            "max_in_flight",
            "max_concurrency",
            "concurrency",
            "concurrency_limit",
            "concurrency_policy",
            "max_concurrent",
            "limit",
            "rate_limit",
            "throttle",
            "parallelism",
            "max_parallel",
        ],
        "a limit is a policy's: PUT /v1/policies/{policy_id} with 'max_in_flight', and name the policy in 'policy_id'",
    ),
    (
        JOB,
        &["lease", "lease_seconds", "timeout", "timeout_seconds", "visibility_timeout", "ack_deadline"],
        "how long a consumer may take is a policy's: write 'lease_seconds' there",
    ),
    (JOB, &["policy", "policy_name", "queue_policy"], "write 'policy_id'"),
    (
        JOB,
        &["retries", "max_retries", "retry_count", "attempts", "retry_limit"],
        "write 'max_attempts', which counts the first delivery too",
    ),
    (
        JOB,
        &["retry_policy", "backoff", "retry_strategy", "retry_delay", "retry_interval", "retry_backoff"],
        "write 'retry', such as {\"retry\": {\"backoff\": \"fixed\", \"wait_seconds\": 30}}",
    ),
    (RETRY, &["type", "kind", "strategy", "policy", "mode"], "write 'backoff'"),
    (
        RETRY,
        &[
            "delay",
            "delay_seconds",
            "interval",
            "interval_seconds",
            "wait",
            "initial_seconds",
            "min_seconds",
            "first_seconds",
        ],
        "write 'wait_seconds'",
    ),
    (
        RETRY,
        &["max_seconds", "max_delay", "max_wait_seconds", "max_interval", "cap", "ceiling"],
        "write 'ceiling_seconds'",
    ),
    (
        RETRY,
        &["max_age", "timeout", "max_event_age", "maximum_event_age_in_seconds", "deadline", "for_seconds"],
        "write 'max_age_seconds'",
    ),
    (
        RETRY,
        &["max_attempts", "attempts", "retries", "max_retries", "limit", "maximum_retry_attempts"],
        "write 'max_attempts', beside 'retry'",
    ),
    (
        JOB,
        &["body", "data", "input", "args", "arguments", "message", "params", "event", "message_body"],
        "write 'payload'",
    ),
    (
        JOB,
        &["headers", "method", "http_method"],
        "write it into 'target.http': there are 'method' and 'headers'",
    ),
    (JOB, &["start", "starts_at", "start_date", "not_before", "start_time"], "write 'start_at'"),
    (JOB, &["end", "ends_at", "end_date", "not_after", "until", "end_time", "expires_at"], "write 'end_at'"),
    (JOB, &["deadline", "duration"], "write 'window.seconds', or 'window.until'"),
    (JOB, &["ttl", "max_age", "expiry", "expires_in"], "write 'relevancy_seconds'"),
    (JOB, &["jitter", "flexible_window", "flexible_time_window", "splay"], "write 'jitter_seconds'"),
    (
        JOB,
        &["misfire_policy", "catchup", "catch_up", "backfill", "misfire_grace_time"],
        "write 'misfire', such as {\"misfire\": {\"rule\": \"latest\"}}",
    ),
    (
        JOB,
        &["business_day", "business_day_convention", "on_holiday", "roll", "shift", "shift_to"],
        "write 'on_closed_day', such as {\"calendars\": [\"holidays\"], \"on_closed_day\": \"next_open_day\"}",
    ),
    (
        JOB,
        &["callback", "callback_url", "on_complete", "completion"],
        "write 'on_completion', an object such as 'target'",
    ),
    (JOB, &["heartbeat", "ping_url", "healthcheck_url", "check_url", "monitor_url"], "write 'heartbeat_url'"),
    (TRIGGER, &["timezone", "time_zone", "tz"], "write 'zone'"),
    (
        TRIGGER,
        &["schedule", "expression", "cron_expression", "schedule_expression", "crontab", "pattern"],
        "write 'cron'",
    ),
    (
        TRIGGER,
        &["interval", "every", "frequency", "every_seconds", "period"],
        "write 'rate', such as \"5 minutes\"",
    ),
    (TRIGGER, &["run_at", "date", "datetime", "time", "timestamp", "when"], "write 'at'"),
    (TRIGGER, &["start", "starts_at", "start_date"], "write 'start_at', beside 'trigger'"),
    (TRIGGER, &["end", "ends_at", "end_date"], "write 'end_at', beside 'trigger'"),
    (TRIGGER, &["type", "kind"], "which of 'cron', 'rate' and 'at' is there says the kind; leave it out"),
    (&["CronFieldsBody"], &["second", "seconds", "year"], SECONDS),
    (&["Target"], &["url", "uri", "endpoint", "webhook"], "write {\"http\": {\"url\": \"...\"}}"),
    (
        &["Target"],
        &["queue", "queue_url", "queue_name", "arn", "queue_arn"],
        "write {\"sqs\": {\"queue_url\": \"...\"}}",
    ),
    (
        &["Target"],
        &["type", "kind"],
        "which of 'sqs', 'http' and the others is there says the kind; leave it out",
    ),
    (
        &["Target"],
        &["eventbridge", "events", "bus", "event_bus"],
        "write {\"event_bridge\": {\"bus_arn\": \"...\"}}",
    ),
    (&["Target"], &["topic", "topic_arn"], "write {\"sns\": {\"topic_arn\": \"...\"}}"),
    (
        &["Target"],
        &["function", "function_arn", "function_name"],
        "write {\"lambda\": {\"function_arn\": \"...\"}}",
    ),
    (
        &["Target"],
        &["sfn", "state_machine", "state_machine_arn"],
        "write {\"step_functions\": {\"state_machine_arn\": \"...\"}}",
    ),
    (&["EventBridgeTarget"], &["arn", "bus", "event_bus", "event_bus_name"], "write 'bus_arn'"),
    (&["SnsTarget"], &["arn", "topic"], "write 'topic_arn'"),
    (&["LambdaTarget"], &["arn", "function", "function_name"], "write 'function_arn'"),
    (&["StepFunctionsTarget"], &["arn", "state_machine"], "write 'state_machine_arn'"),
    (
        &["SqsTarget"],
        &["url", "uri", "endpoint"],
        "write 'queue_url' for the URL of a queue; the URL of an endpoint goes into {\"http\": {\"url\": \"...\"}}",
    ),
    (
        &["SqsTarget"],
        &["queue", "name", "queue_name", "arn", "queue_arn"],
        "write 'queue_url' with the URL of the queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
    ),
    (&["HttpTarget"], &["uri", "endpoint", "href", "address", "webhook"], "write 'url'"),
    (
        &["HttpTarget"],
        &["queue_url", "queue", "arn"],
        "a queue goes into {\"sqs\": {\"queue_url\": \"...\"}}",
    ),
    (&["HttpTarget"], &["http_method", "verb"], "write 'method'"),
    (&["HttpTarget"], &["header", "http_headers"], "write 'headers', an object of names and values"),
    (
        &["HttpTarget"],
        &["auth", "authorization", "token", "api_key"],
        "write it into 'headers', such as {\"authorization\": \"...\"}",
    ),
    (&["HttpTarget"], &["timeout", "timeout_s", "deadline"], "write 'timeout_seconds'"),
    (
        &["HttpTarget"],
        &["payload", "data"],
        "write 'payload', beside 'target'; {\"body\": \"payload\"} sends it alone",
    ),
    (
        &["HttpTarget"],
        &["statuses", "status_codes", "success_codes", "expected_status", "expected_codes"],
        "write 'expected_statuses', such as [\"2xx\", \"404\"]",
    ),
    (
        &["HttpTarget"],
        &["retry_on", "retry_codes", "retryable_statuses"],
        "write 'retry_statuses', such as [\"429\", \"5xx\"]",
    ),
    (&["Misfire"], &["policy", "mode", "strategy"], "write 'rule'"),
    (&["Misfire"], &["limit", "count", "max_launches"], "write 'max'"),
    (&["Window"], &["duration", "length", "duration_seconds"], "write 'seconds'"),
    (&["Window"], &["deadline", "end", "end_at"], "write 'until'"),
    (PREVIEW, &["cron", "schedule", "cron_expression", "crontab"], "write 'expression'"),
    (PREVIEW, &["timezone", "time_zone", "tz"], "write 'zone'"),
    (PREVIEW, &["limit", "n", "number"], "write 'count'"),
    (PREVIEW, &["from", "since", "start", "now"], "write 'after'"),
    (POLICY, &["id", "name", "policy_name"], "write 'policy_id'"),
    (
        POLICY,
        &[
            "max_concurrency",
            "concurrency",
            "concurrency_limit",
            "limit",
            "max_concurrent",
            "parallelism",
            "max_parallel",
            "size",
            "max_workers",
        ],
        "write 'max_in_flight'",
    ),
    (
        POLICY,
        &[
            "rate_limit",
            "rps",
            "max_rps",
            "per_second",
            "requests_per_second",
            "max_requests_per_second",
            "throttle",
        ],
        "write 'rate', such as {\"rate\": {\"events\": 10, \"per\": \"second\"}}",
    ),
    (POLICY, &["lease", "timeout", "timeout_seconds", "ttl", "visibility_timeout"], "write 'lease_seconds'"),
    (
        POLICY,
        &["enabled", "disabled", "active"],
        "pause a policy with POST /v1/policies/{policy_id}/pause, and resume it with POST /v1/policies/{policy_id}/resume",
    ),
    (POLICY, &["queue_size", "max_queue", "max_waiting", "max_queued"], "write 'max_waiting_runs'"),
    (&["PolicyRate"], &["limit", "count", "max", "requests", "number"], "write 'events'"),
    (&["PolicyRate"], &["unit", "period", "interval", "window"], "write 'per'"),
    (CALENDAR, &["id", "name"], "write 'calendar_id'"),
    (CALENDAR, &["days", "holidays", "exclude", "excluded"], "write 'dates'"),
    (CALENDAR, &["periods", "ranges", "windows"], "write 'intervals'"),
    (
        CALENDAR,
        &["days_of_week", "week_days", "weekly", "weekends"],
        "write 'weekdays', such as [\"sat\", \"sun\"]",
    ),
    (
        CALENDAR,
        &["early_closes", "early_closing", "half_days", "half_holidays"],
        "write 'early_close', such as [{\"date\": \"12-24\", \"from\": \"13:00\"}]",
    ),
    (&["EarlyClose"], &["day"], "write 'date'"),
    (&["EarlyClose"], &["time", "at", "start", "close", "closes_at"], "write 'from'"),
    (CALENDAR, &["timezone", "time_zone", "tz"], "write 'zone'"),
    (&["Interval"], &["start", "begin", "start_at"], "write 'from'"),
    (&["Interval"], &["end", "until", "end_at"], "write 'to'"),
    (&["ClientBody"], &["id", "name", "client", "client_name"], "write 'client_id'"),
    (
        &["ClientBody"],
        &["targets", "allow_list", "allowlist", "allowed", "patterns"],
        "write 'allowed_targets'",
    ),
    (&["Ended"], &["status", "state"], "write 'outcome'"),
    (&["Ended"], &["reason", "message"], "write 'error' for why it failed, or 'result' for what came of it"),
    (
        &["ReleaseBody", "ExtendBody", "FreeBody"],
        &["token"],
        "write 'tokens', a list such as {\"tokens\": [\"...\"]}",
    ),
    (&["ExtendBody"], &["seconds", "lease", "ttl", "timeout", "visibility_timeout"], "write 'lease_seconds'"),
    (&["BulkBody"], &["items", "schedules", "batch"], "write 'jobs'"),
];

const SECONDS: &str = "the object has no seconds and no years; write 'cron' as text with six or seven fields";

/// What to do about a field that `object`, a part of `body`, does not have.
pub(super) fn advice(body: &'static Schema, object: &'static Schema, given: &str) -> String {
    let name = in_snake_case(given);
    let foreign =
        FOREIGN.iter().find(|(within, names, _)| within.contains(&&*object.name) && names.contains(&&*name));
    if let Some((_, _, say)) = foreign {
        return (*say).to_owned();
    }
    if let Some(near) = nearest(object, &name) {
        return format!("did you mean '{near}'?");
    }
    if let Some(path) = elsewhere(body, &name) {
        return format!("it belongs elsewhere, write '{path}'");
    }
    let written = object.properties.iter().filter(|(_, property)| !property.read_only);
    let names: Vec<String> = written.map(|(name, _)| format!("'{name}'")).collect();
    format!("its fields are {}", names.join(", "))
}

/// `cronExpression` and `cron-expression` as they would be written here.
fn in_snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for c in name.chars().take(64) {
        if c.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        snake.push(if matches!(c, '-' | ' ') { '_' } else { c.to_ascii_lowercase() });
    }
    snake
}

/// The field that is a slip of the pen away.
fn nearest(object: &'static Schema, name: &str) -> Option<&'static str> {
    let most = match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let near = object.properties.keys().map(|own| (edits(name, &in_snake_case(own)), own));
    near.filter(|(edits, _)| *edits <= most).min_by_key(|(edits, _)| *edits).map(|(_, own)| &**own)
}

/// Where a body has a field of this name: nearest to its root, and in what it must have before what it may have.
fn elsewhere(body: &'static Schema, name: &str) -> Option<String> {
    let mut layer = vec![(String::new(), body)];
    while !layer.is_empty() {
        let mut below = Vec::new();
        for (path, schema) in layer {
            let Some(object) = schema.taking(Kind::Object) else { continue };
            if let Some(own) = object.properties.keys().find(|own| *own == name) {
                return Some(format!("{path}{own}"));
            }
            let (needed, others): (Vec<_>, Vec<_>) =
                object.properties.iter().partition(|(member, _)| object.requires(member));
            for (member, schema) in needed.into_iter().chain(others) {
                let items = schema.taking(Kind::Array).and_then(|array| array.items.as_deref());
                below.push((format!("{path}{member}."), schema));
                below.extend(items.map(|items| (format!("{path}{member}[]."), items)));
            }
        }
        layer = below;
    }
    None
}
