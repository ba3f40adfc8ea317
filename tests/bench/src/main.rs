//! Figures of Tidegate on the embedded stores: everything in one process, in memory or in a folder.
//!
//! `cargo xtask bench [SECTION] [N]` prints a table. Speed is shown here and asserted nowhere: it depends on the machine.
//! What is counted rather than timed (units, requests, rows) is held by the simulation's budgets.

#![expect(clippy::print_stdout, reason = "the table is what this is for")]

mod api;
mod buckets;
mod creates;
mod crowd;
mod emission;
mod herd;
mod idle;
mod idle_policy;
mod latency;
mod ledger;
mod memory;
mod section;
mod spread;
mod stage;
mod throttled;
mod tokens;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeZone as _, Utc};
use tidegate_domain::clock::Clock;
use tidegate_domain::flow::Flow;
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms};
use tidegate_domain::target::Target;
use tidegate_embedded::{Durability, Embedded};

use section::Asked;

fn main() -> Result<()> {
    let asked = Asked::read(std::env::args().skip(1))?;
    println!("| benchmark | what | result |\n| --- | --- | --- |");
    for section in &asked.sections {
        for (what, result) in section.run(asked.size)? {
            println!("| {} | {what} | {result} |", section.name());
        }
    }
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
        history_days: HistoryDays::DEFAULT,
        max_attempts: None,
        retry: Default::default(),
        relevancy: None,
        flow: Flow::default(),
        unknown: Default::default(),
    })
}

/// Where clocks that are moved by hand begin: the middle of a Tuesday on which no zone changes its clocks.
fn midday() -> Result<DateTime<Utc>> {
    Utc.with_ymd_and_hms(2026, 11, 24, 12, 0, 0).single().context("no such instant")
}

/// The services, in a folder or in memory.
fn embedded(folder: Option<&Path>, clock: Arc<dyn Clock>) -> Result<Embedded> {
    Ok(match folder {
        Some(folder) => Embedded::open(folder, clock, Durability::default())?,
        None => Embedded::in_memory(clock)?,
    })
}

fn per_second(count: u32, took: Duration) -> String {
    format!("{:.0} a second", f64::from(count) / took.as_secs_f64())
}

fn ms(took: Duration) -> String {
    format!("{:.0} ms", took.as_secs_f64() * 1e3)
}
