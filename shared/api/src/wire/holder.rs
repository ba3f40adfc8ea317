//! Who holds the tokens of a policy, as it travels: only ever read.

use serde::Serialize;
use tidegate_engine::{Holder, TokenKey};
use utoipa::ToSchema;

use crate::wire::instant;

/// One token that is held.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Holder)]
pub(crate) struct HolderView {
    /// The token.
    token: String,
    /// The event that holds it.
    #[schema(example = "nightly.3.1790000000.17")]
    event_id: String,
    /// Which delivery of the event it is, from 1.
    attempt: u8,
    /// How many tokens of the limit it takes.
    cost: u32,
    /// When its lease ends, or ended.
    #[schema(format = DateTime)]
    lease_expires_at: String,
    /// Whether its lease ran out: it is about to be taken back, or held until it is freed where the policy holds.
    expired: bool,
}

impl HolderView {
    /// A holder, with its token as its consumer has it.
    pub(crate) fn new(holder: Holder, key: &TokenKey) -> Self {
        Self {
            token: key.sign(&holder.token).to_string(),
            event_id: holder.event.to_string(),
            attempt: holder.attempt,
            cost: holder.cost,
            lease_expires_at: instant(holder.lease_end),
            expired: holder.expired,
        }
    }
}

/// Who holds the tokens of a policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HolderList {
    /// The holders, those whose lease ends first in front.
    pub(crate) holders: Vec<HolderView>,
}

impl HolderList {
    pub(crate) fn new(holders: Vec<Holder>, key: &TokenKey) -> Self {
        Self { holders: holders.into_iter().map(|holder| HolderView::new(holder, key)).collect() }
    }
}
