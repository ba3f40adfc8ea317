//! What may not happen, whatever the input.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::panics::Panic;

/// What did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Something panicked.
    Panic(Panic),
    /// The API answered that it was at fault itself.
    ServerError {
        /// The status.
        status: u16,
        /// The body of the answer.
        body: String,
    },
    /// The API refused without saying in a problem what was wrong.
    Refusal {
        /// The status.
        status: u16,
        /// What is missing.
        why: &'static str,
        /// The body of the answer.
        body: String,
    },
    /// A good answer that is no JSON.
    Answer {
        /// The status.
        status: u16,
        /// The body of the answer.
        body: String,
    },
    /// A neighbour's event did not come in its minute.
    Late {
        /// Whose.
        client: &'static str,
        /// When it was due.
        launch_at: DateTime<Utc>,
    },
    /// A tick failed, so that everybody's launches wait for the next.
    Tick(String),
}

impl Fault {
    /// Whether another fault is the same one, shown by another input.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Panic(a), Self::Panic(b)) => (&a.place, &a.message) == (&b.place, &b.message),
            (Self::ServerError { status: a, .. }, Self::ServerError { status: b, .. }) => a == b,
            (Self::Refusal { why: a, .. }, Self::Refusal { why: b, .. }) => a == b,
            (Self::Late { client: a, .. }, Self::Late { client: b, .. }) => a == b,
            (Self::Answer { .. }, Self::Answer { .. }) | (Self::Tick(_), Self::Tick(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(panic) => write!(f, "a panic at {}: {}", panic.place, panic.message),
            Self::ServerError { status, body } => write!(f, "the API answered {status}: {body}"),
            Self::Refusal { status, why, body } => {
                write!(f, "the API refused with {status} and {why}: {body}")
            }
            Self::Answer { status, body } => {
                write!(f, "the API answered {status} with what is no JSON: {body}")
            }
            Self::Late { client, launch_at } => {
                write!(f, "the event of {client} that was due at {launch_at} did not come in its minute")
            }
            Self::Tick(error) => write!(f, "a tick failed: {error}"),
        }
    }
}
