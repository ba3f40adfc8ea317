//! `cargo xtask check --quick`: what a change of one crate can break at once, between two edits.
//!
//! It builds the crate and its direct proofs only, so it says less than `check`, which runs before a change is merged.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{capture, run};
use crate::times::Times;
use crate::workspace::{Workspace, cargo};
use crate::{check, tools};

/// Tests elsewhere that show directly whether a crate does what it is for: their modules in `tests/simulation/tests`.
const PROOFS: &[(&str, &[&str])] =
    &[("tidegate-store", &["refusals::"]), ("tidegate-engine", &["main_path::", "throttling::"])];

/// Checks the named crates; without names, those that have changes that are not committed.
///
/// # Errors
/// At the first check that fails, and when there is nothing to check.
pub fn quick(workspace: &Workspace, names: &[String]) -> Result<()> {
    let crates = match names {
        [] => changed(workspace)?,
        names => names.iter().cloned().collect(),
    };
    if crates.is_empty() {
        bail!(
            "no crate has changes that are not committed; name one: cargo xtask check --quick tidegate-engine"
        );
    }
    let packages: Vec<&str> = crates.iter().flat_map(|name| ["-p", name]).collect();
    let mut times = Times::default();
    times.take("format", || run(cargo(workspace).args(["fmt", "--all", "--check"])))?;
    times.take("imports", || check::imports(workspace))?;
    times.take("lints", || {
        let lints = ["--locked", "--", "-D", "warnings"];
        run(cargo(workspace).arg("clippy").args(&packages).args(lints))
    })?;
    times.take("tests", || {
        run(tools::NEXTEST
            .command(workspace)?
            .args(["run", "--locked", "--no-tests", "pass"])
            .args(&packages))
    })?;
    let proofs: Vec<&str> = PROOFS
        .iter()
        .filter(|(name, _)| crates.contains(*name))
        .flat_map(|(_, tests)| *tests)
        .copied()
        .collect();
    if !proofs.is_empty() {
        times.take("proofs", || {
            // Built as `check` builds them: with the features of this package alone all that they use would be compiled anew.
            let tests = ["run", "--locked", "--workspace", "--test", "simulation"];
            run(tools::NEXTEST.command(workspace)?.args(tests).args(&proofs))
        })?;
    }
    eprint!("{times}");
    Ok(())
}

/// The crates that have files which differ from the last commit.
fn changed(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let mut git = std::process::Command::new("git");
    git.args(["status", "--porcelain", "--untracked-files=all"]).current_dir(workspace.root());
    let status = capture(&mut git)?;
    let files: Vec<&str> = status.lines().filter_map(|line| line.get(3..)?.rsplit(" -> ").next()).collect();
    crates_of(workspace.metadata(), &files)
}

fn crates_of(metadata: &Value, files: &[&str]) -> Result<BTreeSet<String>> {
    let root = metadata["workspace_root"].as_str().context("cargo names no root of the workspace")?;
    let mut crates = BTreeSet::new();
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        let (Some(name), Some(manifest)) = (package["name"].as_str(), package["manifest_path"].as_str())
        else {
            continue;
        };
        let folder = manifest.strip_prefix(root).and_then(|path| path.strip_suffix("Cargo.toml"));
        let Some(folder) = folder.map(|folder| folder.trim_start_matches('/')) else { continue };
        if files.iter().any(|file| file.starts_with(folder)) {
            crates.insert(name.to_owned());
        }
    }
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::crates_of;

    #[test]
    fn a_file_belongs_to_the_crate_of_its_folder() {
        let package = |name: &str, folder: &str| json!({"name": name, "manifest_path": format!("/w/{folder}/Cargo.toml")});
        let metadata = json!({"workspace_root": "/w", "packages": [
            package("tidegate-engine", "shared/engine"), package("tidegate-api", "shared/api"),
            {"name": "serde", "manifest_path": "/registry/serde/Cargo.toml"},
        ]});
        let found = crates_of(&metadata, &["shared/engine/src/lib.rs", "docs/glossary.md"]).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["tidegate-engine"]);
        assert!(crates_of(&metadata, &["README.md"]).unwrap().is_empty());
    }
}
