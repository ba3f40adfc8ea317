//! API keys of a client: what each may do.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Something that a key may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// To see what there is.
    Read,
    /// To create, change and delete jobs, policies and calendars; to cancel, redrive and discard.
    Schedule,
    /// To release and extend tokens: what a consumer needs.
    Release,
    /// To make and revoke keys and secrets of the client.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Schedule, Self::Release, Self::Admin];

    /// Its word, as bodies and rows have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Schedule => "schedule",
            Self::Release => "release",
            Self::Admin => "admin",
        }
    }
}

/// What a key is for: at least one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// Everything.
    pub fn all() -> Self {
        Self(Scope::ALL.into())
    }

    /// These; `None` when there are none.
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Option<Self> {
        let scopes: BTreeSet<Scope> = scopes.into_iter().collect();
        (!scopes.is_empty()).then_some(Self(scopes))
    }

    /// Whether a scope is among them.
    pub fn has(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Each of them, in the order of [`Scope::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }
}

/// Their words, with commas between them.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Scope::as_str).collect();
        f.write_str(&words.join(","))
    }
}

impl FromStr for Scopes {
    type Err = String;

    /// Reads what [`fmt::Display`] writes.
    ///
    /// # Errors
    /// The word that is no scope.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = |word: &str| Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
        let scopes = text.split(',').map(|word| known(word).ok_or_else(|| word.to_owned()));
        Self::new(scopes.collect::<Result<Vec<_>, _>>()?).ok_or_else(String::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_back() {
        for scopes in [Scopes::all(), Scopes::new([Scope::Release]).unwrap()] {
            assert_eq!(scopes.to_string().parse(), Ok(scopes));
        }
        assert_eq!("read,write".parse::<Scopes>(), Err("write".to_owned()));
        assert!("".parse::<Scopes>().is_err() && Scopes::new([]).is_none());
    }
}
