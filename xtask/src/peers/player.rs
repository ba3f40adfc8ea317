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
use crate::peers::servers::Servers;
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
        let asked = json!({"system": system.name(), "server": server.address, "work": work.play});
        let logs = self.scratch.folder("player")?;
        let mut player = self.program(system);
        player.arg(asked.to_string());
        let printed = Process::start(&player, None, &logs)?.finish(ENDS_WITHIN)?;
        // Before its folder goes.
        drop(server);
        std::fs::remove_dir_all(&folder).with_context(|| format!("failed to remove {}", folder.display()))?;
        let line = printed.lines().last().context("the player printed nothing")?;
        let line: Value =
            serde_json::from_str(line).with_context(|| format!("the player printed {line:?}"))?;
        Ok(Played::read(&line))
    }

    /// The program that plays `system`.
    fn program(&self, system: System) -> Command {
        if system == System::TidegateRust {
            return Command::new(&self.servers.player);
        }
        let mut node = self.packages.node();
        node.arg("play.mjs");
        node
    }
}
