//! Reads the diagrams of `states.md`, for the tests that compare them with the code. Each takes this file in by its path.

use std::collections::BTreeSet;

/// The edges of a diagram: from where to where, and what leads there.
pub(crate) type Edges = BTreeSet<(String, String, String)>;

/// The diagram under a heading, but for where things begin.
pub(crate) fn drawn(heading: &str) -> Edges {
    let document = include_str!("states.md");
    let (_, section) = document.split_once(&format!("\n## {heading}\n")).unwrap();
    let edge = |line: &str| {
        let (edge, event) = line.split_once(": ")?;
        let (from, to) = edge.trim().split_once(" --> ")?;
        Some((from.to_owned(), to.to_owned(), event.to_owned()))
    };
    section.split("```").nth(1).unwrap().lines().filter_map(edge).collect()
}
