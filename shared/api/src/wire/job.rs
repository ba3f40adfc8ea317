//! ScheduleJobs as they travel.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tidegate_domain::bounded::Revision;
use tidegate_domain::flow::{Cost, Flow, MaxFailures, Priority};
use tidegate_domain::ids::{JobId, ONE_TIME_PREFIX, PolicyId};
use tidegate_domain::job::{Attempts, Count, History, Job, JobDefaults, Payload, Terms};
use tidegate_domain::limits::{
    CALENDARS_PER_JOB, FAIR_BY_BYTES, JOB_ID_BYTES, SKIPPED_LAUNCHES, TAGS_PER_JOB,
};
use tidegate_domain::rules::{Jitter, Relevancy};
use tidegate_domain::tags::Tags;
use tidegate_domain::unknown::Unknown;
use tidegate_engine::JobDraft;
use tidegate_protocol::{self as protocol, RunOverlap};
use utoipa::ToSchema;

use crate::form::Form;
use crate::merge::{Members, members_of, raw};
use crate::problem::{FieldErrors, Problem};
use crate::wire::bounds::{List, Text, bounded_fields};
use crate::wire::fair;
use crate::wire::flow::{
    FlowFields, WindowBody, check_deadline, check_has_policy, given, overlap_view, window_view,
};
use crate::wire::number::{Number, check_given};
use crate::wire::overdue::{ExpectBody, check_is_recorded, expected_view};
use crate::wire::payload::{CheckedPayload, PayloadFields};
use crate::wire::read_only::Unread;
use crate::wire::retry::{RetryBody, retry_view};
use crate::wire::rules::{
    MisfireBody, RulesFields, cannot_be_moved, misfire_view, never_fires_within, on_closed_day_view,
};
use crate::wire::target::TargetBody;
use crate::wire::trigger::{Findings, FiresNoMore, TriggerBody, in_words, trigger_warnings};
use crate::wire::{instant, target, trigger};

/// What no job may be called: its path would be that of the bulk call.
const BULK_PATH: &str = "bulk";

