//! `cargo xtask bench peers`: the same work on Tidegate and on its peers, on this machine, from outside.
//!
//! Every play has a server of its own with an empty folder, and a process that creates and consumes: of Node
//! (`tests/bench/peers`), and ours once more of Rust (`tests/player`). The systems take turns
//! within a round, so that a busy minute of the machine meets all of them.
//! Speed is printed and asserted nowhere; what must hold at any speed fails the short form.

mod document;
mod guarantees;
mod install;
mod machine;
mod names;
mod options;
mod player;
mod postgres;
mod process;
mod profile;
mod redis;
mod results;
mod scratch;
mod servers;
mod systems;
mod table;
mod works;

use std::thread;

use anyhow::{Result, bail};

use crate::peers::install::Packages;
use crate::peers::machine::Machine;
use crate::peers::options::Options;
use crate::peers::player::Player;
use crate::peers::results::{Played, Results};
use crate::peers::scratch::Scratch;
use crate::peers::servers::Servers;
use crate::peers::systems::System;
use crate::peers::works::Work;
use crate::workspace::Workspace;

pub use crate::peers::profile::profile;

/// Installs what is missing, plays the works, and prints the table.
///
/// # Errors
/// When there is no Tidegate or no Node, or in the short form when something does not hold that must.
pub fn peers(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::read(arguments)?;
    let works: Vec<Work> =
        works::all(&options).into_iter().filter(|work| options.plays(work.name, &names::WORKS)).collect();
    let machine = Machine::look()?;
    let packages = Packages::install(workspace)?;
    packages.test()?;
    let scratch = Scratch::new()?;
    let mut servers = Servers::prepare(workspace, &options, &scratch)?;
    servers.systems.retain(|system| options.plays(system.name(), &names::SYSTEMS));
    let player = Player { packages: &packages, servers: &servers, scratch: &scratch };

    let mut results = Results::default();
    for round in 1..=options.rounds {
        for work in &works {
            eprintln!("round {round} of {}: {}", options.rounds, work.name);
            if options.quick {
                play_side_by_side(&player, work, &mut results);
            } else {
                play_in_turn(&player, work, round, &mut results);
            }
        }
    }
    let tables = table::tables(&works, &servers, &results)?;
    let page = document::page(&options, &machine, &servers, &packages, &tables);
    println!("{page}");
    if options.write {
        document::write(workspace, &page)?;
    }
    let broken = results.broken(&works);
    if options.quick && !broken.is_empty() {
        bail!("not all that must hold held:\n  {}", broken.join("\n  "));
    }
    Ok(())
}

/// Plays `work` on one system after the other, in each round beginning with another.
fn play_in_turn(player: &Player<'_>, work: &Work, round: usize, results: &mut Results) {
    let systems = &player.servers.systems;
    for &system in systems.iter().cycle().skip(round - 1).take(systems.len()) {
        keep(work, system, player.play(work, system), results);
    }
}

/// Plays `work` on all systems at once: nobody reads the speed of the short form.
fn play_side_by_side(player: &Player<'_>, work: &Work, results: &mut Results) {
    thread::scope(|scope| {
        let begun = player
            .servers
            .systems
            .iter()
            .map(|&system| (system, scope.spawn(move || player.play(work, system))));
        for (system, thread) in begun.collect::<Vec<_>>() {
            let played = thread.join().unwrap_or_else(|_| bail!("the thread that played it panicked"));
            keep(work, system, played, results);
        }
    });
}

/// Says what came of a play, and keeps it. One that fails leaves a gap in the table.
fn keep(work: &Work, system: System, played: Result<Played>, results: &mut Results) {
    match played {
        Ok(played) => {
            eprintln!("  {:<16} {played}", system.name());
            results.add(work.name, system, played);
        }
        Err(error) => {
            eprintln!("  {:<16} failed: {error:#}", system.name());
            results.failed(work.name, system, &error);
        }
    }
}
