//! A waiting event and what is around it: why it waits, what comes before it, when its turn is expected. Pure.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::flow::OnDeadline;
use tidegate_domain::ids::RunId;
use tidegate_domain::policy::OnExpiry;
use tidegate_domain::slots::{Range, SlotGroup};
use tidegate_domain::time::shifted;
use tidegate_store::line::{LineEntry, Pending};
use tidegate_store::runs::RunRow;

use super::Holder;
use crate::queries::PolicyStatus;
use crate::queries::forecast::{clock_text, length_text, per_second, rate_text, seconds, speed_text};
use crate::queries::history::home;

/// Holders that are named in a sentence.
const NAMED_HOLDERS: usize = 3;

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
pub(super) struct Place {
    /// Its entry of the line; `None` when a slot group took it from there already.
    pub(super) entry: Option<LineEntry>,
    pub(super) events_before: u64,
}

/// A measured speed, and the words that say how.
pub(super) struct Measured {
    pub(super) per_second: f64,
    pub(super) words: String,
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
    pub(super) fn place(&self, entries: Vec<LineEntry>) -> Place {
        let (pack, own_index) = home(self.run);
        let index = own_index.unwrap_or(self.index);
        let own = self.groups.iter().filter(|group| group.serves(&pack)).filter_map(SlotGroup::range);
        let before = |range: &Range| index.checked_sub(range.next).filter(|before| *before < range.left);
        if let Some(before) = own.filter_map(before).next() {
            return Place { entry: None, events_before: before.into() };
        }
        let is_own = |entry: &LineEntry| entry.pack == pack && (entry.cursor..entry.count).contains(&index);
        let mut events_before: u64 =
            self.groups.iter().filter_map(SlotGroup::range).map(|range| u64::from(range.left)).sum();
        let due_by = self.now.max(self.run_id().launch_at());
        for entry in entries {
            if is_own(&entry) {
                events_before += u64::from(index - entry.cursor);
                return Place { entry: Some(entry), events_before };
            }
            if entry.launch_at <= due_by {
                events_before += u64::from(entry.count - entry.cursor);
            }
        }
        // It is being moved between two rows, so its place is not known at the moment.
        Place { entry: None, events_before: 0 }
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

    /// Why the event waits. Of several reasons the first is told: its launch, a pause or overlap rule, pacing, tokens, the
    /// rate. Each would keep it waiting even if none of the others did.
    pub(super) fn because(&self, place: &Place) -> (String, Blocker) {
        self.unlaunched()
            .or_else(|| self.halted(place))
            .or_else(|| self.paced(place))
            .or_else(|| self.full())
            .or_else(|| self.rated(place))
            .unwrap_or_else(|| match place.events_before {
                0 => ("a token is free: it is about to be admitted".to_owned(), Blocker::Until(self.now)),
                before => {
                    let text =
                        format!("tokens are free, and {} to be admitted before it", events_are(before));
                    (text, Blocker::Others)
                }
            })
    }

    fn unlaunched(&self) -> Option<(String, Blocker)> {
        let launch_at = self.run_id().launch_at();
        let text = || format!("its launch is in the future, at {}", clock_text(launch_at, self.now));
        (launch_at > self.now).then(|| (text(), Blocker::Until(launch_at)))
    }

    fn halted(&self, place: &Place) -> Option<(String, Blocker)> {
        if self.status.policy.paused {
            let text = "its policy is paused: nothing is admitted until it is resumed";
            return Some((text.to_owned(), Blocker::Halt));
        }
        let (text, blocker) = match place.entry.as_ref()?.overlap? {
            Pending::Buffered => (
                "an earlier run of its job is not finished, and one run may wait for that (overlap buffer_one)",
                Blocker::Halt,
            ),
            Pending::Skip | Pending::BufferOne => {
                ("its job's overlap rule has not been applied to its run yet", Blocker::Others)
            }
        };
        Some((text.to_owned(), blocker))
    }

    fn paced(&self, place: &Place) -> Option<(String, Blocker)> {
        let window = self.run.terms.flow.window.filter(|window| window.paced && place.entry.is_some())?;
        let count = self.run.terms.count.get();
        let admits_at = window.admits_at(self.run_id().launch_at(), count, self.index);
        let (number, at) = (self.index + 1, clock_text(admits_at, self.now));
        let text = || {
            format!("its run is paced over its window: event {number} of {count} is admitted from {at} on")
        };
        (admits_at > self.now).then(|| (text(), Blocker::Until(admits_at)))
    }

    fn full(&self) -> Option<(String, Blocker)> {
        let (held, limit) = (self.status.load.in_flight, self.status.policy.limit());
        let cost = self.run.terms.flow.cost.get().min(limit);
        let needs = if cost > 1 { format!(" and it takes {cost}") } else { String::new() };
        let text = match () {
            () if held > limit => format!("its policy drains: {held} in flight, limit {limit}"),
            () if held == limit => format!("all {limit} tokens of its policy are held{}", self.held_by()),
            () if held + cost > limit => {
                format!("{held} of {limit} tokens of its policy are held{}{needs}", self.held_by())
            }
            () => return None,
        };
        Some((text, Blocker::Others))
    }

    /// Tokens are free, but the rate does not let the events before it and itself begin yet.
    fn rated(&self, place: &Place) -> Option<(String, Blocker)> {
        let rate = self.status.policy.terms.rate()?;
        let turn_at = self.rate_lets_it_begin_at(place, self.now)?;
        let lets = rate_text(rate);
        let text = match place.events_before {
            0 => {
                format!("its policy's rate lets {lets} begin, the next at {}", clock_text(turn_at, self.now))
            }
            before => format!("its policy's rate lets {lets} begin, and {} before it", events_are(before)),
        };
        (turn_at > self.now).then_some((text, Blocker::Rate(turn_at)))
    }

    /// When the rate lets the event begin, if those before it begin from `from` on as soon as the rate lets them. An instant
    /// of the past: at once.
    fn rate_lets_it_begin_at(&self, place: &Place, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let rate = self.status.policy.terms.rate()?;
        let next_at = self.rate_allows_at?;
        let first_at = if from > self.now { next_at.max(from) } else { next_at };
        Some(shifted(first_at, seconds(place.events_before as f64 / per_second(rate))))
    }

    /// ` by a.1.2.3, a.1.2.4 and 6 others`.
    fn held_by(&self) -> String {
        let names: Vec<String> =
            self.holders.iter().take(NAMED_HOLDERS).map(|holder| holder.event.to_string()).collect();
        match self.holders.len().saturating_sub(NAMED_HOLDERS) {
            _ if names.is_empty() => String::new(),
            0 => format!(" by {}", names.join(", ")),
            1 => format!(" by {} and another", names.join(", ")),
            others => format!(" by {} and {others} others", names.join(", ")),
        }
    }

    /// When it is expected to be admitted, and what that follows from.
    pub(super) fn expectation(
        &self,
        place: &Place,
        blocker: Blocker,
        measured: Option<Measured>,
    ) -> (Option<DateTime<Utc>>, String) {
        let mut words = vec![format!("{} before it", events_are(place.events_before))];
        let from = match blocker {
            Blocker::Halt => {
                words.push("how long that lasts is not known, so neither is its turn".to_owned());
                return (None, words.join("; "));
            }
            Blocker::Rate(turn_at) => {
                words.extend(self.rate_bound(turn_at, "comes at"));
                return (self.within_window(Some(turn_at), &mut words), words.join("; "));
            }
            Blocker::Until(instant) => instant,
            Blocker::Others => self.now,
        };
        let free_now = blocker != Blocker::Others && place.events_before == 0;
        let mut expected_at = match measured {
            _ if free_now => Some(from),
            Some(Measured { per_second, words: how }) => {
                let wait = seconds((place.events_before as f64 + 1.0) / per_second);
                words.push(how);
                words.push(format!(
                    "so its turn comes in about {} at {} a second",
                    length_text(wait),
                    speed_text(per_second)
                ));
                Some(from.max(shifted(self.now, wait)))
            }
            None => {
                words.push(
                    "no event of the runs that hold tokens has ended yet, so their speed is not known"
                        .to_owned(),
                );
                words.extend(self.first_lease_end());
                None
            }
        };
        if let Some(bound) = self.rate_lets_it_begin_at(place, from) {
            words.extend(self.rate_bound(bound, "comes no earlier than"));
            expected_at = expected_at.map(|at| at.max(bound));
        }
        (self.within_window(expected_at, &mut words), words.join("; "))
    }

    /// When the rate lets its turn come, in words.
    fn rate_bound(&self, turn_at: DateTime<Utc>, comes: &str) -> Option<String> {
        let rate = rate_text(self.status.policy.terms.rate()?);
        let turn = clock_text(turn_at.max(self.now), self.now);
        Some(format!("its policy's rate lets {rate} begin, so its turn {comes} {turn}"))
    }

    /// When the first lease ends, where the policy then takes the token back.
    fn first_lease_end(&self) -> Option<String> {
        let first =
            self.holders.first().filter(|_| self.status.policy.terms.on_expiry() == OnExpiry::Reclaim)?;
        let end = clock_text(first.lease_end, self.now);
        Some(format!("the first lease ends at {end}, unless it is extended"))
    }

    /// An event that is not admitted before its window ends may never be.
    fn within_window(
        &self,
        expected_at: Option<DateTime<Utc>>,
        words: &mut Vec<String>,
    ) -> Option<DateTime<Utc>> {
        let window = self.run.terms.flow.window.filter(|window| window.on_deadline == OnDeadline::Expire);
        let Some(window) = window else { return expected_at };
        let ends_at = window.ends_at(self.run_id().launch_at());
        let end = clock_text(ends_at, self.now);
        match expected_at {
            Some(at) if at >= ends_at => {
                words.push(format!("that is after its window ends at {end}: it is then left out"));
                None
            }
            _ => {
                words.push(format!("if it is not admitted by {end}, it is left out"));
                expected_at
            }
        }
    }
}

fn events_are(count: u64) -> String {
    match count {
        1 => "1 event is".to_owned(),
        _ => format!("{count} events are"),
    }
}
