//! Servers of the systems: what can be had on this machine, and a new one with an empty folder for each play.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::command::{capture, run};
use crate::peers::options::Options;
use crate::peers::postgres::{self, Postgres};
use crate::peers::process::Process;
use crate::peers::redis::{self, Redis};
use crate::peers::scratch::Scratch;
use crate::peers::systems::System;
use crate::port::free_port;
use crate::tools;
use crate::workspace::{Workspace, cargo};

/// Names the binary to be played, instead of one that is built.
const BINARY: &str = "TIDEGATE_BIN";
/// The programs that are built.
pub const TIDEGATE: &str = "tidegate";
pub const PLAYER: &str = "tidegate-player";
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The programs that servers are made of.
pub struct Servers {
    tidegate: PathBuf,
    /// Plays Tidegate in Rust.
    player: PathBuf,
    tidegate_version: String,
    redis: Option<Redis>,
    postgres: Option<Postgres>,
    /// Those that can be played here.
    pub systems: Vec<System>,
    /// Why others cannot.
    pub skipped: Vec<String>,
}

/// A running server, and what its adapter is told of it.
pub struct Server {
    pub process: Process,
    pub address: Value,
}

impl Servers {
    /// Of Tidegate alone, by programs that are built.
    ///
    /// # Errors
    /// When it does not tell its version.
    pub fn ours(tidegate: PathBuf, player: PathBuf) -> Result<Self> {
        let version = capture(Command::new(&tidegate).arg("--version"))?;
        let tidegate_version = version.trim().trim_start_matches("tidegate ").to_owned();
        Ok(Self {
            tidegate,
            player,
            tidegate_version,
            redis: None,
            postgres: None,
            systems: Vec::new(),
            skipped: Vec::new(),
        })
    }

    /// Builds or finds Tidegate, and finds or installs the others.
    ///
    /// # Errors
    /// When there is no Tidegate.
    pub fn prepare(workspace: &Workspace, options: &Options, scratch: &Scratch) -> Result<Self> {
        let (tidegate, player) = programs(workspace, options)?;
        let mut servers = Self::ours(tidegate, player)?;
        let skipped = &mut servers.skipped;
        servers.redis = Redis::find(workspace)
            .inspect_err(|error| skipped.push(format!("BullMQ is skipped: {error:#}")))
            .ok();
        servers.postgres = Postgres::find(scratch)
            .inspect_err(|error| skipped.push(format!("pg-boss and graphile-worker are skipped: {error:#}")))
            .ok();
        servers.skipped.iter().for_each(|sentence| eprintln!("{sentence}"));
        servers.systems =
            System::ALL.into_iter().filter(|&system| servers.backend(system).is_some()).collect();
        Ok(servers)
    }

    /// The program that plays Tidegate in Rust.
    pub fn rust(&self) -> Command {
        Command::new(&self.player)
    }

    /// The server beneath a system with its version and how durable it was set; nothing when there is none here.
    pub fn backend(&self, system: System) -> Option<String> {
        match system {
            System::Tidegate => Some(format!("{}: a data folder, as by default", self.tidegate_version)),
            System::TidegateRust => Some("is the same, played by a consumer in Rust".to_owned()),
            System::BullMq => {
                self.redis.as_ref().map(|redis| format!("Redis {}: {}", redis.version, redis::DURABILITY))
            }
            System::PgBoss | System::GraphileWorker => self
                .postgres
                .as_ref()
                .map(|postgres| format!("PostgreSQL {}: {}", postgres.version, postgres::DURABILITY)),
        }
    }

    /// Starts the server of `system` with its data in `folder`.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(&self, system: System, folder: &Path) -> Result<Server> {
        let port = free_port()?;
        let (process, address) = match system {
            System::Tidegate | System::TidegateRust => self.start_tidegate(port, folder)?,
            System::BullMq => {
                let redis = self.redis.as_ref().context("there is no Redis")?;
                (Process::start(&redis.server(port, folder), None, folder)?, json!({"port": port}))
            }
            System::PgBoss | System::GraphileWorker => {
                let postgres = self.postgres.as_ref().context("there is no PostgreSQL")?;
                let url = format!("postgres://bench@127.0.0.1:{port}/postgres");
                (postgres.start(port, folder)?, json!({"url": url}))
            }
        };
        let mut server = Server { process, address };
        server.address["pid"] = json!(server.process.pid());
        Ok(server)
    }

    fn start_tidegate(&self, port: u16, folder: &Path) -> Result<(Process, Value)> {
        let mut command = Command::new(&self.tidegate);
        command.args(["local", "--output", "json", "--queue", "bench", "--data"]).arg(folder.join("data"));
        command.env("TIDEGATE_PORT", port.to_string()).env("TIDEGATE_SQS_PORT", free_port()?.to_string());
        // A line for each request is written otherwise; none of the others' servers does that.
        command.env("TIDEGATE_LOG", "warn");
        let mut process = Process::start(&command, None, folder)?;
        let printed = process.wait_until(READY_WITHIN, |printed| printed.ends_with('\n'))?;
        let banner: Value = serde_json::from_str(&printed).context("tidegate local printed no JSON")?;
        let address = json!({
            "api": banner["api"], "sqs": banner["sqs"], "queue": banner["queues"][0], "admin_key": banner["admin_key"],
        });
        Ok((process, address))
    }
}

/// Tidegate, the binary that is named or one that is built, and the player: for the short form as the tests build them, which are
/// there already.
fn programs(workspace: &Workspace, options: &Options) -> Result<(PathBuf, PathBuf)> {
    let named = env::var_os(BINARY).map(PathBuf::from);
    if let Some(binary) = &named {
        ensure!(binary.is_file(), "{BINARY} names {}, which is no file", binary.display());
    }
    let folder = if options.quick {
        tools::build_tests(workspace)?;
        "debug"
    } else {
        let mut build = cargo(workspace);
        build.args(["build", "--release", "--locked", "--bin", PLAYER]);
        if named.is_none() {
            build.args(["--bin", TIDEGATE]);
        }
        run(&mut build)?;
        "release"
    };
    let built = |name: &str| workspace.target().join(folder).join(name);
    Ok((named.unwrap_or_else(|| built(TIDEGATE)), built(PLAYER)))
}
