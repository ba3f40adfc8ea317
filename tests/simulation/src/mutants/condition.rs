//! Condition expressions as trees, and their clauses: what stands between the ANDs, at every depth.

use std::fmt;

/// A condition expression, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Any(Vec<Self>),
    All(Vec<Self>),
    /// One comparison or function.
    Leaf(String),
}

impl Condition {
    /// Reads an expression with its keywords in capitals, as this project writes them.
    pub(crate) fn parse(text: &str) -> Self {
        let text = unwrapped(text.trim());
        for (word, node) in [("OR", Self::Any as fn(Vec<Self>) -> Self), ("AND", Self::All)] {
            let parts = split(text, word);
            if parts.len() > 1 {
                return node(parts.into_iter().map(Self::parse).collect());
            }
        }
        Self::Leaf(text.to_owned())
    }

    /// The names of its clauses. One that is part of an alternative is named with it: the same may stand in another.
    pub(crate) fn clauses(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.clone().retain("", &mut |name| {
            names.push(name.to_owned());
            true
        });
        names
    }

    /// The same without the clauses that `keep` says no to; `None`: nothing is left to hold.
    pub(crate) fn without(self, clause: &str) -> Option<Self> {
        self.retain("", &mut |name| name != clause)
    }

    fn retain(self, place: &str, keep: &mut impl FnMut(&str) -> bool) -> Option<Self> {
        let clauses = match self {
            Self::All(clauses) => clauses,
            other => vec![other],
        };
        let mut left = Vec::new();
        for clause in clauses {
            if !keep(&format!("{}{place}", shape(&clause.to_string()))) {
                continue;
            }
            match clause {
                Self::Any(alternatives) => left.extend(Self::retain_in(alternatives, keep)),
                leaf => left.push(leaf),
            }
        }
        match left.len() {
            0 | 1 => left.pop(),
            _ => Some(Self::All(left)),
        }
    }

    /// An alternative of which nothing is left always holds, and so do all of them together.
    fn retain_in(alternatives: Vec<Self>, keep: &mut impl FnMut(&str) -> bool) -> Option<Self> {
        let mut left = Some(Vec::new());
        for alternative in alternatives {
            let kept = match &alternative {
                Self::All(_) => {
                    let place = format!(" in ({})", shape(&alternative.to_string()));
                    alternative.retain(&place, keep)
                }
                _ => Some(alternative),
            };
            left = left.zip(kept).map(|(mut left, kept)| {
                left.push(kept);
                left
            });
        }
        left.map(Self::Any)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, between) = match self {
            Self::Leaf(text) => return f.write_str(text),
            Self::Any(parts) => (parts, " OR "),
            Self::All(parts) => (parts, " AND "),
        };
        for (place, part) in parts.iter().enumerate() {
            let before = if place == 0 { "" } else { between };
            match part {
                Self::Leaf(text) => write!(f, "{before}{text}")?,
                part => write!(f, "{before}({part})")?,
            }
        }
        Ok(())
    }
}

/// The text without the numbers of slots and values: `f12 = :v3` is `f# = :v`.
pub(crate) fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut word = String::new();
    for character in text.chars().chain([' ']) {
        if character.is_alphanumeric() || "_:#".contains(character) {
            word.push(character);
            continue;
        }
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
        shape.push_str(stem);
        if stem.len() < word.len() && !stem.starts_with(':') {
            shape.push('#');
        }
        word.clear();
        shape.push(character);
    }
    shape.truncate(shape.len() - 1);
    shape
}

/// The text without the brackets around all of it.
fn unwrapped(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let mut depth = 1;
    for character in inner.chars() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        if depth == 0 {
            return text;
        }
    }
    unwrapped(inner.trim())
}

/// The parts between the ANDs or ORs that stand in no brackets. The AND of a BETWEEN is none.
fn split<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let (mut parts, mut from, mut depth, mut between) = (Vec::new(), 0, 0, false);
    let mut at = 0;
    for piece in text.split_inclusive([' ', '(', ')']) {
        let name = piece.trim_end_matches([' ', '(', ')']);
        match name {
            "BETWEEN" if depth == 0 => between = true,
            "AND" if between => between = false,
            _ if depth == 0 && name == word => {
                parts.push(text[from..at].trim());
                from = at + name.len();
            }
            _ => {}
        }
        depth += i32::from(piece.ends_with('(')) - i32::from(piece.ends_with(')'));
        at += piece.len();
    }
    parts.push(text[from..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_what_stands_between_the_ands() {
        for (condition, clauses) in [
            ("attribute_not_exists(pk)", &["attribute_not_exists(pk)"][..]),
            (
                "f12 = :v3 AND (attribute_not_exists(t12) OR t12 <= :v0)",
                &["f# = :v", "attribute_not_exists(t#) OR t# <= :v"],
            ),
            ("a BETWEEN :low AND :high AND b = :b", &["a BETWEEN :low AND :high", "b = :b"]),
            (
                "n = :n OR (n <= :n AND m < :m)",
                &[
                    "n = :n OR (n <= :n AND m < :m)",
                    "n <= :n in (n <= :n AND m < :m)",
                    "m < :m in (n <= :n AND m < :m)",
                ],
            ),
        ] {
            assert_eq!(Condition::parse(condition).clauses(), clauses);
        }
    }

    #[test]
    fn a_clause_is_taken_off_wherever_it_stands() {
        for (condition, clause, left) in [
            ("a = :a", "a = :a", None),
            ("a = :a AND b = :b", "a = :a", Some("b = :b")),
            ("f1 = :v0 AND f2 = :v1 AND c >= :v2", "f# = :v", Some("c >= :v2")),
            ("a = :a AND (b = :b OR c = :c)", "a = :a", Some("b = :b OR c = :c")),
            ("a = :a OR (b = :b AND c = :c)", "b = :b in (b = :b AND c = :c)", Some("a = :a OR c = :c")),
            ("a = :a AND b = :b", "c = :c", Some("a = :a AND b = :b")),
        ] {
            let taken = Condition::parse(condition).without(clause);
            assert_eq!(taken.map(|condition| condition.to_string()).as_deref(), left, "{condition}");
        }
    }
}
