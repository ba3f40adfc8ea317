//! The `tidegate` binary: `tidegate local` runs a whole Tidegate in one process, `--demo` shows what it does.
//!
//! Deliberately absent: rules of scheduling and throttling (the engine's), and calls to a deployed Tidegate (any HTTP
//! client's, or those of `tidegate-client`).

mod args;
mod demo;
mod local;
mod logging;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;

use args::{Cli, Command};

/// How long threads that still work at the end are waited for.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let Command::Local(args) = Cli::parse().command;
    logging::start(if args.demo { "warn" } else { "info" });
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the threads")
        .and_then(|runtime| {
            let ended = runtime.block_on(local::run(args));
            runtime.shutdown_timeout(LAST_WAIT);
            ended
        });
    ended.unwrap_or_else(|error| {
        // Nobody is left to tell when even this fails.
        let _ = writeln!(std::io::stderr(), "tidegate: {error:#}");
        ExitCode::FAILURE
    })
}
