//! Previews of triggers that need no job, as they travel.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use tidegate_domain::job::Trigger;
use tidegate_domain::rules::{Jitter, Rules};
use tidegate_domain::time::{
    Dst, Firing, FiringCount, WallClock, Window, days, seconds, shifted, zone_database_version,
};
use tidegate_protocol::{self as protocol, Preview};
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::bounded_fields;
use crate::wire::instant;
use crate::wire::number::{Number, check_or_default};
use crate::wire::rules::{RulesFields, first_after};
use crate::wire::trigger::{Findings, NeverFires, TriggerBody, in_words, trigger_warnings};
use crate::wire::when::{local, read_ahead};

/// Firings on a change of the clocks that a warning names.
const NAMED_FIRINGS: usize = 4;

/// A trigger to be looked at: `trigger`, or the short form of `expression` and `zone`. Nothing is stored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"expression": "30 2 * * *", "zone": "Europe/Berlin", "count": 5}))]
pub(crate) struct PreviewBody {
    /// The trigger, as a job has it.
    trigger: Option<TriggerBody>,
    /// What `cron` of a trigger takes, as text.
    #[schema(example = "30 2 * * *")]
    expression: Option<String>,
    /// The IANA zone of the expression; UTC when left out. Only with `expression`.
    #[schema(example = "Europe/Berlin")]
    zone: Option<String>,
    /// How many firings.
    #[schema(value_type = Option<u32>, default = json!(FiringCount::DEFAULT.get()))]
    count: Option<Number<FiringCount>>,
    /// Only firings after it: an instant in ISO 8601, with its offset; now when left out.
    #[schema(format = DateTime)]
    after: Option<String>,
    /// Nothing fires before it.
    #[schema(format = DateTime)]
    start_at: Option<String>,
    /// Nothing fires at it or later.
    #[schema(format = DateTime)]
    end_at: Option<String>,
    /// The width of a flexible window, in seconds.
    #[schema(value_type = Option<u32>, default = json!(Jitter::DEFAULT.get()))]
    jitter_seconds: Option<Number<Jitter>>,
}

/// A preview that has been checked.
#[derive(Debug)]
pub(crate) struct CheckedPreview {
    /// `None` for an expression that never fires.
    trigger: Option<Trigger>,
    rules: Rules,
    count: usize,
    after: DateTime<Utc>,
}

bounded_fields!(PreviewBody: count, jitter_seconds);

impl Form for PreviewBody {
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors) {
        let mut findings = Findings::default();
        self.check(now, &mut findings);
        errors.append(findings.errors, |_| true);
    }
}

impl PreviewBody {
    /// Checks every field; `None` when one is wrong, and then the findings say which.
    pub(crate) fn check(self, now: DateTime<Utc>, findings: &mut Findings) -> Option<CheckedPreview> {
        let short = self.expression.is_some();
        let trigger = match (self.trigger, self.expression, self.zone) {
            (Some(trigger), None, None) => Some(trigger),
            (None, Some(expression), zone) => Some(TriggerBody::of_expression(expression, zone)),
            (Some(_), None, Some(zone)) => {
                findings.errors.add("zone", zone, "zone goes with 'expression'; name it inside 'trigger'");
                None
            }
            (Some(_), Some(_), _) => {
                let message = "the body has both 'trigger' and 'expression'; give one";
                findings.errors.add("trigger", (), message);
                None
            }
            (None, None, _) => {
                let message = "the body has neither 'trigger' nor 'expression'; give \
                    {\"expression\": \"0 9 * * MON-FRI\", \"zone\": \"Europe/London\"} or a whole trigger";
                findings.errors.add("trigger", (), message);
                None
            }
        };
        let checked = trigger.as_ref().and_then(|trigger| trigger.check(now, findings));
        if short {
            findings.errors.rename("trigger.cron", "expression");
            findings.errors.rename("trigger.zone", "zone");
        }
        let rules = RulesFields {
            start_at: self.start_at.as_deref(),
            end_at: self.end_at.as_deref(),
            jitter_seconds: self.jitter_seconds,
            ..RulesFields::default()
        };
        let rules = rules.check(now, &mut findings.errors);
        let count = check_or_default(self.count, &mut findings.errors);
        let after = match &self.after {
            Some(text) => findings.errors.keep("after", &**text, read_ahead("after", text, now)),
            None => Some(now),
        };
        if checked.is_none() && findings.never_fires.is_none() {
            return None;
        }
        Some(CheckedPreview { trigger: checked, rules: rules?, count: count?.get() as usize, after: after? })
    }
}

