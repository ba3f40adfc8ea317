//! Plays one work on Tidegate and prints a line of JSON: `tidegate-player '{"server":..,"work":..}'`.
//!
//! It is told what `tests/bench/peers/play.mjs` is told, plays what that plays and answers what that answers: its modules are
//! called as the files there. It sees no more of Tidegate than they do: the API and the queues over loopback, no crate of ours.

#![expect(clippy::print_stdout, reason = "the line is what this is for")]

mod book;
mod figures;
mod http;
mod servers;
mod tidegate;
mod works;

use anyhow::{Context, Result};
use serde::Deserialize;

use tidegate::{Address, Tidegate};
use works::Work;

/// What the recipe passes.
#[derive(Deserialize)]
struct Asked {
    server: Address,
    work: Work,
}

#[tokio::main]
async fn main() -> Result<()> {
    let asked = std::env::args().nth(1).context("what to play is missing: {\"server\":..,\"work\":..}")?;
    let Asked { server, work } = serde_json::from_str(&asked).context("failed to read what to play")?;
    let pid = server.pid;
    let tidegate = Tidegate::open(server, work.limit).await?;
    println!("{}", work.play(&tidegate, pid).await?);
    Ok(())
}
