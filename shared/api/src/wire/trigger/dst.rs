//! Rules for changes of the clocks, as they travel.

use serde::{Deserialize, Serialize};
use tidegate_domain::time::{CronSpec, DstRules, Gap, Overlap};
use utoipa::ToSchema;

/// What becomes of local times that a change of the clocks skips or repeats. What is left out follows from the expression:
/// `next_valid` and `first` when its hour and minute are fixed, `skip` and `both` when one of them begins with `*`.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Dst, example = json!({"gap": "skip"}))]
pub(crate) struct DstBody {
    /// For local times that the clocks jump over.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<GapWord>,
    /// For local times that happen twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<OverlapWord>,
}

/// What becomes of a local time that the clocks jump over.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Gap)]
pub(crate) enum GapWord {
    /// It fires at the first instant after the gap.
    NextValid,
    /// It does not fire.
    Skip,
}

/// What becomes of a local time that happens twice.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Overlap)]
pub(crate) enum OverlapWord {
    /// It fires the first time.
    First,
    /// It fires both times.
    Both,
}

impl DstBody {
    pub(super) fn to_domain(&self) -> DstRules {
        let gap = self.gap.map(|word| match word {
            GapWord::NextValid => Gap::NextValid,
            GapWord::Skip => Gap::Skip,
        });
        let overlap = self.overlap.map(|word| match word {
            OverlapWord::First => Overlap::First,
            OverlapWord::Both => Overlap::Both,
        });
        DstRules { gap, overlap }
    }

    /// The rules that hold for an expression: those that were given, and those that follow from it.
    pub(super) fn in_force(spec: &CronSpec) -> Self {
        let (gap, overlap) = (spec.compiled().gap(), spec.compiled().overlap());
        Self { gap: Some(gap.into()), overlap: Some(overlap.into()) }
    }

    /// The rules that were given and do not follow from the expression, if there are any.
    pub(super) fn of_its_own(spec: &CronSpec) -> Option<Self> {
        let DstRules { gap, overlap } = spec.dst();
        (gap.is_some() || overlap.is_some())
            .then(|| Self { gap: gap.map(Into::into), overlap: overlap.map(Into::into) })
    }
}

impl From<Gap> for GapWord {
    fn from(gap: Gap) -> Self {
        match gap {
            Gap::NextValid => Self::NextValid,
            Gap::Skip => Self::Skip,
        }
    }
}

impl From<Overlap> for OverlapWord {
    fn from(overlap: Overlap) -> Self {
        match overlap {
            Overlap::First => Self::First,
            Overlap::Both => Self::Both,
        }
    }
}
