//! Moving granted events back to the line of their policy.

use futures::future::BoxFuture;
use tidegate_domain::slots::GroupKey;
use tidegate_store::{StoreError, Write};
use tracing::warn;

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
