//! Who holds the tokens of a policy, as it travels: only ever read.

use serde::Serialize;
use tidegate_engine::{Holder, TokenKey};
use tidegate_protocol as protocol;
use utoipa::ToSchema;

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

/// Who holds the tokens of a policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HolderList {
    /// The holders, those whose lease ends first in front.
    pub(crate) holders: Vec<protocol::Holder>,
}

impl HolderList {
    pub(crate) fn new(holders: &[Holder], key: &TokenKey) -> Self {
        Self { holders: holders.iter().map(|holder| view(holder, key)).collect() }
    }
}
