//! Rules for changes of the clocks, as they travel.

use tidegate_domain::time::{CronSpec, DstRules, Gap, Overlap};
use tidegate_protocol::{self as protocol, Dst};

/// The rules that a body gives.
pub(super) fn rules(given: Dst) -> Option<DstRules> {
    let gap = match given.gap {
        None => None,
        Some(protocol::Gap::NextValid) => Some(Gap::NextValid),
        Some(protocol::Gap::Skip) => Some(Gap::Skip),
        Some(protocol::Gap::Other) => return None,
    };
    let overlap = match given.overlap {
        None => None,
        Some(protocol::Overlap::First) => Some(Overlap::First),
        Some(protocol::Overlap::Both) => Some(Overlap::Both),
        Some(protocol::Overlap::Other) => return None,
    };
    Some(DstRules { gap, overlap })
}

/// The rules that hold for an expression: those that were given, and those that follow from it.
pub(super) fn in_force(spec: &CronSpec) -> Dst {
    let (gap, overlap) = (spec.compiled().gap(), spec.compiled().overlap());
    Dst { gap: Some(gap_view(gap)), overlap: Some(overlap_view(overlap)) }
}

/// The rules that were given and do not follow from the expression, if there are any.
pub(super) fn of_its_own(spec: &CronSpec) -> Option<Dst> {
    let DstRules { gap, overlap } = spec.dst();
    (gap.is_some() || overlap.is_some())
        .then(|| Dst { gap: gap.map(gap_view), overlap: overlap.map(overlap_view) })
}

fn gap_view(gap: Gap) -> protocol::Gap {
    match gap {
        Gap::NextValid => protocol::Gap::NextValid,
        Gap::Skip => protocol::Gap::Skip,
    }
}

fn overlap_view(overlap: Overlap) -> protocol::Overlap {
    match overlap {
        Overlap::First => protocol::Overlap::First,
        Overlap::Both => protocol::Overlap::Both,
    }
}
