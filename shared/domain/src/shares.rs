//! How a policy's limit is shared out to its slot groups, and how the shares move when the limit changes.
//!
//! Each group grants within its own share, with a write on its own row. So the shares must never permit more than the
//! limit together, and while more is in flight than a lowered limit, nobody may grant at all.

use crate::limits::TOKENS_PER_GROUP;

/// Which share each slot group of a policy has, in tokens.
///
/// Invariant: a plan with a higher number replaces one with a lower; a group that follows an older plan has a share
/// that the newer one accounts for.
///
/// ```
/// use tidegate_domain::shares::SharePlan;
///
/// let plan = SharePlan::new(1, 30);
/// assert_eq!(plan.caps, [10, 10, 10]);
/// assert_eq!((plan.groups(), plan.cap(2), plan.cap(3)), (3, 10, 0));
/// assert_eq!(SharePlan::decode(1, &plan.encode()), Some(plan));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharePlan {
    /// Rises with each plan of the policy, by one or more.
    pub number: u64,
    /// The shares in tokens, by group number. Groups of a former, higher limit stay at 0.
    pub caps: Vec<u32>,
}

/// How many slot groups share a limit of so many tokens: as few as hold it, with [`TOKENS_PER_GROUP`] each.
pub fn groups(limit: u32) -> u32 {
    limit.div_ceil(TOKENS_PER_GROUP)
}

/// The share, in tokens, that a group is to have in the end: [`TOKENS_PER_GROUP`], the last one what is left of `limit`,
/// those beyond it 0.
pub fn target(limit: u32, group: u32) -> u32 {
    limit.saturating_sub(group.saturating_mul(TOKENS_PER_GROUP)).min(TOKENS_PER_GROUP)
}

impl SharePlan {
    /// The first plan of a policy, under a number that is higher than that of any former policy of its name.
    pub fn new(number: u64, limit: u32) -> Self {
        Self { number, caps: (0..groups(limit)).map(|group| target(limit, group)).collect() }
    }

    /// The share of a group, in tokens; 0 beyond the last.
    pub fn cap(&self, group: u32) -> u32 {
        self.caps.get(group as usize).copied().unwrap_or(0)
    }

    /// How many groups there are, those of a former limit included.
    pub fn groups(&self) -> u32 {
        u32::try_from(self.caps.len()).unwrap_or(u32::MAX)
    }

    /// The plan when the limit changes `from` one `to` another (0 while the policy is paused). A single group needs no
    /// more than its new share: its own row knows all that is held. Several begin at nothing when the limit falls,
    /// because none of them can see what the others hold; [`SharePlan::advanced`] then hands the shares out again.
    #[must_use]
    pub fn changed(&self, from: u32, to: u32) -> Self {
        let length = self.groups().max(groups(to));
        let caps = match length {
            ..=1 => vec![to],
            _ if to < from => vec![0; length as usize],
            _ => (0..length).map(|group| self.cap(group)).collect(),
        };
        Self { number: self.number + 1, caps }
    }

    /// The next plan towards the shares of `limit`, given what the groups hold once they all follow this one; `None` when
    /// nothing can be moved.
    ///
    /// Shares of a version that gave groups others begin at nothing, too.
    ///
    /// Invariant: the sum of what each group holds or may hold, whichever is more, stays within the limit. What is
    /// held may only have fallen since it was read below the old share, and never risen above it.
    pub fn advanced(&self, limit: u32, held: &[u32]) -> Option<Self> {
        let held = |group: u32| held.get(group as usize).copied().unwrap_or(0);
        let numbers = 0..self.groups().max(groups(limit));
        if numbers.clone().any(|group| self.cap(group) > target(limit, group)) {
            // Of a version that gave groups other shares: as when a limit falls.
            return Some(Self { number: self.number + 1, caps: vec![0; numbers.len()] });
        }
        let reach = |cap: u32, group: u32| cap.max(held(group));
        let taken: u32 = numbers.clone().map(|group| reach(self.cap(group), group)).sum();
        let mut room = limit.checked_sub(taken)?;
        let mut caps = Vec::with_capacity(self.caps.len());
        for group in numbers {
            let (cap, goal) = (self.cap(group), target(limit, group));
            let free = reach(cap, group);
            // Up to what it holds, a share costs no room.
            let next = goal.min(free.saturating_add(room)).max(cap);
            room -= reach(next, group) - free;
            caps.push(next);
        }
        (caps != self.caps).then_some(Self { number: self.number + 1, caps })
    }

    /// Whether every group has the share of `limit` that it is to have.
    pub fn is_reached(&self, limit: u32) -> bool {
        (0..self.groups().max(groups(limit))).all(|group| self.cap(group) == target(limit, group))
    }

