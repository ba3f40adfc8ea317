//! How the loops learn that they should end.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Says whether the runtime is to stop. Each loop has its own.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Its time was over.
    Over,
    /// The runtime is to stop.
    Stopped,
}

impl Stop {
    pub(crate) fn new(asked: watch::Receiver<bool>) -> Self {
        Self(asked)
    }

    /// Waits until the runtime is to stop.
    pub(crate) async fn asked(&mut self) {
        // A runtime that was dropped without being stopped is gone all the same.
        let _ = self.0.wait_for(|asked| *asked).await;
    }

    /// Waits for `time`, or less when the runtime is to stop.
    pub(crate) async fn wait(&mut self, time: Duration) -> Wait {
        match timeout(time, self.asked()).await {
            Ok(()) => Wait::Stopped,
            Err(_) => Wait::Over,
        }
    }
}
