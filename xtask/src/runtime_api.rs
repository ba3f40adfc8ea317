//! Just enough of the Lambda Runtime API to see a function start: it waits for the first poll and answers nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::deployment::{aim, region};

const POLL_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// How one start of a function went.
pub struct Start {
    /// From the start of the process to its first request for work.
    pub first_poll_after: Duration,
    /// What it held in memory at that moment, in KiB.
    pub resident_kib: u64,
}

/// Starts `binary` as Lambda would and measures it up to its first poll.
///
/// # Errors
/// When it cannot be started, ends, asks for something else first or does not poll in time.
pub fn start(binary: &Path) -> Result<Start> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?.to_string();
    let mut command = Command::new(binary);
    environment(&mut command, &address);
    let started_at = Instant::now();
    let mut function = Process(command.spawn().context("failed to start the function")?);
    let connection = function.first_connection(&listener, started_at)?;
    let mut request = String::new();
    BufReader::new(&connection).read_line(&mut request)?;
    let first_poll_after = started_at.elapsed();
    if !request.starts_with("GET /2018-06-01/runtime/invocation/next") {
        bail!("the function's first request is not for work: {request:?}");
    }
    Ok(Start { first_poll_after, resident_kib: function.resident_kib()? })
}

/// What Lambda and the template give every function; the address of AWS is one where nobody listens.
fn environment(command: &mut Command, runtime_api: &str) {
    aim(command, "http://127.0.0.1:9");
    let queues = [
        ("TIDEGATE_DISPATCH_QUEUE_URL", "tidegate"),
        ("TIDEGATE_SCAN_QUEUE_URL", "tidegate-scan"),
        ("TIDEGATE_RELEASE_QUEUE_URL", "tidegate-release"),
        ("TIDEGATE_DEAD_LETTER_QUEUE_URL", "tidegate-dead-letters"),
        ("TIDEGATE_RELEASE_DEAD_LETTER_QUEUE_URL", "tidegate-release-dead-letters"),
    ];
    command
        .env("AWS_LAMBDA_RUNTIME_API", runtime_api)
        .env("AWS_LAMBDA_FUNCTION_NAME", "tidegate-measured")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/tidegate-measured")
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "measured")
        .env("TIDEGATE_STACK", "tidegate")
        .env("TIDEGATE_TABLE_PREFIX", "tidegate")
        .envs(
            queues.map(|(variable, name)| {
                (variable, format!("https://sqs.{}.amazonaws.com/0/{name}", region()))
            }),
        )
        .env("TIDEGATE_ALLOW_PRIVATE_TARGETS", "false")
        .env("TIDEGATE_ADMIN_KEY_SHA256", "0".repeat(64))
        .env("TIDEGATE_LOG", "info")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
}

/// A started function, ended with this value.
struct Process(Child);

impl Process {
    fn first_connection(&mut self, listener: &TcpListener, started_at: Instant) -> Result<TcpStream> {
        loop {
            if let Ok((connection, _)) = listener.accept() {
                connection.set_nonblocking(false)?;
                connection.set_read_timeout(Some(POLL_WITHIN))?;
                return Ok(connection);
            }
            if let Some(status) = self.0.try_wait()? {
                bail!("the function ended with {status} before it asked for work");
            }
            if started_at.elapsed() > POLL_WITHIN {
                bail!("the function does not ask for work within {POLL_WITHIN:?}");
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn resident_kib(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing else that could be done about a failure.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
