//! Secrets: for how long a former one is signed with, and what clients keep here for the headers of their calls.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use crate::bounded::bounded;
use crate::ids::SecretId;
use crate::limits::{DEFAULT_FORMER_SECRET_SECONDS, FORMER_SECRET_SECONDS, SECRET_BYTES};

bounded! {
    /// For how long a webhook secret that was replaced is signed with beside the new one, in seconds.
    KeptSeconds(u32), "keep_seconds", FORMER_SECRET_SECONDS, default DEFAULT_FORMER_SECRET_SECONDS
}

/// The value of a client's secret.
///
/// Invariant: 1 to [`SECRET_BYTES`] visible ASCII characters, blanks between them included: what a header can carry. It is in no
/// `Debug` and no error.
///
/// ```
/// use tidegate_domain::secret::SecretValue;
///
/// let value = SecretValue::new("k-4711")?;
/// assert_eq!((value.expose(), &*format!("{value:?}")), ("k-4711", "SecretValue"));
/// # Ok::<(), tidegate_domain::secret::SecretValueError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

/// Values of secrets by their names.
pub type SecretValues = BTreeMap<SecretId, SecretValue>;

/// Why a value is refused. It is never repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SecretValueError {
    /// Empty, or longer than [`SECRET_BYTES`].
    #[error("value has {bytes} bytes; it must have 1 to {SECRET_BYTES}")]
    Length {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A character that a header cannot carry, or a blank at an end.
    #[error(
        "value is not visible ASCII with blanks between; leave out line ends and blanks at its ends, and encode other characters"
    )]
    Characters,
}

/// Headers name a secret that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret '{0}' is not there")]
pub struct NoSuchSecret(pub SecretId);

impl SecretValue {
    /// Takes a value.
    ///
    /// # Errors
    /// The variants of [`SecretValueError`].
    pub fn new(text: impl Into<String>) -> Result<Self, SecretValueError> {
        let text = text.into();
        match text.len() {
            bytes if !(1..=SECRET_BYTES).contains(&bytes) => Err(SecretValueError::Length { bytes }),
            _ if !is_header_text(&text) => Err(SecretValueError::Characters),
            _ => Ok(Self(text)),
        }
    }

    /// The value itself: for whoever encrypts it, and for the call that it goes into.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Without the value, which would end in a log.
impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

/// Whether a text is visible ASCII with blanks between: what the value of a header may be.
pub(crate) fn is_header_text(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b)) && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_a_header_can_carry_and_no_error_repeats_it() {
        let longest = "x".repeat(SECRET_BYTES);
        for good in ["k", "Basic dXNlcjpwYXNz", "a b", "{{index}}", "~!", &longest] {
            assert_eq!(SecretValue::new(good).unwrap().expose(), good);
        }
        let too_long = format!("{longest}x");
        for (bad, says) in [
            ("", "value has 0 bytes; it must have 1 to 4096"),
            (&*too_long, "value has 4097 bytes"),
            ("k-4711\n", "value is not visible ASCII"),
            (" k-4711", "value is not visible ASCII"),
            ("k-4711\u{7f}", "value is not visible ASCII"),
            ("kühn-4711", "value is not visible ASCII"),
        ] {
            let error = SecretValue::new(bad).unwrap_err();
            assert!(error.to_string().starts_with(says), "{error}");
            assert!(!format!("{error} {error:?}").contains("4711"), "{error:?}");
        }
    }
}
