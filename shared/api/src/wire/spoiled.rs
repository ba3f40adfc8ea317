//! What is stored and cannot be read: shown beside what can, with the reason.

use tidegate_protocol as protocol;
use tidegate_store::Unreadable;

/// Rows as they are answered, whose ids stand in their sort keys behind `prefix`.
pub(crate) fn views(rows: Vec<Unreadable>, prefix: &str) -> Vec<protocol::Unreadable> {
    let id = |key: &str| key.strip_prefix(prefix).unwrap_or(key).to_owned();
    rows.into_iter().map(|row| protocol::Unreadable { id: id(&row.sort_key), reason: row.reason }).collect()
}
