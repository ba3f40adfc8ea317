//! What a client may take of the deployment at the most, as an admin says.

use crate::bounded::bounded;
use crate::limits::{CREATES_PER_MINUTE, QUOTA_PAYLOAD_BYTES};

/// The quotas of a client; `None`: it may take as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// How many jobs it may write in a minute of UTC.
    pub creates_per_minute: Option<CreatesPerMinute>,
    /// How many bytes of JSON the payload of each of its jobs may have.
    pub payload_bytes: Option<PayloadBytes>,
}

bounded! {
    /// A number of jobs that are written in a minute.
    CreatesPerMinute(u32), "quotas.creates_per_minute", CREATES_PER_MINUTE
}

bounded! {
    /// A number of bytes of JSON that the payload of a job may have.
    PayloadBytes(u32), "quotas.payload_bytes", QUOTA_PAYLOAD_BYTES
}
