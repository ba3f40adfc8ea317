//! `tidegate-simulation [N] [--from SEED] [--mutant token-write|release|cursor] [--trace]`: plays N seeded histories over
//! all cores, and ends with how often each fault took place and a table of the histories that failed: 1 is the exit code
//! when there is any. A single history that fails tells its last lines, with `--trace` every one tells all. With
//! `--mutant`, the store lacks a condition, and a failure is what is looked for.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a recipe talks to the terminal")]

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tidegate_simulation::sim::{self, Bite, Mutant, Options};

/// Histories when no number is given.
const HISTORIES: u64 = 100;
const USAGE: &str =
    "usage: tidegate-simulation [N] [--from SEED] [--mutant token-write|release|cursor] [--trace]";

struct Arguments {
    histories: u64,
    from: u64,
    options: Options,
}

fn arguments() -> Result<Arguments> {
    let mut arguments = Arguments { histories: HISTORIES, from: 1, options: Options::default() };
    let mut trace = false;
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let number = |text: Option<String>| text.and_then(|n| n.parse().ok()).context("a number is expected");
        match &*word {
            "--from" => arguments.from = number(given.next())?,
            "--trace" => trace = true,
            "--mutant" => arguments.options.mutant = Some(mutant(given.next().as_deref())?),
            "--help" | "-h" => bail!(USAGE),
            _ => arguments.histories = number(Some(word))?,
        }
    }
    arguments.options.lines = match (trace, arguments.histories) {
        (true, _) => usize::MAX,
        (false, 1) => Options::default().lines,
        (false, _) => 0,
    };
    Ok(arguments)
}

fn mutant(name: Option<&str>) -> Result<Mutant> {
    Ok(match name {
        Some("token-write") => Mutant::TokenWrite,
        Some("release") => Mutant::Release,
        Some("cursor") => Mutant::Cursor,
        _ => bail!(USAGE),
    })
}

fn main() -> Result<ExitCode> {
    let Arguments { histories, from, options } = arguments()?;
    let report = sim::run_all(from..from + histories, options, |failure| eprintln!("{failure}"));
    for bite in Bite::ALL {
        println!("{:>9}  {}", report.bites.get(bite).copied().unwrap_or(0), bite.name());
    }
    println!("{report}");
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
