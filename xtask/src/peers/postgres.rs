//! PostgreSQL: the machine's, run as a user of no rights where this is root, as which it refuses to start.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result};

use crate::command::capture;
use crate::peers::process::Process;
use crate::peers::scratch::Scratch;

/// What is said of its durability in the table.
pub const DURABILITY: &str = "fsync on, as by default";
/// Users that it may run as when this is root: Debian's own, and one that is everywhere.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// What everybody sets who wants it to be fast on a machine of its own; none of it makes it less durable.
const TUNED: [&str; 3] = ["shared_buffers=512MB", "max_wal_size=4GB", "checkpoint_timeout=15min"];
const INITIALISED_WITHIN: Duration = Duration::from_secs(60);

/// A PostgreSQL that can be started, and a cluster that each server gets a copy of.
pub struct Postgres {
    programs: PathBuf,
    user: Option<&'static str>,
    cluster: PathBuf,
    /// As it says itself.
    pub version: String,
}

impl Postgres {
    /// # Errors
    /// When there is none, or no user that it can run as.
    pub fn find(scratch: &Scratch) -> Result<Self> {
        let programs =
            folders().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
        let programs =
            programs.context("there is no PostgreSQL on this machine (Debian's package: postgresql)")?;
        let printed = capture(Command::new(programs.join("postgres")).arg("--version"))?;
        let version = printed.split_whitespace().nth(2).unwrap_or("?").to_owned();
        let is_root = fs::metadata("/proc/self")?.uid() == 0;
        let user = if is_root { Some(user().context("no user that PostgreSQL can run as")?) } else { None };
        let cluster = scratch.folder("cluster")?;
        let postgres = Self { programs, user, cluster, version };
        postgres.initialise()?;
        Ok(postgres)
    }

    /// Once for all servers: it takes seconds.
    fn initialise(&self) -> Result<()> {
        if let Some(user) = self.user {
            let id = |flag| capture(Command::new("id").args([flag, user]));
            chown(&self.cluster, Some(id("-u")?.trim().parse()?), Some(id("-g")?.trim().parse()?))?;
        }
        let mut initdb = Command::new(self.programs.join("initdb"));
        initdb.args(["--auth=trust", "--username=bench", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        initdb.arg(self.cluster.join("data")).current_dir("/");
        let logs = self.cluster.with_extension("logs");
        fs::create_dir(&logs)?;
        Process::start(&initdb, self.user, &logs)?
            .finish(INITIALISED_WITHIN)
            .context("failed to run initdb")?;
        Ok(())
    }

    /// Starts a server on `port`, with a copy of the cluster in `folder`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, port: u16, folder: &Path) -> Result<Process> {
        let data = folder.join("data");
        capture(Command::new("cp").arg("-a").arg(&self.cluster).arg(&data))?;
        let mut command = Command::new(self.programs.join("postgres"));
        command.arg("-D").arg(data.join("data")).args(["-p", &port.to_string()]).current_dir("/");
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        command.args(TUNED.iter().flat_map(|setting| ["-c", setting]));
        // At once: its data is thrown away, and a checkpoint would take seconds.
        Ok(Process::start(&command, self.user, folder)?.ended_by("QUIT"))
    }
}

/// Where its programs may lie: the path, and Debian's folder of each version, the latest first.
fn folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    env::split_paths(&path).collect::<Vec<_>>().into_iter().chain(versions.into_iter().rev())
}

fn user() -> Option<&'static str> {
    USERS.into_iter().find(|user| {
        let known = Command::new("id").arg(user).stdout(Stdio::null()).stderr(Stdio::null()).status();
        known.is_ok_and(|status| status.success())
    })
}
