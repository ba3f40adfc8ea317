//! What is sidelined.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// That a client, a job or a policy is sidelined, or drains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sideline {
    /// Since when, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// Why, as whoever did it says.
    pub because: String,
    /// How many events a second drain; null while nothing is delivered.
    pub per_second: Option<u32>,
    /// When it began to drain, RFC 3339; null while nothing is delivered.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub draining_since: Option<String>,
}

/// The same with what is set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SidelineStatus {
    /// Since when and why, and how it drains.
    #[serde(flatten)]
    pub sideline: Sideline,
    /// Events that are set aside: those that no policy throttles, and of a job also those under a policy. What waits under the policies
    /// of a client is not counted.
    pub set_aside: u32,
    /// Whether there are more of them, which were not counted.
    pub has_more: bool,
}

/// What of a client is sidelined, or drains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sidelines {
    /// All of it; null: not all.
    pub client: Option<SidelineStatus>,
    /// Jobs, by their names.
    pub jobs: BTreeMap<String, SidelineStatus>,
}
