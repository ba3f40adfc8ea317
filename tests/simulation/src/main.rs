//! `tidegate-simulation [N] [--from SEED] [--mutant token-write|release|cursor] [--trace]`: plays N seeded histories over
//! all cores, tells what went wrong in them, and stops at the first that fails. With `--trace`, a failure tells its whole
//! history; with `--mutant`, the store lacks a condition, and a failure is what is looked for.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a recipe talks to the terminal")]

use std::process::ExitCode;
use std::time::Instant;

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
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let number = |text: Option<String>| text.and_then(|n| n.parse().ok()).context("a number is expected");
        match &*word {
            "--from" => arguments.from = number(given.next())?,
            "--trace" => arguments.options.lines = usize::MAX,
            "--mutant" => arguments.options.mutant = Some(mutant(given.next().as_deref())?),
            "--help" | "-h" => bail!(USAGE),
            _ => arguments.histories = number(Some(word))?,
        }
    }
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
    let begun = Instant::now();
    let total = match sim::run_all(from..from + histories, options)? {
        Ok(total) => total,
        Err(failure) => {
            eprintln!("{failure}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    for bite in Bite::ALL {
        println!("{:>9}  {}", total.bites.get(bite).copied().unwrap_or(0), bite.name());
    }
    println!(
        "{histories} histories from seed {from} on held: {} requests, {} events, {seconds:.1} s, {:.1} histories a second",
        total.requests,
        total.delivered,
        histories as f64 / seconds
    );
    Ok(ExitCode::SUCCESS)
}
