//! What a forecast follows from: data. Sentences are made in the API.

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::rate_limit::RateLimit;
use tidegate_protocol::ForecastCode;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoFar {
    /// Events that have come to an end.
    pub done: u32,
    /// Events that it has.
    pub count: u32,
    /// From when on its speed is measured: its first admission, or, without a policy, its launch.
    pub since: DateTime<Utc>,
    /// Events that ended per second; `None` when none has, or no time has passed.
    pub per_second: Option<f64>,
}

/// One thing that the forecast of a run follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ForecastBasis {
    /// Its launch is in the future.
    NotLaunched(DateTime<Utc>),
    /// How far it has come.
    SoFar(SoFar),
    /// What is left, and how long that takes at its speed.
    Left {
        /// Events that wait or are in flight.
        events: u32,
        /// From now.
        takes: Duration,
    },
    /// Its policy's rate bounds how fast events begin.
    Rate(RateLimit),
    /// More is in flight than its policy's limit.
    Draining {
        /// Tokens that are held.
        held: u32,
        /// The policy's limit.
        limit: u32,
    },
    /// It is paced over its window.
    Paced {
        /// When the window ends.
        ends_at: DateTime<Utc>,
        /// When its last event begins.
        last_at: DateTime<Utc>,
    },
    /// What its window's end finds waiting is left out.
    LeftOutAtDeadline(DateTime<Utc>),
    /// It goes on after its window's end.
    ContinuesAfterDeadline(DateTime<Utc>),
    /// Its policy is paused.
    PolicyPaused,
    /// Its policy is closed until then.
    PolicyClosed(DateTime<Utc>),
    /// Its client is sidelined.
    Sidelined,
    /// Its policy was deleted.
    PolicyDeleted,
    /// All of its events have ended.
    Finished {
        /// From when on its speed is measured.
        since: DateTime<Utc>,
    },
    /// It was stopped: its summary says why, and how many of its events were left out.
    Stopped {
        /// Events that have come to an end.
        done: u32,
    },
}

impl ForecastBasis {
    /// Its word in the API.
    pub fn code(&self) -> ForecastCode {
        match self {
            Self::NotLaunched(_) => ForecastCode::NotLaunched,
            Self::SoFar(SoFar { done: 0, .. }) => ForecastCode::SpeedUnknown,
            Self::SoFar(_) => ForecastCode::Speed,
            Self::Left { .. } => ForecastCode::Left,
            Self::Rate(_) => ForecastCode::Rate,
            Self::Draining { .. } => ForecastCode::Draining,
            Self::Paced { .. } => ForecastCode::Paced,
            Self::LeftOutAtDeadline(_) => ForecastCode::LeftOutAtDeadline,
            Self::ContinuesAfterDeadline(_) => ForecastCode::ContinuesAfterDeadline,
            Self::PolicyPaused => ForecastCode::PolicyPaused,
            Self::PolicyClosed(_) => ForecastCode::PolicyClosed,
            Self::Sidelined => ForecastCode::Sidelined,
            Self::PolicyDeleted => ForecastCode::PolicyDeleted,
            Self::Finished { .. } => ForecastCode::Finished,
            Self::Stopped { .. } => ForecastCode::Stopped,
        }
    }
}
