//! Retry: whether, and when, an event is sent again that its target did not take.

use serde::{Deserialize, Serialize};

/// The rule for events that their target did not take, as it is answered.
///
/// ```
/// use tidegate_protocol::{Backoff, Retry};
///
/// assert_eq!(Retry::fixed(30).within(3_600).max_age_seconds, Some(3_600));
/// assert_eq!(Retry::never().backoff, Backoff::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(as = RetryView, description = "The rule for events that their target did not take, as it is answered.")
)]
pub struct Retry {
    /// How the waits grow.
    pub backoff: Backoff,
    /// The wait, or with `exponential` the bound of the first one; not with `none`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wait_seconds: Option<u32>,
    /// What the bound doubles up to; only with `exponential`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ceiling_seconds: Option<u32>,
    /// For how long an event is sent again, from its first delivery that failed; not with `none`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_age_seconds: Option<u32>,
}

/// How the waits between deliveries that fail grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Nothing is sent again: the first failure is the last.
    None,
    /// Each wait is as long as the first.
    Fixed,
    /// Each wait is drawn evenly from nothing up to a bound, which doubles up to the ceiling.
    #[default]
    Exponential,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

impl Default for Retry {
    /// As a job has it that does not say: bounds that double from 2 seconds up to an hour, for 24 hours.
    fn default() -> Self {
        Self::exponential(2, 3_600).within(86_400)
    }
}

impl Retry {
    /// Nothing is sent again.
    pub fn never() -> Self {
        Self { backoff: Backoff::None, wait_seconds: None, ceiling_seconds: None, max_age_seconds: None }
    }

    /// After waits of so many seconds, 1 to 86,400, for 24 hours.
    pub fn fixed(wait_seconds: u32) -> Self {
        Self { backoff: Backoff::Fixed, wait_seconds: Some(wait_seconds), ..Self::never() }
    }

    /// After waits that are drawn up to a bound, which doubles from the first up to the ceiling, each of 1 to 86,400 seconds;
    /// for 24 hours.
    pub fn exponential(wait_seconds: u32, ceiling_seconds: u32) -> Self {
        let (wait_seconds, ceiling_seconds) = (Some(wait_seconds), Some(ceiling_seconds));
        Self { backoff: Backoff::Exponential, wait_seconds, ceiling_seconds, max_age_seconds: None }
    }

    /// The same for so many seconds from the first delivery that failed, 1 to 604,800 (7 days).
    #[must_use]
    pub fn within(self, max_age_seconds: u32) -> Self {
        Self { max_age_seconds: Some(max_age_seconds), ..self }
    }
}
