//! Jobs as they are answered, and the parts that they share with those that clients send.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::flow::{BatchWindow, RunOverlap};
use crate::overdue::Expected;
use crate::policy::Unreadable;
use crate::problem::FieldError;
use crate::retry::Retry;
use crate::target::Target;
use crate::trigger::TriggerView;

/// A job as it is answered.
///
/// `P` is how its payloads are kept: as values for who reads them, as the job's own text for who answers with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(as = Job, bound = "", description = "A job as it is answered.")
)]
pub struct JobView<P = Value> {
    /// Its name within the client.
    pub job_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    pub revision: u32,
    /// When it fires, with the rules and the anchor that hold.
    pub trigger: TriggerView,
    /// When it fires, in words.
    #[cfg_attr(feature = "openapi", schema(example = "At 09:00, Monday through Friday (Europe/London)"))]
    pub description: String,
    /// Events of one firing.
    pub count: u32,
    /// The policy that throttles the events, if any.
    pub policy_id: Option<String>,
    /// Where its events go.
    pub target: Target,
    /// Tokens that each event takes.
    pub cost: u32,
    /// Its place in its policy's line: 0 is served first, 9 last.
    pub priority: u32,
    /// Where in its payload the key lies by which its policy is shared out fairly, if it says so. Answers of earlier versions
    /// do not have it.
    #[serde(default)]
    pub fair_by: Option<String>,
    /// What becomes of a run that is due while an earlier one is not finished.
    pub overlap: RunOverlap,
    /// The time that a run has; any time when null.
    pub window: Option<BatchWindow>,
    /// So many events of a run that did not succeed stop it; none do when null.
    pub max_failures: Option<u32>,
    /// Who is told when a run has come to its end, if anybody is.
    pub on_completion: Option<Target>,
    /// The address that is called when a run has come to its end, and with `/fail` behind its path when it ended badly; null: none
    /// is.
    #[serde(default)]
    pub heartbeat_url: Option<String>,
    /// What each event carries; null when it is one of a list, or follows a template.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: P,
    /// What the events carry, in their order; only when the job has a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Value>>))]
    pub payloads: Option<Vec<P>>,
    /// What the payloads are made from; only when the job has a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub payload_template: Option<P>,
    /// How much of what happened is kept.
    pub history: History,
    /// The most deliveries of one event, those that failed and those under later leases included. After the last it is
    /// recorded as `dead` when its target did not take it, as `expired` when nobody released it. Null: what its target does not
    /// take is sent again as `retry` says, and what nobody releases is delivered five times.
    pub max_attempts: Option<u32>,
    /// When an event is sent again that its target did not take. Answers of earlier versions do not have it.
    #[serde(default)]
    pub retry: Retry,
    /// Nothing is launched before it.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub start_at: Option<String>,
    /// Nothing is launched at it or later.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub end_at: Option<String>,
    /// The width of the flexible window, in seconds.
    pub jitter_seconds: u32,
    /// What becomes of launches that an outage missed.
    pub misfire: Misfire,
    /// How old a launch may be when it is delivered, in seconds; any age when null.
    pub relevancy_seconds: Option<u32>,
    /// The exclusion calendars on whose days it does not launch.
    pub calendars: Vec<String>,
    /// The calendars on whose days alone it launches; on any day when there are none.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub only_on: Vec<String>,
    /// What becomes of launches that these leave out. Answers of earlier versions do not have it.
    #[serde(default)]
    pub on_closed_day: OnClosedDay,
    /// The launches that are left out, as the trigger says them.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub skip: Vec<String>,
    /// Words by which it is found again.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub tags: Vec<String>,
    /// When each launch is expected to be over; null: nobody watches.
    #[serde(default)]
    pub expect: Option<Expected>,
    /// Whether it is paused: launches then deliver nothing and are recorded as runs with the reason `paused`.
    pub paused: bool,
    /// Why it is paused, in the words of whoever did it. Left out while it is not paused, and when nobody said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub paused_because: Option<String>,
    /// When this revision was written.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub changed_at: String,
    /// What may not be as meant, though it was taken.
    pub warnings: Vec<String>,
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(bound = ""))]
pub struct JobList<P = Value> {
    /// The jobs, by name.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<JobView>))]
    pub jobs: Vec<JobView<P>>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// How much of what happened to a job's events is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// A record for each event.
    #[default]
    All,
    /// A record for each event that failed; what was delivered is counted, not listed.
    Failures,
    /// No record of single events: they are counted. Dead letters are kept all the same.
    None,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// What becomes of a launch on a day that its job's calendars leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnClosedDay {
    /// It is left out, and recorded as `excluded`.
    #[default]
    LeaveOut,
    /// It is moved to the same time of the next day on which they let the job launch then, of the next 31.
    NextOpenDay,
    /// It is moved to the same time of the last day before it on which they let the job launch then, of the last 31.
    PreviousOpenDay,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// The rule for missed launches as it is answered.
///
/// ```
/// use tidegate_protocol::{Misfire, MisfireRule};
///
/// assert_eq!(Misfire::all(100), Misfire { rule: MisfireRule::All, max: Some(100) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(as = MisfireView, description = "The rule for missed launches as it is answered.")
)]
pub struct Misfire {
    /// Which of them are made up for.
    pub rule: MisfireRule,
    /// How many are made up for; only with `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// The rule for launches that an outage missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MisfireRule {
    /// None is made up for: all are recorded as skipped.
    Skip,
    /// The latest is; the others are recorded as skipped.
    Latest,
    /// The latest `max` are; those before them are recorded as skipped.
    All,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

impl Misfire {
    /// None is made up for.
    pub fn skip() -> Self {
        Self { rule: MisfireRule::Skip, max: None }
    }