/// A job as a client defines it. The fields that only answers have may be sent back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the unread fields are there so that an answer can be sent back")]
pub(crate) struct JobBody {
    /// Its name: 1 to 200 letters, digits and `- _ . : @ / + ~ = ,`, such as `reminder:user@example.com`; it begins with a
    /// letter, a digit, '-' or '_', not with `at_`, and is not `bulk`. Percent-encoded in paths:
    /// `/v1/jobs/reminder%3Auser%40example.com`. Generated when left out of a post; in the path when put.
    #[schema(value_type = Option<String>, example = "nightly")]
    job_id: Option<Text<JOB_ID_BYTES>>,
    trigger: TriggerBody,
    /// Events of one firing.
    #[schema(value_type = Option<u32>, default = json!(Count::DEFAULT.get()))]
    count: Option<Number<Count>>,
    /// Tokens that each event takes, at most its policy's `max_in_flight`.
    #[schema(value_type = Option<u32>, default = json!(Cost::DEFAULT.get()))]
    cost: Option<Number<Cost>>,
    /// Its place in its policy's line: 0 is served first.
    #[schema(value_type = Option<u32>, default = json!(Priority::DEFAULT.get()))]
    priority: Option<Number<Priority>>,
    /// Where in its payload the key lies by which its policy is shared out fairly: a JSON pointer to a string, number or
    /// boolean. What waits at one priority takes turns by the values there.
    #[schema(value_type = Option<String>, example = "/customer_id")]
    fair_by: Option<Text<FAIR_BY_BYTES>>,
    /// What becomes of a run that is due while an earlier one is not finished; `allow` when left out.
    #[serde(default)]
    overlap: RunOverlap,
    /// The time that a run has; any time when left out.
    window: Option<WindowBody>,
    /// So many events of a run that did not succeed stop it; none do when left out.
    #[schema(value_type = Option<u32>)]
    max_failures: Option<Number<MaxFailures>>,
    /// Who is told when a run has come to its end.
    on_completion: Option<TargetBody>,
    /// The address that is called when a run has come to its end, and with `/fail` behind its path when not all of its events
    /// succeeded, such as a check of Healthchecks. A POST of what `on_completion` is sent.
    #[schema(example = "https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278")]
    heartbeat_url: Option<String>,
    /// The policy that throttles the events; none when left out.
    #[schema(example = "small")]
    policy_id: Option<String>,
    target: TargetBody,
    /// Any JSON of at most 64 KiB, the same for every event. It reaches the consumer as it was sent, byte for byte.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// A payload for each event, in their order, of at most 64 KiB in all; their number is the count. In the place of
    /// `payload`.
    #[schema(value_type = Option<Vec<serde_json::Value>>, min_items = 1)]
    payloads: Option<Vec<Box<RawValue>>>,
    /// JSON of at most 64 KiB in whose texts `{{index}}` (from 0), `{{index1}}` (from 1), `{{count}}`, `{{event_id}}`,
    /// `{{run_id}}`, `{{job_id}}` and `{{launch_at}}` stand for what the event has; a text that is nothing but one number
    /// becomes a number. In the place of `payload`.
    #[schema(value_type = Option<serde_json::Value>, example = json!({"page": "{{index1}}"}))]
    payload_template: Option<Box<RawValue>>,
    /// How much of what happened is kept; as the client's defaults say when left out, or `all`.
    history: Option<protocol::History>,
    /// The most deliveries of one event, those that failed and those under later leases included. After the last it is
    /// recorded as `dead` when its target did not take it, as `expired` when nobody released it. When null, or left out and the
    /// client's defaults say nothing, what its target does not take is sent again as `retry` says, and what nobody releases is
    /// delivered five times.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<u32>)]
    max_attempts: Option<Option<Number<Attempts>>>,
    /// When an event is sent again that its target did not take; as the client's defaults say when left out, or after waits that
    /// grow up to an hour, for 24 hours.
    retry: Option<RetryBody>,
    /// Nothing is launched before it: an instant in ISO 8601, with its offset.
    #[schema(format = DateTime)]
    start_at: Option<String>,
    /// Nothing is launched at it or later: an instant in ISO 8601, with its offset.
    #[schema(format = DateTime)]
    end_at: Option<String>,
    /// The width of a flexible window, in seconds. The job launches at an offset within it that is its own and never
    /// changes, so that many jobs of one minute spread; 0 is none.
    #[schema(value_type = Option<u32>, default = json!(Jitter::DEFAULT.get()))]
    jitter_seconds: Option<Number<Jitter>>,
    /// What becomes of launches that an outage missed; the latest 100 are made up for when left out.
    misfire: Option<MisfireBody>,
    /// How old a launch may be when it is delivered, in seconds; any age when null, or left out and the client's defaults say
    /// nothing. Older ones are recorded as `expired`.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<u32>)]
    relevancy_seconds: Option<Option<Number<Relevancy>>>,
    /// The exclusion calendars on whose days it does not launch: at most 8 names.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["holidays"]))]
    calendars: List<String, CALENDARS_PER_JOB>,
    /// The calendars on whose days alone it launches; on any day when left out. Together with `calendars` at most 8 names.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["business-days"]))]
    only_on: List<String, CALENDARS_PER_JOB>,
    /// What becomes of launches that these leave out; they are left out when this is. Launches of a `cron` trigger alone are moved, by
    /// up to 31 days, and only where a calendar is named.
    on_closed_day: Option<protocol::OnClosedDay>,
    /// Launches that are left out, as the trigger says them (before jitter): at most 50 instants in ISO 8601, with their offsets.
    /// They are recorded as `skipped_on_request`. The call to skip a launch adds one.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["2026-12-24T09:00:00Z"]))]
    skip: List<String, SKIPPED_LAUNCHES>,
    /// Words by which it is found again: at most 10 of 1 to 64 letters, digits and `- _ . : / @ = +`.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["team:books"]))]
    tags: List<String, TAGS_PER_JOB>,
    /// When each launch is expected to be over; nobody watches when left out.
    expect: Option<ExpectBody>,
    /// The revision that is expected, as in `If-Match`. Not looked at when posted.
    #[schema(value_type = Option<u32>)]
    pub(crate) revision: Option<Number<Revision>>,
    /// What holds at present, or nothing: the calls to pause and resume change it.
    pub(crate) paused: Option<bool>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<String>, read_only)]
    paused_because: Unread<String>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<String>, read_only)]
    description: Unread<String>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime, read_only)]
    changed_at: Unread<String>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, read_only)]
    warnings: Unread<Vec<String>>,
}

