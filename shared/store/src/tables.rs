//! The one definition of the tables. Local mode creates them from it; a test holds `template.yaml` against it.

/// The name of every table's partition key, as `template.yaml` has it. Its values are strings.
pub const PARTITION_KEY: &str = "pk";
/// The name of every table's sort key, as `template.yaml` has it. Its values are strings.
pub const SORT_KEY: &str = "sk";
/// The attribute that DynamoDB's time to live reads, in seconds since the epoch, as `template.yaml` says. DynamoDB
/// deletes such a row within days of that instant, not at it.
pub const EXPIRES_AT: &str = "expires_at";

/// A table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Jobs, by client.
    Jobs,
    /// The time index: children by zone, LaunchExpression and shard; instants by minute; the outbox.
    Launch,
    /// Runs and what was skipped, by job.
    Runs,
    /// Events and packed outcomes, by run; marks of sent chunks.
    Events,
    /// Policies, their slot groups and waiting lines; the list of active ones.
    Policies,
    /// Clients, their key hashes, calendars and secrets, and when each last changed something.
    Clients,
    /// The watermark, the shape of the index, parts of large scans and the parts of outages that were skipped.
    Ticker,
}

impl Table {
    /// All of them, in the order of this enum.
    pub const ALL: [Self; 7] =
        [Self::Jobs, Self::Launch, Self::Runs, Self::Events, Self::Policies, Self::Clients, Self::Ticker];

    /// Its name after the deployment's prefix, as in `template.yaml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Launch => "launch",
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Policies => "policies",
            Self::Clients => "clients",
            Self::Ticker => "ticker",
        }
    }

    /// Whether rows may carry [`EXPIRES_AT`], so that the table has a time to live.
    pub fn expires(self) -> bool {
        matches!(self, Self::Jobs | Self::Launch | Self::Runs | Self::Events | Self::Policies)
    }
}
