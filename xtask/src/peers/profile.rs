//! `cargo xtask bench profile WORK`: what the server's processor time goes into while a work is played, creation included.
//!
//! `perf` samples a build that keeps its frame pointers and names, without link-time optimisation, which would melt functions into
//! each other. It is slower for being watched: shares are what to look at, and before and after by the same hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::{capture, run};
use crate::peers::options::Options;
use crate::peers::player::play_on;
use crate::peers::process::Process;
use crate::peers::results::Played;
use crate::peers::scratch::Scratch;
use crate::peers::servers::{PLAYER, Servers, TIDEGATE};
use crate::peers::systems::System;
use crate::peers::works::{self, Work};
use crate::tools;
use crate::workspace::{Workspace, cargo};

const SAMPLES_A_SECOND: &str = "1999";
/// How long it may take to write the last samples down.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);
/// Rows that are printed: of functions by themselves, and with what they call.
const ROWS: [usize; 2] = [25, 60];
/// What begins the names of functions that are told with what they call: ours, SQLite's, and calls of the system.
const TOLD: [&str; 4] = ["tidegate_", "<tidegate_", "sqlite3_", "__x64_sys_"];
/// Digits that the compiler puts behind a name.
const HASH: usize = 16;

/// Plays a work, prints what the time went into, and leaves a flame graph beside the build.
///
/// # Errors
/// When no such work is known, there is no `perf`, or the play fails.
pub fn profile(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let works = works::all(&Options::read(&[])?);
    let names = || works.iter().map(|work| work.name).collect::<Vec<_>>().join(", ");
    let [name] = arguments else { bail!("bench profile needs the name of one work: {}", names()) };
    let work = works.iter().find(|work| work.name == name);
    let work = work.with_context(|| format!("bench profile knows no {name:?}: {}", names()))?;
    let version = capture(Command::new("perf").arg("--version"));
    version.context("perf cannot be run here: Debian has it in linux-perf")?;
    let target = workspace.target().join("profile");
    let mut build = cargo(workspace);
    build.args(["build", "--profile", "simulate", "--locked", "--bin", TIDEGATE, "--bin", PLAYER]);
    run(build.arg("--target-dir").arg(&target).env("RUSTFLAGS", "-C force-frame-pointers=yes"))?;
    let built = |name: &str| target.join("simulate").join(name);
    let servers = Servers::ours(built(TIDEGATE), built(PLAYER))?;
    let samples = target.join(format!("{name}.perf"));
    let played = sample(work, &servers, &samples)?;
    let mut script = Command::new("perf");
    let script = capture(script.args(["script", "--fields", "ip,sym", "--input"]).arg(&samples))?;
    let stacks = Stacks::of(&script);
    println!("{}: {played}\n{}", work.title, stacks.table());
    let (folded, graph) = (target.join(format!("{name}.stacks")), target.join(format!("{name}.svg")));
    fs::write(&folded, stacks.folded())?;
    let mut draw = Command::new(tools::FLAMEGRAPH.program(workspace)?);
    fs::write(&graph, capture(draw.arg(&folded))?)?;
    println!("the samples are {}, the flame graph is {}", samples.display(), graph.display());
    Ok(())
}

/// Plays `work` and has the server's samples written to a file.
fn sample(work: &Work, servers: &Servers, samples: &Path) -> Result<Played> {
    let scratch = Scratch::new()?;
    let server = servers.start(System::TidegateRust, &scratch.folder("server")?)?;
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "--call-graph", "fp", "--freq", SAMPLES_A_SECOND, "--pid"]);
    perf.arg(server.process.pid().to_string()).arg("--output").arg(samples);
    let perf = Process::start(&perf, None, &scratch.folder("perf")?)?;
    let played = play_on(&server, (work, System::TidegateRust), servers.rust(), &scratch)?;
    // It ends with what it watches.
    drop(server);
    perf.finish(WRITTEN_WITHIN)?;
    Ok(played)
}

/// In how many samples each stack was found, its innermost function first.
struct Stacks<'s>(BTreeMap<Vec<&'s str>, usize>);

impl<'s> Stacks<'s> {
    /// As `perf script` writes them: a function a line, the innermost first, and an empty line between samples.
    fn of(script: &'s str) -> Self {
        let mut stacks: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for sample in script.split("\n\n") {
            let stack: Vec<&str> = sample.lines().filter_map(function).collect();
            if !stack.is_empty() {
                *stacks.entry(stack).or_default() += 1;
            }
        }
        Self(stacks)
    }

