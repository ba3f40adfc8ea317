//! Triggers as they are answered, in fields and in words.

use serde::Serialize;
use tidegate_domain::job::Trigger;
use tidegate_domain::time::Instants;
use utoipa::ToSchema;

use super::at::AtBody;
use super::dst::DstBody;
use super::rate::RateView;
use crate::wire::instant;

/// Rows of the time index read for one launch above which a rate is warned of, as expressions are.
const MANY_READS: f64 = 10.0;

/// A trigger as it is answered: `cron` with `zone` and `dst`, `rate` with `anchor`, or `at`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trigger)]
pub(crate) struct TriggerView {
    /// The expression as text, without a zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// The zone whose wall clock it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'static str>,
    /// The rules for changes of the clocks that hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    dst: Option<DstBody>,
    /// The interval of the beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateView>,
    /// An instant of the beat: there is none before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    anchor: Option<String>,
    /// The only instant as text, or all of them in order as a list; in UTC, to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<AtBody>,
}

impl TriggerView {
    /// Takes out what its client did not say: rules for the clocks that follow from the expression, an anchor that it left
    /// open.
    pub(crate) fn leave_out_what_follows(&mut self, trigger: &Trigger) {
        match trigger {
            Trigger::Cron { spec, .. } => self.dst = DstBody::of_its_own(spec),
            Trigger::Rate { anchored: false, .. } => self.anchor = None,
            Trigger::Rate { .. } | Trigger::At(_) => {}
        }
    }
}

impl From<&Trigger> for TriggerView {
    fn from(trigger: &Trigger) -> Self {
        let none = Self { cron: None, zone: None, dst: None, rate: None, anchor: None, at: None };
        match trigger {
            Trigger::Cron { spec, zone } => {
                let cron = Some(spec.canonical().to_owned());
                Self { cron, zone: Some(zone.name()), dst: Some(DstBody::in_force(spec)), ..none }
            }
            Trigger::Rate { rate, .. } => {
                let every_seconds = rate.every_seconds();
                let anchor = Some(instant(rate.anchor()));
                Self { rate: Some(RateView { every_seconds }), anchor, ..none }
            }
            Trigger::At(instants) => Self { at: Some(at_view(instants)), ..none },
        }
    }
}

fn at_view(instants: &Instants) -> AtBody {
    match instants.only() {
        Some(only) => AtBody::One(instant(only)),
        None => AtBody::Many(instants.iter().map(instant).collect()),
    }
}

/// What a trigger means, in words.
pub(crate) fn in_words(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Cron { spec, zone } => {
            format!("{} ({})", spec.describe().trim_end_matches('.'), zone.name())
        }
        Trigger::Rate { rate, .. } => format!("{}, from {}", rate.describe(), instant(rate.anchor())),
        Trigger::At(instants) => match instants.only() {
            Some(only) => format!("Once, at {}", instant(only)),
            None => format!(
                "{} times, the first at {} and the last at {}",
                instants.iter().count(),
                instant(instants.first()),
                instant(instants.last())
            ),
        },
    }
}

/// What of a trigger often surprises, and what its shape costs.
pub(crate) fn trigger_warnings(trigger: &Trigger) -> Vec<String> {
    match trigger {
        Trigger::Cron { spec, .. } => spec.warnings(),
        Trigger::Rate { rate, .. } => {
            let reads = rate.reads_per_launch();
            let sentence = format!(
                "its beat does not fall on the same times of each day, so it is found by reading more of the time index \
                 than it launches: about {reads:.0} rows for each launch"
            );
            (reads > MANY_READS).then_some(sentence).into_iter().collect()
        }
        Trigger::At(_) => Vec::new(),
    }
}
