//! Why an event is where it is.

use serde::{Deserialize, Serialize};

use crate::policy::{Holder, PolicyStatus};
use crate::run::EventRecord;
use crate::words::words;

/// Why an event is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// The event.
    pub event: EventRecord,
    /// Why it is where it is, in a sentence. Of several reasons to wait it names the first of: its launch is in the future,
    /// the policy is paused or an earlier run must end, pacing, no token is free, the policy's rate.
    pub because: String,
    /// The same in a word for programs.
    pub because_code: ReasonCode,
    /// How many due events of its policy come before it: those in front of it in the line, and those that were taken from
    /// the line and hold no token yet. Null when it does not wait for a token.
    pub events_before: Option<u64>,
    /// The policy that throttles it, with what it holds; null when none does.
    pub policy: Option<PolicyStatus>,
    /// Who holds the policy's tokens: at most 100 of them, those whose lease ends first in front.
    pub holders: Vec<Holder>,
    /// When it is expected to be admitted, RFC 3339; null when that cannot be said, or when it does not wait.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expected_at: Option<String>,
    /// What `expected_at` follows from, or why nothing can be expected.
    pub reasoning: String,
    /// The same in words for programs, in the order of the text; empty when it does not wait for a token.
    pub reasoning_codes: Vec<ExpectationCode>,
}

words! {
    /// Why an event is where it is.
    ReasonCode {
        /// Its launch is in the future.
        NotLaunched = "not_launched",
        /// Its policy is paused.
        PolicyPaused = "policy_paused",
        /// Its policy is closed until an instant, by its client or because its consumer cannot keep up.
        PolicyClosed = "policy_closed",
        /// Its client or its job is sidelined: it is set aside, or waits, until that drains.
        Sidelined = "sidelined",
        /// An earlier run of its job is not finished, and one run may wait for that (overlap `buffer_one`).
        EarlierRun = "earlier_run",
        /// Its job's overlap rule has not been applied to its run yet.
        OverlapUndecided = "overlap_undecided",
        /// Its target did not take it, and its time to be sent again has not come; or it was redriven for later.
        Retrying = "retrying",
        /// Its run is paced over its window, and its turn has not come.
        Paced = "paced",
        /// More is in flight than the policy's limit, which was lowered.
        Draining = "draining",
        /// Fewer tokens are free than it takes.
        TokensHeld = "tokens_held",
        /// Tokens are free, and the policy's rate lets nothing begin yet.
        Rate = "rate",
        /// Tokens are free: it, or an event before it, is about to be admitted.
        TokensFree = "tokens_free",
        /// Its policy was deleted: it is not delivered.
        PolicyDeleted = "policy_deleted",
        /// Nothing throttles it: its delivery is under way, or is tried again.
        BeingDelivered = "being_delivered",
        /// Its consumer has it.
        InFlight = "in_flight",
        /// Its consumer has it, and its lease ran out.
        LeaseRanOut = "lease_ran_out",
        /// Its consumer released it as succeeded.
        Succeeded = "succeeded",
        /// Its consumer released it as failed.
        Failed = "failed",
        /// Nobody released it before its lease ended, in any of its deliveries.
        Expired = "expired",
        /// It could not be delivered.
        Dead = "dead",
        /// Its run was stopped before it was delivered.
        Stopped = "stopped",
        /// It was delivered, and nothing throttles it.
        Delivered = "delivered",
    }
}

words! {
    /// What the instant follows from at which an event is expected to be admitted.
    ExpectationCode {
        /// So many events are before it.
        EventsBefore = "events_before",
        /// How long it is kept by what somebody must end is not known.
        EndUnknown = "end_unknown",
        /// The speed of its own run.
        OwnSpeed = "own_speed",
        /// The speed of the run that holds most tokens.
        HoldersSpeed = "holders_speed",
        /// At that speed its turn comes after so long.
        Turn = "turn",
        /// No event of the runs that hold tokens has ended yet.
        SpeedUnknown = "speed_unknown",
        /// The first lease ends, unless it is extended, and its token is taken back.
        FirstLeaseEnd = "first_lease_end",
        /// The policy's rate bounds its turn.
        Rate = "rate",
        /// That is after its window ends, so it is left out.
        AfterDeadline = "after_deadline",
        /// It is left out if its window ends before it is admitted.
        LeftOutAtDeadline = "left_out_at_deadline",
    }
}
