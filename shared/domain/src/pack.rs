//! A pack: what waits in a policy's line as one entry, and is taken from there by ranges.
//!
//! A batch is a pack by itself: its events are those of one run, which has a row. Single events wait in packs that hold
//! many of them, of any jobs of a client that have one policy, priority, lane and cost and launch within one minute. Nothing is
//! stored for each of them until it comes to an end.
//!
//! Invariant (I3): an occurrence is in one pack, once. The packs of a policy, minute, priority, lane and cost are numbered, and
//! whoever writes one has read all before it.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use crate::fair::Rank;
use crate::flow::Priority;
use crate::ids::{IdError, RunId, whole};
use crate::job::{HistoryDays, Terms};
use crate::limits::SLOTS_PER_GROUP;
use crate::occurrence::Occurrence;

/// Names a pack of a policy. Its text is the run's id, or `~<minute>.<priority>.<cost>.<number>` of single events,
/// with `.<lane>` behind it where they have a lane.
///
/// ```
/// use tidegate_domain::pack::PackId;
///
/// let run: PackId = "nightly.3.1790000000".parse()?;
/// assert!(matches!(run, PackId::Run(_)));
/// let singles: PackId = "~29833333.5.1.0".parse()?;
/// assert!(matches!(singles, PackId::Singles(id) if id.kind.rank.priority == 5));
/// # Ok::<(), tidegate_domain::ids::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackId {
    /// The events of one run.
    Run(RunId),
    /// Single events of many occurrences.
    Singles(SinglesId),
}

/// Names a pack of single events of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinglesId {
    /// What its events have in common.
    pub kind: SinglesKind,
    /// Its number among those of its kind, from 0.
    pub number: u32,
}

/// What single events have in common that wait in one pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinglesKind {
    /// The minute that they launch in, in minutes since the Unix epoch.
    pub minute: i64,
    /// Their priority and lane.
    pub rank: Rank,
    /// How many tokens each takes, from 1 on.
    pub cost: u32,
}

/// A pack of single events: the occurrences that they are of. They never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Singles {
    /// Which pack, among those of its policy.
    pub id: SinglesId,
    /// When the first of the rows may have been read that its occurrences follow from. `None`: something else may have been
    /// recorded of them, so they are looked up whatever changed.
    pub as_of: Option<DateTime<Utc>>,
    /// The slot group that it goes straight to, or has gone to; `None`: it waits in the line.
    pub straight: Option<Straight>,
    /// The occurrences, ordered by launch. The events of the pack are theirs, in this order.
    pub members: Vec<Occurrence>,
}

/// The slot group that a pack goes straight to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Straight {
    /// Its number, from 0.
    pub group: u32,
    /// How many refills it had begun when it was seen: once it has begun more, the pack is in it or never will be.
    pub refills: u64,
}

impl PackId {
    /// When its run launches, or the minute that its single events launch in; `None` where that is no instant.
    pub fn launches_from(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Run(run) => Some(run.launch_at()),
            Self::Singles(id) => DateTime::from_timestamp(id.kind.minute.checked_mul(60)?, 0),
        }
    }
}

impl SinglesKind {
    /// The kind of pack that an occurrence waits in; `None` when it is a pack by itself.
    pub fn of(occurrence: &Occurrence) -> Option<Self> {
        let flow = &occurrence.terms.flow;
        Self::fits(&occurrence.terms).then(|| Self {
            minute: occurrence.launch_at.timestamp().div_euclid(60),
            rank: flow.rank(),
            cost: flow.cost.get(),
        })
    }

    /// Whether the occurrences of a job with such terms wait in packs with others: single events under a policy, without
    /// a window, whose end nobody waits for.
    pub fn fits(terms: &Terms) -> bool {
        let Terms { count, policy, flow, .. } = terms;
        policy.is_some() && count.get() == 1 && flow.window.is_none() && !flow.is_watched()
    }

    /// The pack of this kind with a number.
    pub fn number(self, number: u32) -> SinglesId {
        SinglesId { kind: self, number }
    }
}

