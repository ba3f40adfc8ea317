//! Bodies of the calls that change one thing of a job: when it fires, which version it is, why it is paused.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::bounded::Revision;
use tidegate_domain::job::{DelaySeconds, Trigger};
use tidegate_domain::limits::CLOSED_BECAUSE_BYTES;
use tidegate_domain::time::{Instants, seconds, shifted};
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::number::Number;
use crate::wire::trigger::{Findings, TriggerBody};

/// When a job fires from now on: one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"trigger": {"cron": "0 10 * * MON-FRI", "zone": "Europe/London"}}))]
pub(crate) struct RescheduleBody {
    /// Its new trigger, as a job has it.
    trigger: Option<TriggerBody>,
    /// By how much each of its instants that is to come is moved, in seconds. Only of a job with `at`.
    #[schema(value_type = Option<u32>)]
    delay_seconds: Option<Number<DelaySeconds>>,
}

bounded_fields!(RescheduleBody: delay_seconds);

/// What is asked for.
pub(crate) enum Reschedule {
    /// Another trigger, whose fields are checked with the rest of the job.
    Trigger(Box<TriggerBody>),
    /// Its instants that are to come, later.
    Delay(DelaySeconds),
}

impl Form for RescheduleBody {
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors) {
        if let Some(trigger) = &self.trigger {
            let mut findings = Findings::default();
            trigger.check(now, &mut findings);
            errors.append(findings.errors, |_| true);
        }
        self.check(errors);
    }
}

impl RescheduleBody {
    /// What is asked for; `None` when a field is wrong, and then `errors` says which.
    pub(crate) fn check(self, errors: &mut FieldErrors) -> Option<Reschedule> {
        match (self.trigger, self.delay_seconds) {
            (Some(trigger), None) => Some(Reschedule::Trigger(Box::new(trigger))),
            (None, Some(delay)) => delay.check(errors).map(Reschedule::Delay),
            (trigger, _) => {
                let message = match trigger {
                    Some(_) => "trigger and delay_seconds are both given; send one of them",
                    None => "neither trigger nor delay_seconds is given; send one of them",
                };
                errors.add("trigger", (), message);
                None
            }
        }
    }
}

/// A trigger whose instants that are to come are moved; `None`: it is none of instants, or all of them are over.
pub(crate) fn delayed(trigger: &Trigger, delay: DelaySeconds, now: DateTime<Utc>) -> Option<Trigger> {
    let Trigger::At(instants) = trigger else { return None };
    instants.iter().any(|at| at > now).then_some(())?;
    let moved = |at| if at > now { shifted(at, seconds(delay.get().into())) } else { at };
    Instants::new(instants.iter().map(moved)).ok().map(Trigger::At)
}

/// Which version of a job it is to be again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"revision": 3}))]
pub(crate) struct RollbackBody {
    /// The revision of that version.
    #[schema(value_type = u32)]
    revision: Number<Revision>,
}

bounded_fields!(RollbackBody: revision);

impl Form for RollbackBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl RollbackBody {
    /// The revision; `None` when it is none, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<u32> {
        self.revision.check(errors).map(Revision::get)
    }
}

/// A job to be paused.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"because": "the books of 2026 are closed"}))]
pub(crate) struct PauseBody {
    /// Why, for those who look at the job while it is paused: at most 200 bytes. When left out, a job that is paused already keeps
    /// its reason.
    #[schema(value_type = Option<String>)]
    because: Option<Text<CLOSED_BECAUSE_BYTES>>,
}

bounded_fields!(PauseBody: because);

impl Form for PauseBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl PauseBody {
    /// Why, if that is said; `None` when it is too long, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Option<String>> {
        check_because(self.because.as_ref(), errors)
    }
}

/// Checks why something is paused. An empty text says nothing.
pub(crate) fn check_because(
    given: Option<&Text<CLOSED_BECAUSE_BYTES>>,
    errors: &mut FieldErrors,
) -> Option<Option<String>> {
    let Some(text) = given else { return Some(None) };
    text.check("because", errors).map(|text| Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn only_instants_that_are_to_come_are_moved() {
        let delay = DelaySeconds::new(60).unwrap();
        let trigger = |seconds: &[i64]| Trigger::At(Instants::new(seconds.iter().copied().map(at)).unwrap());
        assert_eq!(delayed(&trigger(&[10, 20, 30]), delay, at(20)), Some(trigger(&[10, 20, 90])));
        assert_eq!(delayed(&trigger(&[10, 20]), delay, at(20)), None);
        // Moved onto an instant that is over, or onto each other, they are one.
        assert_eq!(delayed(&trigger(&[30, 90]), delay, at(0)), Some(trigger(&[90, 150])));
    }
}