/// A job that has been checked, as far as its body tells.
#[derive(Debug)]
pub(crate) struct CheckedJob {
    /// The name in the body, if there is one.
    pub(crate) id: Option<JobId>,
    pub(crate) draft: JobDraft,
}

bounded_fields!(
    JobBody: job_id, count, cost, priority, fair_by, max_failures, max_attempts, jitter_seconds, relevancy_seconds, calendars, only_on, skip, tags, revision
);

impl Form for JobBody {
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors) {
        let mut findings = Findings::default();
        self.check(now, &JobDefaults::default(), &mut findings);
        errors.append(findings.errors, |_| true);
    }
}

impl JobBody {
    /// Whether it names its job.
    pub(crate) fn has_id(&self) -> bool {
        self.job_id.is_some()
    }

    /// The same job with another trigger.
    pub(crate) fn with_trigger(self, trigger: TriggerBody) -> Self {
        Self { trigger, ..self }
    }

    /// Checks every field; `None` when one is wrong, and then the findings say which.
    /// What it does not say is as `defaults` say.
    pub(crate) fn check(
        self,
        now: DateTime<Utc>,
        defaults: &JobDefaults,
        findings: &mut Findings,
    ) -> Option<CheckedJob> {
        let id = match &self.job_id {
            Some(text) => check_job_id(text, &mut findings.errors).map(Some),
            None => Some(None),
        };
        let trigger = self.trigger.check(now, findings);
        findings.refuse_what_never_fires();
        let errors = &mut findings.errors;
        let rules = RulesFields {
            start_at: self.start_at.as_deref(),
            end_at: self.end_at.as_deref(),
            jitter_seconds: self.jitter_seconds,
            misfire: self.misfire.as_ref(),
            calendars: &self.calendars,
            only_on: &self.only_on,
            on_closed_day: self.on_closed_day,
            skip: &self.skip,
        };
        let rules = rules.check(now, errors);
        if let (Some(trigger), Some(rules)) = (&trigger, &rules)
            && let Some(message) = cannot_be_moved(trigger, rules)
        {
            errors.add("on_closed_day", rules.on_closed_day.as_str(), message);
        }
        let tags = check_tags(&self.tags, errors);
        let expect = self.expect.as_ref().map(|expect| expect.check(errors));
        if let (Some(trigger), Some(rules)) = (&trigger, &rules)
            && let Some((field, message)) = never_fires_within(trigger, rules, now)
        {
            let given = match field {
                "start_at" => self.start_at.as_deref(),
                "end_at" => self.end_at.as_deref(),
                _ => self.trigger.expression(),
            };
            let given = given.map(str::to_owned);
            findings.fires_no_more = Some(FiresNoMore { field, given, message });
        }
        let terms = self.check_terms(now, defaults, errors);
        if let (Some(trigger), Some(rules), Some(terms)) = (&trigger, &rules, &terms) {
            check_deadline(&terms.flow, trigger, rules, errors);
        }
        if let (Some(terms), Some(_)) = (&terms, &expect) {
            check_is_recorded(terms, errors);
        }
        let (tags, expect) = (tags?, given(expect)?);
        let draft = JobDraft { trigger: trigger?, rules: rules?, terms: terms?, tags, expect };
        Some(CheckedJob { id: id?, draft })
    }

