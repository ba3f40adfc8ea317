//! What a conditional write expects to find (the `If-Match` and `If-None-Match` of the API), and what came of it.

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

/// What came of writing something that a client names, if what was there is what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written<T> {
    /// It is new.
    Created(T),
    /// It took the place of its former revision.
    Replaced(T),
    /// It says the same already; nothing changed.
    Unchanged(T),
    /// Nothing was to be there, and something else is.
    Taken(T),
    /// It has another revision than was expected.
    RevisionIs(u32),
    /// There is nothing to replace.
    Absent,
}
