//! `tidegate-simulation [N] [--from SEED] [--trace]`: plays N seeded histories and stops at the first that fails.
//! With `--trace`, a failure tells its whole history.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a recipe talks to the terminal")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tidegate_simulation::sim;

/// Histories when no number is given.
const HISTORIES: u64 = 100;

struct Arguments {
    histories: u64,
    from: u64,
    lines: usize,
}

fn arguments() -> Result<Arguments> {
    let mut arguments = Arguments { histories: HISTORIES, from: 1, lines: 60 };
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let number = |text: Option<String>| text.and_then(|n| n.parse().ok()).context("a number is expected");
        match &*word {
            "--from" => arguments.from = number(given.next())?,
            "--trace" => arguments.lines = usize::MAX,
            "--help" | "-h" => bail!("usage: tidegate-simulation [N] [--from SEED] [--trace]"),
            _ => arguments.histories = number(Some(word))?,
        }
    }
    Ok(arguments)
}

fn main() -> Result<ExitCode> {
    let Arguments { histories, from, lines } = arguments()?;
    let begun = Instant::now();
    let (mut requests, mut delivered) = (0, 0);
    for seed in from..from + histories {
        match sim::run_telling(seed, lines)? {
            Ok(summary) => {
                requests += summary.requests;
                delivered += summary.delivered;
            }
            Err(failure) => {
                eprintln!("{failure}");
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    println!(
        "{histories} histories from seed {from} on held: {requests} requests, {delivered} events, {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}
