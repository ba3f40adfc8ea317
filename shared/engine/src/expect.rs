//! What a conditional write expects to find: the `If-Match` and `If-None-Match` of the API.

/// What a write expects to find under the id that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever there is, or nothing.
    Anything,
    /// Nothing: of two writes that expect it, one takes place.
    Nothing,
    /// This revision.
    Revision(u32),
}

impl Expect {
    /// Whether something of this revision is not what was expected.
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
