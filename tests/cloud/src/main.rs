//! Plays the scenarios: all of them, or those that are named, and says what held; in the end, in a table.
//!
//! `cargo xtask cloud [NAME ...] [--share 0.1] [--seed N]`

#![expect(clippy::print_stdout, reason = "what was found is what this is for")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use tidegate_cloud::scenarios;

fn main() -> Result<ExitCode> {
    let (mut names, mut share, mut seed) = (Vec::new(), 1.0, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--share" => share = arguments.next().context("--share needs a number")?.parse()?,
            "--seed" => seed = arguments.next().context("--seed needs a number")?.parse()?,
            _ => names.push(argument),
        }
    }
    let mut table = vec![
        "| scenario | holds | what came | late | played in |".to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    let mut all_hold = true;
    let is_asked = |name: &str| names.is_empty() || names.iter().any(|asked| asked == name);
    for (name, what) in scenarios::all().filter(|(name, _)| is_asked(name)) {
        let began = Instant::now();
        let report = scenarios::play(name, seed, share)?;
        let took = began.elapsed().as_secs_f64();
        println!("{name}: {what} (seed {seed}, share {share}, {took:.1} s)\n{report}");
        all_hold &= report.holds();
        let holds = if report.holds() { "yes" } else { "**no**" };
        let (came, late) = (report.came(), report.figure("late"));
        table.push(format!("| {name}: {what} | {holds} | {came} | {late} | {took:.0} s |"));
    }
    println!("{}", table.join("\n"));
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
