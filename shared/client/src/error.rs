//! What can go wrong with a call.

use tidegate_protocol::{EventError, Problem};

/// Why a call did not do what it was asked.
///
/// ```
/// use tidegate_client::{Client, Error};
///
/// fn is_new(created: Result<(), Error>) -> Result<bool, Error> {
///     match created {
///         Ok(()) => Ok(true),
///         Err(Error::Refused(problem)) if problem.status == 409 => Ok(false),
///         Err(error) => Err(error),
///     }
/// }
/// # let problem = serde_json::from_str(r#"{"type": "urn:tidegate:problem:id-taken", "status": 409}"#)?;
/// # assert!(!is_new(Err(Error::Refused(Box::new(problem))))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer came: whether the call took effect is unknown. Also when the connections cannot be set up.
    #[error("no answer from the API: {0}")]
    Transport(#[from] reqwest::Error),
    /// The API refused the call and says why. Nothing changed, unless the status is 500 or above.
    #[error("the API refused the call: {0}")]
    Refused(Box<Problem>),
    /// A delivered event does not read as what this version, or its consumer, expects.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The answer does not read as what this version expects.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// What it was to be, such as "the answer of the API".
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The problem that the API refused the call with; `None` when it gave none.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the same call may succeed a little later: no answer came, or the API refused with 408, 425, 429 or a
    /// status from 500 on.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Transport(error) => !error.is_builder(),
            Self::Refused(problem) => matches!(problem.status, 408 | 425 | 429 | 500..),
            Self::Event(_) | Self::Unreadable { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_may_succeed_later_is_told_from_one_that_will_not() {
        let refused = |status: u16| {
            let problem = serde_json::from_value(serde_json::json!({"status": status})).unwrap();
            Error::Refused(Box::new(problem))
        };
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(refused(status).is_retryable(), "{status}");
        }
        for status in [400, 401, 404, 409, 413, 422, 428] {
            assert!(!refused(status).is_retryable(), "{status}");
        }
        assert!(!Error::Unreadable { what: "the answer", reason: String::new() }.is_retryable());
    }
}
