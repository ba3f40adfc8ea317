//! Clients.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Unreadable;
use crate::job::History;
use crate::retry::Retry;
use crate::target::Target;
use crate::words::words;

/// A client as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Client))]
pub struct ClientView {
    /// Its name.
    pub client_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    #[serde(default)]
    pub revision: u32,
    /// The addresses that its jobs may name; none when it is empty.
    pub allowed_targets: Vec<String>,
    /// What its jobs have that say nothing of it, from when they are written.
    #[serde(default)]
    pub defaults: JobDefaults,
    /// What it may take at the most.
    #[serde(default)]
    pub quotas: Quotas,
    /// Who is told of launches that were not over in time; null: nobody.
    #[serde(default)]
    pub alerts: Option<Target>,
    /// That an admin suspended it; null when nobody did.
    #[serde(default)]
    pub suspended: Option<Suspension>,
    /// How far its deletion came; null when it is not being deleted.
    #[serde(default)]
    pub deleting: Option<ClientDeletion>,
    /// When it was registered.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created_at: String,
}

/// A page of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientList {
    /// The clients, by name.
    pub clients: Vec<ClientView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// That an admin suspended a client: its keys are refused, but for releases and extensions, and nothing of it is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Suspension {
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// Why.
    pub because: String,
}

/// What the jobs of a client have that say nothing of it, from when they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobDefaults {
    /// When an event is sent again that its target did not take.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry: Option<Retry>,
    /// The most deliveries of one event.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_attempts: Option<u32>,
    /// How old a launch may be when it is delivered, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub relevancy_seconds: Option<u32>,
    /// How much of what happened is kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history: Option<History>,
    /// Days that it is kept; 14 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history_days: Option<u32>,
}

/// What a client may take at the most; what is left out is not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quotas {
    /// How many jobs it may write in a minute of UTC: each that is posted or put, alone or in bulk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub creates_per_minute: Option<u32>,
    /// How many bytes of JSON the payload of each of its jobs may have, from when it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload_bytes: Option<u32>,
    /// How many jobs it may have at once, but for one-time jobs without a `job_id`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jobs: Option<u32>,
    /// How many one-time jobs may wait for their launch, with a `job_id` or without.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub one_time_jobs: Option<u32>,
    /// How many policies it may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policies: Option<u32>,
    /// How many calendars it may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub calendars: Option<u32>,
    /// How many zones the cron triggers of all its jobs may have together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub zones: Option<u32>,
    /// How many events one launch of each of its jobs may have, from when it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events_per_launch: Option<u32>,
    /// The most that `max_in_flight` of each of its policies may be, from when it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tokens: Option<u32>,
    /// How many of its events go in a minute of UTC: of all that no policy throttles together, the rest later. Each policy must have a
    /// `rate` of at most that, from when it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events_per_minute: Option<u32>,
    /// How many events may wait for a later minute; what is over that is skipped as `over_quota`. Each policy must have
    /// `max_waiting_runs` of at most that, from when it is written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting: Option<u32>,
    /// How many turns its messages have where those of other clients have one; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delivery_share: Option<u32>,
}

words! {
    /// A quota of which something is used.
    QuotaName {
        /// Jobs that are written in a minute of UTC.
        CreatesPerMinute = "creates_per_minute",
        /// Jobs.
        Jobs = "jobs",
        /// One-time jobs that wait.
        OneTimeJobs = "one_time_jobs",
        /// Policies.
        Policies = "policies",
        /// Calendars.
        Calendars = "calendars",
        /// Zones of cron triggers.
        Zones = "zones",
        /// Events that no policy throttles and that go in this minute.
        EventsPerMinute = "events_per_minute",
        /// The same that wait for a later one.
        Waiting = "waiting",
    }
}

/// How much a client has of what its quotas bound, and what was emitted for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientUsage {
    /// Its name.
    pub client_id: String,
    /// Each quota of it of which something is used; empty when it has none.
    pub quotas: Vec<QuotaUsage>,
    /// What was emitted for it on each of the last 32 days of UTC in which there was anything, the latest last. It is an estimate: told
    /// some five minutes later, and not by a process that died before.
    #[serde(default)]
    pub days: Vec<UsageDay>,
}

