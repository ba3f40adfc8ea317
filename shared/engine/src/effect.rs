//! What follows from what was done, as data: the one loop in `effect_loop` carries it out.
//!
//! Throttling and delivery answer with effects instead of calling each other: a release grants, what is granted is sent,
//! what cannot be sent is released. So nothing recurses, and either can be read without the other.
//!
//! Effects are carried out in order, and what follows from one comes before the next. At the first error, and when the time of
//! the call is over, the rest is left, but for what is to be sent: each effect may be repeated, and whoever looks at the row next (a message that comes
//! again, the tick) finds what was not done.

use chrono::{DateTime, Utc};
use tidegate_domain::backpressure::Sign;
use tidegate_domain::fair::Rank;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_domain::retry::Tries;
use tidegate_domain::slots::{GroupKey, LeaseEnd, Outcome, SlotGroup};
use tidegate_domain::token::Token;
use tidegate_store::line::LineEntry;
use tidegate_store::runs::RunRow;
use tracing::error;

use crate::EngineError;

/// Something that is still to be done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Events that hold tokens are to reach their targets.
    Send(Vec<Granted>),
    /// What groups of one policy still have of a run that was stopped is dropped.
    DropRanges(PolicyRef, Vec<GroupKey>, RunId),
    /// Events cannot be sent: their leases end.
    Release(Vec<Release>),
    /// Slots of a group are free: what waits may have them.
    Serve(Box<SlotGroup>),
    /// What a group had left was taken away: what waits behind it may have its slots.
    ServeAnew(GroupKey),
    /// More groups of a policy are to be looked at for free slots.
    Admit(Box<Admission>),
    /// More groups of a policy are to be brought in order.
    Reconcile(Box<Reconciliation>),
    /// Tokens drained out of a group: they may be handed to others.
    Reshare(Box<SlotGroup>),
    /// Outcomes of a group are to be compacted into their runs' history.
    Compact(Box<SlotGroup>),
    /// They are there.
    EndCompaction(Box<SlotGroup>),
    /// A policy is to be looked after at an instant.
    Wake(PolicyRef, DateTime<Utc>),
    /// A policy is to be looked after at once, though it may be about to be.
    WakeNow(PolicyRef),
    /// The consumer of a policy cannot keep up, for all that is seen.
    Strained(PolicyRef, Sign),
    /// Nothing more of a run is delivered, for a reason.
    Stop(WaitingRun, &'static str),
    /// Outcomes were added to a run, or the rest of it was taken away: it may have come to its end.
    Conclude(ClientId, Box<RunRow>),
    /// What waits of an entry of single events is delivered to nobody, for a reason.
    StopSingles(PolicyRef, Box<LineEntry>, &'static str),
    /// Nothing is left of an entry of the line.
    RemoveEntry(PolicyRef, Box<LineEntry>),
    /// A client is to be told that a run has come to its end.
    Announce {
        /// Whose run it is.
        client: ClientId,
        /// The run.
        run: RunId,
        /// The address of its job's heartbeat is told, and not whom `on_completion` names.
        by_heartbeat: bool,
    },
    /// The call fails, once what stands before it is done.
    Fail(EngineError),
}

/// A policy whose groups are looked at for free slots, and those that still are to be.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    pub(crate) policy: Policy,
    /// The numbers of the groups that are left, the last one first.
    pub(crate) groups: Vec<u32>,
    /// How many full ones were seen in a row.
    pub(crate) full: usize,
    /// The head of the line, as it was just read for all of the first groups.
    pub(crate) head: Option<Vec<LineEntry>>,
}

/// A policy whose groups are brought in order, and those that still are to be.
#[derive(Debug, Clone)]
pub(crate) struct Reconciliation {
    pub(crate) policy: Policy,
    pub(crate) groups: Vec<SlotGroup>,
    /// Whether all that were looked at so far have nothing to do.
    pub(crate) is_idle: bool,
    /// How many tokens are free in each of those for which the line had nothing.
    pub(crate) rooms: Vec<u32>,
    /// Those of whose tokens none is free, and that have events left to grant.
    pub(crate) full: Vec<SlotGroup>,
}

