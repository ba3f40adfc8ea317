//! What can go wrong between the engine and what it stands on.

use thiserror::Error;
use tidegate_store::StoreError;
use tracing::warn;

use crate::contain::Panicked;

/// Why the engine could not do what it was asked. Nothing was lost: the same call may be made again.
#[derive(Debug, Error)]
pub enum EngineError {
    /// DynamoDB refused a call or did not answer, or a row cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The dispatch queue did not answer, or did not take messages in each of `WRITE_ROUNDS` rounds. Some of them may
    /// be under way.
    #[error("failed to send {sent} messages to the dispatch queue: {reason} ({who})")]
    Queue {
        /// How many were to be sent.
        sent: usize,
        /// What SQS said of the first that it did not take.
        reason: String,
        /// Whose messages they are, and what the first of them is about.
        who: String,
    },
    /// The scan queue did not take a message.
    #[error("failed to send a message to the scan queue: {reason}")]
    ScanQueue {
        /// What SQS said.
        reason: String,
    },
    /// A dead-letter queue of ours did not take a message.
    #[error("failed to set a message aside: {reason}")]
    DeadLetter {
        /// What SQS said.
        reason: String,
    },
    /// An internal message does not read as what any version writes.
    #[error("a dispatch message cannot be read: {reason}")]
    Message {
        /// Where, and what is wrong with it.
        reason: String,
    },
    /// An internal message is of a newer format: a process of that version can handle it.
    #[error(
        "a dispatch message was written by a newer version: format {format}, not {}",
        tidegate_store::FORMAT
    )]
    NewerMessage {
        /// The format that it says.
        format: u32,
    },
    /// It panicked, and the panic was contained.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The time of the call is over: what it did not come to is to be asked for again.
    #[error("the time of this call is over: ask again for what it did not come to")]
    OutOfTime,
    /// The same rows were changed by others in each of so many rounds: the last write did not take place.
    #[error("{what} changed in each of {rounds} rounds")]
    Contended {
        /// What was to be written, as "a job".
        what: &'static str,
        /// How often it was tried, from 1.
        rounds: u32,
    },
}

/// What was read, or `None`, with a line in the log, when its row cannot be read: for callers to whom what cannot be read
/// is as good as gone, and who have something else to go on with.
pub(crate) fn readable<T>(read: Result<Option<T>, EngineError>) -> Result<Option<T>, EngineError> {
    match read {
        Err(error) if error.is_of_one_row() => {
            warn!(%error, "a row is passed over");
            Ok(None)
        }
        read => read,
    }
}

impl EngineError {
    /// Whether the same call may succeed a little later: the store or a queue did not answer or was busy, or others
    /// wrote at the same time.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::Queue { .. }
            | Self::ScanQueue { .. }
            | Self::DeadLetter { .. }
            | Self::OutOfTime
            | Self::Contended { .. } => true,
            Self::Message { .. } | Self::NewerMessage { .. } | Self::Panicked(_) => false,
        }
    }

    /// Whether the one message or row that was worked on is at fault: the next one fares no worse, so it is set aside.
    pub fn is_of_one_row(&self) -> bool {
        match self {
            Self::Store(error) => error.is_of_one_row(),
            Self::Message { .. } | Self::NewerMessage { .. } | Self::Panicked(_) => true,
            Self::Queue { .. }
            | Self::ScanQueue { .. }
            | Self::DeadLetter { .. }
            | Self::OutOfTime
            | Self::Contended { .. } => false,
        }
    }
}
