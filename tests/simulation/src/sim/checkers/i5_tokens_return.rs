//! I5: no token is lost: after all leases end, the bucket is full again.
//!
//! A group says of itself that it holds as many tokens as its leases do; at the end of a history none holds any.

use tidegate_domain::slots::SlotGroup;

use super::{Verdict, Violation};
use crate::sim::watch::Change;

/// What a group says that it holds is what its leases hold.
pub(crate) fn adds_up(change: &Change<'_>) -> Verdict {
    let Some(after) = change.after else { return Ok(()) };
    let tokens: u32 = after.leases.values().map(|lease| lease.id.cost).sum();
    if after.held != tokens {
        let message = format!("{:?} says {} and has leases of {tokens}", change.key, after.held);
        return Err(Violation::new("I5", "a group miscounts its tokens", message));
    }
    Ok(())
}

/// No token is held.
pub(crate) fn all_returned<'a>(mut groups: impl Iterator<Item = &'a SlotGroup>) -> Verdict {
    match groups.find(|group| !group.leases.is_empty() || group.held > 0) {
        Some(group) => {
            let message = format!("{:?}: {:?}", group.key, group.leases);
            Err(Violation::new("I5", "tokens are lost", message))
        }
        None => Ok(()),
    }
}
