//! `cargo xtask check`: everything that must hold before a change is merged, short of a deployment.

use std::process::Command;

use anyhow::Result;

use crate::command::run;
use crate::times::Times;
use crate::venv::Venv;
use crate::workspace::{Workspace, cargo};
use crate::{features, layers, modules, readme, tools};

/// Tidegate's own, and what the end-to-end tests point jobs at.
const TEMPLATES: [&str; 2] = ["template.yaml", "tests/e2e/template.yaml"];

/// Runs the checks, the quick ones first, the tests last, and says what took how long.
///
/// # Errors
/// At the first check that fails.
pub fn check(workspace: &Workspace) -> Result<()> {
    let mut times = Times::default();
    let checked = check_each(workspace, &mut times);
    eprint!("{times}");
    checked
}

fn check_each(workspace: &Workspace, times: &mut Times) -> Result<()> {
    times.take("format", || run(cargo(workspace).args(["fmt", "--all", "--check"])))?;
    times.take("imports", || imports(workspace))?;
    times.take("templates", || {
        run(Venv::sam(workspace)?.program("cfn-lint").args(TEMPLATES).current_dir(workspace.root()))
    })?;
    times.take("dependencies", || deny(workspace))?;
    times.take("consumers", || consumers(workspace))?;
    times.take("lints", || {
        let all = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        run(cargo(workspace).args(all))
    })?;
    times.take("documentation", || {
        let all = ["doc", "--workspace", "--no-deps", "--locked"];
        run(cargo(workspace).args(all).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    times.take("build of the tests", || tools::build_tests(workspace))?;
    times.take("examples", || run(cargo(workspace).args(["test", "--doc", "--workspace", "--locked"])))?;
    times.take("readme", || readme::readme(workspace))?;
    times.take("tests", || run(tools::NEXTEST.command(workspace)?.args(["run", "--workspace", "--locked"])))
}

/// What the crates take from each other and from elsewhere.
///
/// # Errors
/// When an import, or a feature of what the functions share, is at fault.
pub fn imports(workspace: &Workspace) -> Result<()> {
    layers::check(workspace.metadata())?;
    modules::check(workspace.root())?;
    features::check(workspace)
}

/// The packages for consumers in other languages, each by its own checks.
fn consumers(workspace: &Workspace) -> Result<()> {
    for language in ["python", "typescript"] {
        let folder = workspace.root().join("clients").join(language);
        run(Command::new("bash").arg("check.sh").current_dir(folder))?;
    }
    Ok(())
}

/// Types the README, with the binary as the tests build it: other features would compile everything once more.
///
/// # Errors
/// When it cannot be built, or the README is not true.
pub fn type_readme(workspace: &Workspace) -> Result<()> {
    tools::build_tests(workspace)?;
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
