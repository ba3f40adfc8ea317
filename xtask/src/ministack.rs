//! A MiniStack of this recipe's own: on a free loopback port, with IAM enforced, stopped in all cases.

use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};

use crate::command::see_end;
use crate::port::free_port;
use crate::venv::Venv;
use crate::workspace::Workspace;

const READY_WITHIN: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(100);

/// A running MiniStack.
///
/// Invariant: it never outlives this value, nor this process: the script ends when its standard input closes.
pub struct MiniStack {
    child: Child,
    endpoint: String,
    log: PathBuf,
}

impl MiniStack {
    /// Starts one that keeps its files in `folder`, and waits until it listens.
    ///
    /// # Errors
    /// When it cannot be installed or does not listen in time.
    pub fn start(workspace: &Workspace, folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let scratch = folder.join("ministack");
        fs::create_dir_all(&scratch)?;
        let log = folder.join("ministack.log");
        let output = File::create(&log)?;
        let child = Venv::ministack(workspace)?
            .program("python")
            .arg(workspace.root().join("infra/run_ministack.py"))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("BIND_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .env("IOT_MTLS_ENABLED", "0")
            // Each function runs with its role's credentials and may do only what the template grants.
            .env("AUTH", "true")
            .env("TMPDIR", &scratch)
            .spawn()
            .context("failed to start MiniStack")?;
        let mut started = Self { child, endpoint, log };
        started.wait_until_it_listens(port)?;
        Ok(started)
    }

    /// Its address, as `AWS_ENDPOINT_URL` takes it.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The process whose descendants are the functions that it runs.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it and the functions that it runs write what they say.
    pub fn log(&self) -> &Path {
        &self.log
    }

    fn wait_until_it_listens(&mut self, port: u16) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("MiniStack ended with {status}; see {}", self.log.display());
            }
            if Instant::now() > deadline {
                bail!("MiniStack does not listen after {READY_WITHIN:?}; see {}", self.log.display());
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(())
    }

    /// Closes its lifeline first: a killed MiniStack would leave the functions that it started behind.
    fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        see_end(&mut self.child)
    }
}

impl Drop for MiniStack {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("failed to stop MiniStack: {error:#}");
        }
    }
}
