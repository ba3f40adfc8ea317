//! What a client may take of the deployment at the most, as an admin says.

use crate::bounded::bounded;
use crate::limits::CREATES_PER_MINUTE;

/// The quotas of a client; `None`: it may take as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// How many jobs it may write in a minute of UTC.
    pub creates_per_minute: Option<CreatesPerMinute>,
}

bounded! {
    /// A number of jobs that are written in a minute.
    CreatesPerMinute(u32), "quotas.creates_per_minute", CREATES_PER_MINUTE
}
