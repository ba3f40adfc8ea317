//! What went on in a policy, minute by minute.

use serde::{Deserialize, Serialize};

use crate::Unreadable;

/// What went on in a policy in a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicySamples {
    /// The policy.
    pub policy_id: String,
    /// By minute, in order of time. Minutes in which nothing was in flight and nothing waited are left out.
    pub samples: Vec<PolicySample>,
    /// How long the oldest event had waited, over those minutes.
    pub oldest_seconds: Percentiles,
    /// How many tokens events held, over those minutes.
    pub in_flight: Percentiles,
    /// How many events waited, over those minutes.
    pub waiting: Percentiles,
    /// Hours that cannot be read. Left out when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
}

/// What went on in a policy when it was looked at, once a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicySample {
    /// The minute.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// Tokens that events held.
    pub in_flight: u32,
    /// The limit.
    pub max_in_flight: u32,
    /// Events that were launched and waited for a token: those of the slot groups and of the first 100 entries of the line.
    pub waiting: u32,
    /// For how long the oldest of them had waited since its launch, in seconds; 0 when none waited.
    pub oldest_seconds: u32,
}

/// How some numbers are spread: of 100, so many are no more than that. All 0 where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Percentiles {
    /// Half of them.
    pub p50: u32,
    /// 90 of 100.
    pub p90: u32,
    /// 99 of 100.
    pub p99: u32,
    /// All.
    pub max: u32,
}

impl Percentiles {
    /// Of some numbers, in any order: of each rank the number that stands there (nearest rank).
    ///
    /// ```
    /// use tidegate_protocol::Percentiles;
    ///
    /// let spread = Percentiles::of((1..=200).rev().collect());
    /// assert_eq!(spread, Percentiles { p50: 100, p90: 180, p99: 198, max: 200 });
    /// assert_eq!(Percentiles::of(vec![7]), Percentiles { p50: 7, p90: 7, p99: 7, max: 7 });
    /// assert_eq!(Percentiles::of(Vec::new()), Percentiles::default());
    /// ```
    pub fn of(mut numbers: Vec<u32>) -> Self {
        numbers.sort_unstable();
        let ranked = |percent: usize| {
            let rank = (numbers.len() * percent).div_ceil(100).max(1);
            numbers.get(rank - 1).copied().unwrap_or_default()
        };
        Self { p50: ranked(50), p90: ranked(90), p99: ranked(99), max: ranked(100) }
    }
}
