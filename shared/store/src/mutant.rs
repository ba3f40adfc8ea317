//! Conditions that a test takes off, to prove that the simulation notices.
//!
//! Without the feature `mutants` nothing of it is compiled, and every condition stands.

/// A condition that is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// That of the write which gives an event its token.
    TokenWrite,
    /// That of the write which ends a lease.
    Release,
    /// That of the write which moves the cursor of a waiting run.
    Cursor,
}

impl crate::Store {
    /// The same tables without one of the conditions.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(self, mutant: Mutant) -> Self {
        Self { mutant: Some(mutant), ..self }
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn lacks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Whether a condition was taken off: never, in what is deployed.
    #[cfg(not(feature = "mutants"))]
    #[expect(clippy::unused_self, reason = "the same call with the feature and without")]
    pub(crate) fn lacks(&self, _mutant: Mutant) -> bool {
        false
    }
}
