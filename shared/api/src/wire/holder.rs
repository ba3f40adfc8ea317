//! Who holds the tokens of a policy, as it travels: only ever read.

use tidegate_engine::{Holder, TokenKey};
use tidegate_protocol as protocol;

use crate::wire::instant;

/// A holder as it is answered, with its token as its consumer has it.
pub(crate) fn view(holder: &Holder, key: &TokenKey) -> protocol::Holder {
    protocol::Holder {
        token: key.sign(&holder.token).to_string(),
        event_id: holder.event.to_string(),
        attempt: holder.attempt.into(),
        cost: holder.cost,
        lease_expires_at: instant(holder.lease_end),
        expired: holder.expired,
    }
}

/// The holders as they are answered.
pub(crate) fn list(holders: &[Holder], key: &TokenKey) -> protocol::HolderList {
    protocol::HolderList { holders: holders.iter().map(|holder| view(holder, key)).collect() }
}
