//! How a job's events go through their policy: the same in what clients send and in what is answered.

use serde::{Deserialize, Serialize};

/// What becomes of a run that is due while an earlier run of its job is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunOverlap {
    /// It takes its place in the line like any other.
    #[default]
    Allow,
    /// It is recorded as `overlap_skipped`.
    Skip,
    /// It waits until the other is finished; any further one is recorded as `overlap_skipped`.
    BufferOne,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// A window as it is answered.
///
/// It is the time that a run has: `seconds` from its launch, or `until` an instant. Exactly one of them is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(as = WindowView, description = "A window as it is answered.")
)]
pub struct BatchWindow {
    /// How long after the launch it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub until: Option<String>,
    /// What becomes of events that were not admitted by then.
    pub on_deadline: OnDeadline,
    /// How the events are spread over the window.
    pub pace: Pace,
}

/// What becomes of events that were not admitted within their window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnDeadline {
    /// They are admitted later, as if there were no window.
    #[default]
    Continue,
    /// They are not delivered, and recorded as left out.
    Expire,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// How events are spread over their window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As fast as tokens allow.
    #[default]
    None,
    /// Evenly over the window.
    Even,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

impl BatchWindow {
    /// A window that ends so many seconds after the launch, 1 to 604,800 (7 days). What is not admitted by then goes on.
    pub fn seconds(seconds: u32) -> Self {
        let (on_deadline, pace) = (OnDeadline::Continue, Pace::None);
        Self { seconds: Some(seconds), until: None, on_deadline, pace }
    }

    /// A window that ends at an RFC 3339 instant; only with an `at` trigger. What is not admitted by then goes on.
    pub fn until(instant: impl Into<String>) -> Self {
        let (on_deadline, pace) = (OnDeadline::Continue, Pace::None);
        Self { seconds: None, until: Some(instant.into()), on_deadline, pace }
    }

    /// The same where what is not admitted by the end is left out.
    #[must_use]
    pub fn expiring(mut self) -> Self {
        self.on_deadline = OnDeadline::Expire;
        self
    }

    /// The same with its events spread evenly.
    #[must_use]
    pub fn paced(mut self) -> Self {
        self.pace = Pace::Even;
        self
    }
}
