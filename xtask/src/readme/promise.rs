//! Whether a block printed what the text shows below it.
//!
//! Figures differ from run to run, so digits count as alike in text and in JSON's strings; JSON's numbers must be equal. What is
//! not shown may be there: other members, elements behind those shown, and lines between them. `...` stands for anything:
//! as a line, as a member, and at the end of a line or a string.

use serde_json::Value;

/// What is missing of the promise; `None` when it is kept.
pub fn missing(promise: &str, printed: &str) -> Option<String> {
    if promise.trim_start().starts_with('{') {
        missing_json(promise, printed)
    } else {
        missing_text(promise, printed)
    }
}

fn missing_text(promise: &str, printed: &str) -> Option<String> {
    let mut printed = printed.lines().map(alike);
    let mut shown = promise.lines().filter(|line| !line.trim().is_empty() && line.trim() != "...");
    let missing = shown.find(|line| !printed.any(|there| is_as_shown(&there, line)));
    missing.map(str::to_owned)
}

/// Whether a line, taken as [`alike`] takes it, is what is shown.
fn is_as_shown(there: &str, shown: &str) -> bool {
    match shown.strip_suffix("...") {
        Some(start) => there.starts_with(&alike(start)),
        None => there == alike(shown),
    }
}

/// A line without what differs between runs: its figures, and the room that they take.
fn alike(line: &str) -> String {
    let mut text = String::new();
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        match c {
            c if c.is_ascii_digit() && text.ends_with('0') => {}
            c if c.is_ascii_digit() => text.push('0'),
            c => text.push(c),
        }
    }
    text
}

fn missing_json(promise: &str, printed: &str) -> Option<String> {
    let mut printed = values(printed).into_iter();
    let shown = promise.replace(", ...", "").replace(",...", "");
    let shown: Vec<Value> = match serde_json::Deserializer::from_str(&shown).into_iter().collect() {
        Ok(shown) => shown,
        Err(error) => return Some(format!("the text shows something that is no JSON: {error}")),
    };
    let missing = shown.iter().find(|shown| !printed.any(|there| covers(&there, shown)));
    missing.map(ToString::to_string)
}

/// Every JSON object in a text, whatever stands between them.
fn values(text: &str) -> Vec<Value> {
    let (mut values, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find('{') {
        let mut reader = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
        match reader.next() {
            Some(Ok(value)) => {
                values.push(value);
                rest = &rest[start + reader.byte_offset()..];
            }
            _ => rest = &rest[start + 1..],
        }
    }
    values
}

/// Whether all that is shown is there.
fn covers(there: &Value, shown: &Value) -> bool {
    match (there, shown) {
        (Value::Object(there), Value::Object(shown)) => {
            shown.iter().all(|(name, shown)| there.get(name).is_some_and(|there| covers(there, shown)))
        }
        (Value::Array(there), Value::Array(shown)) => {
            shown.len() <= there.len() && there.iter().zip(shown).all(|(there, shown)| covers(there, shown))
        }
        (Value::String(there), Value::String(shown)) => is_as_shown(&alike(there), shown),
        _ => there == shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_compared_without_its_figures() {
        let promise = "13:35:08.071  job   1 of 20 arrives\n...\n  lateness    75 ms\n";
        assert_eq!(
            missing(promise, "hello\n09:00:00.5 job 17 of 20 arrives\nx\n  lateness  1999 ms\n"),
            None
        );
        assert_eq!(missing(promise, "09:00:00.5 job 17 of 20 leaves\n").as_deref(), promise.lines().next());
        let turned = "  lateness  1 ms\n09:00:00.5 job 17 of 20 arrives\n";
        assert_eq!(missing(promise, turned).as_deref(), Some("  lateness    75 ms"));
    }

    #[test]
    fn json_may_have_more_but_not_less_and_its_numbers_count() {
        let promise = r#"{"id": "a.1.5", "state": "finished", "n": 20, ...}"#;
        let there = |state: &str, n: u32| {
            format!(r#"say {{this}} {{"z":1,"id":"a.12.345","state":"{state}","n":{n}}}"#)
        };
        assert_eq!(missing(promise, &there("finished", 20)), None);
        for other in [
            there("running", 20),
            there("finished", 19),
            String::new(),
            r#"{"id":"a.1.5","n":20}"#.to_owned(),
        ] {
            assert!(missing(promise, &other).is_some(), "{other}");
        }
    }

    #[test]
    fn lists_and_cut_strings_are_compared_by_their_start() {
        let there = r#"{"runs":[{"id":"a","n":1},{"id":"b"}],"text":"all 3 tokens are held by x"}"#;
        assert_eq!(missing(r#"{"runs":[{"id":"a"}],"text":"all 7 tokens..."}"#, there), None);
        assert!(missing(r#"{"runs":[{"id":"b"}]}"#, there).is_some());
        assert!(missing(r#"{"text":"no tokens..."}"#, there).is_some());
        assert!(missing(r#"{"runs":[{},{},{}]}"#, there).is_some());
    }
}
