//! Slot groups as rows of at most 1 KB: one transition of [`tidegate_domain::slots`] is one conditional write of one
//! write unit, and each answers with the row's image.
//!
//! Deliberately absent: any rule. What must hold and what changes is said by the transition.

mod expression;
pub(crate) mod outcomes;
mod row;
mod write;

use tidegate_domain::slots::{GroupKey, SlotGroup};

pub(crate) use row::changes as changes_of_row;
pub use write::Written;

use crate::Result;
use crate::item::{Attributes, Item, Key};
use crate::tables::{PARTITION_KEY, Table};

/// Reads the row of a slot group; `None` when its keys are not those of one.
pub(crate) fn read_row(attributes: &Attributes) -> Option<Result<SlotGroup>> {
    let mut name = Item::new(Table::Policies, attributes).find_text(PARTITION_KEY)?.split('|');
    let (client, policy, group) = (name.next()?, name.next()?, name.next()?);
    let key =
        GroupKey { client: client.parse().ok()?, policy: policy.parse().ok()?, group: group.parse().ok()? };
    Some(row::read(&key, attributes))
}

pub(crate) fn key(group: &GroupKey) -> Key {
    Key::new(format!("{}|{}|{:04}", group.client, group.policy, group.group), "slots")
}
