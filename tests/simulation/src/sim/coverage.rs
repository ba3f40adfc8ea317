//! How often each fault took place: a simulator whose faults never happen proves nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! coverage {
    ($($name:ident: $text:literal,)*) => {
        /// Something that goes wrong in histories, or that a client does to the engine.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the texts of `CoveredFault::name` say what each is")]
        pub enum CoveredFault {
            $($name,)*
        }

        impl CoveredFault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it is.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

coverage! {
    Throttled: "requests that were throttled",
    Internal: "requests that met an internal error",
    Dropped: "requests that never arrived",
    LostReply: "replies that were lost after a write took place",
    SentTwice: "requests that arrived twice",
    Reordered: "calls that overtook an older one",
    Delayed: "calls during which time went on",
    Crash: "crashes in the middle of calls",
    CutOff: "calls that were cut off by their function's time limit",
    HandledTwice: "messages that were handled twice",
    HandledThrice: "messages that were handled three times",
    ComesAgain: "messages that were handled and not deleted",
    DuplicateTick: "ticks within a minute of the one before",
    MissedTick: "ticks that came after one was missed",
    OverlappingTicks: "ticks that began while another one was under way",
    ClocksApart: "histories in which processes' clocks are apart",
    ClockAhead: "clocks that jumped an hour ahead",
    ClockBehind: "clocks that jumped an hour back",
    LimitLowered: "limits that were lowered",
    LimitRaised: "limits that were raised",
    Paused: "policies that were paused",
    Resumed: "policies that were resumed",
    Closed: "policies that were closed for a while",
    Slowed: "writes that a consumer cannot keep up",
    LastRelease: "last releases that raced a first enqueue",
    InBulk: "one-time jobs that came with others in one call",
    MillionBesideTen: "runs of a million events that waited while one of ten was finished",
    Requeued: "events that gave their tokens back until they are sent again",
    PoisonFreed: "tokens that came back from events that no target takes",
    SharedPack: "packs that held events of several occurrences",
    Straight: "packs that went straight to a slot group",
    InParts: "slot groups that were seen taking of a part of a run",
    LookedUp: "events that were looked up before they were sent",
    Unreleased: "consumers that died with a token",
    Reclaimed: "tokens that were taken back after their lease",
    Freed: "tokens that an operator freed",
    Extended: "leases that were extended",
    ReleasedTwice: "tokens that were released a second time",
    Reassigned: "tokens that were released after their slot had gone to another event",
    Forged: "forged tokens",
    Called: "calls that endpoints took",
    AnswerLost: "answers of endpoints that were lost",
    NotTaken: "calls that endpoints did not answer, or did not take",
    Redriven: "dead letters that were redriven",
    Sidelined: "jobs and clients that were sidelined",
    Discarded: "dead letters that were discarded",
    Backfilled: "launches that were made after all",
}

/// How often each took place. Histories in which something did not happen leave it out.
pub type FaultCoverage = BTreeMap<CoveredFault, u64>;

/// Counts as a history goes on.
#[derive(Debug)]
pub(crate) struct Counter([AtomicU64; CoveredFault::ALL.len()]);

impl Counter {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; CoveredFault::ALL.len()])
    }

    pub(crate) fn count(&self, fault: CoveredFault) {
        self.0[fault as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn coverage(&self) -> FaultCoverage {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        CoveredFault::ALL.iter().copied().zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}
