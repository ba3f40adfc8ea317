//! Figures of `tidegate local`: everything in one process on the embedded stores, in memory or in a folder.
//!
//! `cargo xtask bench [EVENTS]` prints a table. Speed is shown here and asserted nowhere: it depends on the machine.

#![expect(clippy::print_stdout, reason = "the table is what this is for")]

mod herd;
mod throttled;

use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::{Attempts, Count, History, Payload, Terms};
use tidegate_domain::target::Target;
use tidegate_local::runtime::{Options, Place, Runtime};

/// Events of the herd when the command line does not say.
const HERD: u32 = 20_000;

#[tokio::main]
async fn main() -> Result<()> {
    let events =
        std::env::args().nth(1).map_or(Ok(HERD), |text| text.parse()).context("EVENTS is no number")?;
    println!("| store | what | result |\n| --- | --- | --- |");
    run("memory", Place::Memory, events).await?;
    let folder = std::env::temp_dir().join(format!("tidegate-bench-{}", std::process::id()));
    let in_folder = run("folder", Place::Folder(folder.clone()), events).await;
    std::fs::remove_dir_all(&folder).context("failed to remove the folder of the benchmark")?;
    in_folder
}

async fn run(store: &str, place: Place, events: u32) -> Result<()> {
    let runtime = Runtime::start(Options::new(place)).await?;
    for (what, result) in [herd::run(&runtime, events).await?, throttled::run(&runtime).await?].concat() {
        println!("| {store} | {what} | {result} |");
    }
    runtime.stop().await;
    Ok(())
}

/// A row of the table: what was measured, and what came out.
type Row = (String, String);

fn client() -> Result<ClientId> {
    Ok("bench".parse()?)
}

fn terms(queue_url: &str, count: u32) -> Result<Terms> {
    Ok(Terms {
        count: Count::new(count.into())?,
        policy: None,
        target: Target::sqs(queue_url)?,
        payload: Payload::new("{\"a\":1}".to_owned())?,
        history: History::Failures,
        max_attempts: Attempts::default(),
    })
}

async fn new_queue(sqs: &aws_sdk_sqs::Client, name: &str) -> Result<String> {
    sqs.create_queue().queue_name(name).send().await?.queue_url.context("a queue without a URL")
}

fn per_second(count: u32, took: Duration) -> String {
    format!("{:.0} a second", f64::from(count) / took.as_secs_f64())
}
