//! Triggers: when a job fires.

use serde::{Deserialize, Serialize};

/// When a job fires.
///
/// ```
/// use tidegate_client::Trigger;
///
/// let text = serde_json::to_string(&Trigger::every_seconds(300))?;
/// assert_eq!(text, r#"{"rate":{"every_seconds":300}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        /// `None`. What the API shows names the rules that hold.
        #[serde(skip_serializing_if = "Option::is_none")]
        dst: Option<Dst>,
    },
    /// In a steady beat from an anchor.
    Rate {
        /// The interval.
        rate: Every,
        /// An RFC 3339 instant of the beat; one interval after the job is stored when `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        anchor: Option<String>,
    },
    /// At single instants.
    At {
        /// One instant, or a set of at most 48.
        at: At,
    },
}

/// One instant, or many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum At {
    /// An RFC 3339 instant, with its offset.
    One(String),
    /// RFC 3339 instants, each with its offset.
    Many(Vec<String>),
}

/// An interval, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Every {
    /// Its length, in seconds: 1 to 31,622,400 (366 days).
    pub every_seconds: u32,
}

/// What becomes of local times that a change of the clocks skips or repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dst {
    /// For times that the clocks jump over; what follows from the expression when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// For times that happen twice; what follows from the expression when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
}

/// What becomes of a local time that the clocks jump over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It fires at the first instant after the gap.
    NextValid,
    /// It does not fire.
    Skip,
}

/// What becomes of a local time that happens twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It fires the first time.
    First,
    /// It fires both times.
    Both,
}

/// A cron expression, as text or as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cron {
    /// Five fields; also six (second first), seven (and the year last), a nickname such as `@daily`, or AWS's
    /// `cron(...)`.
    Text(String),
    /// An object of its fields.
    Fields(CronFields),
}

/// A cron expression as an object, each field in the syntax of a cron field: a number, `*`, a range, a list or a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
