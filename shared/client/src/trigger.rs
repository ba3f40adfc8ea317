//! Triggers: when a job fires.

use serde::Serialize;
use tidegate_protocol::{At, Dst, Every};

/// When a job fires.
///
/// ```
/// use tidegate_client::Trigger;
///
/// let text = serde_json::to_string(&Trigger::every_seconds(300))?;
/// assert_eq!(text, r#"{"rate":{"every_seconds":300}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Trigger {
    /// At every time of a zone's wall clock that an expression matches.
    Cron {
        /// The expression.
        cron: Cron,
        /// The IANA zone; UTC when `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        /// What becomes of times that a change of the clocks skips or repeats; what follows from the expression when
        /// `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        dst: Option<Dst>,
    },
    /// In a steady beat from an anchor.
    Rate {
        /// The interval: 1 second to 366 days.
        rate: Every,
        /// An RFC 3339 instant of the beat; one interval after the job is stored when `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        anchor: Option<String>,
    },
    /// At single instants.
    At {
        /// One RFC 3339 instant, or a set of at most 48, each with its offset.
        at: At,
    },
}

/// A cron expression, as text or as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cron {
    /// Five fields; also six (second first), seven (and the year last), a nickname such as `@daily`, or AWS's
    /// `cron(...)`.
    Text(String),
    /// An object of its fields.
    Fields(CronFields),
}

/// A cron expression as an object, each field in the syntax of a cron field: a number, `*`, a range, a list or a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CronFields {
    /// The months: 1 to 12, or names.
    pub month: String,
    /// The days of the month: 1 to 31.
    pub day_of_month: String,
    /// The days of the week: 0 to 7, or names; 0 and 7 are Sunday.
    pub day_of_week: String,
    /// The hours: 0 to 23.
    pub hour: String,
    /// The minutes: 0 to 59.
    pub minute: String,
}

impl Trigger {
    /// A cron expression, such as `0 9 * * MON-FRI`, in an IANA zone. A change of the clocks is treated as follows from
    /// the expression.
    pub fn cron(expression: impl Into<String>, zone: impl Into<String>) -> Self {
        Self::Cron { cron: Cron::Text(expression.into()), zone: Some(zone.into()), dst: None }
    }

    /// Every so many seconds, 1 to 31,622,400; the first time one interval after the job is stored.
    pub fn every_seconds(every_seconds: u32) -> Self {
        Self::Rate { rate: Every { every_seconds }, anchor: None }
    }

    /// An RFC 3339 instant, such as `2026-11-21T12:00:00Z`.
    pub fn at(instant: impl Into<String>) -> Self {
        Self::At { at: At::One(instant.into()) }
    }

    /// A set of 1 to 48 RFC 3339 instants. Sent again under the same name, it takes the place of the former set.
    pub fn at_each(instants: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::At { at: At::Many(instants.into_iter().map(Into::into).collect()) }
    }
}
