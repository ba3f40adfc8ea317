//! A terminal: a bash that is typed into, and everything that it starts.
//!
//! Invariant: nothing outlives it. All that runs in it is one process group, which is ended when the terminal is dropped;
//! and when this process is gone itself, the end of bash's input ends the group.

use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail};

/// How long programs may take to end when they are asked to.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);
/// How often a wait looks whether the programs are gone.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a terminal takes over from the machine; everything else the text must set itself.
const INHERITED: [&str; 4] = ["HOME", "LANG", "TMPDIR", "TERM"];
/// Ends the group however bash ends.
const BASH: &str = "trap 'trap - TERM; kill -TERM 0' EXIT\nset -e -o pipefail\n";

/// What terminals of one session share.
#[derive(Debug, Clone)]
pub struct Desk {
    /// Where the files that blocks write lie.
    pub folder: PathBuf,
    /// Where programs are found.
    pub path: OsString,
    /// Further variables.
    pub variables: Vec<(String, String)>,
}

/// A bash that reads what is typed.
pub struct Terminal {
    bash: Child,
    input: Option<ChildStdin>,
    screen: Arc<Screen>,
    folder: PathBuf,
    typed: usize,
}

/// Everything that was printed so far.
#[derive(Default)]
struct Screen {
    text: Mutex<(String, bool)>,
    changed: Condvar,
}

impl Screen {
    fn follow(self: Arc<Self>, mut output: impl Read + Send + 'static) {
        thread::spawn(move || {
            let (mut bytes, mut pending) = ([0; 8192], Vec::new());
            loop {
                let read = output.read(&mut bytes).unwrap_or(0);
                pending.extend_from_slice(&bytes[..read]);
                // A character may be cut in two; what is left over at the end is shown as it is.
                let whole = match std::str::from_utf8(&pending) {
                    Err(error) if read > 0 => error.valid_up_to(),
                    _ => pending.len(),
                };
                let text: Vec<u8> = pending.drain(..whole).collect();
                let mut screen = self.text.lock().unwrap_or_else(PoisonError::into_inner);
                screen.0 += &String::from_utf8_lossy(&text);
                screen.1 = read == 0;
                self.changed.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
    }

    /// Waits until `is_there` of what was printed from `start` on, or `until`; what was printed.
    fn wait(&self, start: usize, until: Instant, is_there: impl Fn(&str) -> bool) -> (String, bool) {
        let mut screen = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let text = screen.0.get(start..).unwrap_or_default();
            let left = until.saturating_duration_since(Instant::now());
            if is_there(text) {
                return (text.to_owned(), true);
            }
            if screen.1 || left.is_zero() {
                return (text.to_owned(), false);
            }
            screen = self.changed.wait_timeout(screen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn length(&self) -> usize {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).0.len()
    }
}

impl Terminal {
    /// Opens one.
    ///
    /// # Errors
    /// When there is no bash.
    pub fn open(desk: &Desk) -> Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc"]).current_dir(&desk.folder).env_clear();
        bash.envs(INHERITED.iter().filter_map(|name| Some((*name, env::var_os(name)?))));
        bash.env("PATH", &desk.path).envs(desk.variables.iter().cloned());
        bash.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
        let mut bash = bash.spawn().context("failed to start bash")?;
        let mut input = bash.stdin.take().context("bash has no input")?;
        input.write_all(BASH.as_bytes())?;
        let screen = Arc::new(Screen::default());
        Arc::clone(&screen).follow(reader);
        Ok(Self { bash, input: Some(input), screen, folder: desk.folder.clone(), typed: 0 })
    }

    /// Types a block and waits for its end; what it printed.
    ///
    /// # Errors
    /// When a command of it fails, or it does not end in time.
    pub fn type_in(&mut self, block: &str, until: Instant) -> Result<Printed> {
        let file = self.script(block)?;
        let mark = format!("[block {} is done]", self.typed);
        let start = self.screen.length();
        self.send(&format!(". {} </dev/null\nprintf '%s\\n' '{mark}'\n", file.display()))?;
        let (text, done) = self.screen.wait(start, until, |text| text.contains(&mark));
        if !done {
            // Bash ends at the first command that fails, and the wait with it.
            let why =
                if Instant::now() < until { "a command of it failed" } else { "it did not end in time" };
            bail!("{why}; it printed:\n{text}");
        }
        Ok(Printed { start, mark })
    }

    /// Types a block that goes on, and waits until it prints `ready`.
    ///
    /// # Errors
    /// When it ends, or does not print that in time.
    pub fn leave_running(&mut self, block: &str, ready: &str, until: Instant) -> Result<()> {
        let file = self.script(block)?;
        // Bash goes on to read, and so learns when this process is gone.
        self.send(&format!("{{ . {} </dev/null || :; kill $$; }} &\n", file.display()))?;
        match self.screen.wait(0, until, |text| text.contains(ready)) {
            (_, true) => Ok(()),
            (text, false) => bail!("it did not print {ready:?}; it printed:\n{text}"),
        }
    }

    /// Whether what was left running runs.
    ///
    /// # Errors
    /// When it ended, with what it printed.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.bash.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "it ended before the text did ({status}):\n{}",
                self.screen.wait(0, Instant::now(), |_| true).0
            ),
        }
    }

    /// Waits until what was printed since a block was typed satisfies `is_there`; the last of it when it never did.
    pub fn shows(
        &self,
        since: &Printed,
        until: Instant,
        is_there: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let without_mark = |text: &str| text.replacen(&since.mark, "", 1);
        match self.screen.wait(since.start, until, |text| is_there(&without_mark(text))) {
            (_, true) => Ok(()),
            (text, false) => Err(without_mark(&text)),
        }
    }

    fn script(&mut self, block: &str) -> Result<PathBuf> {
        self.typed += 1;
        let name = format!(".block-{}-{}.sh", self.bash.id(), self.typed);
        let file = Path::new(&self.folder).join(name);
        fs::write(&file, block)?;
        Ok(file)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("the terminal is closed")?;
        input.write_all(line.as_bytes()).context("bash reads no more: an earlier command ended it")
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.bash.id());
        let _already_gone = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
    }
}

/// What was printed by a block, up to now.
#[derive(Debug, Clone)]
pub struct Printed {
    start: usize,
    mark: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.input.take());
        self.signal("-TERM");
        let until = Instant::now() + STOPPED_WITHIN;
        // The screen ends when the last program that could write to it is gone.
        while !self.screen.text.lock().unwrap_or_else(PoisonError::into_inner).1 && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
        }
        self.signal("-KILL");
        let _gone = self.bash.wait();
    }
}
