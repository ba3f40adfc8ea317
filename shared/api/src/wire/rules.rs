//! What a job says about its launches beside its trigger, as it travels.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::Value;
use tidegate_domain::ids::CalendarId;
use tidegate_domain::job::Trigger;
use tidegate_domain::limits::CALENDARS_PER_JOB;
use tidegate_domain::rules::{Jitter, Misfire, MisfireLaunches, Rules, RulesError};
use tidegate_domain::time::{OnClosedDay, shifted};
use tidegate_domain::unknown::Unknown;
use tidegate_protocol::{self as protocol, MisfireRule};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::bounds::bounded_fields;
use crate::wire::instant;
use crate::wire::number::{Number, check_or_default};
use crate::wire::when::{read_ahead, read_instant};

/// What becomes of launches that an outage missed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Misfire, example = json!({"rule": "all", "max": 100}))]
pub(crate) struct MisfireBody {
    rule: MisfireRule,
    /// How many are made up for, the latest of them. Only with `all`.
    #[schema(value_type = Option<u32>, default = json!(MisfireLaunches::DEFAULT.get()))]
    max: Option<Number<MisfireLaunches>>,
}

bounded_fields!(MisfireBody: max);

impl MisfireBody {
    /// Checks the number.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Misfire> {
        match (self.rule, self.max) {
            (MisfireRule::Skip, None) => Some(Misfire::Skip),
            (MisfireRule::Latest, None) => Some(Misfire::Latest),
            (MisfireRule::All, max) => check_or_default(max, errors).map(Misfire::All),
            (MisfireRule::Skip | MisfireRule::Latest, Some(_)) => {
                let message = "misfire.max goes with the rule 'all' only; leave it out";
                errors.add("misfire.max", (), message);
                None
            }
            (MisfireRule::Other, _) => None,
        }
    }
}

/// The rule for missed launches as it is answered.
pub(crate) fn misfire_view(misfire: Misfire) -> protocol::Misfire {
    match misfire {
        Misfire::Skip => protocol::Misfire::skip(),
        Misfire::Latest => protocol::Misfire::latest(),
        Misfire::All(most) => protocol::Misfire::all(most.get()),
    }
}

/// What becomes of launches on closed days; `None` for a word of a later version.
fn on_closed_day(word: protocol::OnClosedDay) -> Option<OnClosedDay> {
    match word {
        protocol::OnClosedDay::LeaveOut => Some(OnClosedDay::LeaveOut),
        protocol::OnClosedDay::NextOpenDay => Some(OnClosedDay::NextOpenDay),
        protocol::OnClosedDay::PreviousOpenDay => Some(OnClosedDay::PreviousOpenDay),
        protocol::OnClosedDay::Other => None,
    }
}

/// The same as it is answered.
pub(crate) fn on_closed_day_view(rule: OnClosedDay) -> protocol::OnClosedDay {
    match rule {
        OnClosedDay::LeaveOut => protocol::OnClosedDay::LeaveOut,
        OnClosedDay::NextOpenDay => protocol::OnClosedDay::NextOpenDay,
        OnClosedDay::PreviousOpenDay => protocol::OnClosedDay::PreviousOpenDay,
    }
}

/// Why the launches of a trigger cannot be moved as the rules say.
pub(crate) fn cannot_be_moved(trigger: &Trigger, rules: &Rules) -> Option<String> {
    let word = rules.on_closed_day.as_str();
    let is_other = rules.on_closed_day.moves() && !matches!(trigger, Trigger::Cron { .. });
    is_other.then(|| {
        format!("on_closed_day is '{word}', which goes with 'trigger.cron' only; leave it out, or give the trigger as 'cron'")
    })
}

/// The fields of a body that make up its rules.
#[derive(Debug, Default)]
pub(crate) struct RulesFields<'b> {
    pub(crate) start_at: Option<&'b str>,
    pub(crate) end_at: Option<&'b str>,
    pub(crate) jitter_seconds: Option<Number<Jitter>>,
    pub(crate) misfire: Option<&'b MisfireBody>,
    pub(crate) calendars: &'b [String],
    pub(crate) only_on: &'b [String],
    pub(crate) on_closed_day: Option<protocol::OnClosedDay>,
    pub(crate) skip: &'b [String],
}

