//! How late the events of a client came.

use serde::{Deserialize, Serialize};

use crate::Unreadable;

/// How late the events of a client came in a stretch of time: from the launch of each to the instant at which its target had it for
/// the first time. It is an estimate: told some five minutes later, and not by a process that died before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientLateness {
    /// Its name.
    pub client_id: String,
    /// From the hour that begins then.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// Up to the hour that ends then.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub until: String,
    /// Events under a policy, which wait for its tokens.
    pub throttled: LatenessSpread,
    /// Events that nothing throttles.
    pub unthrottled: LatenessSpread,
    /// By hour, in order of time. Hours in which none came are left out.
    pub hours: Vec<HourLateness>,
    /// Hours that cannot be read. Left out when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
}

/// How late the events of a client were that came in an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HourLateness {
    /// When the hour of UTC begins.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub hour: String,
    /// Events under a policy.
    pub throttled: LatenessSpread,
    /// Events that nothing throttles.
    pub unthrottled: LatenessSpread,
}

/// How late some events were, in milliseconds. They are counted in steps (10, 20, 50, 100, 200, 500 ms, 1, 2, 5, 10, 20, 30 s, 1, 2, 5,
/// 15 min, 1, 6, 24 h): a number is the end of a step that so many are no later than. Null when that is more than a day, or there are no
/// events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LatenessSpread {
    /// How many events there are.
    pub events: u64,
    /// Half of them.
    pub p50_ms: Option<u64>,
    /// 95 of 100.
    pub p95_ms: Option<u64>,
    /// 99 of 100.
    pub p99_ms: Option<u64>,
    /// All.
    pub max_ms: Option<u64>,
}
