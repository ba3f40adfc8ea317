//! Fair shares: the lanes of a line take turns.
//!
//! A slot group serves the lanes of a priority in the order of their names, each for one turn, and goes on behind the one that
//! it served last: the pack that it was last refilled from says which. So no lane waits for more than one turn of each other
//! one, whatever their backlogs, and nothing is stored for it. What has no lane is served as if it were one, the last.

use tidegate_domain::fair::Rank;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::SlotGroup;
use tidegate_store::line::LineEntry;

use super::Throttle;
use crate::EngineError;
use crate::error::readable;

/// Entries that are looked at behind the lane that was served last.
const LOOK_BEHIND: i32 = 8;

impl Throttle {
    /// The head of a line in the order in which it is a group's turn to serve it. `whole`: nothing waits behind it.
    pub(super) async fn in_turn(
        &self,
        group: &SlotGroup,
        head: Vec<LineEntry>,
        whole: bool,
    ) -> Result<Vec<LineEntry>, EngineError> {
        let Some(first) = head.first().map(LineEntry::rank).filter(|rank| rank.lane.is_some()) else {
            return Ok(head);
        };
        let last = self.last_rank(group).await?;
        let Some(served) = last.filter(|last| last.priority == first.priority) else { return Ok(head) };
        let is_next = |entry: &LineEntry| entry.rank() > served && entry.rank().priority == served.priority;
        let (mut next, rest): (Vec<_>, Vec<_>) = head.into_iter().partition(is_next);
        if next.is_empty() && !whole {
            next = self.line_after(&PolicyRef::of(group), served, LOOK_BEHIND).await?;
        }
        next.extend(rest);
        Ok(next)
    }

    /// The rank of what a group was last refilled from; `None` where nobody knows any more.
    async fn last_rank(&self, group: &SlotGroup) -> Result<Option<Rank>, EngineError> {
        // What is sent again waits in no lane: behind it, the first one has its turn.
        let Some(last) = group.last_served().filter(|last| last.tries.is_none()) else { return Ok(None) };
        Ok(match &last.pack {
            PackId::Singles(id) => Some(id.kind.rank),
            PackId::Run(run) => {
                let terms = readable(self.contents.run_terms(&group.key.client, run).await)?;
                terms.map(|terms| terms.terms.flow.rank())
            }
        })
    }
}
