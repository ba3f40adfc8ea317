//! Why an event is where it is, and what the expectation of its turn follows from: data. Sentences are made in the API.

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::backpressure::Closure;
use tidegate_domain::policy::OnExpiry;
use tidegate_domain::rate_limit::RateLimit;
use tidegate_protocol::{ExpectationCode, ReasonCode};

use crate::queries::forecast::SoFar;

/// Why an event is where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its launch is in the future.
    NotLaunched {
        /// When it is.
        launch_at: DateTime<Utc>,
    },
    /// Its policy is paused.
    PolicyPaused,
    /// Its policy is closed for a while: its backpressure says why.
    PolicyClosed(Closure),
    /// Its client or its job is sidelined.
    Sidelined {
        /// Since when.
        since: DateTime<Utc>,
    },
    /// An earlier run of its job is not finished, and one run may wait for that.
    EarlierRun,
    /// Its job's overlap rule has not been applied to its run yet.
    OverlapUndecided,
    /// Its target did not take it, and its time to be sent again has not come.
    Retrying {
        /// How often its target did not take it.
        failed: u8,
        /// When it first did not.
        since: DateTime<Utc>,
        /// When it takes its place in the line again.
        due_at: DateTime<Utc>,
    },
    /// Its run is paced over its window, and its turn has not come.
    Paced {
        /// How many events its run has.
        count: u32,
        /// From when on it is admitted.
        admits_at: DateTime<Utc>,
    },
    /// More is in flight than the policy's limit.
    Draining {
        /// Tokens that are held.
        held: u32,
        /// The policy's limit.
        limit: u32,
    },
    /// Fewer tokens are free than it takes.
    TokensHeld {
        /// Tokens that are held.
        held: u32,
        /// The policy's limit.
        limit: u32,
        /// Tokens that it takes.
        cost: u32,
        /// How many leases hold them; [`Explanation::holders`](super::Explanation) may show fewer.
        holders: usize,
    },
    /// Tokens are free, and the policy's rate lets nothing begin yet.
    Rate {
        /// The policy's rate.
        rate: RateLimit,
        /// When the rate lets it begin, at the earliest.
        turn_at: DateTime<Utc>,
    },
    /// Tokens are free: it, or an event before it, is about to be admitted.
    TokensFree,
    /// Its policy was deleted.
    PolicyDeleted,
    /// Nothing throttles it: its delivery is under way, or is tried again.
    BeingDelivered,
    /// Its consumer has it.
    InFlight {
        /// Which delivery of the event it is, from 1.
        attempt: u8,
        /// Its lease; `None` where it is not known.
        lease: Option<LeaseSpan>,
    },
    /// Its consumer has it, and its lease ran out.
    LeaseRanOut {
        /// Which delivery of the event it is, from 1.
        attempt: u8,
        /// When the lease ended.
        ended_at: DateTime<Utc>,
        /// What its policy does then.
        on_expiry: OnExpiry,
    },
    /// Its consumer released it as succeeded.
    Succeeded,
    /// Its consumer released it as failed.
    Failed,
    /// Nobody released it before its lease ended, in any of its deliveries.
    Expired,
    /// It could not be delivered.
    Dead,
    /// Its run was stopped before it was delivered.
    Stopped,
    /// It was delivered, and nothing throttles it.
    Delivered,
}

/// From when until when a token is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSpan {
    /// When it was granted or last extended. An extension by other than the policy's lease moves this by the difference.
    pub since: DateTime<Utc>,
    /// When it ends, unless it is extended.
    pub ends_at: DateTime<Utc>,
}

impl Reason {
    /// Its word in the API.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::NotLaunched { .. } => ReasonCode::NotLaunched,
            Self::PolicyPaused => ReasonCode::PolicyPaused,
            Self::PolicyClosed(_) => ReasonCode::PolicyClosed,
            Self::Sidelined { .. } => ReasonCode::Sidelined,
            Self::EarlierRun => ReasonCode::EarlierRun,
            Self::OverlapUndecided => ReasonCode::OverlapUndecided,
            Self::Retrying { .. } => ReasonCode::Retrying,
            Self::Paced { .. } => ReasonCode::Paced,
            Self::Draining { .. } => ReasonCode::Draining,
            Self::TokensHeld { .. } => ReasonCode::TokensHeld,
            Self::Rate { .. } => ReasonCode::Rate,
            Self::TokensFree => ReasonCode::TokensFree,
            Self::PolicyDeleted => ReasonCode::PolicyDeleted,
            Self::BeingDelivered => ReasonCode::BeingDelivered,
            Self::InFlight { .. } => ReasonCode::InFlight,
            Self::LeaseRanOut { .. } => ReasonCode::LeaseRanOut,
            Self::Succeeded => ReasonCode::Succeeded,
            Self::Failed => ReasonCode::Failed,
            Self::Expired => ReasonCode::Expired,
            Self::Dead => ReasonCode::Dead,
            Self::Stopped => ReasonCode::Stopped,
            Self::Delivered => ReasonCode::Delivered,
        }
    }
}

/// One thing that the expectation of an event's turn follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExpectationBasis {
    /// So many events are before it.
    EventsBefore(u64),
    /// How long it is kept by what somebody must end is not known.
    EndUnknown,
    /// The speed of its own run.
    OwnSpeed(SoFar),
    /// The speed of the run that holds most tokens.
    HoldersSpeed(SoFar),
    /// At a speed, its turn comes after so long.
    Turn {
        /// From now.
        after: Duration,
        /// The speed, in events a second.
        per_second: f64,
    },
    /// No event of the runs that hold tokens has ended yet.
    SpeedUnknown,
    /// The first lease ends, unless it is extended, and the policy takes its token back.
    FirstLeaseEnd(DateTime<Utc>),
    /// The policy's rate bounds its turn.
    Rate {
        /// The rate.
        rate: RateLimit,
        /// When the rate lets it begin.
        turn_at: DateTime<Utc>,
        /// Whether it begins then; no earlier than then, when not.
        is_exact: bool,
    },
    /// That is after its window ends, so it is left out.
    AfterDeadline(DateTime<Utc>),
    /// It is left out if its window ends before it is admitted.
    LeftOutAtDeadline(DateTime<Utc>),
}

impl ExpectationBasis {
    /// Its word in the API.
    pub fn code(&self) -> ExpectationCode {
        match self {
            Self::EventsBefore(_) => ExpectationCode::EventsBefore,
            Self::EndUnknown => ExpectationCode::EndUnknown,
            Self::OwnSpeed(_) => ExpectationCode::OwnSpeed,
            Self::HoldersSpeed(_) => ExpectationCode::HoldersSpeed,
            Self::Turn { .. } => ExpectationCode::Turn,
            Self::SpeedUnknown => ExpectationCode::SpeedUnknown,
            Self::FirstLeaseEnd(_) => ExpectationCode::FirstLeaseEnd,
            Self::Rate { .. } => ExpectationCode::Rate,
            Self::AfterDeadline(_) => ExpectationCode::AfterDeadline,
            Self::LeftOutAtDeadline(_) => ExpectationCode::LeftOutAtDeadline,
        }
    }
}
