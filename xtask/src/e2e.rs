//! `cargo xtask e2e`: the real template, deployed and used from outside.
//!
//! It goes to `AWS_ENDPOINT_URL` when that is set, else to a MiniStack that it starts and stops itself. The tests
//! themselves are in `tests/e2e` and `tests/contract`; this only prepares what they need and tells them where it is. Then
//! Schemathesis plays the OpenAPI document against the API.

use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

use crate::command::{capture, run};
use crate::consumers::{self, Consumers};
use crate::deployment::{Deployment, STACK, aim};
use crate::ministack::MiniStack;
use crate::venv::Venv;
use crate::workspace::Workspace;
use crate::{figures, peaks, roles, schemathesis, tools};

/// How much of the log a failure shows.
const LOG_TAIL_LINES: usize = 150;

/// Builds, measures, deploys, tests, and compares roles with calls.
///
/// # Errors
/// At the first step that fails.
pub fn e2e(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("e2e");
    // What an earlier run left would be mistaken for this one's.
    if folder.exists() {
        fs::remove_dir_all(&folder).context("failed to clear the folder of the end-to-end run")?;
    }
    fs::create_dir_all(&folder).context("failed to make the folder of the end-to-end run")?;
    let deployment = Deployment::new(workspace, &folder)?;
    deployment.build()?;
    figures::print(&deployment, &Venv::sam(workspace)?)?;
    let consumers = Consumers::build(workspace, &folder)?;

    match env::var("AWS_ENDPOINT_URL") {
        Ok(endpoint) => {
            let tested = deploy_and_test(workspace, &deployment, &consumers, &endpoint);
            // Somebody else's AWS: leave nothing behind, whatever the tests said.
            let removed = deployment.remove(&endpoint, &consumers::stack());
            let removed = removed.and(deployment.remove(&endpoint, STACK));
            tested.and(removed)
        }
        Err(_) => {
            let ministack = MiniStack::start(workspace, &folder)?;
            let tested = deploy_and_test(workspace, &deployment, &consumers, ministack.endpoint());
            peaks::print(ministack.pid());
            if tested.is_err() {
                show_the_end_of(ministack.log())?;
            }
            tested
        }
    }
}

fn deploy_and_test(
    workspace: &Workspace,
    deployment: &Deployment<'_>,
    consumers: &Consumers<'_>,
    endpoint: &str,
) -> Result<()> {
    let admin_key = random_key()?;
    let api_url = deployment.deploy(endpoint, &sha256_hex(workspace, &admin_key)?)?;
    eprintln!("deployed at {api_url}");
    let beside = consumers.deploy(deployment, endpoint, &api_url, &admin_key)?.to_string();
    for suite in ["tidegate-contract", "tidegate-e2e"] {
        let mut nextest = tools::NEXTEST.command(workspace)?;
        // Of the whole workspace, so that features are those of `check` and nothing is compiled again.
        nextest.args(["run", "--locked", "--profile", "e2e", "--run-ignored", "only", "--workspace"]);
        nextest.args(["--filterset", &format!("package({suite}) and not binary(throughput)")]);
        aim(&mut nextest, endpoint);
        // What failed is in the error; where it was made would only bury it.
        nextest.env("RUST_LIB_BACKTRACE", "0");
        nextest.env("TIDEGATE_E2E_API_URL", &api_url).env("TIDEGATE_E2E_ADMIN_KEY", &admin_key);
        run(nextest.env("TIDEGATE_E2E_CONSUMERS", &beside))?;
    }
    // After the tests, whose stack it fills with whatever it draws.
    let api_url = consumers::reachable(endpoint, &api_url);
    schemathesis::play(workspace, &api_url, &admin_key, &workspace.target().join("e2e"))?;
    roles::check(workspace, endpoint)
}

/// A key for this deployment only.
fn random_key() -> Result<String> {
    use std::io::Read as _;
    let mut bytes = [0; 24];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// By Python, which is here anyway, so that the recipes need no library for it.
fn sha256_hex(workspace: &Workspace, key: &str) -> Result<String> {
    let script = "import hashlib, sys; print(hashlib.sha256(sys.argv[1].encode()).hexdigest())";
    let mut python: Command = Venv::sam(workspace)?.program("python");
    Ok(capture(python.args(["-c", script, key]))?.trim().to_owned())
}

fn show_the_end_of(log: &std::path::Path) -> Result<()> {
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    eprintln!("---- the end of {} ----", log.display());
    for line in &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..] {
        eprintln!("{line}");
    }
    Ok(())
}
