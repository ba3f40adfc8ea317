//! Where a policy cannot keep up.

use tidegate_domain::time::seconds;
use tidegate_engine::{AheadWanted, PolicyStrain};

use super::{clock_text, length_text};

/// Why events of a policy are going to wait, how many and until when.
pub fn strain(strain: &PolicyStrain, wanted: AheadWanted) -> String {
    let as_of = wanted.window.from();
    let step = length_text(seconds(wanted.step.get().into()));
    let (held_by, per_step) = (if strain.by_rate { "rate" } else { "max_in_flight" }, strain.per_step);
    let ends = match strain.ends_at {
        Some(at) => format!("until {}", clock_text(at, as_of)),
        None => format!("and still at {}", clock_text(wanted.window.to(), as_of)),
    };
    format!(
        "its {held_by} lets {per_step:.0} events begin in {step}, and more are due: from {} on events wait, {} of them at {}, {ends}",
        clock_text(strain.begins_at, as_of),
        strain.most_waiting,
        clock_text(strain.most_at, as_of),
    )
}
