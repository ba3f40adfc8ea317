//! Reading what a consumer releases, by a call or by a message: the text of its token, and how its event ended.

use thiserror::Error;
use tidegate_domain::ids::IdError;
use tidegate_domain::limits::RESULT_BYTES;
use tidegate_domain::slots::Outcome;
use tidegate_domain::token::{SignedToken, Token};
use tidegate_protocol as protocol;

use crate::TokenKey;
use crate::effect::Release;

/// Why an entry of a call or message is not served. It spoils no other.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// It names what is no token of this deployment.
    #[error("this deployment gave no such token")]
    UnknownToken,
    /// Its text is no token.
    #[error(transparent)]
    Malformed(#[from] IdError),
    /// It says both what came of the event and why it failed.
    #[error(
        "the entry has both 'result' and 'error'; give 'result' with the outcome 'succeeded', or 'error' with 'failed'"
    )]
    BothTexts,
    /// Its text goes with the other outcome.
    #[error("'{field}' goes with the outcome '{fits}', and the outcome is '{outcome}'; change one of them")]
    TextOfOtherOutcome {
        /// The member that holds the text.
        field: &'static str,
        /// The outcome that it goes with.
        fits: &'static str,
        /// The outcome that was given.
        outcome: &'static str,
    },
    /// Its text is longer than what is kept.
    #[error(
        "'{field}' is {bytes} bytes long; {RESULT_BYTES} is the most: store the rest elsewhere and say where"
    )]
    LongText {
        /// The member that holds the text.
        field: &'static str,
        /// How long it is.
        bytes: usize,
    },
}

/// Reads the text of a token, which must be one that this deployment gave.
///
/// # Errors
/// [`EntryError::Malformed`] when it is no token, [`EntryError::UnknownToken`] when this deployment did not sign it.
pub fn read_token(text: &str, key: &TokenKey) -> Result<Token, EntryError> {
    let signed: SignedToken = text.parse()?;
    key.verify(signed).ok_or(EntryError::UnknownToken)
}

/// Reads an entry of a release.
///
/// # Errors
/// When its token is not one that this deployment gave, or its text does not fit its outcome or what is kept.
pub fn read_release(entry: protocol::Release, key: &TokenKey) -> Result<Release, EntryError> {
    let (field, text, fits) = match (entry.result, entry.error) {
        (Some(_), Some(_)) => return Err(EntryError::BothTexts),
        (Some(text), None) => ("result", Some(text), protocol::Outcome::Succeeded),
        (None, Some(text)) => ("error", Some(text), protocol::Outcome::Failed),
        (None, None) => ("", None, entry.outcome),
    };
    if entry.outcome != fits {
        let (fits, outcome) = (fits.as_str(), entry.outcome.as_str());
        return Err(EntryError::TextOfOtherOutcome { field, fits, outcome });
    }
    if let Some(bytes) = text.as_ref().map(String::len).filter(|bytes| *bytes > RESULT_BYTES) {
        return Err(EntryError::LongText { field, bytes });
    }
    let outcome = match entry.outcome {
        protocol::Outcome::Succeeded => Outcome::Succeeded,
        protocol::Outcome::Failed => Outcome::Failed,
    };
    Ok(Release { token: read_token(&entry.token, key)?, outcome, text })
}