impl Effect {
    /// The policy that is looked after when this is left to be done.
    pub(crate) fn policy(&self) -> Option<PolicyRef> {
        match self {
            Self::ServeAnew(key) => Some(PolicyRef::of_key(key)),
            Self::Serve(group) | Self::Reshare(group) | Self::Compact(group) | Self::EndCompaction(group) => {
                Some(PolicyRef::of(group))
            }
            Self::Admit(admission) => Some(PolicyRef::new(&admission.policy.client, &admission.policy.id)),
            Self::Reconcile(of) => Some(PolicyRef::new(&of.policy.client, &of.policy.id)),
            Self::Wake(policy, _)
            | Self::DropRanges(policy, ..)
            | Self::WakeNow(policy)
            | Self::Strained(policy, _)
            | Self::StopSingles(policy, ..)
            | Self::RemoveEntry(policy, _) => Some(policy.clone()),
            Self::Stop(waiting, _) => Some(waiting.policy.clone()),
            Self::Conclude(client, run) => {
                run.terms.policy.as_ref().map(|policy| PolicyRef::new(client, policy))
            }
            Self::Send(_) | Self::Release(_) | Self::Announce { .. } | Self::Fail(_) => None,
        }
    }
}

impl Reconciliation {
    pub(crate) fn of(policy: Policy, groups: Vec<SlotGroup>) -> Self {
        Self { policy, groups, is_idle: true, rooms: Vec::new(), full: Vec::new() }
    }
}

/// A run in a policy's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingRun {
    pub(crate) policy: PolicyRef,
    pub(crate) run: RunId,
    /// Where its entries stand in the line, but those that are sent again.
    pub(crate) rank: Rank,
}

/// An event that was granted a token and has not been sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// The pack that it is of.
    pub(crate) pack: PackId,
    /// Whether it may not be wanted any more: that is asked before it is sent.
    pub(crate) recheck: bool,
    /// How long what becomes of it is kept.
    pub(crate) history_days: HistoryDays,
    /// Its token, which names its number in the pack.
    pub(crate) token: Token,
    pub(crate) lease_end: DateTime<Utc>,
    /// Which delivery of the event it is, from 1, not counting those that failed.
    pub(crate) attempt: u8,
    /// The deliveries of the event before it went back to the line; `None`: it never did.
    pub(crate) tries: Option<Tries>,
}

/// A token that its consumer is done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The token, whose MAC was verified.
    pub token: Token,
    /// What came of its event.
    pub outcome: Outcome,
    /// What the consumer says about it: a result, or an error, of at most `RESULT_BYTES`. `None`: nothing.
    pub text: Option<String>,
}

impl Release {
    /// A release without a note.
    pub fn new(token: Token, outcome: Outcome) -> Self {
        Self { token, outcome, text: None }
    }

    /// The end of its lease, at the first delivery of its event: a later one is seen when the write is refused.
    pub(crate) fn end(&self) -> LeaseEnd {
        LeaseEnd { lease: self.token.lease, attempt: 1, outcome: self.outcome }
    }
}

impl Granted {
    /// How often its target did not take the event before.
    pub(crate) fn failed(&self) -> u8 {
        self.tries.map_or(0, |tries| tries.failed)
    }

    /// Which delivery of the event it is, from 1.
    pub(crate) fn delivery_number(&self) -> u8 {
        self.attempt.saturating_add(self.failed())
    }

    /// The events in the named slots of a group, as they must be sent now.
    pub(crate) fn all_in(group: &SlotGroup, slots: impl IntoIterator<Item = u32>) -> Vec<Self> {
        slots.into_iter().filter_map(|slot| Self::of(group, slot)).collect()
    }

    fn of(group: &SlotGroup, slot: u32) -> Option<Self> {
        let lease = group.leases.get(&slot)?;
        let Some(known) = group.packs.get(&lease.id.pack_number) else {
            error!(group = ?group.key, slot, "a slot names a pack that its group does not know");
            return None;
        };
        let token = group.token(slot)?;
        Some(Self {
            pack: known.pack.clone(),
            recheck: known.recheck,
            history_days: known.history_days,
            token,
            lease_end: lease.ends_at,
            attempt: group.delivery_at(lease).saturating_sub(known.tries.map_or(0, |tries| tries.failed)),
            tries: known.tries,
        })
    }
}
