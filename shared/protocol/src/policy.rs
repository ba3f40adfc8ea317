//! Policies, and who holds their tokens.

use serde::{Deserialize, Serialize};

use crate::sideline::Sideline;

/// What becomes of a token whose lease ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// It is taken back; the event goes on by its job's retry rule.
    #[default]
    Reclaim,
    /// It stays with its holder until that one releases it, or an operator frees it.
    Hold,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// The length of time that a rate counts events in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// One second.
    Second,
    /// Sixty of them.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// How fast events may begin. A hard cap: in any interval of length `t` at most `burst + rate * t` begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = PolicyRateView))]
pub struct Rate {
    /// Events in that time.
    pub events: u32,
    /// The time.
    pub per: Per,
    /// How many may begin at once after a pause; what one second allows, and at least 1, when null. 1 spaces events evenly.
    pub burst: Option<u32>,
}

impl Rate {
    /// So many events a second.
    pub fn per_second(events: u32) -> Self {
        Self { events, per: Per::Second, burst: None }
    }

    /// So many events a minute.
    pub fn per_minute(events: u32) -> Self {
        Self { events, per: Per::Minute, burst: None }
    }

    /// So many events an hour.
    pub fn per_hour(events: u32) -> Self {
        Self { events, per: Per::Hour, burst: None }
    }

    /// So many events a day.
    pub fn per_day(events: u32) -> Self {
        Self { events, per: Per::Day, burst: None }
    }

    /// The same with a burst; 1 spaces events evenly.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst: Some(burst), ..self }
    }
}

/// One token that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holder {
    /// The token.
    pub token: String,
    /// The event that holds it.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.3.1790000000.17"))]
    pub event_id: String,
    /// Which delivery of the event it is, from 1.
    pub attempt: u32,
    /// How many tokens of the limit it takes.
    pub cost: u32,
    /// When its lease ends, or ended, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub lease_expires_at: String,
    /// Whether its lease ran out: it is about to be taken back, or held until it is freed where the policy holds.
    pub expired: bool,
}

/// What is done at present about a consumer that cannot keep up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backpressure {
    /// Nothing is sent before this instant, RFC 3339; null when it is slowed, not closed.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub closed_until: Option<String>,
    /// Who closed it: `client`, by a call, or `consumer`, by what it answered or that it did not; null when it is not closed.
    pub closed_by: Option<String>,
    /// How many events it goes on with at once when it is not closed.
    pub limit: u32,
    /// Why: what the consumer answered, that it did not answer, or what the call that closed it said. May be empty.
    #[cfg_attr(feature = "openapi", schema(example = "the endpoint answered 503 Service Unavailable"))]
    pub because: String,
    /// When it opens, or recovers by the next step if no other sign is seen, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub eases_at: String,
}

/// A target without a policy that cannot keep up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StrainedTarget {
    /// Its URL or ARN.
    #[cfg_attr(feature = "openapi", schema(example = "https://example.com/hook"))]
    pub address: String,
    /// What is done about it.
    pub backpressure: Backpressure,
}

/// A page of targets without a policy that cannot keep up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StrainedTargetList {
    /// The targets.
    pub targets: Vec<StrainedTarget>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// A policy as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Policy))]
pub struct PolicyView {
    /// Its name within the client.
    pub policy_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    pub revision: u32,
    /// The most events in flight at once.
    pub max_in_flight: u32,
    /// How long a consumer may hold a token without a heartbeat, in seconds.
    pub lease_seconds: u32,
    /// What becomes of a token whose lease ran out.
    pub on_expiry: OnExpiry,
    /// How fast events may begin; as fast as tokens allow when null.
    pub rate: Option<Rate>,
    /// How many runs may wait in its line; any number when null.
    pub max_waiting_runs: Option<u32>,
    /// Whether it is paused: nothing is admitted then.
    pub paused: bool,
    /// What is done about its consumer, which cannot keep up, or since its client closed it; null when nothing is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub backpressure: Option<Backpressure>,
    /// That its client was sidelined, and how what waits drains; null when it was not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sidelined: Option<Sideline>,
}

/// A policy with what it holds at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyStatus {
    /// The policy.
    #[serde(flatten)]
    pub policy: PolicyView,
    /// Tokens that are held now: the costs of the events that were delivered or are about to be, and neither released nor
    /// taken back.
    pub in_flight: u32,
    /// Events that were launched and wait for a token.
    pub waiting: u32,
    /// Runs in its line, due or not.
    pub waiting_runs: u32,
    /// Whether more is in flight than the limit, because the limit was lowered: nothing is admitted until it is not.
    pub draining: bool,
    /// The same in a sentence.
    #[cfg_attr(feature = "openapi", schema(example = "12 in flight, limit 8, draining"))]
    pub status: String,
    /// What was taken out of its line because it cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set_aside: Vec<Unreadable>,
}

/// Something that is stored and that this version cannot read. It was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unreadable {
    /// What it is known by in its list.
    pub id: String,
    /// Which row it is, and why it cannot be read.
    pub reason: String,
}

/// A page of policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyList {
    /// The policies, by name.
    pub policies: Vec<PolicyView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// Who holds the tokens of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HolderList {
    /// The holders, those whose lease ends first in front.
    pub holders: Vec<Holder>,
}