    /// The latest is made up for.
    pub fn latest() -> Self {
        Self { rule: MisfireRule::Latest, max: None }
    }

    /// The latest `max` are made up for, 1 to 10,000.
    pub fn all(max: u32) -> Self {
        Self { rule: MisfireRule::All, max: Some(max) }
    }
}

/// What came of one job of a bulk call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkResult {
    /// The HTTP status that the job would have been answered with alone: 201 created, 200 there already, or a refusal.
    #[cfg_attr(feature = "openapi", schema(example = 201))]
    pub status: u16,
    /// The job's name, when it is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The job's revision, when it is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// What may not be as meant, though it was taken.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// What is wrong and what to do about it, when it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Each field that is wrong, when it was refused for its fields.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<FieldError>,
}

/// What came of each job, in the order of the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkResults {
    /// One for each job of the call.
    pub results: Vec<BulkResult>,
}

/// What came of jobs that were meant by what they have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SelectedJobs {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// One for each job that is meant, by their ids, with the status that it would have been answered with alone: 200, 204 for one
    /// that is deleted, or a refusal.
    pub results: Vec<BulkResult>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask for those after it with, as `cursor`; null on the last. A page may have few jobs, or none, and be followed by others.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::flow::{OnDeadline, Pace};
    use crate::target::ReleaseRule;
    use crate::trigger::{Gap, Overlap};

    /// A job as this version answers with it.
    fn answered() -> Value {
        json!({
            "job_id": "nightly", "revision": 3, "description": "At 09:00 (UTC)", "count": 2, "policy_id": "small",
            "trigger": {"cron": "0 9 * * *", "zone": "UTC", "dst": {"gap": "next_valid", "overlap": "first"}},
            "target": {"http": {"url": "https://example.com/hook", "release": "on_response"}},
            "cost": 1, "priority": 5, "fair_by": "/customer_id", "overlap": "skip", "max_failures": null, "on_completion": null,
            "heartbeat_url": "https://hc-ping.com/uuid",
            "window": {"seconds": 60, "on_deadline": "expire", "pace": "even"},
            "payload": null, "payloads": [1, {"b": "two"}], "history": "failures", "max_attempts": 5,
            "retry": {"backoff": "exponential", "wait_seconds": 2, "ceiling_seconds": 60, "max_age_seconds": 600},
            "start_at": null, "end_at": null, "jitter_seconds": 0, "misfire": {"rule": "all", "max": 100},
            "relevancy_seconds": null, "calendars": [], "only_on": [], "on_closed_day": "leave_out", "skip": [], "tags": [],
            "expect": {"within_seconds": 900}, "paused": false, "changed_at": "2026-11-21T12:00:00Z",
            "warnings": []
        })
    }

    fn read(answer: Value) -> JobView {
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn a_job_is_written_as_it_was_read() {
        assert_eq!(serde_json::to_value(read(answered())).unwrap(), answered());
    }

    #[test]
    fn words_fields_and_kinds_of_a_later_version_are_read() {
        let mut later = answered();
        later["a_later_field"] = json!({"deep": [1]});
        later["overlap"] = json!("cancel_other");
        later["history"] = json!("sampled");
        later["misfire"] = json!({"rule": "first", "max": 2, "since": "PT1H"});
        later["window"] = json!({"seconds": 60, "on_deadline": "pause", "pace": "front", "later": 1});
        later["trigger"]["dst"] = json!({"gap": "before", "overlap": "second", "later": 1});
        later["target"]["http"] =
            json!({"url": "https://example.com/hook", "release": "on_read", "later": 1});
        later["on_completion"] = json!({"bus": {"arn": "arn:aws:events:eu-west-1:1:bus"}});
        let job = read(later);
        assert_eq!((job.overlap, job.history), (RunOverlap::Other, History::Other));
        assert_eq!((job.misfire.rule, job.misfire.max), (MisfireRule::Other, Some(2)));
        let window = job.window.unwrap();
        assert_eq!((window.on_deadline, window.pace), (OnDeadline::Other, Pace::Other));
        let dst = job.trigger.dst.unwrap();
        assert_eq!((dst.gap, dst.overlap), (Some(Gap::Other), Some(Overlap::Other)));
        assert_eq!(job.target.http.unwrap().release, Some(ReleaseRule::Other));
        assert_eq!(job.on_completion, Some(Target::default()));
        let mut later = answered();
        later["trigger"] = json!({"after": {"job_id": "other"}});
        assert_eq!(read(later).trigger, TriggerView::default());
    }

    #[test]
    fn a_word_of_a_later_version_is_not_sent() {
        assert!(serde_json::to_string(&RunOverlap::Other).is_err());
        let sent = serde_json::to_string(&RunOverlap::BufferOne).unwrap();
        assert_eq!(sent, r#""buffer_one""#);
    }

    #[test]
    fn payloads_that_are_kept_as_texts_keep_their_bytes() {
        let payloads = r#"[{ "b" : 1.50, "a":"\u00e9" },10000000000000000000000]"#;
        let text = answered().to_string().replace(r#"[1,{"b":"two"}]"#, payloads);
        let job: JobView<Box<RawValue>> = serde_json::from_str(&text).unwrap();
        assert_eq!(job.payloads.as_ref().unwrap()[1].get(), "10000000000000000000000");
        assert!(serde_json::to_string(&job).unwrap().contains(payloads));
    }
}
