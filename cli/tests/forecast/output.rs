//! What is printed, as a whole: the text, and every name in the JSON.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{JOBS, POLICIES, file, forecast, path, run, stdout};

/// More jobs than are listed, some rows that are refused, and more of those than are shown.
fn many() -> String {
    let refused = (0..7).map(|n| {
        format!("{{\"job_id\":\"lost-{n}\",\"trigger\":{{\"rate\":\"1 day\"}},\"policy_id\":\"no\"}}\n")
    });
    format!("{JOBS}{}", refused.collect::<String>())
}

/// A document beside the tests. `TIDEGATE_UPDATE=1` writes it anew.
fn kept(name: &str, found: &str) {
    let kept =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/forecast").join(name);
    if std::env::var_os("TIDEGATE_UPDATE").is_some() {
        fs::write(&kept, found).unwrap();
    }
    let want = fs::read_to_string(&kept).unwrap_or_default();
    assert_eq!(want, found, "{} holds something else; TIDEGATE_UPDATE=1 writes it", kept.display());
}

#[test]
fn the_text_is_as_it_was() {
    let policies = file(POLICIES);
    let output = run(&many(), &["--policies", path(&policies), "--top", "3"]);
    kept("text.txt", stdout(&output));
}

/// Paths of all values; members of lists are as one.
fn paths(of: &Value, at: &str, found: &mut BTreeSet<String>) {
    match of {
        Value::Object(members) => {
            for (name, value) in members {
                let dot = if at.is_empty() { "" } else { "." };
                paths(value, &format!("{at}{dot}{name}"), found);
            }
        }
        Value::Array(members) => members.iter().for_each(|value| paths(value, &format!("{at}[]"), found)),
        _ => {
            found.insert(at.to_owned());
        }
    }
}

#[test]
fn names_of_the_json_stay_and_the_document_lists_them() {
    let mut found = BTreeSet::new();
    paths(&forecast(&many(), &[]), "", &mut found);
    let found: String = found.iter().map(|path| format!("{path}\n")).collect();
    let document = super::document("forecast.md");
    let listed = document.split("## Every name in the JSON\n\n```text\n").nth(1).unwrap_or_default();
    let listed = listed.split("```").next().unwrap_or_default();
    assert_eq!(listed, found, "docs/forecast.md lists other names");
}
