//! When a command ends: Ctrl-C, the signal by which service managers ask a process to end, or the time of `--for`.

use std::io;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;

/// What a process ends with that Ctrl-C killed.
const KILLED_BY_CTRL_C: i32 = 130;

/// Tells when the process is asked to stop.
#[derive(Debug, Clone)]
pub(crate) struct StopAsked(watch::Receiver<bool>);

impl StopAsked {
    /// Waits for it.
    pub(crate) async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for it, or until the time is over, if there is one.
    pub(crate) async fn asked_within(&mut self, time: Option<Duration>) {
        let over = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            () = self.asked() => {}
        }
    }
}

/// Starts to listen. The first signal asks to stop in good order; a second one ends the process at once.
pub(crate) fn listen() -> anyhow::Result<StopAsked> {
    let mut signals = Signals::new().context("failed to listen for signals")?;
    let (ask, asked) = watch::channel(false);
    tokio::spawn(async move {
        signals.next().await;
        ask.send_replace(true);
        signals.next().await;
        std::process::exit(KILLED_BY_CTRL_C);
    });
    Ok(StopAsked(asked))
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