/// What was emitted for a client on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageDay {
    /// The day of UTC.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// Launches that were made.
    pub launches: u64,
    /// Launches that were not, each for a reason that its run tells.
    pub skipped: u64,
    /// Events of those that were made.
    pub events: u64,
    /// Those of them that a policy throttles.
    pub throttled_events: u64,
    /// What the events cost at the most, in dollars: list prices of us-east-1, without retries, calls that created jobs, and what the
    /// deployment costs when nothing is due.
    pub estimated_dollars: f64,
}

/// How much of a quota is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaUsage {
    /// Which.
    pub quota: QuotaName,
    /// How much there may be.
    pub most: u32,
    /// How much there is: never less than that, and more where something was deleted, or taken and not written, since it was last
    /// counted. Null when it was not counted yet, which the next write does.
    pub used: Option<u64>,
    /// When that was last counted; null when it was not, or is never, as for what a minute or a launch ends.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub counted_at: Option<String>,
}

/// How far the deletion of a client came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientDeletion {
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// What is being removed.
    pub stage: DeletionStage,
    /// Rows that were removed so far.
    pub removed: u64,
}

words! {
    /// What of a client that is deleted is removed, one after the other.
    DeletionStage {
        /// What launches: its rows in the time index, and one-time jobs with generated ids.
        Index = "index",
        /// Its jobs.
        Jobs = "jobs",
        /// Its policies, and what waits in them: 20 minutes after its jobs, once what was on its way has arrived.
        Policies = "policies",
        /// Runs.
        Runs = "runs",
        /// Events, dead letters and what is set aside.
        Events = "events",
        /// Calendars, secrets, keys, and itself.
        Client = "client",
    }
}

words! {
    /// Something that a key may be for.
    Scope {
        /// To see what there is.
        Read = "read",
        /// To create, change and delete jobs, policies and calendars; to cancel, redrive and discard.
        Schedule = "schedule",
        /// To release and extend tokens: what a consumer needs.
        Release = "release",
        /// To make and revoke keys and secrets of the client.
        Admin = "admin",
    }
}

/// A key of a client, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Key))]
pub struct KeyView {
    /// Its name: the first 12 characters of the SHA-256 of the key, in hex.
    #[cfg_attr(feature = "openapi", schema(example = "3f9a0c17be52"))]
    pub key_id: String,
    /// What it is for.
    pub scopes: Vec<Scope>,
    /// What is said of it; null when nothing.
    pub note: Option<String>,
    /// From when on it opens nothing; null: it does not end.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: Option<String>,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created_at: String,
}

/// A key that was just made. It is shown here and never again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewKey {
    /// What is known of it.
    #[serde(flatten)]
    pub key: KeyView,
    /// What the client sends as `Authorization: Bearer <key>`. Stored hashed: it cannot be shown again.
    #[cfg_attr(feature = "openapi", schema(example = "tg_acme_Jx0l4YqH3m0dT2mC8s1v5b7n9k2p4r6t8w0y1z3A5c7"))]
    pub api_key: String,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The keys of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyList {
    /// The keys, those that are over among them, by their names.
    pub keys: Vec<KeyView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
}

/// A client that was just registered, with its secrets. They are shown here and never again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisteredClient {
    /// The client.
    #[serde(flatten)]
    pub client: ClientView,
    /// What the client sends as `Authorization: Bearer <key>`. Stored hashed: it cannot be shown again.
    #[cfg_attr(feature = "openapi", schema(example = "tg_acme_Jx0l4YqH3m0dT2mC8s1v5b7n9k2p4r6t8w0y1z3A5c7"))]
    pub api_key: String,
    /// What HTTP deliveries are signed with (Standard Webhooks).
    #[cfg_attr(feature = "openapi", schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="))]
    pub webhook_secret: String,
}

/// A webhook secret that takes the place of another one. It is shown here and never again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookSecret {
    /// What HTTP deliveries are signed with from now on (Standard Webhooks).
    #[cfg_attr(feature = "openapi", schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="))]
    pub webhook_secret: String,
    /// Until when they are signed with the former one as well, RFC 3339; null when they are not.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub former_until: Option<String>,
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSecret").field("former_until", &self.former_until).finish_non_exhaustive()
    }
}

impl fmt::Debug for RegisteredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredClient").field("client", &self.client).finish_non_exhaustive()
    }
}
