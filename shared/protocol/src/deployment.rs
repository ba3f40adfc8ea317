//! A deployment: whether launches are emitted in time, and the shape of its time index.

use serde::{Deserialize, Serialize};

/// What is running, and how it gets on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    /// `ok`, or `late` when launches that are due have not been emitted.
    #[cfg_attr(feature = "openapi", schema(example = "ok"))]
    pub status: String,
    /// The version of Tidegate.
    pub version: String,
    /// The release of the IANA zone database that launches are computed with.
    #[cfg_attr(feature = "openapi", schema(example = "2026e"))]
    pub zone_database: String,
    /// How emission gets on.
    pub emission: EmissionHealth,
    /// How many panics this process has contained: each is a fault of Tidegate, and in the log.
    pub panics: u64,
}

/// How emission gets on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EmissionHealth {
    /// Every launch before it is planned; null before the first tick.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub planned_to: Option<String>,
    /// Launches since then are late; null when none is.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub late_since: Option<String>,
    /// How late the oldest of them is, in seconds; 0 when none is.
    pub late_seconds: i64,
}

/// The time index: the zones that scans look at, and what is split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Index))]
pub struct IndexView {
    /// The zones that have children. One that lost its last job stays for up to a day.
    pub zones: Vec<String>,
    /// The LaunchExpressions that have more than one shard.
    pub split: Vec<SplitView>,
    /// The release of the IANA zone database that launches are computed with.
    #[cfg_attr(feature = "openapi", schema(example = "2026e"))]
    pub zone_database: String,
}

/// A LaunchExpression that is split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Split))]
pub struct SplitView {
    /// Its zone.
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Berlin"))]
    pub zone: String,
    /// Its class and values.
    #[cfg_attr(feature = "openapi", schema(example = "H:03"))]
    pub launch_expression: String,
    /// How many shards it has.
    pub shards: u32,
}
