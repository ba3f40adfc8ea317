//! A process that ends with the value that stands for it, and with this process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{capture, see_end};

const POLL_EVERY: Duration = Duration::from_millis(20);

/// A server or a player.
///
/// Invariant: it does not outlive this value. Where there is `setpriv`, it does not outlive this process either, however
/// that ends.
pub struct Process {
    child: Child,
    output: PathBuf,
    signal: &'static str,
}

impl Process {
    /// Starts `command`, as `user` where one is named. What it prints lies in `folder`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &Command, user: Option<&str>, folder: &Path) -> Result<Self> {
        let output = folder.join("stdout");
        let mut command = guarded(command, user)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(folder.join("stderr"))?)
            .spawn()
            .with_context(|| format!("failed to start {}", command.get_program().display()))?;
        Ok(Self { child, output, signal: "INT" })
    }

    /// The same, which ends with `signal` instead of an interrupt.
    pub fn ended_by(mut self, signal: &'static str) -> Self {
        self.signal = signal;
        self
    }

    /// The process whose descendants are all of it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to standard output so far.
    ///
    /// # Errors
    /// When that cannot be read, or is no text.
    pub fn printed(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.output)?)
    }

    /// Waits until `is_ready` is true of what it printed.
    ///
    /// # Errors
    /// When it ends before, or `within` is over.
    pub fn wait_until(&mut self, within: Duration, is_ready: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            let ended = self.child.try_wait()?;
            let printed = self.printed()?;
            if is_ready(&printed) {
                return Ok(printed);
            }
            if let Some(status) = ended {
                bail!("it ended with {status}: {}", self.complaint());
            }
            if Instant::now() > deadline {
                bail!("it is not ready after {within:?}: {}", self.complaint());
            }
            thread::sleep(POLL_EVERY);
        }
    }

    /// Waits until it has ended well, and gives what it printed.
    ///
    /// # Errors
    /// When it fails, or takes longer than `within`.
    pub fn finish(mut self, within: Duration) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return self.printed(),
                Some(status) => bail!("it ended with {status}: {}", self.complaint()),
                None if Instant::now() > deadline => bail!("it did not end within {within:?}"),
                None => thread::sleep(POLL_EVERY),
            }
        }
    }

    /// The end of what it wrote to standard error.
    fn complaint(&self) -> String {
        const LINES: usize = 12;
        let text = fs::read_to_string(self.output.with_file_name("stderr")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Asks first: a killed PostgreSQL would leave the processes that it started behind for a while.
    fn stop(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = self.pid().to_string();
        Command::new("kill").args(["-s", self.signal, &pid]).stderr(Stdio::null()).status()?;
        see_end(&mut self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("failed to stop process {}: {error:#}", self.pid());
        }
    }
}

/// `command` through `setpriv`, which has the kernel end it with the thread that starts it.
fn guarded(command: &Command, user: Option<&str>) -> Result<Command> {
    let mut guarded = Command::new("setpriv");
    if !has_setpriv() {
        if let Some(user) = user {
            bail!("there is no setpriv to run {} as {user}", command.get_program().display());
        }
        guarded = Command::new(command.get_program());
    } else {
        guarded.args(["--pdeathsig", "INT"]);
        if let Some(user) = user {
            let group = capture(Command::new("id").args(["-g", user]))?;
            guarded.args(["--reuid", user, "--regid", group.trim(), "--clear-groups"]);
        }
        guarded.arg("--").arg(command.get_program());
    }
    guarded.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(name, value),
            None => guarded.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    Ok(guarded)
}

fn has_setpriv() -> bool {
    let version =
        Command::new("setpriv").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
