//! A waiting event and what is around it: why it waits, what comes before it, when its turn is expected. Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::fair::Rank;
use tidegate_domain::flow::OnDeadline;
use tidegate_domain::ids::RunId;
use tidegate_domain::policy::OnExpiry;
use tidegate_domain::slots::{Range, SlotGroup};
use tidegate_domain::time::shifted;
use tidegate_store::line::{LineEntry, Pending};
use tidegate_store::runs::RunRow;

use super::Holder;
use super::reason::{ExpectationBasis, Reason};
use crate::queries::PolicyStatus;
use crate::queries::forecast::{SoFar, seconds};
use crate::queries::history::home;

/// What there is to know about a policy around a waiting event.
pub(super) struct WaitContext<'a> {
    pub(super) run: &'a RunRow,
    pub(super) index: u32,
    pub(super) status: &'a PolicyStatus,
    pub(super) groups: &'a [SlotGroup],
    pub(super) holders: &'a [Holder],
    pub(super) now: DateTime<Utc>,
    /// When its policy's rate lets the next event begin.
    pub(super) rate_allows_at: Option<DateTime<Utc>>,
}

/// Where a waiting event stands.
pub(super) struct Position {
    /// Its entry of the line; `None` when a slot group took it from there already.
    pub(super) entry: Option<LineEntry>,
    pub(super) events_before: u64,
}

/// How fast a run gets on.
pub(super) struct Measured {
    pub(super) per_second: f64,
    /// Whether it is the event's own run, and not the one that holds most tokens.
    pub(super) is_own: bool,
    pub(super) so_far: SoFar,
}

/// What keeps an event that is to be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocker {
    /// Nothing is admitted until somebody does something.
    Halt,
    /// Not before an instant.
    Until(DateTime<Utc>),
    /// Tokens are free, and its policy's rate lets it begin at an instant.
    Rate(DateTime<Utc>),
    /// Others have the tokens, or come first.
    Others,
}

