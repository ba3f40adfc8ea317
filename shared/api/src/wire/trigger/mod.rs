//! Triggers as they travel: a cron expression with its zone, a rate, or instants.
//!
//! Reading a trigger asks no store. Instants that are past are noted with the sentence that refuses them: whether the
//! stored job has them already is for the route to find out.

mod at;
mod cron;
mod dst;
mod rate;
mod view;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use serde_json::Value;
use tidegate_domain::job::Trigger;
use tidegate_domain::time::parse_zone;
use tidegate_protocol::{At, Dst};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use at::PastWord;
use cron::CronBody;
use rate::RateBody;

pub(crate) use rate::EveryBody;
pub(crate) use view::{as_sent, in_words, trigger_warnings, view};

/// When a job fires: `cron` with `zone`, `rate`, or `at`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"cron": "0 9 * * MON-FRI", "zone": "Europe/London"}))]
pub(crate) struct TriggerBody {
    /// A cron expression, or an object of its fields. The forms of AWS, `cron(...)` and `rate(...)`, and `@every` are
    /// taken too; a rate here makes a rate trigger.
    cron: Option<CronBody>,
    /// The IANA zone whose wall clock the expression follows; UTC when left out. With `at`: the zone of the local times
    /// among its instants.
    #[schema(example = "Europe/London")]
    zone: Option<String>,
    /// What becomes of local times that a change of the clocks skips or repeats. Only with `cron`.
    dst: Option<Dst>,
    /// A steady beat in real time.
    rate: Option<RateBody>,
    /// An instant of the beat in ISO 8601, with its offset from UTC; the beat goes on from it. When left out, the beat
    /// begins one interval after the job is stored. Only with `rate`.
    #[schema(format = DateTime, example = "2026-11-21T12:00:00Z")]
    anchor: Option<String>,
    /// One instant in ISO 8601, or a list of them, each with its offset from UTC or as a local time of `zone`. Duplicates
    /// are dropped; an instant within a second is rounded up.
    at: Option<At>,
    /// What becomes of instants that are past by more than 60 seconds; `refuse` when left out. Only with `at`.
    past: Option<PastWord>,
}

/// What reading a body finds, good and bad.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Each field that is wrong.
    pub(crate) errors: FieldErrors,
    /// What is taken, but may not be as meant.
    pub(crate) warnings: Vec<String>,
    /// Instants that are past and not to be fired at once.
    pub(crate) past: Vec<PastInstant>,
    /// A trigger that does not fire (again) between its start and its end.
    pub(crate) fires_no_more: Option<FiresNoMore>,
    /// An expression that reads well and that no day of the calendar matches.
    pub(crate) never_fires: Option<NeverFires>,
}

/// An instant that is past.
#[derive(Debug, Clone)]
pub(crate) struct PastInstant {
    /// Its field.
    pub(crate) field: String,
    /// The text that was given.
    pub(crate) given: String,
    /// What it stands for.
    pub(crate) at: DateTime<Utc>,
    /// Why it is refused, when it is.
    pub(crate) refusal: String,
}

/// Why a trigger does not fire (again): refused, but for a stored job that is sent back.
#[derive(Debug, Clone)]
pub(crate) struct FiresNoMore {
    /// The field to change.
    pub(crate) field: &'static str,
    /// What it says.
    pub(crate) given: Option<String>,
    /// Why it does not.
    pub(crate) message: String,
}

/// A cron expression that never fires.
#[derive(Debug, Clone)]
pub(crate) struct NeverFires {
    /// The field that it stands in.
    field: String,
    /// The text that was given, if it was one.
    given: Value,
    /// Why it never does.
    reason: String,
    /// The zone that it never fires in.
    pub(crate) zone: Tz,
}

impl Findings {
    /// Refuses an expression that never fires like any other field that is wrong.
    pub(crate) fn refuse_what_never_fires(&mut self) {
        if let Some(NeverFires { field, given, reason, .. }) = self.never_fires.take() {
            self.errors.add(field, given, reason);
        }
    }
}

impl Findings {
    /// Refuses a trigger that does not fire (again).
    pub(crate) fn refuse_what_fires_no_more(&mut self) {
        if let Some(FiresNoMore { field, given, message }) = self.fires_no_more.take() {
            self.errors.add(field, given, message);
        }
    }
}

impl NeverFires {
    /// Why it never does, without its own name in front.
    pub(crate) fn because(&self) -> &str {
        self.reason.split_once("never fires: ").map_or(&*self.reason, |(_, because)| because)
    }
}

impl TriggerBody {
    /// A trigger by a text alone: the short form of a preview. `expression` is what `cron` takes.
    pub(crate) fn of_expression(expression: String, zone: Option<String>) -> Self {
        let cron = Some(CronBody::Text(expression));
        Self { cron, zone, dst: None, rate: None, anchor: None, at: None, past: None }
    }

    /// The text of its expression, if that is what it is.
    pub(crate) fn expression(&self) -> Option<&str> {
        match &self.cron {
            Some(CronBody::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Checks every field; `None` when one is wrong, or the expression never fires, and then `findings` say which.
    pub(crate) fn check(&self, now: DateTime<Utc>, findings: &mut Findings) -> Option<Trigger> {
        match (&self.cron, &self.rate, &self.at) {
            (Some(cron), None, None) => self.check_cron(cron, now, findings),
            (None, Some(rate), None) => self.check_rate(rate, now, findings),
            (None, None, Some(at)) => self.check_at(at, now, findings),
            (None, None, None) => {
                let message = "trigger has none of 'cron', 'rate' and 'at'; give \
                    {\"cron\": \"0 9 * * MON-FRI\", \"zone\": \"Europe/London\"}, {\"rate\": \"5 minutes\"} or \
                    {\"at\": \"2026-11-21T12:00:00Z\"}";
                findings.errors.add("trigger", (), message);
                None
            }
            (cron, rate, at) => {
                let given = [("'cron'", cron.is_some()), ("'rate'", rate.is_some()), ("'at'", at.is_some())];
                let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
                let what = if given.len() == 3 { "all of" } else { "both" };
                let message =
                    format!("trigger has {what} {}; give one, or make several jobs", given.join(" and "));
                findings.errors.add("trigger", (), message);
                None
            }
        }
    }

    /// Refuses fields that say nothing beside the given kind of trigger.
    fn refuse_strays(&self, allowed: &[&str], findings: &mut Findings) -> Option<()> {
        let zone = self.zone.as_deref().map(Value::from);
        let anchor = self.anchor.as_deref().map(Value::from);
        let strays = [
            ("zone", zone, "goes with 'cron' and with local times in 'at'; a rate counts real time"),
            (
                "dst",
                self.dst.as_ref().map(|_| Value::Null),
                "goes with 'cron': nothing else follows a wall clock",
            ),
            ("anchor", anchor, "goes with 'rate': it says where the beat begins"),
            ("past", self.past.map(|_| Value::Null), "goes with 'at': nothing else names single instants"),
        ];
        let mut clean = Some(());
        for (name, given, why) in strays {
            if let Some(given) = given.filter(|_| !allowed.contains(&name)) {
                findings.errors.add(format!("trigger.{name}"), given, format!("{name} {why}; leave it out"));
                clean = None;
            }
        }
        clean
    }

    /// The zone that is named beside the trigger.
    fn named_zone(&self, findings: &mut Findings) -> Option<Option<Tz>> {
        match &self.zone {
            None => Some(None),
            Some(given) => findings.errors.keep("trigger.zone", &**given, parse_zone(given)).map(Some),
        }
    }
}