    fn samples(&self) -> usize {
        self.0.values().sum()
    }

    /// In how many samples each function was the innermost.
    fn itself(&self) -> BTreeMap<&'s str, usize> {
        self.count(|stack| stack.iter().take(1).copied().collect())
    }

    /// In how many samples each function was anywhere.
    fn with_calls(&self) -> BTreeMap<&'s str, usize> {
        self.count(|stack| stack.iter().copied().collect())
    }

    fn count(&self, functions: impl Fn(&[&'s str]) -> BTreeSet<&'s str>) -> BTreeMap<&'s str, usize> {
        let mut counts = BTreeMap::new();
        for (stack, samples) in &self.0 {
            for function in functions(stack) {
                *counts.entry(function).or_default() += samples;
            }
        }
        counts
    }

    /// The stacks as they are drawn from: a line for each, the outermost function first.
    fn folded(&self) -> String {
        let line = |(stack, count): (&Vec<&str>, &usize)| {
            let outermost_first: Vec<&str> = stack.iter().rev().copied().collect();
            format!("{} {count}\n", outermost_first.join(";"))
        };
        self.0.iter().map(line).collect()
    }

    fn table(&self) -> String {
        let [of_itself, of_calls] = ROWS;
        let is_told = |name: &str| TOLD.iter().any(|begin| name.starts_with(begin));
        format!(
            "{} samples\n\nby itself\n{}\nwith what it calls\n{}",
            self.samples(),
            self.rows(self.itself(), of_itself, |_| true),
            self.rows(self.with_calls(), of_calls, is_told),
        )
    }

    fn rows(&self, counts: BTreeMap<&str, usize>, most: usize, is_told: impl Fn(&str) -> bool) -> String {
        let samples = self.samples() as f64;
        let mut rows: Vec<_> = counts.into_iter().filter(|(name, _)| is_told(name)).collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let row = |(name, count): (&str, usize)| format!("{:6.2} % {name}\n", 100.0 * count as f64 / samples);
        rows.into_iter().take(most).map(row).collect()
    }
}

/// The function of a line: an address, and a name that may end with what tells it from others of its name.
fn function(line: &str) -> Option<&str> {
    let (_, name) = line.trim().split_once(' ')?;
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == HASH && hash.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            Some(name)
        }
        _ => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "
\t    7f5a1 sqlite3_step
\t    7f5a2 tidegate_store::rows::update::h0123456789abcdef
\t    7f5a3 tokio::runtime::park

\t    7f5a4 tidegate_store::rows::update::hfedcba9876543210
\t    7f5a2 tidegate_store::rows::update::h0123456789abcdef
\t    7f5a3 tokio::runtime::park

\t    7f5a5 core::hash::hash_one

";

    #[test]
    fn a_function_counts_once_in_a_sample_whatever_it_is_compiled_as() {
        let stacks = Stacks::of(SCRIPT);
        assert_eq!(stacks.samples(), 3);
        let update = "tidegate_store::rows::update";
        let itself = [("core::hash::hash_one", 1), ("sqlite3_step", 1), (update, 1)];
        assert_eq!(stacks.itself(), BTreeMap::from(itself));
        assert_eq!(stacks.with_calls()[update], 2);
        assert_eq!(stacks.with_calls()["tokio::runtime::park"], 2);
    }

    #[test]
    fn the_table_tells_the_largest_shares_first_and_leaves_the_runtime_out_of_what_calls() {
        let table = Stacks::of(SCRIPT).table();
        let (_, calls) = table.split_once("with what it calls\n").unwrap();
        assert_eq!(calls, " 66.67 % tidegate_store::rows::update\n 33.33 % sqlite3_step\n");
        assert!(table.contains(" 33.33 % core::hash::hash_one\n"), "{table}");
    }

    #[test]
    fn equal_stacks_are_one_line_that_begins_at_the_outermost() {
        let script = SCRIPT.repeat(2);
        let folded = Stacks::of(&script).folded();
        let lines: Vec<&str> = folded.lines().collect();
        let rows = "tokio::runtime::park;tidegate_store::rows::update";
        let expected = [
            "core::hash::hash_one 2".to_owned(),
            format!("{rows};sqlite3_step 2"),
            format!("{rows};tidegate_store::rows::update 2"),
        ];
        assert_eq!(lines, expected);
    }
}
