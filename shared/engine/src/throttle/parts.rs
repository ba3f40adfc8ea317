//! Runs that wait in several entries of the line: how many, and which of them a slot group takes of.
//!
//! An entry remembers the last range of each group that took of it. So that it stays small, a run of many events under a
//! policy of many groups is cut into parts, one for each [`Spread::groups_per_part`](tidegate_store::Spread) groups. A group
//! takes of its own part, and of the others when nothing is left there.

use tidegate_domain::flow::Overlap;
use tidegate_domain::limits::TOKENS_PER_GROUP;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::slots::SlotGroup;
use tidegate_store::line::{LineEntry, Portion, has_lane, is_part};

use super::Throttle;
use crate::EngineError;

/// A turn of a lane fills the slots that are free, or this part of all: with less, each release of a single token would take
/// a range of its own.
const TURNS_HELD: u32 = 4;

/// What a slot group is supplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supply {
    /// Events for the slots that are free: its neighbours are looked at as well, and may have free slots for the others.
    Room,
    /// Its share of them: few wait, and neighbours may have free slots for them.
    Share,
    /// Events for slots that come free later, too: somebody released here, and will again.
    Reserve {
        /// How many events of the same rank wait in the entries behind, as far as they were seen.
        behind: u32,
    },
    /// A turn of one lane: others wait, and are served after it.
    Turn,
}

impl Supply {
    /// Before anything of the line was seen.
    pub(super) const RESERVE: Self = Self::Reserve { behind: 0 };

    /// What a group is supplied with of a line whose head was seen: no more than its share where it has no more events than
    /// the policy has tokens. `whole`: nothing waits behind its head.
    pub(super) fn at(self, (taken, head): (&LineEntry, &[LineEntry]), whole: bool, limit: u32) -> Self {
        if has_lane(&taken.line_key) && !(whole && head.iter().all(|entry| entry.rank() == taken.rank())) {
            return Self::Turn;
        }
        let all = head.iter().map(LineEntry::left).fold(0, u32::saturating_add);
        match self {
            Self::Reserve { .. } if whole && all <= limit => Self::Share,
            // Of a run in parts each group has its own.
            Self::Reserve { .. } if is_part(&taken.line_key) => Self::RESERVE,
            Self::Reserve { .. } => {
                let alike =
                    head.iter().filter(|entry| entry.rank() == taken.rank() && entry.overlap.is_none());
                let others = alike.filter(|entry| entry.line_key != taken.line_key);
                Self::Reserve { behind: others.map(LineEntry::left).fold(0, u32::saturating_add) }
            }
            supply => supply,
        }
    }
}

impl Throttle {
    /// In how many parts an occurrence joins its line. A run that is paced, or that an overlap rule decides about, is one:
    /// it is served in the order of its events, and decided about once.
    pub(crate) async fn parts_of(&self, occurrence: &Occurrence) -> Result<u32, EngineError> {
        let Occurrence { client, terms, .. } = occurrence;
        let in_order = terms.flow.window.is_some() || terms.flow.overlap != Overlap::Allow;
        let most = terms.count.get() / self.tokens_per_part();
        let Some(policy) = terms.policy.as_ref().filter(|_| !in_order && most > 1) else { return Ok(1) };
        let snapshot = self.snapshot(client, policy, 0).await?;
        let parts = snapshot.map_or(1, |snapshot| snapshot.max_in_flight.div_ceil(self.tokens_per_part()));
        Ok(parts.clamp(1, most))
    }

    /// Whether runs of a group's policy may wait in parts.
    pub(super) fn has_parts(&self, group: &SlotGroup) -> bool {
        group.share.limit > self.tokens_per_part()
    }

    /// The entry that a group takes of, when it may take of `first`, which stands in the line's head.
    pub(super) fn own_part(&self, group: &SlotGroup, first: &LineEntry, head: &[LineEntry]) -> LineEntry {
        let left = head.iter().filter(|entry| entry.pack == first.pack && !entry.is_exhausted());
        let parts: Vec<_> = left.filter_map(|entry| Some((entry.part()?, entry))).collect();
        let Some((last, _)) = parts.last().filter(|_| first.part().is_some()) else { return first.clone() };
        let own = self.store.spread().part_of(group.key.group) % (last + 1);
        let nearest = parts.iter().min_by_key(|(part, _)| (*part < own, *part));
        nearest.map_or(first, |(_, entry)| entry).clone()
    }

    /// What a group takes of an entry whose events have a cost. A group that has neighbours leaves most of it to them, the
    /// more so towards the end: what one group alone has left of a run, its neighbours' free slots cannot serve.
    /// Of a lane it never has more than its slots: others may join the line meanwhile, and wait for a turn.
    pub(super) fn portion(
        &self,
        group: &SlotGroup,
        line_key: &str,
        (supply, cost): (Supply, u32),
    ) -> Portion {
        let (cap, limit) = (group.share.cap, group.share.limit);
        let shared = if is_part(line_key) { limit.min(self.tokens_per_part()) } else { limit };
        let room = group.slots_for(u32::MAX, cost).len() as u32;
        let slots = cap.checked_div(group.weight(cost)).unwrap_or(cap);
        match supply {
            Supply::Turn => Portion::Exactly(room.max(slots / TURNS_HELD)),
            _ if has_lane(line_key) => Portion::Exactly(room.max(slots)),
            _ if cap >= shared => Portion::Part { cap, of: cap, least: cap, step: slots, behind: 0 },
            Supply::Room => Portion::Exactly(room),
            Supply::Share => Portion::Part { cap, of: shared, least: room, step: 1, behind: 0 },
            Supply::Reserve { behind } => {
                let of = shared.saturating_mul(2);
                Portion::Part { cap, of, least: cap, step: slots, behind }
            }
        }
    }

    fn tokens_per_part(&self) -> u32 {
        self.store.spread().groups_per_part.saturating_mul(TOKENS_PER_GROUP)
    }
}
