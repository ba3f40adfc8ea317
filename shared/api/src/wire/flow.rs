//! How a job's events go through their policy, as it travels.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::bounded::Bounded;
use tidegate_domain::flow::{
    BatchWindow, Cost, Deadline, Flow, MaxFailures, OnDeadline, Overlap, Priority, WindowSeconds,
};
use tidegate_domain::job::Trigger;
use tidegate_domain::rules::Rules;
use tidegate_domain::target::Target;
use tidegate_domain::time::{seconds, shifted};
use tidegate_domain::unknown::Unknown;
use tidegate_protocol::{self as protocol, Pace, RunOverlap};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::bounds::bounded_fields;
use crate::wire::instant;
use crate::wire::number::{Number, check_given, check_or_default};
use crate::wire::target::{self, TargetBody};
use crate::wire::when::{read_ahead, span};

/// The time that a run has: `seconds` from its launch, or `until` an instant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Window, example = json!({"seconds": 3600, "on_deadline": "expire", "pace": "even"}))]
pub(crate) struct WindowBody {
    /// How long after the launch it ends: up to 7 days.
    #[schema(value_type = Option<u32>)]
    seconds: Option<Number<WindowSeconds>>,
    /// When it ends: an instant in ISO 8601, with its offset, after every instant of the trigger. Only with `at`.
    #[schema(format = DateTime)]
    until: Option<String>,
    /// What becomes of events that were not admitted by then; `continue` when left out.
    #[serde(default)]
    on_deadline: protocol::OnDeadline,
    /// How the events are spread over the window; `none` when left out.
    #[serde(default)]
    pace: Pace,
}

/// The fields of a body that make up its flow.
#[derive(Debug)]
pub(crate) struct FlowFields<'b> {
    pub(crate) cost: Option<Number<Cost>>,
    pub(crate) priority: Option<Number<Priority>>,
    pub(crate) overlap: RunOverlap,
    pub(crate) window: Option<&'b WindowBody>,
    pub(crate) max_failures: Option<Number<MaxFailures>>,
    pub(crate) on_completion: Option<&'b TargetBody>,
    pub(crate) heartbeat_url: Option<&'b str>,
}

impl FlowFields<'_> {
    /// Checks every field; `None` when one is wrong, and then `errors` says which. Who releases is the target's to say, and
    /// what shares are fair by, the payload's.
    pub(crate) fn check(&self, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<Flow> {
        let cost = check_or_default(self.cost, errors);
        let priority = check_or_default(self.priority, errors);
        let window = self.window.map(|window| window.check(now, errors));
        let max_failures = check_given(self.max_failures, errors);
        let on_completion =
            self.on_completion.map(|target| target::check_untokened(target, "on_completion", errors));
        let heartbeat = self.heartbeat_url.map(|url| errors.keep(target::HEARTBEAT, url, Target::http(url)));
        Some(Flow {
            cost: cost?,
            priority: priority?,
            overlap: overlap(self.overlap)?,
            fair_by: None,
            window: given(window)?,
            max_failures: max_failures?,
            on_completion: given(on_completion)?,
            heartbeat: given(heartbeat)?.map(Box::new),
            release_on_response: false,
            unknown: Unknown::default(),
        })
    }
}

/// What was left out is right; what was given must have been.
pub(crate) fn given<T>(checked: Option<Option<T>>) -> Option<Option<T>> {
    match checked {
        Some(checked) => checked.map(Some),
        None => Some(None),
    }
}

/// Notes each field that only a policy gives a meaning to, of a job that names none. `is_fair`: it says what shares are fair by.
pub(crate) fn check_has_policy(flow: &Flow, is_fair: bool, errors: &mut FieldErrors) {
    let plain = Flow::default();
    for (field, is_set) in [
        ("cost", flow.cost != plain.cost),
        ("priority", flow.priority != plain.priority),
        ("overlap", flow.overlap != plain.overlap),
        ("fair_by", is_fair),
        ("window", flow.window.is_some()),
        ("max_failures", flow.max_failures.is_some()),
        ("on_completion", flow.on_completion.is_some()),
        ("heartbeat_url", flow.heartbeat.is_some()),
        ("target.http.release", flow.release_on_response),
    ] {
        if is_set {
            let message = format!(
                "{field} says how events go through a policy, and this job names none: give the job a policy_id, or leave \
                    {field} out"
            );
            errors.add(field, (), message);
        }
    }
}