impl Singles {
    /// Whether its events are looked up before they are sent, when jobs of its client changed up to `changed_until`
    /// (`None`: none did lately). Always without an `as_of`.
    pub fn needs_recheck(&self, changed_until: Option<DateTime<Utc>>) -> bool {
        self.as_of.is_none_or(|as_of| changed_until.is_some_and(|until| until >= as_of))
    }

    /// When the first of its events is due; the epoch when it has none.
    pub fn launch_at(&self) -> DateTime<Utc> {
        self.members.first().map_or(DateTime::UNIX_EPOCH, |first| first.launch_at)
    }

    /// How long what becomes of its events is kept: as long as the longest of its jobs asks for.
    pub fn history_days(&self) -> HistoryDays {
        self.members.iter().map(|member| member.terms.history_days).max().unwrap_or_default()
    }

    /// How many events it has.
    pub fn count(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// How many of its events are due at an instant: they are its first ones.
    pub fn due(&self, now: DateTime<Utc>) -> u32 {
        let due = self.members.partition_point(|member| member.launch_at <= now);
        u32::try_from(due).unwrap_or(u32::MAX)
    }

    /// The occurrence that its event number `index`, from 0, is of; `None` beyond the last.
    pub fn member(&self, index: u32) -> Option<&Occurrence> {
        self.members.get(index as usize)
    }

    /// Whether an occurrence is in it.
    pub fn has(&self, occurrence: &Occurrence) -> bool {
        self.index_of(&occurrence.run_id()).is_some()
    }

    /// The number, from 0, of a run's event; `None` when the run is not in it.
    pub fn index_of(&self, run: &RunId) -> Option<u32> {
        let is_it = |member: &Occurrence| {
            member.job == *run.job()
                && member.revision == run.revision()
                && member.launch_at == run.launch_at()
        };
        self.members.iter().position(is_it).and_then(|index| u32::try_from(index).ok())
    }
}

/// Stands before the id of a pack of single events. No job's name begins with it.
const SINGLES: char = '~';

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => run.fmt(f),
            Self::Singles(singles) => singles.fmt(f),
        }
    }
}

impl fmt::Display for SinglesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind: SinglesKind { minute, rank: Rank { priority, lane }, cost }, number } = self;
        write!(f, "{SINGLES}{minute}.{priority}.{cost}.{number}")?;
        lane.map_or(Ok(()), |lane| write!(f, ".{lane}"))
    }
}

impl FromStr for PackId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match text.starts_with(SINGLES) {
            true => text.parse().map(Self::Singles),
            false => text.parse().map(Self::Run),
        }
    }
}

impl FromStr for SinglesId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let form = "~<launch minute>.<priority>.<cost>.<number>, and .<lane> where there is one";
        let bad = || IdError::Form { what: "pack_id", value: text.to_owned(), form };
        let parts: Vec<&str> = text.strip_prefix(SINGLES).ok_or_else(bad)?.split('.').collect();
        let (minute, priority, cost, number, lane) = match parts[..] {
            [minute, priority, cost, number] => (minute, priority, cost, number, None),
            [minute, priority, cost, number, lane] => (minute, priority, cost, number, Some(lane)),
            _ => return Err(bad()),
        };
        let priority = Priority::new(whole(priority).ok_or_else(bad)?).map_err(|_| bad())?.get();
        let lane = lane.map(str::parse).transpose().map_err(|_| bad())?;
        let kind = SinglesKind {
            minute: whole(minute).ok_or_else(bad)?,
            rank: Rank { priority, lane },
            cost: whole(cost).filter(|cost| (1..=SLOTS_PER_GROUP).contains(cost)).ok_or_else(bad)?,
        };
        Ok(kind.number(whole(number).ok_or_else(bad)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_packs_read_back() {
        for text in
            ["nightly.3.1790000000", "~29833333.5.1.0", "~29833333.0.12.417", "~29833333.5.1.0.lane2345"]
        {
            assert_eq!(text.parse::<PackId>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "~",
            "~1.2.3",
            "~1.10.1.0",
            "~1.5.0.0",
            "~1.5.13.0",
            "~01.5.1.0",
            "~1.5.1.0.0",
            "~1.5.1.0.lane2345.0",
            "~x.5.1.0",
        ] {
            assert!(bad.parse::<PackId>().is_err(), "{bad}");
        }
    }
}
