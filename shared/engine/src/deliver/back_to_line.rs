//! Moving granted events back to the line of their policy.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::GroupKey;
use tidegate_store::{StoreError, Write};
use tracing::warn;

use super::Delivery;
use crate::effect::Granted;
use crate::error::readable;

impl Delivery {
    /// Before events of a slot group go back to the line: whether they may. Packs that went straight to the group are such as waited
    /// in the line from now on: once it gave an event back it knows nothing of it, and a message of its arrival that comes again would
    /// have it granted anew.
    pub(super) async fn may_go_back(&self, key: &GroupKey, events: impl Iterator<Item = &Granted>) -> bool {
        // What was sent before has been in the line since.
        let first = events.filter(|grant| grant.tries.is_none());
        let packs: BTreeSet<_> = first
            .filter_map(|grant| match &grant.pack {
                PackId::Singles(id) => Some(*id),
                PackId::Run(_) => None,
            })
            .collect();
        let policy = PolicyRef::of_key(key);
        for id in packs {
            let left = async {
                let pack = readable(self.contents.pack(&policy, id).await)?;
                if let Some(pack) = pack.filter(|pack| pack.straight.is_some()) {
                    self.store.forget_straight(&policy.client, &policy.policy, &pack).await?;
                }
                Ok::<(), crate::EngineError>(())
            };
            if let Err(error) = left.await {
                warn!(%error, group = ?key, "events are looked at again when their leases have ended");
                return false;
            }
        }
        true
    }
}

/// Moves events of one slot group back to the line: together, or one by one where one of them is not its any more. Those that are
/// there.
pub(super) async fn all_or_each<'e, T: Sync>(
    key: &GroupKey,
    events: &'e [T],
    write: impl Fn(&'e [T]) -> BoxFuture<'e, Result<Write, StoreError>>,
) -> Vec<&'e T> {
    let mut done: Vec<&T> = Vec::new();
    let one_by_one = events.chunks(1).filter(|_| events.len() > 1);
    for some in std::iter::once(events).chain(one_by_one) {
        match write(some).await {
            Ok(Write::Done) => done.extend(some),
            Ok(Write::Refused) => {}
            Err(error) => {
                warn!(%error, group = ?key, "events are looked at again when their leases have ended")
            }
        }
        if done.len() == events.len() {
            break;
        }
    }
    done
}
