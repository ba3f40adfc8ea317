//! `cargo xtask check`: everything that must hold before a change is merged, short of a deployment.

use anyhow::Result;

use crate::command::run;
use crate::venv::Venv;
use crate::workspace::{Workspace, cargo};
use crate::{layers, modules, readme, tools};

/// Runs the checks, the quick ones first, the tests last.
///
/// # Errors
/// At the first check that fails.
pub fn check(workspace: &Workspace) -> Result<()> {
    run(cargo(workspace).args(["fmt", "--all", "--check"]))?;
    eprintln!("layers");
    layers::check(workspace.metadata())?;
    modules::check(workspace.root())?;
    run(Venv::sam(workspace)?.program("cfn-lint").arg("template.yaml").current_dir(workspace.root()))?;
    deny(workspace)?;
    run(cargo(workspace).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(cargo(workspace)
        .args(["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    type_readme(workspace)?;
    run(tools::NEXTEST.command(workspace)?.args(["run", "--workspace", "--locked"]))
}

/// Types the README, with the binary as the tests build it: other features would compile everything once more.
///
/// # Errors
/// When it cannot be built, or the README is not true.
pub fn type_readme(workspace: &Workspace) -> Result<()> {
    run(tools::NEXTEST.command(workspace)?.args(["run", "--workspace", "--locked", "--no-run"]))?;
    readme::readme(workspace)
}

/// The advisory database is a git repository: `TIDEGATE_ADVISORIES=1` checks it too, where the network allows.
fn deny(workspace: &Workspace) -> Result<()> {
    let mut deny = tools::DENY.command(workspace)?;
    deny.args(["--workspace", "--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    if std::env::var_os("TIDEGATE_ADVISORIES").is_some_and(|value| value == "1") {
        deny.arg("advisories");
    }
    run(&mut deny)
}