    fn check_terms(
        self,
        now: DateTime<Utc>,
        defaults: &JobDefaults,
        errors: &mut FieldErrors,
    ) -> Option<Terms> {
        let flow = FlowFields {
            cost: self.cost,
            priority: self.priority,
            overlap: self.overlap,
            window: self.window.as_ref(),
            max_failures: self.max_failures,
            on_completion: self.on_completion.as_ref(),
            heartbeat_url: self.heartbeat_url.as_deref(),
        };
        let (count, payload) = (self.count, self.payload);
        let carried = PayloadFields {
            count,
            payload,
            payloads: self.payloads,
            payload_template: self.payload_template,
        };
        let carried = carried.check(errors);
        let policy: Option<Option<PolicyId>> = match &self.policy_id {
            Some(text) => errors.keep("policy_id", &**text, text.parse()).map(Some),
            None => Some(None),
        };
        let target = target::check(&self.target, "target", errors);
        let flow = flow.check(now, errors);
        let max_attempts = match self.max_attempts {
            Some(said) => check_given(said, errors),
            None => Some(defaults.max_attempts),
        };
        let retry = match self.retry {
            Some(retry) => retry.check(errors),
            None => Some(defaults.retry.clone().unwrap_or_default()),
        };
        let relevancy = match self.relevancy_seconds {
            Some(said) => check_given(said, errors),
            None => Some(defaults.relevancy),
        };
        let (target, policy) = (target?, policy?);
        let flow = Flow { release_on_response: target.release_on_response, ..flow? };
        if policy.is_none() {
            check_has_policy(&flow, self.fair_by.is_some(), errors);
        }
        let CheckedPayload { count, payload } = carried?;
        let fair_by = self.fair_by.map(|text| fair::check(&text, &payload, errors));
        let flow = Flow { fair_by: given(fair_by)?, ..flow };
        Some(Terms {
            count,
            policy,
            target: target.target,
            payload,
            history: self.history.map_or(Some(defaults.history.unwrap_or_default()), history)?,
            history_days: defaults.history_days.unwrap_or_default(),
            max_attempts: max_attempts?,
            retry: retry?,
            relevancy: relevancy?,
            flow,
            unknown: Unknown::default(),
        })
    }
}

/// A name that a client may choose for a job.
pub(crate) fn check_job_id(text: &str, errors: &mut FieldErrors) -> Option<JobId> {
    let id = errors.keep("job_id", text, text.parse::<JobId>())?;
    if text.starts_with(ONE_TIME_PREFIX) {
        let message = format!(
            "job_id '{text}' begins with '{ONE_TIME_PREFIX}', which is kept for generated ids; choose another name"
        );
        errors.add("job_id", text, message);
        return None;
    }
    if text == BULK_PATH {
        let message = format!("job_id '{text}' is the name of a call, /v1/jobs/{text}; choose another name");
        errors.add("job_id", text, message);
        return None;
    }
    Some(id)
}

/// What is said of a field, be it null; what is left out is not read at all.
pub(crate) fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(reader).map(Some)
}

pub(crate) fn history_view(history: History) -> protocol::History {
    match history {
        History::All => protocol::History::All,
        History::Failures => protocol::History::Failures,
        History::None => protocol::History::None,
    }
}

pub(crate) fn history(word: protocol::History) -> Option<History> {
    match word {
        protocol::History::All => Some(History::All),
        protocol::History::Failures => Some(History::Failures),
        protocol::History::None => Some(History::None),
        protocol::History::Other => None,
    }
}

/// A job as it is answered, with each payload as the text that is stored.
pub(crate) type JobView = protocol::JobView<Box<RawValue>>;

