//! What can go wrong with a call.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// Why a call did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer came: whether the call took effect is unknown.
    #[error("no answer from the API: {0}")]
    Transport(#[from] reqwest::Error),
    /// The API refused the call and says why. Nothing changed, unless the status is 500 or above.
    #[error("the API refused the call: {0}")]
    Refused(Box<Problem>),
    /// A delivered event does not read as what this version, or its consumer, expects.
    #[error(transparent)]
    Event(#[from] tidegate_protocol::EventError),
    /// The answer does not read as what this version expects.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// What it was to be.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The problem, if the API gave one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Transport(error) => !error.is_builder(),
            Self::Refused(problem) => problem.status == 429 || problem.status >= 500,
            Self::Event(_) | Self::Unreadable { .. } => false,
        }
    }
}

/// An answer that is not what was asked for (RFC 9457).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Problem {
    /// A stable name of the kind of problem.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong and what to do about it.
    #[serde(default)]
    pub detail: String,
    /// Each field that is wrong.
    #[serde(default)]
    pub errors: Vec<FieldError>,
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FieldError {
    /// The path of the field in the body.
    pub field: String,
    /// What was given.
    #[serde(default)]
    pub value: Option<Value>,
    /// What is wrong with it and how to put it right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.status)
    }
}