impl WaitContext<'_> {
    fn run_id(&self) -> &RunId {
        &self.run.id
    }

    /// Where the event stands in the line, or in the part of it that a slot group took.
    pub(super) fn position(&self, entries: Vec<LineEntry>) -> Position {
        let (pack, own_index) = home(self.run);
        let index = own_index.unwrap_or(self.index);
        let own = self.groups.iter().filter(|group| group.serves(&pack)).filter_map(SlotGroup::range);
        let before = |range: &Range| index.checked_sub(range.next).filter(|before| *before < range.left);
        if let Some(before) = own.filter_map(before).next() {
            return Position { entry: None, events_before: before.into() };
        }
        let is_own = |entry: &LineEntry| entry.pack == pack && (entry.cursor..entry.count).contains(&index);
        let mut events_before: u64 =
            self.groups.iter().filter_map(SlotGroup::range).map(|range| u64::from(range.left)).sum();
        let due_by = self.now.max(self.run_id().launch_at());
        let Some(own) = entries.iter().find(|entry| is_own(entry)).cloned() else {
            // It is being moved between two rows, so its position is not known at the moment.
            return Position { entry: None, events_before: 0 };
        };
        let mut before_in_lane = u64::from(index - own.cursor);
        let mut other_lanes = BTreeMap::<Rank, u64>::new();
        for entry in entries.iter().filter(|entry| entry.launch_at <= due_by) {
            let (rank, waiting) = (entry.rank(), u64::from(entry.left()));
            match rank.priority.cmp(&own.rank().priority) {
                Ordering::Less => events_before += waiting,
                Ordering::Equal if rank != own.rank() => *other_lanes.entry(rank).or_default() += waiting,
                Ordering::Equal if entry.line_key < own.line_key => before_in_lane += waiting,
                _ => {}
            }
        }
        // Lanes take turns: by its own turn, each other one had about as many.
        let turns = other_lanes.values().map(|waiting| (*waiting).min(before_in_lane + 1));
        events_before += turns.sum::<u64>() + before_in_lane;
        Position { entry: Some(own), events_before }
    }

    /// The run, other than the event's own, whose events hold most tokens.
    pub(super) fn busiest_run(&self) -> Option<RunId> {
        let mut held = BTreeMap::<&RunId, u32>::new();
        for holder in self.holders {
            *held.entry(holder.event.run()).or_default() += holder.cost;
        }
        held.remove(self.run_id());
        held.into_iter().max_by_key(|(_, held)| *held).map(|(run, _)| run.clone())
    }

    /// Why the event waits. Of several reasons the first is told: its launch, a pause or overlap rule, a failure, pacing, tokens,
    /// the rate. Each would keep it waiting even if none of the others did.
    pub(super) fn reason(&self, position: &Position) -> (Reason, Blocker) {
        self.unlaunched()
            .or_else(|| self.halted(position))
            .or_else(|| self.retrying(position))
            .or_else(|| self.paced(position))
            .or_else(|| self.full())
            .or_else(|| self.rated(position))
            .unwrap_or_else(|| {
                let blocker =
                    if position.events_before == 0 { Blocker::Until(self.now) } else { Blocker::Others };
                (Reason::TokensFree, blocker)
            })
    }

    fn unlaunched(&self) -> Option<(Reason, Blocker)> {
        let launch_at = self.run_id().launch_at();
        (launch_at > self.now).then_some((Reason::NotLaunched { launch_at }, Blocker::Until(launch_at)))
    }

    fn halted(&self, position: &Position) -> Option<(Reason, Blocker)> {
        if self.status.policy.paused {
            return Some((Reason::PolicyPaused, Blocker::Halt));
        }
        if let Some(closed) = self.status.policy.closed() {
            return Some((Reason::PolicyClosed(closed), Blocker::Until(closed.until)));
        }
        if let Some(sidelined) = self.status.policy.sidelined.as_ref().filter(|sidelined| sidelined.is_held())
        {
            return Some((Reason::Sidelined { since: sidelined.since }, Blocker::Halt));
        }
        Some(match position.entry.as_ref()?.overlap? {
            Pending::Buffered => (Reason::EarlierRun, Blocker::Halt),
            Pending::Skip | Pending::BufferOne => (Reason::OverlapUndecided, Blocker::Others),
        })
    }

    fn retrying(&self, position: &Position) -> Option<(Reason, Blocker)> {
        let entry = position.entry.as_ref()?;
        let (tries, due_at) = (entry.tries()?, entry.launch_at);
        let since = DateTime::from_timestamp(tries.since_s, 0).unwrap_or_default();
        let reason = Reason::Retrying { failed: tries.failed, since, due_at };
        (due_at > self.now).then_some((reason, Blocker::Until(due_at)))
    }

    fn paced(&self, position: &Position) -> Option<(Reason, Blocker)> {
        let window = self.run.terms.flow.window.filter(|window| window.paced && position.entry.is_some())?;
        let count = self.run.terms.count.get();
        let admits_at = window.admits_at(self.run_id().launch_at(), count, self.index);
        (admits_at > self.now).then_some((Reason::Paced { count, admits_at }, Blocker::Until(admits_at)))
    }

    fn full(&self) -> Option<(Reason, Blocker)> {
        let (held, limit) = (self.status.load.in_flight, self.status.policy.limit());
        let cost = self.run.terms.flow.cost.get().min(limit);
        let reason = match () {
            () if held > limit => Reason::Draining { held, limit },
            () if held + cost > limit => {
                Reason::TokensHeld { held, limit, cost, holders: self.holders.len() }
            }
            () => return None,
        };
        Some((reason, Blocker::Others))
    }

    /// Tokens are free, but the rate does not let the events before it and itself begin yet.
    fn rated(&self, position: &Position) -> Option<(Reason, Blocker)> {
        let rate = self.status.policy.rate()?;
        let turn_at = self.rate_lets_it_begin_at(position, self.now)?;
        (turn_at > self.now).then_some((Reason::Rate { rate, turn_at }, Blocker::Rate(turn_at)))
    }

    /// When the rate lets the event begin, if those before it begin from `from` on as soon as the rate lets them. An instant
    /// of the past: at once.
    fn rate_lets_it_begin_at(&self, position: &Position, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let rate = self.status.policy.rate()?;
        let next_at = self.rate_allows_at?;
        let first_at = if from > self.now { next_at.max(from) } else { next_at };
        Some(shifted(first_at, seconds(position.events_before as f64 / rate.per_second())))
    }

    /// When it is expected to be admitted, and what that follows from.
    pub(super) fn expectation(
        &self,
        position: &Position,
        blocker: Blocker,
        measured: Option<Measured>,
    ) -> (Option<DateTime<Utc>>, Vec<ExpectationBasis>) {
        let mut basis = vec![ExpectationBasis::EventsBefore(position.events_before)];
        let from = match blocker {
            Blocker::Halt => {
                basis.push(ExpectationBasis::EndUnknown);
                return (None, basis);
            }
            Blocker::Rate(turn_at) => {
                basis.extend(self.rate_bound(turn_at, true));
                return (self.within_window(Some(turn_at), &mut basis), basis);
            }
            Blocker::Until(instant) => instant,
            Blocker::Others => self.now,
        };
        let free_now = blocker != Blocker::Others && position.events_before == 0;
        let mut expected_at = match measured {
            _ if free_now => Some(from),
            Some(Measured { per_second, is_own, so_far }) => {
                let after = seconds((position.events_before as f64 + 1.0) / per_second);
                basis.push(match is_own {
                    true => ExpectationBasis::OwnSpeed(so_far),
                    false => ExpectationBasis::HoldersSpeed(so_far),
                });
                basis.push(ExpectationBasis::Turn { after, per_second });
                Some(from.max(shifted(self.now, after)))
            }
            None => {
                basis.push(ExpectationBasis::SpeedUnknown);
                basis.extend(self.first_lease_end());
                None
            }
        };
        if let Some(bound) = self.rate_lets_it_begin_at(position, from) {
            basis.extend(self.rate_bound(bound, false));
            expected_at = expected_at.map(|at| at.max(bound));
        }
        (self.within_window(expected_at, &mut basis), basis)
    }

    /// When the rate lets its turn come.
    fn rate_bound(&self, turn_at: DateTime<Utc>, is_exact: bool) -> Option<ExpectationBasis> {
        let rate = self.status.policy.rate()?;
        Some(ExpectationBasis::Rate { rate, turn_at: turn_at.max(self.now), is_exact })
    }

    /// When the first lease ends, where the policy then takes the token back.
    fn first_lease_end(&self) -> Option<ExpectationBasis> {
        let first =
            self.holders.first().filter(|_| self.status.policy.terms.on_expiry() == OnExpiry::Reclaim)?;
        Some(ExpectationBasis::FirstLeaseEnd(first.lease_end))
    }

    /// An event that is not admitted before its window ends may never be.
    fn within_window(
        &self,
        expected_at: Option<DateTime<Utc>>,
        basis: &mut Vec<ExpectationBasis>,
    ) -> Option<DateTime<Utc>> {
        let window = self.run.terms.flow.window.filter(|window| window.on_deadline == OnDeadline::Expire);
        let Some(window) = window else { return expected_at };
        let ends_at = window.ends_at(self.run_id().launch_at());
        let is_before = expected_at.is_none_or(|at| at < ends_at);
        basis.push(match is_before {
            true => ExpectationBasis::LeftOutAtDeadline(ends_at),
            false => ExpectationBasis::AfterDeadline(ends_at),
        });
        expected_at.filter(|_| is_before)
    }
}