    /// The shares as text, runs of equal ones together: `10x1000`.
    pub fn encode(&self) -> String {
        let runs = self.caps.chunk_by(|a, b| a == b);
        let text = |run: &[u32]| match run {
            [cap] => cap.to_string(),
            _ => format!("{}x{}", run.first().copied().unwrap_or(0), run.len()),
        };
        runs.map(text).collect::<Vec<_>>().join(",")
    }

    /// Reads what [`SharePlan::encode`] wrote; `None` when it did not.
    pub fn decode(number: u64, text: &str) -> Option<Self> {
        let mut caps = Vec::new();
        for run in text.split(',') {
            let (cap, times) = run.split_once('x').unwrap_or((run, "1"));
            let times: usize = times.parse().ok().filter(|times| *times <= 10_000)?;
            caps.extend(std::iter::repeat_n(cap.parse::<u32>().ok()?, times));
        }
        Some(Self { number, caps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_add_up_to_the_limit_and_fit_their_groups() {
        for limit in (1..200).chain([999, 1_000, 10_000]) {
            let plan = SharePlan::new(1, limit);
            assert_eq!(plan.caps.iter().sum::<u32>(), limit);
            assert!(plan.caps.iter().all(|cap| (1..=TOKENS_PER_GROUP).contains(cap)), "{plan:?}");
            assert!(plan.is_reached(limit));
            assert_eq!(SharePlan::decode(1, &plan.encode()), Some(plan));
        }
        assert_eq!(SharePlan::new(1, 10_000).encode(), "10x1000");
        assert_eq!(SharePlan::decode(1, "12x"), None);
    }

    /// A plan of a version that gave groups twelve tokens.
    fn of_twelves(limit: u32) -> SharePlan {
        let caps = (0..limit.div_ceil(12)).map(|group| (limit - group * 12).min(12)).collect();
        SharePlan { number: 1, caps }
    }

    /// Whatever is held, whatever order limits and releases come in: the groups together grant nothing beyond the limit.
    #[test]
    fn no_order_of_changes_and_releases_lets_more_in_flight_than_the_limit() {
        let mut dice: u64 = 7;
        let mut roll = |sides: u32| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(dice >> 33).unwrap_or(0) % sides
        };
        for _ in 0..300 {
            let mut limit = 1 + roll(60);
            let mut plan = if roll(2) == 0 { of_twelves(limit) } else { SharePlan::new(1, limit) };
            let mut held = vec![0_u32; 6];
            for _ in 0..120 {
                match roll(6) {
                    0 => {
                        let before = limit;
                        limit = roll(61);
                        plan = plan.changed(before, limit);
                    }
                    1 => plan = plan.advanced(limit, &held).unwrap_or(plan),
                    2 | 3 => {
                        let group = roll(6);
                        let in_all: u32 = held.iter().sum();
                        if held[group as usize] < plan.cap(group) {
                            held[group as usize] += 1;
                            assert!(in_all < limit, "{in_all} in flight, limit {limit}: {plan:?} {held:?}");
                        }
                    }
                    _ => {
                        let group = roll(6) as usize;
                        held[group] = held[group].saturating_sub(1);
                    }
                }
            }
            while let Some(next) = plan.advanced(limit, &[]) {
                plan = next;
            }
            assert!(plan.is_reached(limit), "{limit}: {plan:?}");
        }
    }

    #[test]
    fn a_plan_that_cannot_move_says_so() {
        let plan = SharePlan::new(1, 24).changed(24, 20);
        assert_eq!(plan.caps, [0, 0, 0]);
        assert_eq!(plan.advanced(20, &[10, 10, 1]), None);
        let moved = plan.advanced(20, &[10, 9, 1]).unwrap();
        assert_eq!((moved.number, &*moved.caps), (3, &[10, 9, 0][..]));
        assert_eq!(moved.advanced(20, &[10, 9, 0]).unwrap().caps, [10, 10, 0]);
    }

    #[test]
    fn shares_of_twelve_are_handed_out_anew() {
        let held = [12, 12, 12, 12, 2];
        let plan = of_twelves(50).advanced(50, &held).unwrap();
        assert_eq!(plan.caps, [0; 5]);
        let plan = plan.advanced(50, &held).unwrap();
        assert_eq!(plan.caps, [10, 10, 10, 10, 2]);
        let plan = plan.advanced(50, &[11, 10, 10, 10, 2]).unwrap();
        assert_eq!(plan.caps, [10, 10, 10, 10, 9]);
        assert_eq!(of_twelves(12).advanced(12, &[5]).unwrap().caps, [0, 0]);
    }
}
