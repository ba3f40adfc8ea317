//! Tags: words by which a client finds its jobs again.

use thiserror::Error;

use crate::limits::{TAG_BYTES, TAGS_PER_JOB};

/// The tags of a job, in order and each once: at most [`TAGS_PER_JOB`].
///
/// ```
/// use tidegate_domain::tags::Tags;
///
/// let tags = Tags::new(["team:books", "nightly", "nightly"])?;
/// assert!(tags.has("nightly") && !tags.has("night"));
/// assert_eq!(tags.iter().collect::<Vec<_>>(), ["nightly", "team:books"]);
/// # Ok::<(), tidegate_domain::tags::TagsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tags(Vec<String>);

/// Why tags are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TagsError {
    /// A word that is no tag.
    #[error("'{tag}' is no tag; use 1 to {TAG_BYTES} letters, digits and - _ . : / @ = +")]
    Form {
        /// The word.
        tag: String,
    },
    /// More than [`TAGS_PER_JOB`].
    #[error("tags holds {found}; {TAGS_PER_JOB} is the most")]
    TooMany {
        /// How many there are.
        found: usize,
    },
}

impl Tags {
    /// Takes words as tags.
    ///
    /// # Errors
    /// [`TagsError::Form`] when one is none, [`TagsError::TooMany`] when there are more than [`TAGS_PER_JOB`].
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, TagsError> {
        let mut tags: Vec<String> = words.into_iter().map(Into::into).collect();
        tags.iter().try_for_each(|tag| Self::check(tag))?;
        tags.sort_unstable();
        tags.dedup();
        match tags.len() {
            found if found > TAGS_PER_JOB => Err(TagsError::TooMany { found }),
            _ => Ok(Self(tags)),
        }
    }

    /// Whether a word is a tag.
    ///
    /// # Errors
    /// [`TagsError::Form`] when it is none.
    pub fn check(word: &str) -> Result<(), TagsError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/@=+".contains(&b);
        if (1..=TAG_BYTES).contains(&word.len()) && word.bytes().all(fits) {
            return Ok(());
        }
        Err(TagsError::Form { tag: word.chars().take(TAG_BYTES).collect() })
    }

    /// Whether a tag is among them.
    pub fn has(&self, tag: &str) -> bool {
        self.0.iter().any(|own| own == tag)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_tags_are_named() {
        for word in ["", "two words", "a,b", "é", &"x".repeat(TAG_BYTES + 1)] {
            assert!(Tags::new([word]).is_err(), "{word}");
        }
        assert!(Tags::new(["x".repeat(TAG_BYTES)]).is_ok());
        let numbered = |most: usize| Tags::new((0..most).map(|number| format!("t{number}")));
        assert!(numbered(TAGS_PER_JOB).is_ok());
        let found = TAGS_PER_JOB + 1;
        assert_eq!(numbered(found), Err(TagsError::TooMany { found }));
    }
}
