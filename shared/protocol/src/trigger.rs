//! Triggers as they are answered, and the parts that they share with those that clients send.

use serde::{Deserialize, Serialize};

/// A trigger as it is answered: `cron` with `zone` and `dst`, `rate` with `anchor`, or `at`.
///
/// An answer that has none of the three is a kind of trigger of a later version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        as = Trigger,
        description = "A trigger as it is answered: `cron` with `zone` and `dst`, `rate` with `anchor`, or `at`."
    )
)]
pub struct TriggerView {
    /// The expression as text, without a zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The zone whose wall clock it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The rules for changes of the clocks that hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<Dst>,
    /// The interval of the beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Every>,
    /// An instant of the beat: there is none before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub anchor: Option<String>,
    /// The only instant as text, or all of them in order as a list; in UTC, to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
}

/// One instant or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum At {
    /// A single one.
    #[cfg_attr(feature = "openapi", schema(example = "2026-11-21T12:00:00Z"))]
    One(String),
    /// 1 to 48 different ones.
    #[cfg_attr(
        feature = "openapi",
        schema(example = json!(["2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z"]))
    )]
    Many(Vec<String>),
}

/// An interval as it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RateView))]
pub struct Every {
    /// In seconds.
    #[cfg_attr(feature = "openapi", schema(example = 300))]
    pub every_seconds: u32,
}

/// What becomes of local times that a change of the clocks skips or repeats. What is left out follows from the expression:
/// `next_valid` and `first` when its hour and minute are fixed, `skip` and `both` when one of them begins with `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({"gap": "skip"})))]
pub struct Dst {
    /// For local times that the clocks jump over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// For local times that happen twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
}

/// What becomes of a local time that the clocks jump over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It fires at the first instant after the gap.
    NextValid,
    /// It does not fire.
    Skip,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// What becomes of a local time that happens twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It fires the first time.
    First,
    /// It fires both times.
    Both,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}
