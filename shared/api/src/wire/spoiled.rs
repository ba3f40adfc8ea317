//! What is stored and cannot be read: shown beside what can, with the reason.

use serde::{Deserialize, Serialize};
use tidegate_store::Unreadable;
use utoipa::ToSchema;

/// Something that is stored and that this version cannot read. It was left as it is.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Unreadable)]
pub(crate) struct UnreadableView {
    /// What it is known by in its list.
    id: String,
    /// Which row it is, and why it cannot be read.
    reason: String,
}

impl UnreadableView {
    /// Rows whose ids stand in their sort keys behind `prefix`.
    pub(crate) fn all(rows: Vec<Unreadable>, prefix: &str) -> Vec<Self> {
        let id = |key: &str| key.strip_prefix(prefix).unwrap_or(key).to_owned();
        rows.into_iter().map(|row| Self { id: id(&row.sort_key), reason: row.reason }).collect()
    }
}
