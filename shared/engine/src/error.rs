//! What can go wrong between the engine and what it stands on.

use thiserror::Error;
use tidegate_store::StoreError;

/// Why the engine could not do what it was asked. Nothing was lost: the same call may be made again.
#[derive(Debug, Error)]
pub enum EngineError {
    /// DynamoDB.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A queue of our own did not take messages.
    #[error("the dispatch queue took {taken} of {sent} messages: {reason}")]
    Queue {
        /// How many were to be sent.
        sent: usize,
        /// How many it took.
        taken: usize,
        /// What it said.
        reason: String,
    },
    /// An internal message does not read as what this version writes.
    #[error("a dispatch message cannot be read: {reason}")]
    Message {
        /// Where, and what is wrong with it.
        reason: String,
    },
    /// The same rows kept changing under us.
    #[error("{what} changed in each of {rounds} rounds")]
    Contended {
        /// What was to be written.
        what: &'static str,
        /// How often it was tried.
        rounds: u32,
    },
}

impl EngineError {
    /// Whether the same call may succeed a little later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Store(error) => error.may_pass(),
            Self::Queue { .. } | Self::Contended { .. } => true,
            Self::Message { .. } => false,
        }
    }
}
