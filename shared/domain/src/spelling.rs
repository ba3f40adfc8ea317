//! How far two words are apart: what is asked before a name is suggested in the place of one that is unknown.

/// The edits (a character added, removed or replaced) that make `have` of `wanted`, upper and lower case being equal.
///
/// ```
/// assert_eq!(tidegate_domain::spelling::edits("polcy_ID", "policy_id"), 1);
/// ```
pub fn edits(wanted: &str, have: &str) -> usize {
    let wanted: Vec<char> = wanted.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (line, have) in have.chars().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut corner = line;
        let mut left = line + 1;
        for (cell, want) in row.iter_mut().skip(1).zip(&wanted) {
            let substituted = corner + usize::from(*want != have);
            corner = *cell;
            left = substituted.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn edits_are_counted_whatever_the_case() {
        for (wanted, have, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("UTC", "utc", 0),
            ("berln", "Berlin", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(edits(wanted, have), expected, "{wanted} {have}");
        }
    }
}
