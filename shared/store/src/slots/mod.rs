//! Slot groups as rows of at most 1 KB: one transition of [`tidegate_domain::slots`] is one conditional write of one
//! write unit, and each answers with the row's image.
//!
//! Deliberately absent: any rule. What must hold and what changes is said by the transition.

mod expression;
pub(crate) mod outcomes;
mod row;
mod write;

use tidegate_domain::slots::GroupKey;

pub use write::Written;

use crate::item::Key;

pub(crate) fn key(group: &GroupKey) -> Key {
    Key::new(format!("{}|{}|{:04}", group.client, group.policy, group.group), "slots")
}
