//! What a repair found, as data: whoever shows it makes sentences of it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::slots::Epoch;

/// Findings of one kind that are kept; all are counted.
const KEPT: u64 = 10_000;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// Events of a run or pack of which nothing was left in the line, and whose end is not known: they wait again.
    EventsPutBack,
    /// The counts of a run did not say what its history and its events in flight say.
    RunCounted,
    /// A run had events in its line or in flight and no row: it has one again, from its job.
    RunMadeAgain,
    /// A pack had events in its line or in flight and no row: they are let go, and emitted again.
    PackLetGo,
    /// Parts of a run that nothing throttles are not known to have been sent: they are sent again.
    EventsSentAgain,
    /// A run has ended and its client may not have been told.
    CompletionChecked,
    /// A job lacked rows in the time index, or they were of another revision.
    JobIndexed,
    /// A row of the time index was not one of its job.
    IndexRowRemoved,
    /// The first launches of a job, which the master emits, may be lost: they are emitted again.
    FirstLaunchesOwed,
    /// The time index did not say that it has a zone or shard.
    IndexShapeRaised,
    /// A part of a large emission begins anew.
    PartBegunAnew,
    /// Launches are emitted again from an instant on.
    WatermarkSetBack,
    /// Not known: a run had events in its line or in flight, no row, and no job of that revision. They are let go.
    RunUnknown,
    /// Not known: a pack had events in its line or in flight, no row, and launched too long ago to be emitted again.
    PackUnknown,
    /// Not known: a job of which only rows in the time index are there. They are removed.
    JobUnknown,
    /// Not known: what a job's revision before had in the queues when it was changed.
    JobChanged,
    /// Not known: a client that has jobs and is not registered.
    ClientUnknown,
    /// Not known: a policy that jobs are throttled by.
    PolicyUnknown,
    /// Not known: a calendar that jobs name.
    CalendarUnknown,
    /// Not known: whether the holder of a token still works. Its policy takes nothing back by itself.
    TokenHeld,
    /// Not known: the end of events of a run whose history has begun to expire.
    RunTooOld,
    /// A row cannot be read.
    Unreadable,
}

impl FindingKind {
    /// Its word in outputs.
    pub fn code(self) -> &'static str {
        match self {
            Self::EventsPutBack => "events_put_back",
            Self::RunCounted => "run_counted",
            Self::RunMadeAgain => "run_made_again",
            Self::PackLetGo => "pack_let_go",
            Self::EventsSentAgain => "events_sent_again",
            Self::CompletionChecked => "completion_checked",
            Self::JobIndexed => "job_indexed",
            Self::IndexRowRemoved => "index_row_removed",
            Self::FirstLaunchesOwed => "first_launches_owed",
            Self::IndexShapeRaised => "index_shape_raised",
            Self::PartBegunAnew => "part_begun_anew",
            Self::WatermarkSetBack => "watermark_set_back",
            Self::RunUnknown => "run_unknown",
            Self::PackUnknown => "pack_unknown",
            Self::JobUnknown => "job_unknown",
            Self::JobChanged => "job_changed",
            Self::ClientUnknown => "client_unknown",
            Self::PolicyUnknown => "policy_unknown",
            Self::CalendarUnknown => "calendar_unknown",
            Self::TokenHeld => "token_held",
            Self::RunTooOld => "run_too_old",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether a person has to look at it: something cannot be known.
    pub fn is_for_a_person(self) -> bool {
        self >= Self::RunUnknown
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Whose it is; empty where it is nobody's.
    pub client: String,
    /// What it is about: a run, a pack, a job, a policy, a token or a key.
    pub subject: String,
    /// What else there is to say.
    pub detail: String,
}

/// What a repair found, and did when it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairReport {
    /// Whether it was written.
    pub applied: bool,
    /// The instant that the first table is taken to be of.
    pub first_cut: DateTime<Utc>,
    /// From when on launches are emitted again.
    pub back_to: DateTime<Utc>,
    /// What fencing numbers begin at.
    pub first_fence: u64,
    /// Slot groups whose numbers were raised.
    pub groups: u64,
    /// The longest lease of all policies, in seconds: tokens that were given after the snapshots end by then, unless their
    /// holders extended them.
    pub longest_lease_seconds: u32,
    /// How many findings there are of each kind.
    pub counts: BTreeMap<FindingKind, u64>,
    /// The findings, of each kind the first 10,000.
    pub findings: Vec<Finding>,
}

impl RepairReport {
    pub(super) fn new(applied: bool, first_cut: DateTime<Utc>, back_to: DateTime<Utc>, epoch: Epoch) -> Self {
        let (counts, findings) = (BTreeMap::new(), Vec::new());
        let (groups, longest_lease_seconds, first_fence) = (0, 0, epoch.fence());
        Self { applied, first_cut, back_to, first_fence, groups, longest_lease_seconds, counts, findings }
    }

    pub(super) fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.kind).or_default();
        *count = count.saturating_add(1);
        if *count <= KEPT {
            self.findings.push(finding);
        }
    }
}
