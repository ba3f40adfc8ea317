//! Plays one work on one system: a server of its own, and a process that reads the work and prints its figures: of Node, or
//! of Rust where that is asked for.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::peers::install::Packages;
use crate::peers::process::Process;
use crate::peers::results::Played;
use crate::peers::scratch::Scratch;
use crate::peers::servers::{Server, Servers};
use crate::peers::systems::System;
use crate::peers::works::Work;

/// The longest work waits for its events itself; this is for a player that hangs.
const ENDS_WITHIN: Duration = Duration::from_secs(15 * 60);

/// What a play needs.
pub struct Player<'a> {
    pub packages: &'a Packages,
    pub servers: &'a Servers,
    pub scratch: &'a Scratch,
}

impl Player<'_> {
    /// # Errors
    /// When the server or the player fails.
    pub fn play(&self, work: &Work, system: System) -> Result<Played> {
        let folder = self.scratch.folder(system.name())?;
        let server = self.servers.start(system, &folder)?;
        let played = play_on(&server, (work, system), self.program(system), self.scratch)?;
        // Before its folder goes.
        drop(server);
        std::fs::remove_dir_all(&folder).with_context(|| format!("failed to remove {}", folder.display()))?;
        Ok(played)
    }

    /// The program that plays `system`.
    fn program(&self, system: System) -> Command {
        if system == System::TidegateRust {
            return self.servers.rust();
        }
        let mut node = self.packages.node();
        node.arg("play.mjs");
        node
    }
}

/// Has `player` play `work` on a server of `system`.
///
/// # Errors
/// When the player fails.
pub fn play_on(
    server: &Server,
    (work, system): (&Work, System),
    mut player: Command,
    scratch: &Scratch,
) -> Result<Played> {
    let asked = json!({"system": system.name(), "server": server.address, "work": work.play});
    player.arg(asked.to_string());
    let printed = Process::start(&player, None, &scratch.folder("player")?)?.finish(ENDS_WITHIN)?;
    let line = printed.lines().last().context("the player printed nothing")?;
    let line: Value = serde_json::from_str(line).with_context(|| format!("the player printed {line:?}"))?;
    Ok(Played::read(&line))
}
