//! Secrets that deliveries are signed with.

use crate::bounded::bounded;
use crate::limits::{DEFAULT_FORMER_SECRET_SECONDS, FORMER_SECRET_SECONDS};

bounded! {
    /// For how long a webhook secret that was replaced is signed with beside the new one, in seconds.
    KeptSeconds(u32), "keep_seconds", FORMER_SECRET_SECONDS, default DEFAULT_FORMER_SECRET_SECONDS
}
