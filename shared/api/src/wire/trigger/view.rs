//! Triggers as they are answered, in fields and in words.

use tidegate_domain::job::Trigger;
use tidegate_domain::time::Instants;
use tidegate_protocol::{At, Every, TriggerView};

use super::dst;
use crate::wire::instant;

/// Rows of the time index read for one launch above which a rate is warned of, as expressions are.
const MANY_READS: f64 = 10.0;

/// A trigger as it is answered.
pub(crate) fn view(trigger: &Trigger) -> TriggerView {
    let none = TriggerView::default();
    match trigger {
        Trigger::Cron { spec, zone } => {
            let (cron, zone) = (Some(spec.canonical().to_owned()), Some(zone.name().to_owned()));
            TriggerView { cron, zone, dst: Some(dst::in_force(spec)), ..none }
        }
        Trigger::Rate { rate, .. } => {
            let every_seconds = rate.every_seconds();
            let anchor = Some(instant(rate.anchor()));
            TriggerView { rate: Some(Every { every_seconds }), anchor, ..none }
        }
        Trigger::At(instants) => TriggerView { at: Some(at_view(instants)), ..none },
    }
}

/// A trigger as its client sent it: without rules for the clocks that follow from the expression, or an anchor that it left
/// open.
pub(crate) fn as_sent(trigger: &Trigger) -> TriggerView {
    let shown = view(trigger);
    match trigger {
        Trigger::Cron { spec, .. } => TriggerView { dst: dst::of_its_own(spec), ..shown },
        Trigger::Rate { anchored: false, .. } => TriggerView { anchor: None, ..shown },
        Trigger::Rate { .. } | Trigger::At(_) => shown,
    }
}

fn at_view(instants: &Instants) -> At {
    match instants.only() {
        Some(only) => At::One(instant(only)),
        None => At::Many(instants.iter().map(instant).collect()),
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
