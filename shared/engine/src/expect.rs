//! What a conditional write expects to find: the `If-Match` and `If-None-Match` of the API.

/// What a write expects to find under the id that it names: the `If-Match` and `If-None-Match` of the API.
///
/// ```
/// use tidegate_engine::Expect;
///
/// assert_eq!(Expect::from(None), Expect::Anything);
/// assert!(Expect::from(Some(3)).is_other_than(4));
/// assert!(!Expect::Nothing.is_other_than(4), "that something is there at all is asked elsewhere");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever there is, or nothing.
    Anything,
    /// Nothing: of two writes that expect it, one takes place.
    Nothing,
    /// Something of exactly this revision, from 1.
    Revision(u32),
}

impl Expect {
    /// Whether a revision was expected, and something of this one is not it.
    pub fn is_other_than(self, revision: u32) -> bool {
        matches!(self, Self::Revision(expected) if expected != revision)
    }
}

/// A revision, or anything when there is none.
impl From<Option<u32>> for Expect {
    fn from(revision: Option<u32>) -> Self {
        revision.map_or(Self::Anything, Self::Revision)
    }
}
