//! Whether the functions share what they are built from: `sam build` compiles each by itself, and a library whose features
//! differ between two of them is compiled for each, with all that stands on it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::command::capture;
use crate::deployment::FUNCTIONS;
use crate::workspace::{Workspace, cargo};

/// Compares the features of every library that two functions use.
///
/// # Errors
/// When cargo cannot tell them, or some differ; all of them are named.
pub fn check(workspace: &Workspace) -> Result<()> {
    let mut trees = Vec::new();
    for (_, function) in FUNCTIONS {
        let mut tree = cargo(workspace);
        tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}\t{f}"]);
        trees.push((*function, capture(tree.args(["--package", &format!("tidegate-{function}")]))?));
    }
    let differences = differences(&trees);
    if differences.is_empty() {
        return Ok(());
    }
    bail!(
        "the functions do not share these libraries; name the missing features in shared/aws/Cargo.toml:\n  {}",
        differences.join("\n  ")
    )
}

/// The libraries that are in several trees with different features. A tree is what `cargo tree` prints: a line for each use of a
/// library, with its features behind a tab, and a mark where it was shown before.
fn differences(trees: &[(&str, String)]) -> Vec<String> {
    let mut features: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (function, tree) in trees {
        for (library, named) in tree.lines().filter_map(|line| line.split_once('\t')) {
            let functions =
                features.entry(library).or_default().entry(named.trim_end_matches(" (*)")).or_default();
            if !functions.contains(function) {
                functions.push(function);
            }
        }
    }
    let differing = features.into_iter().filter(|(_, sets)| sets.len() > 1);
    differing.map(|(library, sets)| format!("{library}: {}", told(&sets))).collect()
}

fn told(sets: &BTreeMap<&str, Vec<&str>>) -> String {
    let each = sets.iter().map(|(features, functions)| format!("[{features}] in {}", functions.join(", ")));
    each.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_functions_build_differently_is_named() {
        let trees = [
            ("master", "serde v1\tstd,alloc\nbytes v1\tstd\naxum v0\t\nserde v1\tstd,alloc (*)\n".to_owned()),
            ("emitter", "serde v1\tstd\nbytes v1\tstd\n".to_owned()),
            ("handler", "serde v1\tstd\n".to_owned()),
        ];
        assert_eq!(differences(&trees), ["serde v1: [std] in emitter, handler; [std,alloc] in master"]);
    }

    #[test]
    fn what_is_shared_or_used_once_is_no_difference() {
        let trees = [
            ("master", "serde v1\tstd\naxum v0\thttp1\n".to_owned()),
            ("emitter", "serde v1\tstd\nserde v1\tstd (*)\n".to_owned()),
        ];
        assert_eq!(differences(&trees), [""; 0]);
    }
}
