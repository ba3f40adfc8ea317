//! `tidegate-simulation [N] [--from SEED] [--mutant NAME | --mutants | --restores] [--trace]`: plays N seeded histories over all cores,
//! and ends with how often each fault took place and a table of the histories that failed: 1 is the exit code when there
//! is any. A single history that fails tells its last lines, with `--trace` every one tells all. With `--mutant`, requests
//! lack a clause of a condition, and a failure is what is looked for; with `--mutants`, each clause is taken off in turn. With
//! `--restores`, tables are restored from snapshots of different instants, and repaired.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a recipe talks to the terminal")]

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tidegate_simulation::mutants::{self, Mutant};
use tidegate_simulation::restore;
use tidegate_simulation::sim::{self, CoveredFault, Options};

/// Histories when no number is given.
const HISTORIES: u64 = 100;
const USAGE: &str =
    "usage: tidegate-simulation [N] [--from SEED] [--mutant NAME | --mutants | --restores] [--trace]";

struct Arguments {
    histories: u64,
    from: u64,
    /// Whether all mutants are played.
    sweeps: bool,
    /// Whether restores are played, not histories.
    restores: bool,
    options: Options,
}

fn arguments() -> Result<Arguments> {
    let mut arguments = Arguments {
        histories: HISTORIES,
        from: 1,
        sweeps: false,
        restores: false,
        options: Options::default(),
    };
    let mut trace = false;
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let number = |text: Option<String>| text.and_then(|n| n.parse().ok()).context("a number is expected");
        match &*word {
            "--from" => arguments.from = number(given.next())?,
            "--trace" => trace = true,
            "--mutants" => arguments.sweeps = true,
            "--restores" => arguments.restores = true,
            "--mutant" => arguments.options.mutant = Some(Mutant::named(&given.next().context(USAGE)?)?),
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

/// Plays restores; each that failed is told.
fn play_restores(seeds: std::ops::Range<u64>) -> ExitCode {
    let (mut played, mut failed) = (0_u64, 0_u64);
    for seed in seeds {
        played += 1;
        if let Err(error) = restore::play(seed, restore::Options::default()) {
            failed += 1;
            eprintln!("restore {seed}: {error:#}");
        }
    }
    println!("{played} restores were played, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> Result<ExitCode> {
    let Arguments { histories, from, sweeps, restores, options } = arguments()?;
    if restores {
        return Ok(play_restores(from..from + histories));
    }
    if sweeps {
        mutants::sweep(from..from + histories, |row| println!("{row}"));
        return Ok(ExitCode::SUCCESS);
    }
    let report = sim::run_all(from..from + histories, options, |failure| eprintln!("{failure}"));
    for fault in CoveredFault::ALL {
        println!("{:>9}  {}", report.coverage.get(fault).copied().unwrap_or(0), fault.name());
    }
    println!("{report}");
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