/// What a trigger means and when it fires, as it is answered.
pub(crate) fn view(checked: CheckedPreview, findings: Findings, now: DateTime<Utc>) -> Preview {
    let mut warnings = findings.warnings;
    let CheckedPreview { trigger, rules, count, after } = checked;
    let Some(trigger) = trigger else {
        let never = findings.never_fires;
        let because = never.as_ref().map_or("it has no firing", NeverFires::because);
        warnings.push(format!("never fires: {because}"));
        return view_of_nothing(never.as_ref().map_or(Tz::UTC, |never| never.zone), warnings);
    };
    let zone = trigger.zone();
    let mut firings = trigger.cadence().upcoming(first_after(&rules, after), count);
    firings.retain(|firing| rules.is_within(firing.launch_at));
    if firings.is_empty() {
        warnings.push(never_again(&trigger, &rules, after));
    }
    warnings.extend(trigger_warnings(&trigger));
    warnings.extend(dst_warning(&trigger, &rules, first_after(&rules, now)));
    let jitter = seconds(rules.jitter.seconds().into());
    let firing_view = |firing: &Firing| protocol::Firing {
        launch_at: instant(firing.launch_at),
        local: local(firing.launch_at, zone),
        dst: firing.label.as_str().to_owned(),
        latest_at: (!jitter.is_zero()).then(|| instant(shifted(firing.launch_at, jitter))),
    };
    Preview {
        description: Some(in_words(&trigger)),
        canonical: canonical(&trigger),
        reads_per_launch: Some((trigger.cadence().reads_per_launch() * 100.0).round() / 100.0),
        firings: firings.iter().map(firing_view).collect(),
        ..view_of_nothing(zone, warnings)
    }
}

fn view_of_nothing(zone: Tz, warnings: Vec<String>) -> Preview {
    Preview {
        zone: zone.name().to_owned(),
        zone_database: zone_database_version().to_owned(),
        description: None,
        canonical: None,
        reads_per_launch: None,
        firings: Vec::new(),
        warnings,
    }
}

fn canonical(trigger: &Trigger) -> Option<String> {
    match trigger {
        Trigger::Cron { spec, .. } => Some(spec.canonical().to_owned()),
        Trigger::Rate { rate, .. } => Some(format!("@every {}s", rate.every_seconds())),
        Trigger::At(_) => None,
    }
}

fn never_again(trigger: &Trigger, rules: &Rules, after: DateTime<Utc>) -> String {
    let end = rules.end_at.map(|at| format!(" and before end_at {}", instant(at))).unwrap_or_default();
    let what = if matches!(trigger, Trigger::At(_)) { "no instant of it lies" } else { "it has no firing" };
    format!("never fires: {what} after {}{end}", instant(first_after(rules, after)))
}

/// Names the firings of a year that fall on a change of the clocks.
fn dst_warning(trigger: &Trigger, rules: &Rules, from: DateTime<Utc>) -> Option<String> {
    let Trigger::Cron { zone, .. } = trigger else { return None };
    let cadence = trigger.cadence();
    let mut touched: Vec<Firing> = Vec::new();
    for window in around_changes(*zone, from, shifted(from, days(366))) {
        touched.extend(
            cadence
                .firings(window)
                .into_iter()
                .filter(|firing| firing.label != Dst::Plain && rules.is_within(firing.launch_at)),
        );
    }
    touched.dedup();
    if touched.is_empty() {
        return None;
    }
    let named = touched.iter().take(NAMED_FIRINGS);
    let named = named.map(|firing| format!("{} ({})", local(firing.launch_at, *zone), firing.label.as_str()));
    let rest = touched.len().saturating_sub(NAMED_FIRINGS);
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    let (number, verb) = if touched.len() == 1 {
        ("1 firing".to_owned(), "falls")
    } else {
        (format!("{} firings", touched.len()), "fall")
    };
    Some(format!(
        "{number} of the next year {verb} on a change of the clocks: {}{rest}; 'dst' says what becomes of such times",
        named.collect::<Vec<_>>().join(", ")
    ))
}

/// The days around each change of a zone's offset, cut so that they do not overlap.
fn around_changes(zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Window> {
    let Ok(reach) = Window::new(shifted(from, days(-1)), to) else { return Vec::new() };
    let mut windows: Vec<Window> = Vec::new();
    for changed_at in WallClock::of(zone).changes(reach) {
        let floor = windows.last().map_or(from, Window::to);
        let (begin, end) = (shifted(changed_at, days(-1)), shifted(changed_at, days(1)));
        let window = Window::new(begin.max(floor), end.min(to)).ok();
        windows.extend(window.filter(|window| window.from() < window.to()));
    }
    windows
}
