//! The `tidegate` binary: `tidegate local` runs a whole Tidegate in one process, `--demo` shows what it does;
//! `tidegate backup` copies its data folder; `tidegate dry-run` tells what a file of jobs would launch, `tidegate forecast` what
//! that would take of AWS; `tidegate repair` brings restored tables together again.
//!
//! Deliberately absent: rules of scheduling and throttling (the engine's), and calls to a deployed Tidegate (any HTTP
//! client's, or those of `tidegate-client`).

mod args;
mod backup;
mod demo;
mod dry_run;
mod forecast;
mod kept_key;
mod local;
mod logging;
mod repair;
mod running;
mod stop;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use tokio::runtime::Builder;
use tracing::Level;

use args::{Cli, Command};

/// A request of the SDK client makes some hundred small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long threads that still work at the end are waited for.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Local(args) => {
            logging::start(if args.demo { Level::WARN } else { Level::INFO });
            run_on(&mut Builder::new_multi_thread(), local::run(args))
        }
        Command::Backup(args) => {
            logging::start(Level::WARN);
            run_on(&mut Builder::new_current_thread(), backup::run(args))
        }
        Command::Forecast(args) => {
            logging::start(Level::WARN);
            run_on(&mut Builder::new_current_thread(), forecast::run(args))
        }
        Command::DryRun(args) => {
            logging::start(Level::WARN);
            run_on(&mut Builder::new_current_thread(), dry_run::run(args))
        }
        Command::Repair(args) => {
            logging::start(Level::WARN);
            run_on(&mut Builder::new_current_thread(), repair::run(args))
        }
    };
    ended.unwrap_or_else(|error| {
        // Nobody is left to tell when even this fails.
        let _ = writeln!(std::io::stderr(), "tidegate: {error:#}");
        ExitCode::FAILURE
    })
}

fn run_on(
    threads: &mut Builder,
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = threads.enable_all().build().context("failed to start the threads")?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(LAST_WAIT);
    ended
}
