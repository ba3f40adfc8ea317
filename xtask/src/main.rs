//! The project's recipes: `cargo xtask check | readme | e2e | arm64 | bench | simulate | cloud | fuzz`.
//!
//! A recipe runs what a person would type, in order, and stops at the first failure. Tools that are not on the
//! machine go into the project's cache (see [`workspace`]), at fixed versions; nothing has to be installed by hand.
//! No product code lives here, and no other crate depends on this one.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a recipe talks to the terminal")]

mod arm64;
mod check;
mod command;
mod consumers;
mod deployment;
mod e2e;
mod features;
mod figures;
mod layers;
mod ministack;
mod modules;
mod peaks;
mod peers;
mod port;
mod quick;
mod readme;
mod roles;
mod runtime_api;
mod schemathesis;
mod times;
mod tools;
mod venv;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::command::run;
use crate::workspace::{Workspace, cargo};

const USAGE: &str = "\
usage: cargo xtask <recipe>

  check                      format, lints, documentation, imports, template, dependencies, examples in the documentation,
                             readme, all tests, and what took how long
  check --quick [CRATE ...]  of these crates, or those with changes that are not committed: format, imports, lints, tests and
                             direct proofs
  readme                     type the README and the quick start as they are written, in local mode
  e2e                        deploy the real template to AWS_ENDPOINT_URL (or a MiniStack of its own), use it, and compare
                             each role with the calls that its function made
  arm64                      build the functions as the template has them by default, for arm64 and by zig, and look whether
                             Lambda could start them
  bench [NAME] [N]           the benchmarks, or one of them with N events or jobs
  bench peers [--quick] [--only NAME,..] [--rounds N] [--far] [--write]
                             the same work on Tidegate and on BullMQ, pg-boss and graphile-worker; --quick is tiny and
                             asserts what must hold at any speed, --write puts the table into docs/benchmarks.md
  bench profile WORK         what the server's time goes into while one of these works is played, and a flame graph: needs perf
  simulate [N] [--from SEED] [--mutant NAME | --mutants | --restores]
                             N simulated histories over all cores, replayable by seed, and a table of those that failed;
                             without a clause of a condition (a row of tests/simulation/src/mutants/mutants.txt), or
                             with each of these mutants in turn until a history notices it; or N restores of tables
                             from snapshots of different instants
  cloud [NAME ...] [--seed N] [--share PART]
                             what must hold on AWS as it is: all scenarios, or those that are named, each in full or in
                             a part of its size, in virtual time
  fuzz [N] [--from SEED] [--all]
                             N inputs to every entry over all cores, replayable by seed; --all goes on after a failure";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match recipe(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn recipe(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else { bail!("no recipe named\n{USAGE}") };
    let workspace = Workspace::find()?;
    match name.as_str() {
        "check" => match rest.split_first() {
            Some((flag, names)) if flag == "--quick" => quick::quick(&workspace, names),
            Some((unknown, _)) => bail!("check knows no {unknown:?}\n{USAGE}"),
            None => check::check(&workspace),
        },
        "readme" => check::type_readme(&workspace),
        "e2e" => e2e::e2e(&workspace),
        "arm64" => arm64::build(&workspace),
        "bench" => match rest.split_first() {
            Some((name, rest)) if name == "peers" => peers::peers(&workspace, rest),
            Some((name, rest)) if name == "profile" => peers::profile(&workspace, rest),
            _ => play(&workspace, "release", "tidegate-bench", rest),
        },
        "simulate" => play(&workspace, "simulate", "tidegate-simulation", rest),
        "cloud" => play(&workspace, "simulate", "tidegate-cloud", rest),
        // As the tests are built: with checks for overflow, and with the lines of a panic.
        "fuzz" => play(&workspace, "dev", "tidegate-fuzz", rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => bail!("no recipe is called {unknown:?}\n{USAGE}"),
    }
}

/// Runs a program, built by a profile. No package is named: with `-p`, each of them would want its dependencies with other
/// features, and so all of them built anew.
fn play(workspace: &Workspace, profile: &str, program: &str, arguments: &[String]) -> Result<()> {
    run(cargo(workspace).args(["run", "--profile", profile, "--bin", program, "--"]).args(arguments))
}