/// A page of such jobs.
pub(crate) type JobList = protocol::JobList<Box<RawValue>>;

/// A job as it is answered.
pub(crate) fn view(job: &Job, mut warnings: Vec<String>) -> JobView {
    let (terms, flow) = (&job.terms, &job.terms.flow);
    warnings.extend(trigger_warnings(&job.trigger));
    let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap_or_default();
    let (payload, payloads, payload_template) = match &terms.payload {
        Payload::Inline(json) => (raw(json), None, None),
        Payload::List(json) => (Box::default(), Some(serde_json::from_str(json).unwrap_or_default()), None),
        Payload::Template(json) => (Box::default(), None, Some(raw(json))),
        Payload::InJob => (Box::default(), None, None),
    };
    JobView {
        job_id: job.id.to_string(),
        revision: job.revision,
        trigger: trigger::view(&job.trigger),
        description: in_words(&job.trigger),
        count: terms.count.get(),
        policy_id: terms.policy.as_ref().map(ToString::to_string),
        target: target::view(&terms.target, flow.release_on_response),
        cost: flow.cost.get(),
        priority: flow.priority.get().into(),
        fair_by: flow.fair_by.as_ref().map(|fair| fair.pointer.as_str().to_owned()),
        overlap: overlap_view(flow.overlap),
        window: flow.window.map(window_view),
        max_failures: flow.max_failures.map(MaxFailures::get),
        on_completion: flow.on_completion.as_ref().map(|told| target::view(told, false)),
        heartbeat_url: flow.heartbeat.as_deref().map(|told| told.address().to_owned()),
        payload,
        payloads,
        payload_template,
        history: history_view(terms.history),
        max_attempts: terms.max_attempts.map(|most| most.get().into()),
        retry: retry_view(&terms.retry),
        start_at: job.rules.start_at.map(instant),
        end_at: job.rules.end_at.map(instant),
        jitter_seconds: job.rules.jitter.seconds(),
        misfire: misfire_view(job.rules.misfire),
        relevancy_seconds: terms.relevancy.map(Relevancy::seconds),
        calendars: job.rules.calendars.iter().map(ToString::to_string).collect(),
        only_on: job.rules.only_on.iter().map(ToString::to_string).collect(),
        on_closed_day: on_closed_day_view(job.rules.on_closed_day),
        skip: job.rules.skip.iter().copied().map(instant).collect(),
        tags: job.tags.iter().map(str::to_owned).collect(),
        expect: job.expect.map(expected_view),
        paused: job.paused,
        // A process of an earlier version resumes a job and leaves the reason where it was.
        paused_because: job.paused_because.clone().filter(|_| job.paused),
        changed_at: instant(job.changed_at),
        warnings,
    }
}

fn check_tags(words: &[String], errors: &mut FieldErrors) -> Option<Tags> {
    for (place, word) in words.iter().enumerate() {
        if let Err(error) = Tags::check(word) {
            errors.add(format!("tags[{place}]"), &**word, error.to_string());
            return None;
        }
    }
    errors.keep("tags", (), Tags::new(words))
}

/// A job as its client would send it, without what only answers have and without what follows from the rest: what a patch
/// is merged into.
pub(crate) fn as_sent(job: &Job) -> Result<Members, Problem> {
    let view = JobView { trigger: trigger::as_sent(&job.trigger), ..view(job, Vec::new()) };
    let mut follows = vec!["revision", "description", "paused", "paused_because", "changed_at", "warnings"];
    if view.payloads.is_some() || view.count == 1 {
        follows.push("count");
    }
    let mut members = members_of(&view)?;
    members.retain(|name, _| !follows.contains(&name.as_str()));
    Ok(members)
}

/// The same as the text of a body.
pub(crate) fn text_as_sent(job: &Job) -> Result<Box<RawValue>, Problem> {
    raw(&as_sent(job)?)
}
