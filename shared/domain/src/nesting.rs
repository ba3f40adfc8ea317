//! How deep a JSON text is nested.

/// The most arrays and objects of a JSON text that are open at once; 0 of a number or a string. Needs no stack, however
/// deep the text is.
///
/// ```
/// use tidegate_domain::nesting::levels;
///
/// assert_eq!(levels(r#"{"a": [1, "[[["]}"#), 2);
/// assert_eq!(levels("7"), 0);
/// ```
pub fn levels(json: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::levels;

    #[test]
    fn brackets_count_and_those_in_strings_do_not() {
        for (json, expected) in [
            ("null", 0),
            ("[]", 1),
            ("[[],[[]],{}]", 3),
            (r#"{"a":{"b":[{}]},"c":1}"#, 4),
            (r#"["]", "[", "\"[[[", "\\"]"#, 1),
            (r#"["\\", [2]]"#, 2),
        ] {
            assert_eq!(levels(json), expected, "{json}");
        }
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(levels(&deep), 1_000_000);
    }
}
