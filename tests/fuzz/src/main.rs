//! `tidegate-fuzz [N] [--from SEED] [--all]`: sends N inputs over all cores, a round for each seed, and stops at the first
//! that fails. With `--all` it goes on, and tells each kind of failure once.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a recipe talks to the terminal")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tidegate_fuzz::fault::Fault;
use tidegate_fuzz::numbers::{INPUTS, INPUTS_PER_ROUND};
use tidegate_fuzz::round::{self, Played, Summary};

const USAGE: &str = "usage: tidegate-fuzz [N] [--from SEED] [--all]";

struct Arguments {
    inputs: u64,
    from: u64,
    all: bool,
}

fn arguments() -> Result<Arguments> {
    let mut arguments = Arguments { inputs: INPUTS, from: 1, all: false };
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let number = |text: Option<String>| text.and_then(|n| n.parse().ok()).context("a number is expected");
        match &*word {
            "--from" => arguments.from = number(given.next())?,
            "--all" => arguments.all = true,
            "--help" | "-h" => bail!(USAGE),
            _ => arguments.inputs = number(Some(word))?,
        }
    }
    Ok(arguments)
}

fn main() -> Result<ExitCode> {
    let Arguments { inputs, from, all } = arguments()?;
    let (begun, until) = (Instant::now(), from + inputs.div_ceil(INPUTS_PER_ROUND));
    let (next, held) = (AtomicU64::new(from), Mutex::new(Summary::default()));
    let faults: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
    let play = || -> Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let goes_on = all || faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if seed >= until || !goes_on {
                return Ok(());
            }
            let is_told = |fault: &Fault| {
                faults.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|told| told.is_like(fault))
            };
            let played = round::play_past(seed, &|fault| all && is_told(fault));
            match played.with_context(|| format!("failed to play seed {seed}"))? {
                Played::Held(summary) => held.lock().unwrap_or_else(PoisonError::into_inner).add(summary),
                Played::Failed(failure) => {
                    eprintln!("{failure}\n");
                    faults.lock().unwrap_or_else(PoisonError::into_inner).push(failure.fault);
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        players
            .into_iter()
            .try_for_each(|player| player.join().unwrap_or_else(|_| bail!("a player panicked")))
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
    let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner).len();
    println!("{held} held from seed {from} on: {seconds:.1} s, {:.0} a second", held.inputs as f64 / seconds);
    println!("{faults} kinds of failures");
    Ok(if faults > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
