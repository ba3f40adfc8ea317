//! The invariants of the design, a file for each that histories are held against.
//!
//! | when | checks |
//! | --- | --- |
//! | after each write to a slot group | I1, I3, I4, I5, I7 |
//! | when an event reaches a consumer, or a call is answered | I4, I6, I8 |
//! | at the end of the history | I2, I3, I5, I6, I7 |
//!
//! Deliberately absent: I9, which takes what no client of a history sends; `tests/isolation.rs` and the fuzz suite hold it.

pub(crate) mod i1_in_flight;
pub(crate) mod i2_nothing_lost;
pub(crate) mod i3_exact_ids;
pub(crate) mod i4_release_once;
pub(crate) mod i5_tokens_return;
pub(crate) mod i6_times;
pub(crate) mod i7_no_waiting;
pub(crate) mod i8_accepted;

/// An invariant that does not hold. Other errors of a history are the machinery's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant}, {kind}: {message}")]
pub struct Violation {
    /// Its name in the design, `I1` to `I8`; `panic` and `error` stand for a history that did not come to its end.
    pub invariant: &'static str,
    /// In which way it does not hold: the same words for every history in which that happens.
    pub kind: String,
    /// What was seen in this one.
    pub message: String,
}

impl Violation {
    pub(crate) fn new(invariant: &'static str, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { invariant, kind: kind.into(), message: message.into() }
    }
}

/// Whether an invariant holds.
pub(crate) type Verdict = Result<(), Violation>;