/// Notes a deadline that is an instant and does not suit the trigger.
pub(crate) fn check_deadline(flow: &Flow, trigger: &Trigger, rules: &Rules, errors: &mut FieldErrors) {
    let Some(BatchWindow { deadline: Deadline::At(until), .. }) = flow.window else { return };
    let field = "window.until";
    let Trigger::At(instants) = trigger else {
        let message = "window.until goes with the trigger 'at' only: each run of any other has its own launch, so give \
            window.seconds";
        return errors.add(field, instant(until), message);
    };
    let (first, last) = (instants.first(), instants.last());
    let latest = shifted(last, seconds(rules.jitter.seconds().into()));
    if until <= latest {
        let jitter = if latest == last { "" } else { " with its jitter" };
        let message = format!(
            "window.until is {}, which is not after the launch at {}{jitter}; give a later instant",
            instant(until),
            instant(latest)
        );
        return errors.add(field, instant(until), message);
    }
    let most = seconds((*WindowSeconds::BOUNDS.end()).into());
    if until - first > most {
        let message = format!(
            "window.until is {} after the launch at {}; {} is the most",
            span(until - first),
            instant(first),
            span(most)
        );
        errors.add(field, instant(until), message);
    }
}

bounded_fields!(WindowBody: seconds);

impl WindowBody {
    fn check(&self, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<BatchWindow> {
        let deadline = match (self.seconds, &self.until) {
            (Some(seconds), None) => Deadline::After { seconds: seconds.check(errors)? },
            (None, Some(until)) => {
                let read = read_ahead("window.until", until, now);
                Deadline::At(errors.keep("window.until", &**until, read)?)
            }
            (Some(_), Some(_)) => {
                errors.add("window", (), "window has both 'seconds' and 'until'; give one");
                return None;
            }
            (None, None) => {
                let (field, what) = match (self.pace, self.on_deadline) {
                    (Pace::Even, _) => ("window.pace", "window.pace 'even' spreads events over a window"),
                    (_, protocol::OnDeadline::Expire) => {
                        ("window.on_deadline", "window.on_deadline 'expire' acts at a window's end")
                    }
                    _ => ("window", "window says nothing"),
                };
                let message = format!("{what}, and none is given: give window.seconds, or window.until");
                errors.add(field, (), message);
                return None;
            }
        };
        let on_deadline = on_deadline(self.on_deadline)?;
        Some(BatchWindow { deadline, on_deadline, paced: is_paced(self.pace)? })
    }
}

/// A window as it is answered.
pub(crate) fn window_view(window: BatchWindow) -> protocol::BatchWindow {
    let (seconds, until) = match window.deadline {
        Deadline::After { seconds } => (Some(seconds.get()), None),
        Deadline::At(until) => (None, Some(instant(until))),
    };
    let on_deadline = match window.on_deadline {
        OnDeadline::Continue => protocol::OnDeadline::Continue,
        OnDeadline::Expire => protocol::OnDeadline::Expire,
    };
    let pace = if window.paced { protocol::Pace::Even } else { protocol::Pace::None };
    protocol::BatchWindow { seconds, until, on_deadline, pace }
}

/// An overlap rule as it is answered.
pub(crate) fn overlap_view(overlap: Overlap) -> RunOverlap {
    match overlap {
        Overlap::Allow => RunOverlap::Allow,
        Overlap::Skip => RunOverlap::Skip,
        Overlap::BufferOne => RunOverlap::BufferOne,
    }
}

fn overlap(word: RunOverlap) -> Option<Overlap> {
    match word {
        RunOverlap::Allow => Some(Overlap::Allow),
        RunOverlap::Skip => Some(Overlap::Skip),
        RunOverlap::BufferOne => Some(Overlap::BufferOne),
        RunOverlap::Other => None,
    }
}

fn on_deadline(word: protocol::OnDeadline) -> Option<OnDeadline> {
    match word {
        protocol::OnDeadline::Continue => Some(OnDeadline::Continue),
        protocol::OnDeadline::Expire => Some(OnDeadline::Expire),
        protocol::OnDeadline::Other => None,
    }
}

fn is_paced(word: Pace) -> Option<bool> {
    match word {
        Pace::None => Some(false),
        Pace::Even => Some(true),
        Pace::Other => None,
    }
}
