//! Where a run stands.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::RunId;
use tidegate_store::runs::{Skipped, Tally};

/// A run, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Which run.
    pub id: RunId,
    /// How many events it has.
    pub count: u32,
    /// Where it stands.
    pub state: RunState,
    /// How many of its events have come to which end.
    pub tally: Tally,
    /// Why nothing (more) of it is delivered.
    pub reason: Option<String>,
    /// Further occurrences of the job that were skipped with it, for the same reason.
    pub skipped: Option<Skipped>,
    /// When the last outcome that is known was counted.
    pub last_outcome_at: Option<DateTime<Utc>>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunState {
    /// None of its events was delivered yet.
    Waiting,
    /// Some are with their consumers, or have come to their end.
    Running,
    /// All have come to their end.
    Finished,
    /// Nothing (more) of it is delivered.
    Stopped,
}

impl RunState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Running, Self::Finished, Self::Stopped];

    /// The state of a name; `None` when there is none of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
        }
    }

    pub(super) fn of(stopped: bool, has_begun: bool, done: u32, count: u32) -> Self {
        match done {
            _ if stopped => Self::Stopped,
            0 if !has_begun => Self::Waiting,
            _ if done >= count => Self::Finished,
            _ => Self::Running,
        }
    }
}

#[cfg(test)]
#[path = "../../../../docs/states.rs"]
mod states;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tidegate_domain::slots::Outcome;

    use super::*;
    use crate::queries::EventStatus;

    type Edges = BTreeSet<(String, String)>;

    fn drawn(heading: &str) -> Edges {
        states::drawn(heading).into_iter().map(|(from, to, _)| (from, to)).collect()
    }

    #[test]
    fn the_diagram_of_a_run_shows_how_it_moves() {
        let mut made = Edges::new();
        for count in 1..=3 {
            for (has_begun, done) in [(false, 0), (true, 0), (true, 1), (false, 1), (true, 2), (false, 2)] {
                let now = RunState::of(false, has_begun, done, count);
                // An event is delivered, one ends, the run is stopped.
                let mut next = vec![(false, true, done), (false, has_begun, done + 1)];
                if now != RunState::Finished {
                    next.push((true, has_begun, done));
                }
                for (stopped, has_begun, done) in next {
                    let then = RunState::of(stopped, has_begun, done.min(count), count);
                    if then != now {
                        made.insert((now.as_str().to_owned(), then.as_str().to_owned()));
                    }
                }
            }
        }
        assert_eq!(drawn("Run"), made);
    }

    #[test]
    fn the_diagram_of_an_event_has_its_states_and_the_outcomes_of_a_lease() {
        let edges = drawn("Event");
        let open = [EventStatus::Waiting, EventStatus::InFlight].map(EventStatus::as_str);
        // What did not succeed may be redriven; nothing else moves on that has ended.
        let lost = [EventStatus::Dead, EventStatus::Expired, EventStatus::Failed].map(EventStatus::as_str);
        let redriven: BTreeSet<&str> = edges
            .iter()
            .filter(|(from, _)| !open.contains(&&**from))
            .map(|(from, to)| {
                assert_eq!(to, "waiting", "{from} moves on");
                &**from
            })
            .collect();
        assert_eq!(redriven, lost.into());
        let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::Expired, Outcome::Dead];
        let mut ends: BTreeSet<&str> = outcomes.map(|outcome| EventStatus::from(outcome).as_str()).into();
        let under_a_lease = edges.iter().filter(|(from, to)| from == "in_flight" && !open.contains(&&**to));
        assert_eq!(under_a_lease.map(|(_, to)| &**to).collect::<BTreeSet<_>>(), ends);
        // What ends without ever holding a token.
        ends.extend([EventStatus::Delivered, EventStatus::Stopped].map(EventStatus::as_str));
        let drawn_ends = edges.iter().map(|(_, to)| &**to).filter(|to| !open.contains(to));
        assert_eq!(drawn_ends.collect::<BTreeSet<_>>(), ends);
    }
}