impl RulesFields<'_> {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<Rules> {
        let start_at = self.start_at.map(|text| {
            let read = read_ahead("start_at", text, now);
            errors.keep("start_at", text, read)
        });
        let end_at = self.end_at.map(|text| errors.keep("end_at", text, read_instant("end_at", text)));
        let jitter = check_or_default(self.jitter_seconds, errors);
        let misfire = self.misfire.map_or(Some(Misfire::default()), |misfire| misfire.check(errors));
        let calendars = check_calendars("calendars", self.calendars, errors);
        let only_on = check_calendars("only_on", self.only_on, errors);
        let skip = self.skip.iter().enumerate().map(|(index, text)| {
            let field = format!("skip[{index}]");
            errors.keep(&field, &**text, read_instant(&field, text))
        });
        let skip: Vec<Option<DateTime<Utc>>> = skip.collect();
        let rules = Rules {
            start_at: start_at.map_or(Some(None), |read| read.map(Some))?,
            end_at: end_at.map_or(Some(None), |read| read.map(Some))?,
            jitter: jitter?,
            misfire: misfire?,
            calendars: calendars?,
            only_on: only_on?,
            on_closed_day: self.on_closed_day.map_or(Some(OnClosedDay::default()), on_closed_day)?,
            skip: skip.into_iter().collect::<Option<_>>()?,
            unknown: Unknown::default(),
        };
        match rules.checked() {
            Ok(rules) => Some(rules),
            Err(error) => {
                let (field, given) = match &error {
                    RulesError::Backward { .. } => ("end_at", self.end_at.map_or(Value::Null, Value::from)),
                    RulesError::Calendars { .. } => ("calendars", Value::Null),
                    RulesError::Together { .. } => ("only_on", Value::Null),
                    RulesError::NeverClosed { rule } => ("on_closed_day", rule.as_str().into()),
                    RulesError::Skipped { .. } => ("skip", Value::Null),
                    RulesError::Both { calendar } => ("only_on", calendar.as_str().into()),
                };
                errors.add(field, given, sentence(&error));
                None
            }
        }
    }
}

fn check_calendars(field: &str, names: &[String], errors: &mut FieldErrors) -> Option<Vec<CalendarId>> {
    // More than that are not looked at one by one, even if many are named twice.
    if names.len() > 10 * CALENDARS_PER_JOB {
        let message = format!("{field} has {} names; {CALENDARS_PER_JOB} is the most", names.len());
        errors.add(field, (), message);
        return None;
    }
    let names = names
        .iter()
        .enumerate()
        .map(|(index, name)| errors.keep(&format!("{field}[{index}]"), &**name, name.parse::<CalendarId>()));
    let names: Vec<Option<CalendarId>> = names.collect();
    names.into_iter().collect()
}

/// A refusal with its instants as the API writes them.
fn sentence(error: &RulesError) -> String {
    match error {
        RulesError::Backward { start_at, end_at } => format!(
            "end_at {} is not after start_at {}; give a later end",
            instant(*end_at),
            instant(*start_at)
        ),
        error => error.to_string(),
    }
}

/// Where the first launch is looked for: after now, and not before the start.
pub(crate) fn first_after(rules: &Rules, now: DateTime<Utc>) -> DateTime<Utc> {
    let before_start = rules.start_at.map(|start_at| shifted(start_at, TimeDelta::nanoseconds(-1)));
    before_start.map_or(now, |before| before.max(now))
}

/// Why a trigger never fires (again) between its start and its end: the field to change, and the sentence.
/// Instants that are past are not looked at.
pub(crate) fn never_fires_within(
    trigger: &Trigger,
    rules: &Rules,
    now: DateTime<Utc>,
) -> Option<(&'static str, String)> {
    if let Trigger::At(instants) = trigger {
        if instants.iter().any(|at| rules.is_within(at)) {
            return None;
        }
        let (field, where_to) = match (rules.start_at, rules.end_at) {
            (Some(from), Some(to)) => {
                ("end_at", format!("from start_at {} to end_at {}", instant(from), instant(to)))
            }
            (Some(from), None) => ("start_at", format!("from start_at {} on", instant(from))),
            (None, to) => ("end_at", format!("before end_at {}", to.map(instant).unwrap_or_default())),
        };
        return Some((
            field,
            format!("trigger never fires: no instant of 'at' lies {where_to}; change one of them"),
        ));
    }
    // Without an end, what fires at all fires again, but for years that are over.
    let (earlier, later) = rules.on_closed_day.reach();
    // What is moved may be due earlier, or later, than the trigger says.
    let after = shifted(first_after(rules, now), -later);
    let Some(first) = trigger.cadence().upcoming(after, 1).first().map(|firing| firing.launch_at) else {
        let message = format!(
            "trigger never fires after {}; change its years or days",
            instant(first_after(rules, now))
        );
        return Some((
            if matches!(trigger, Trigger::Rate { .. }) { "trigger.rate" } else { "trigger.cron" },
            message,
        ));
    };
    let end_at = rules.end_at.filter(|end_at| shifted(first, -earlier) >= *end_at)?;
    let message = format!(
        "trigger never fires before end_at {}: its next firing would be at {}; give a later end",
        instant(end_at),
        instant(first)
    );
    Some(("end_at", message))
}
